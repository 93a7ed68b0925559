"""Writes the golden cuts of every chunker: `python3 generate.py [NAME…]`.

Independent of the Rust code: each chunker is transcribed from its definition in
docs/format/chunkers.md. A file NAME.txt has blocks of four lines: the case, the number of chunks,
the FNV-1a checksum (64 bits) of all lengths as little-endian u32, the first 20 lengths.
"""

import importlib
import pathlib
import sys

import data

FAMILIES = ["gear", "fold", "windowed", "hashless", "presets", "shield"]
HERE = pathlib.Path(__file__).parent


def checksum(lengths):
    value = 0xCBF29CE484222325
    for length in lengths:
        for byte in length.to_bytes(4, "little"):
            value = ((value ^ byte) * 0x100000001B3) & data.MASK
    return value


def lengths(cut, p, content):
    out, start = [], 0
    while start < len(content):
        window = content[start : start + p["max"]]
        out.append(len(window) if len(window) <= p["min"] else cut(window))
        start += out[-1]
    return out


def block(make, p, kind, seed, key_seed, count):
    key = None
    if key_seed is not None:
        numbers = data.splitmix64(key_seed)
        key = [next(numbers) for _ in range(256)]
    result = lengths(make(p, key), p, data.KINDS[kind](seed, count))
    words = [f"data={kind}", f"seed={seed}", f"bytes={count}"]
    words.append("key=none" if key_seed is None else f"key={key_seed}")
    words += [f"{name}={value}" for name, value in p.items() if name != "bytes"]
    return (
        f"case {' '.join(words)}\ncount {len(result)}\nchecksum {checksum(result):#018x}\n"
        f"first {' '.join(map(str, result[:20]))}\n"
    )


def main():
    for family in FAMILIES:
        if not (HERE / f"{family}.py").exists():
            continue
        module = importlib.import_module(family)
        for name, (make, cases) in module.CASES.items():
            if sys.argv[1:] and name not in sys.argv[1:]:
                continue
            blocks = []
            for index, p in enumerate(cases):
                count = p.get("bytes", 1 << 20 if index == 0 else 1 << 17)
                blocks += [block(make, p, kind, seed, None, count)
                           for seed, kind in enumerate(data.KINDS, 1)]
            if name in module.KEYED:
                p = cases[0]
                blocks.append(block(make, p, "random", 1, 2, p.get("bytes", 1 << 20)))
            (HERE.parent / f"{name}.txt").write_text("\n".join(blocks))
            print(name, len(blocks))


if __name__ == "__main__":
    main()
