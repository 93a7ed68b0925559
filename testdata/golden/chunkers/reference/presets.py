"""Chunkers that cut as other programs do: plain transcriptions of docs/format/chunkers.md."""

import hashlib
import math
import pathlib

from data import MASK

GEARHASH = [
    int(line, 16)
    for line in (pathlib.Path(__file__).parent / "gearhash_table.txt").read_text().split()
]
CRATE_FASTCDC = [
    int.from_bytes(hashlib.md5(bytes([byte]) * 64).digest()[:8], "big") for byte in range(256)
]
CRATE_FASTCDC_MASKS = dict(
    enumerate(
        [
            0x0000000001804110, 0x0000000001803110, 0x0000000018035100, 0x0000001800035300,
            0x0000019000353000, 0x0000590003530000, 0x0000D90003530000, 0x0000D90103530000,
            0x0000D90303530000, 0x0000D90313530000, 0x0000D90F03530000, 0x0000D90303537000,
            0x0000D90703537000, 0x0000D90707537000, 0x0000D91707537000, 0x0000D91747537000,
            0x0000D91767537000, 0x0000D93767537000, 0x0000D93777537000, 0x0000D93777577000,
            0x0000DB3777577000,
        ],
        5,
    )
)


def gearhash(p, key):
    bits = p["avg"].bit_length() - 1
    mask = (p["avg"] - 1) << (64 - bits)

    def window_hash(window):
        fingerprint = 0
        for byte in window:
            fingerprint = ((fingerprint << 1) + GEARHASH[byte]) & MASK
        return fingerprint

    def cut(data):
        first = p["min"] - 1
        fingerprint = window_hash(data[first - 63 : first])
        for i in range(first, len(data)):
            fingerprint = ((fingerprint << 1) + GEARHASH[data[i]]) & MASK
            if fingerprint & mask == 0:
                return i + 1
        return len(data)

    return cut


def fastcdc_crate_v2020(p, key):
    bits = round(math.log2(p["avg"]))
    strict = CRATE_FASTCDC_MASKS[bits + p["level"]]
    loose = CRATE_FASTCDC_MASKS[bits - p["level"]]

    def cut(data):
        fingerprint = 0
        for i in range(p["min"], len(data) // 2 * 2):
            fingerprint = ((fingerprint << 1) + CRATE_FASTCDC[data[i]]) & MASK
            if fingerprint & (strict if i < p["avg"] else loose) == 0:
                return i
        return len(data)

    return cut


K = 1024
CASES = {
    "fastcdc-crate-v2020": (
        fastcdc_crate_v2020,
        [
            dict(min=2 * K, avg=8 * K, max=64 * K, level=1),
            dict(min=2 * K, avg=8 * K, max=64 * K, level=2),
            dict(min=64, avg=256, max=1 * K, level=3, bytes=(1 << 17) + 1),
            dict(min=1000, avg=6000, max=30000, level=0),
        ],
    ),
    "gearhash": (
        gearhash,
        [
            dict(min=2 * K, avg=8 * K, max=64 * K, level=0),
            dict(min=64, avg=256, max=1 * K, level=0),
        ],
    ),
    "xet": (
        gearhash,
        [
            dict(min=8 * K, avg=64 * K, max=128 * K, level=0, bytes=3 << 20),
            dict(min=512, avg=4 * K, max=8 * K, level=0),
        ],
    ),
}
KEYED = set()
