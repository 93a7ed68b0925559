"""Chunkers of the Gear hash, and fixed size: plain transcriptions of docs/format/chunkers.md."""

from data import MASK, splitmix64


def table(key):
    """The Gear table: of a key (a list of 256 numbers), or the unkeyed one."""
    if key is not None:
        return key
    numbers = splitmix64(int.from_bytes(b"onefold1", "little"))
    return [next(numbers) for _ in range(256)]


def spread(ones):
    """A mask of `ones` ones in bits 16 to 47, placed by bit reversal of five digits."""
    return sum(1 << (47 - int(f"{turn:05b}"[::-1], 2)) for turn in range(ones))


def spread_32(ones):
    """The same in 32 bits: by reversal of four digits in bits 16 to 31, then in bits 0 to 15."""
    return sum(1 << (31 - turn // 16 * 16 - int(f"{turn % 16:04b}"[::-1], 2)) for turn in range(ones))


def masks(avg, level, hash_bits=64):
    if hash_bits == 32:
        bits = avg.bit_length() - 1
        return spread_32(bits + level), spread_32(bits - level)
    if (avg, level) == (8192, 0):
        return 0x0000D93003530000, 0x0000D93003530000
    if (avg, level) == (8192, 2):
        return 0x0000D9F003530000, 0x0000D90003530000
    bits = avg.bit_length() - 1
    return spread(bits + level), spread(bits - level)


def fixed(p, key):
    return lambda data: min(p["avg"], len(data))


def gear(p, key):
    numbers, mask = table(key), p["avg"] - 1

    def cut(data):
        fingerprint = 0
        for i in range(p["min"], len(data)):
            fingerprint = ((fingerprint << 1) + numbers[data[i]]) & MASK
            if fingerprint & mask == 0x78 & mask:
                return i
        return len(data)

    return cut


def fastcdc(p, key):
    hash_bits = p.get("hash_bits", 64)
    numbers = [number >> (64 - hash_bits) for number in table(key)]
    strict, loose = masks(p["avg"], p["level"], hash_bits)
    normal = p.get("normal_bytes", p["avg"])

    def cut(data):
        fingerprint = 0
        for i in range(p["min"], len(data)):
            fingerprint = ((fingerprint << 1) + numbers[data[i]]) & MASK
            if fingerprint & (strict if i < normal else loose) == 0:
                return i
        return len(data)

    return cut


def tttd(p, key):
    numbers, bits = table(key), p["avg"].bit_length() - 1
    main, backup = spread(bits), spread(bits - 1)

    def cut(data):
        fingerprint, last = 0, None
        for i in range(p["min"] - 47, len(data)):
            fingerprint = ((fingerprint << 1) + numbers[data[i]]) & MASK
            if i >= p["min"] and fingerprint & main == 0:
                return i
            if i >= p["min"] and fingerprint & backup == 0:
                last = i
        return last if last is not None and len(data) == p["max"] else len(data)

    return cut


K = 1024
CASES = {
    "fixed": (
        fixed,
        [
            dict(min=2 * K, avg=8 * K, max=64 * K, level=0),
            dict(min=1, avg=1000, max=1000, level=0),
        ],
    ),
    "gear": (
        gear,
        [
            dict(min=2 * K, avg=8 * K, max=64 * K, level=0),
            dict(min=1, avg=256, max=2 * K, level=0),
        ],
    ),
    "fastcdc": (
        fastcdc,
        [
            dict(min=2 * K, avg=8 * K, max=64 * K, level=2),
            dict(min=2 * K, avg=8 * K, max=64 * K, level=0),
            dict(min=6 * K, avg=8 * K, max=64 * K, level=2, normal_bytes=10 * K),
            dict(min=64, avg=256, max=1 * K, level=0),
            dict(min=1 * K, avg=4 * K, max=16 * K, level=1),
            dict(min=6 * K, avg=16 * K, max=64 * K, level=3),
            dict(min=2 * K, avg=8 * K, max=64 * K, level=2, hash_bits=32),
            dict(min=64, avg=256, max=1 * K, level=3, hash_bits=32),
            dict(min=1 * K, avg=4 * K, max=16 * K, level=0, hash_bits=32),
        ],
    ),
    "tttd": (
        tttd,
        [
            dict(min=2 * K, avg=8 * K, max=64 * K, level=0),
            dict(min=460, avg=512, max=2800, level=0),
        ],
    ),
}
KEYED = {"gear", "fastcdc", "tttd"}
