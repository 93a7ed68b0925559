"""Writes the golden features of every detector: `python3 generate.py`.

Independent of the Rust code: transcribed from docs/format/similarity.md. A file NAME.txt has blocks of
three lines: the case, the features (or none), the super-features (or none).
"""

import pathlib
import sys

HERE = pathlib.Path(__file__).parent
sys.path.insert(0, str(HERE.parents[1] / "chunkers" / "reference"))
import data  # noqa: E402

M32 = (1 << 32) - 1
M64 = (1 << 64) - 1
WINDOW = 32


def windows(chunk, size):
    return (chunk[i : i + size] for i in range(len(chunk) - size + 1))


def rabin(window):
    polynomial = 0x104C11DB7
    rest = int.from_bytes(window, "big")
    while rest.bit_length() > 32:
        rest ^= polynomial << (rest.bit_length() - 33)
    return rest


def gear_table(bits):
    numbers = data.splitmix64(int.from_bytes(b"onefold1", "little"))
    return [next(numbers) >> (64 - bits) for _ in range(256)]


def fold(value):
    return (value ^ value >> 32) & M32


def n_transform(chunk):
    return [rabin(window) for window in windows(chunk, WINDOW)]


def odess(chunk, bits=32, mask=0x40030341):
    table = gear_table(bits)
    out = []
    for window in windows(chunk, bits):
        value = sum(table[byte] << (bits - 1 - i) for i, byte in enumerate(window)) % (1 << bits)
        if value & mask == 0:
            out.append(fold(value))
    return out


def odess_plus(chunk, size=4, rate_bits=7):
    bits = 128 // size
    boundary = (1 << bits) - 1 - (1 << (bits - rate_bits))
    out = []
    for window in windows(chunk, WINDOW):
        parts = [window[i : i + size] for i in range(0, WINDOW, size)]
        value = sum(int.from_bytes(part, "big") << 4 * (len(parts) - 1 - j) for j, part in enumerate(parts))
        value %= 1 << bits
        if value >= boundary:
            out.append(fold(value))
    return out


def transforms(count):
    numbers = data.splitmix64(int.from_bytes(b"features", "little"))
    return [((x := next(numbers)) & M32 | 1, x >> 32) for _ in range(count)]


def minima(values, count):
    if not values:
        return None
    return [min((value * m + a) & M32 for value in values) for m, a in transforms(count)]


def finesse(chunk, count):
    bounds = [k * len(chunk) // count for k in range(count + 1)]
    parts = [chunk[bounds[k] : bounds[k + 1]] for k in range(count)]
    if len(chunk) // count < WINDOW:
        return None
    return [max(rabin(window) for window in windows(part, WINDOW)) for part in parts]


def super_feature(number, group):
    value = next(data.splitmix64(number + 1))
    for feature in group:
        value = next(data.splitmix64(value ^ feature))
    return value & M32


def super_features(features, tiers, is_sorted):
    out = []
    for size in tiers:
        count = len(features) // size
        if is_sorted:
            lists = [sorted(features[i : i + count]) for i in range(0, len(features), count)]
            groups = [[part[k] for part in lists] for k in range(count)]
        else:
            groups = [features[i : i + size] for i in range(0, len(features), size)]
        for group in groups:
            out.append(super_feature(len(out), group))
    return out


def block(words, features, tiers, is_sorted=False):
    line = lambda numbers: " ".join(f"{number:08x}" for number in numbers)
    sf = "none" if features is None else line(super_features(features, tiers, is_sorted))
    return f"case {words}\nfeatures {'none' if features is None else line(features)}\nsuper {sf}\n"


def chunks():
    for seed, (kind, make) in enumerate(data.KINDS.items(), 1):
        for count in (0, 31, 32, 100, 383, 384, 2048, 8191, 20000):
            yield f"data={kind} seed={seed} bytes={count}", make(seed, count)


TIERS = [(12, [4]), (12, [4, 3, 2]), (24, [6])]


def write(name, values, variants):
    """`values(chunk, *variant)` are what counts; variants are (words, arguments)."""
    blocks = []
    for words, chunk in chunks():
        for more, arguments in variants:
            for count, tiers in TIERS:
                if (more, count) != (variants[0][0], 12) and len(chunk) not in (100, 8191):
                    continue
                features = values(chunk, count, *arguments)
                case = f"{words} features={count} tiers={','.join(map(str, tiers))}{more}"
                blocks.append(block(case, features, tiers, name == "finesse"))
    (HERE.parent / f"{name}.txt").write_text("\n".join(blocks))
    print(name, len(blocks))


def main():
    write("n-transform", lambda chunk, count: minima(n_transform(chunk), count), [("", ())])
    write("finesse", finesse, [("", ())])
    wide = 0x0000400303410000
    masks = [("", ()), (" mask=0xf7", (32, 0xF7)), (f" hash_bits=64 mask={wide:#x}", (64, wide))]
    write("odess", lambda chunk, count, *it: minima(odess(chunk, *it), count), masks)
    bounds = [("", ())]
    bounds += [(f" sub_windows={n} rate_bits={r}", (n, r)) for n, r in ((2, 7), (8, 7), (4, 3), (4, 9))]
    write("odess+", lambda chunk, count, *it: minima(odess_plus(chunk, *it), count), bounds)


if __name__ == "__main__":
    main()
