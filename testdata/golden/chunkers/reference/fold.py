"""The chunker `fold`: a plain transcription of docs/format/chunkers.md."""

from data import MASK
from gear import K, table

ROWS = [0x9B, 0x29, 0xCD, 0x71]

# How many bytes ago, and the sign that is asked for.
PATTERN = [
    (0, 1), (1, 0), (2, 1), (3, 0), (11, 1), (14, 0), (16, 1), (18, 0), (20, 1), (22, 0), (24,
    1), (27, 0), (28, 1), (30, 0), (31, 1), (5, 0), (7, 1), (9, 0), (6, 1), (12, 0), (26, 1),
    (13, 0), (29, 1), (8, 0), (23, 1), (17, 0), (21, 1),
]


def numbers_of(key):
    """The table: linear in four parities of a byte."""
    taps = [number & 0xFFFFFFFF | 1 for number in table(key)[:4]]
    numbers = []
    for byte in range(256):
        number = 0
        for row, tap in zip(ROWS, taps):
            if bin(byte & row).count("1") % 2:
                number ^= tap
        numbers.append(number)
    return numbers


def rule(count):
    """The mask of the first signs, and what the hash must be under it."""
    mask = sum(1 << (31 + ago) for ago, _ in PATTERN[:count])
    return mask, sum(sign << (31 + ago) for ago, sign in PATTERN[:count])


def fold(p, key):
    numbers = numbers_of(key)
    bits = p["avg"].bit_length() - 1
    strict, loose = rule(bits + p["level"]), rule(bits - p["level"])
    normal = p.get("normal_bytes", p["avg"])

    def cut(data):
        fingerprint = 0
        for byte in data[p["min"] - 63 : p["min"]]:
            fingerprint = (fingerprint << 1 ^ numbers[byte]) & MASK
        for i in range(p["min"], len(data)):
            mask, value = strict if i < normal else loose
            if fingerprint & mask == value:
                return i
            fingerprint = (fingerprint << 1 ^ numbers[data[i]]) & MASK
        return len(data)

    return cut


CASES = {
    "fold": (
        fold,
        [
            dict(min=2 * K, avg=8 * K, max=64 * K, level=2),
            dict(min=2 * K, avg=8 * K, max=64 * K, level=0),
            dict(min=6 * K, avg=8 * K, max=64 * K, level=2, normal_bytes=10 * K),
            dict(min=64, avg=256, max=1 * K, level=3),
            dict(min=1 * K, avg=4 * K, max=16 * K, level=1),
            dict(min=6 * K, avg=16 * K, max=64 * K, level=3),
        ],
    )
}
KEYED = {"fold"}
