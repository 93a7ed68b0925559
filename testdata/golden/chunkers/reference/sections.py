"""Sections of a tar (docs/format/chunkers.md), of a whole stream in memory.

    python3 sections.py     writes testdata/golden/sections/expected.txt, three lines for each tar: its name,
                            the boundaries, the lengths of chunks by fold of 256, 1,024 and 4,096 bytes
"""
import pathlib

import fold
import generate

BLOCK = 512
SMALL = 512
DEPTH = 8
METADATA_MAX = 1 << 20
RECORDS_MAX = 64 << 10


def octal(field):
    text = field.lstrip(b" ")
    digits = text[: len(text) - len(text.lstrip(b"01234567"))]
    if not digits or text[len(digits):].strip(b" \0"):
        return None
    return int(digits, 8) if int(digits, 8) < 1 << 64 else None


def number(field):
    if field[0] & 0x80 == 0:
        return octal(field)
    value = int.from_bytes(bytes([field[0] & 0x3f]) + field[1:], "big")
    return value if field[0] & 0x40 == 0 and value < 1 << 64 else None


def header(block):
    """(type, size) of a header, or None."""
    plain = block[:148] + b" " * 8 + block[156:]
    signed = sum(plain) - 256 * sum(byte > 127 for byte in plain)
    said, size = octal(block[148:156]), number(block[124:136])
    if said is None or size is None or said not in (sum(plain), signed):
        return None
    return chr(block[156]), size


def pax_size(records):
    size = None
    while b" " in records[:20]:
        digits = records[: records.index(b" ")]
        if not digits.isdigit() or not len(digits) + 2 <= int(digits) <= len(records):
            break
        record, records = records[len(digits) + 1 : int(digits)], records[int(digits):]
        if record.startswith(b"size="):
            value = record[5:].removesuffix(b"\n")
            if value.isdigit() and int(value) < 1 << 64:
                size = int(value)
    return size


def scan(data, start, end, depth, found):
    """Boundaries of a stream that is data[start:end]."""
    at, in_archive, is_first = start, False, True
    of_next = of_all = None
    while end - at >= BLOCK:
        block = data[at : at + BLOCK]
        may_be = in_archive or is_first or block[257:262] == b"ustar"
        it = header(block) if may_be else None
        if it is None:
            if in_archive and any(block):
                found.add(at)
            in_archive, is_first = False, False
            at += BLOCK
            continue
        if not in_archive and not is_first:
            found.add(at)
            of_next = of_all = None
        in_archive, is_first = True, False
        kind, size = it
        at += BLOCK
        padded = (size + BLOCK - 1) // BLOCK * BLOCK
        if kind in "LKxXg" and size <= METADATA_MAX:
            if kind in "xXg":
                if at + padded > end:
                    return
                said = pax_size(records_read(data[at : at + size]))
                if said is not None and kind == "g":
                    of_all = said
                elif said is not None:
                    of_next = said
            at += padded
            continue
        if kind in "123456":
            of_next = None
            continue
        if kind not in "LKxXg":
            if of_next is not None:
                size = of_next
            elif of_all is not None:
                size = of_all
            of_next = None
            padded = (size + BLOCK - 1) // BLOCK * BLOCK
        if kind == "S" and block[482]:
            while True:
                if end - at < BLOCK:
                    return
                extension = data[at : at + BLOCK]
                at += BLOCK
                if not extension[504]:
                    break
        if size > SMALL:
            content_end = min(at + size, end)
            found.add(at)
            found.add(content_end)
            if depth < DEPTH:
                scan(data, at, content_end, depth + 1, found)
        at += padded


def records_read(records):
    """As many whole blocks' worth of records as are looked at."""
    return records if len(records) <= RECORDS_MAX else records[:RECORDS_MAX]


def boundaries(data):
    found = set()
    scan(data, 0, len(data), 0, found)
    return sorted(it for it in found if 0 < it < len(data))


def chunk_lengths(data):
    sizes = {"min": 256, "avg": 1024, "max": 4096, "level": 2}
    cut = fold.fold(sizes, None)
    ends = boundaries(data) + [len(data)]
    out = []
    for start, end in zip([0] + ends, ends):
        out += generate.lengths(cut, sizes, data[start:end])
    return out


if __name__ == "__main__":
    golden = pathlib.Path(__file__).parent / "../../sections"
    with open(golden / "expected.txt", "w") as expected:
        for path in sorted(golden.glob("*.tar")):
            data = path.read_bytes()
            print("tar", path.name, file=expected)
            print("boundaries", *boundaries(data), file=expected)
            print("lengths", *chunk_lengths(data), file=expected)
