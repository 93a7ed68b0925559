"""Writes and checks the golden deltas: `python3 deltas.py`.

Independent of the Rust code: decoders transcribed from docs/format/delta.md, and deltas put together
by hand. Of zstd, raw and RLE blocks alone are decoded here; samples of `prefix.txt` whose names begin
with "zstd" have compressed blocks, were made by zstd 1.5.7 once, and are kept as they are.
"""

import pathlib

HERE = pathlib.Path(__file__).parent
REPLACED, INSERTED, FORWARD, BACKWARD = range(4)


class Refused(Exception):
    pass


def require(condition):
    if not condition:
        raise Refused


def decode_instructions(base, delta, target_bytes):
    front, back = 0, len(delta)
    target, base_end = b"", 0

    def byte():
        nonlocal back
        require(front < back)
        back -= 1
        return delta[back]

    def number():
        value = 0
        for index in range(4):
            b = byte()
            value |= (b & 0x7F) << 7 * index
            if b < 0x80:
                require(b or not index)
                return value
        raise Refused

    while len(target) < target_bytes:
        first = byte()
        jump, insert = first & 3, first >> 2
        if insert == 63:
            insert += number()
        start = base_end + (0 if jump == INSERTED else insert)
        if jump == FORWARD:
            start += number()
        if jump == BACKWARD:
            start -= number()
        require(insert <= target_bytes - len(target) and front + insert <= back)
        target += delta[front : front + insert]
        front += insert
        left = target_bytes - len(target)
        if not left:
            break
        copy = number() if front < back else left
        require(copy <= left and start >= 0 and start + copy <= len(base) and insert + copy)
        target += base[start : start + copy]
        base_end = start + copy
    require(front == back)
    return target


def decode_prefix(base, delta, target_bytes):
    require(delta and not base.startswith(bytes.fromhex("37a430ec")))
    descriptor = delta[0]
    single = descriptor >> 5 & 1
    size_bytes = [single, 2, 4, 8][descriptor >> 6]
    require(not descriptor & 0x1F)
    require(size_bytes == (1 if target_bytes < 256 else 2 if target_bytes < 65792 else 4))
    at, target, last = 2 - single, b"", 0
    while not last:
        require(at + 3 <= len(delta))
        header = int.from_bytes(delta[at : at + 3], "little")
        last, kind, size = header & 1, header >> 1 & 3, header >> 3
        at += 3
        stored = {0: size, 1: 1}[kind] if kind < 2 else require(False)
        require(at + stored <= len(delta))
        target += delta[at : at + size] if kind == 0 else delta[at : at + 1] * size
        at += stored
    require(at == len(delta) and len(target) == target_bytes)
    return target


def leb(number):
    out = []
    while number >= 128:
        out.append(number & 0x7F | 0x80)
        number >>= 7
    return bytes(out + [number])


def instruction(insert, jump, distance=None, copy=None):
    out = bytes([min(insert, 63) << 2 | jump])
    out += leb(insert - 63) if insert >= 63 else b""
    out += leb(distance) if distance is not None else b""
    return out + (leb(copy) if copy is not None else b"")


def delta(literals, *instructions):
    return literals + b"".join(instructions)[::-1]


def block(kind, size, content, last=1):
    return (size << 3 | kind << 1 | last).to_bytes(3, "little") + content


def instruction_cases():
    base = bytes(range(200)) * 5
    whole = instruction(0, REPLACED)
    yield "nothing of nothing", b"", b"", 0
    yield "all of the base", base, delta(b"", whole), 1000
    yield "the front of the base", base, delta(b"", whole), 300
    yield "literals alone", b"", delta(b"hello", instruction(5, REPLACED)), 5
    yield "63 literals", b"", delta(b"x" * 63, instruction(63, REPLACED)), 63
    yield "300 literals", b"", delta(b"y" * 300, instruction(300, REPLACED)), 300
    yield "replaced", base, delta(b"NEW", instruction(0, REPLACED, copy=100), instruction(3, REPLACED)), 1000
    yield "inserted", base, delta(b"NEW", instruction(0, REPLACED, copy=100), instruction(3, INSERTED)), 1003
    yield "deleted", base, delta(b"", instruction(0, REPLACED, copy=100), instruction(0, FORWARD, 50)), 950
    yield "back again", base, delta(b"", instruction(0, REPLACED, copy=900), instruction(0, BACKWARD, 700)), 1700
    yield "replaced by fewer", base, delta(b"ab", instruction(0, FORWARD, 3, 130), instruction(2, FORWARD, 8)), 989
    yield "one by one", base, delta(b"abc", *[instruction(1, FORWARD, 200, 1)] * 3), 6
    yield "literals last", base, delta(b"abc", instruction(0, REPLACED, copy=1000), instruction(3, REPLACED)), 1003
    # What must be refused.
    yield "empty", base, b"", 5
    yield "ends after an instruction", base, delta(b"", instruction(0, REPLACED, copy=10)), 20
    yield "a void instruction", base, delta(b"", instruction(0, REPLACED, copy=0), whole), 20
    yield "beyond the base", base, delta(b"", instruction(0, FORWARD, 1)), 1000
    yield "before the base", base, delta(b"", instruction(0, BACKWARD, 1)), 10
    yield "beyond the target", base, delta(b"", instruction(0, REPLACED, copy=30), whole), 20
    yield "literals beyond the target", base, delta(b"abc", instruction(3, REPLACED)), 2
    yield "fewer literals", base, delta(b"ab", instruction(3, REPLACED)), 3
    yield "left over", base, delta(b"abcd", instruction(3, REPLACED)), 3
    yield "a longer form", base, delta(b"", b"\0", b"\x8a\0", whole), 20
    yield "five bytes", base, delta(b"", b"\0", b"\x80\x80\x80\x80\1", whole), 20
    yield "nothing, and a byte", base, b"\0", 0


def prefix_cases():
    base = b"base " * 20
    yield "raw", base, b"\x20" + block(0, 5, b"hello"), 5
    yield "run", base, b"\x20" + block(1, 200, b"z"), 200
    yield "raw and run", base, b"\x60" + block(0, 5, b"hello", 0) + block(1, 300, b"z"), 305
    yield "empty target", base, b"\x20" + block(0, 0, b""), 0
    yield "with a window", base, b"\x40\x58" + block(1, 70000 - 65536, b"q"), 70000 - 65536
    # What must be refused.
    yield "no byte", base, b"", 5
    yield "no block", base, b"\x20", 5
    yield "cut off", base, b"\x20" + block(0, 5, b"hell"), 5
    yield "shorter than its target", base, b"\x20" + block(0, 5, b"hello"), 6
    yield "longer than its target", base, b"\x20" + block(0, 5, b"hello"), 4
    yield "a size of another width", base, b"\x60" + block(0, 5, b"hello"), 5
    yield "a checksum", base, b"\x24" + block(0, 5, b"hello") + bytes(4), 5
    yield "a dictionary id", base, b"\x21\1" + block(0, 5, b"hello"), 5
    yield "a reserved bit", base, b"\x28" + block(0, 5, b"hello"), 5
    yield "the unused bit", base, b"\x30" + block(0, 5, b"hello"), 5
    yield "a reserved block", base, b"\x20" + block(3, 5, b"hello"), 5
    yield "bytes behind the frame", base, b"\x20" + block(0, 5, b"hello") + b"\0", 5
    yield "two frames", base, b"\x20" + block(0, 5, b"hello") + bytes.fromhex("28b52ffd2000010000"), 5
    yield "a dictionary as base", bytes.fromhex("37a430ec") + base, b"\x20" + block(0, 5, b"hello"), 5


def write(name, decode, cases):
    path = HERE.parent / name
    kept = path.read_text().strip().split("\n\n") if path.exists() else []
    blocks = []
    for case, base, stored, target_bytes in cases:
        try:
            target = decode(base, stored, target_bytes)
            assert len(target) == target_bytes
            result = f"target {target.hex()}"
        except Refused:
            result = "refused"
        blocks.append(f"case {case}\nbase {base.hex()}\ndelta {stored.hex()}\n"
                      f"target_bytes {target_bytes}\n{result}")
        print(name, case, result[:30])
    blocks += [block for block in kept if block.startswith("case zstd")]
    path.write_text("\n\n".join(blocks) + "\n")


if __name__ == "__main__":
    write("instructions.txt", decode_instructions, instruction_cases())
    write("prefix.txt", decode_prefix, prefix_cases())
