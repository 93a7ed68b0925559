"""Chunkers of a hash over a sliding window: plain transcriptions of docs/format/chunkers.md.

Each judges, at each position, a hash that is computed from the bytes of its window alone.
"""

from gear import table

LBFS = 0xBFE6B8A5BF378D83
RESTIC = 0x3DA3358B4DC173
ETHERNET = 0x104C11DB7


def remainder(number, modulus):
    """Of polynomials over GF(2), bit i for x^i."""
    while number.bit_length() >= modulus.bit_length():
        number ^= modulus << (number.bit_length() - modulus.bit_length())
    return number


def product(left, right, modulus):
    total = 0
    while right:
        if right & 1:
            total ^= left
        left, right = left << 1, right >> 1
    return remainder(total, modulus)


def irreducible(polynomial):
    """x^(2^n) is x modulo an irreducible polynomial of degree n, and for every prime p that
    divides n, x^(2^(n / p)) − x has no divisor in common with it (Rabin's test)."""
    degree = polynomial.bit_length() - 1
    primes = [p for p in range(2, degree + 1)
              if degree % p == 0 and all(p % q for q in range(2, p))]
    powers, power = [], 2
    for _ in range(degree):
        power = product(power, power, polynomial)
        powers.append(power)
    if powers[-1] != remainder(2, polynomial):
        return False
    for prime in primes:
        left, right = polynomial, powers[degree // prime - 1] ^ 2
        while right:
            left, right = right, remainder(left, right)
        if left != 1:
            return False
    return True


def secret(key, degree):
    """The irreducible polynomial of a key."""
    number = 0
    for part in key:
        number ^= part
    inside = (1 << degree) - 1
    number = number & inside | 1 << degree | 1
    while not irreducible(number):
        number = (number + 2) & inside | 1 << degree | 1
    return number


def windows(polynomial, width):
    """For each place in a window, the first one first, what each byte there adds to the remainder
    of the window. The remainder of a sum is the sum of the remainders."""
    places = []
    for place in range(width):
        power = remainder(1 << 8 * (width - 1 - place), polynomial)
        places.append([product(byte, power, polynomial) for byte in range(256)])
    return places


def remainder_of(window, places):
    total = 0
    for byte, values in zip(window, places):
        total ^= values[byte]
    return total


def polynomial_of(p, key):
    return p.get("polynomial", LBFS) if key is None else secret(key, 63)


def rabin(p, key):
    width, mask = p.get("window_bytes", 48), p["avg"] - 1
    places = windows(polynomial_of(p, key), width)

    def cut(data):
        for i in range(p["min"], len(data)):
            if remainder_of(data[i + 1 - width : i + 1], places) & mask == 0x78 & mask:
                return i
        return len(data)

    return cut


def rabin_nc(p, key):
    width, level = p.get("window_bytes", 48), p["level"]
    normal = p.get("normal_bytes", p["avg"])
    bits = p["avg"].bit_length() - 1
    strict, loose = (1 << bits + level) - 1, (1 << bits - level) - 1
    places = windows(polynomial_of(p, key), width)

    def cut(data):
        for i in range(p["min"], len(data)):
            mask = strict if i < normal else loose
            if remainder_of(data[i + 1 - width : i + 1], places) & mask == 0x78 & mask:
                return i
        return len(data)

    return cut


def adler(p, key):
    width = p.get("window_bytes", 48)
    bits = p["avg"].bit_length() - 1
    numbers = [number & 0xFFFF for number in table(key)]
    ones = (1 << bits) - 1

    def cut(data):
        for i in range(p["min"], len(data)):
            window = [numbers[byte] for byte in data[i + 1 - width : i + 1]]
            s1 = sum(window) & 0xFFFF
            s2 = sum(weight * number for weight, number in zip(range(width, 0, -1), window)) & 0xFFFF
            if (s2 << 16 | s1) >> (32 - bits) == ones:
                return i
        return len(data)

    return cut


def crc32(p, key):
    """A CRC is a remainder too: of the window with the bits of each byte in reverse order, times
    x^32, with its own 32 bits in reverse order."""
    width, mask = p.get("window_bytes", 256), p["avg"] - 1
    mirrored = [int(f"{byte:08b}"[::-1], 2) for byte in range(256)]
    places = windows(ETHERNET, width + 4)[:width]
    places = [[int(f"{values[mirrored[byte]]:032b}"[::-1], 2) for byte in range(256)]
              for values in places]

    def cut(data):
        for i in range(p["min"], len(data)):
            if remainder_of(data[i + 1 - width : i + 1], places) & mask == 0x78 & mask:
                return i
        return len(data)

    return cut


def restic(p, key):
    mask = p["avg"] - 1
    places = windows(p.get("polynomial", RESTIC), 64)

    def cut(data):
        for length in range(p["min"], len(data) + 1):
            if remainder_of(data[length - 64 : length], places) & mask == 0:
                return length
        return len(data)

    return cut


K = 1024
USUAL = dict(min=2 * K, avg=8 * K, max=64 * K, level=0)
CASES = {
    "rabin": (
        rabin,
        [
            USUAL,
            dict(min=64, avg=256, max=2 * K, level=0, window_bytes=64),
            dict(min=32, avg=512, max=4 * K, level=0, window_bytes=32),
            dict(min=300, avg=1 * K, max=8 * K, level=0, window_bytes=256, polynomial=RESTIC),
            dict(min=100, avg=1 * K, max=8 * K, level=0, polynomial=1 << 58 | 1 << 19 | 1),
        ],
    ),
    "rabin-nc": (
        rabin_nc,
        [
            dict(min=2 * K, avg=8 * K, max=64 * K, level=2),
            dict(min=6 * K, avg=8 * K, max=64 * K, level=2, normal_bytes=10 * K),
            dict(min=2 * K, avg=8 * K, max=64 * K, level=1),
            dict(min=64, avg=256, max=1 * K, level=3, window_bytes=64),
            dict(min=1 * K, avg=4 * K, max=16 * K, level=0, normal_bytes=2 * K),
        ],
    ),
    "adler": (
        adler,
        [
            USUAL,
            dict(min=48, avg=256, max=2 * K, level=0),
            dict(min=256, avg=1 * K, max=8 * K, level=0, window_bytes=256),
            dict(min=32, avg=512, max=4 * K, level=0, window_bytes=32),
        ],
    ),
    "crc32": (
        crc32,
        [
            USUAL,
            dict(min=256, avg=256, max=2 * K, level=0),
            dict(min=48, avg=1 * K, max=8 * K, level=0, window_bytes=48),
        ],
    ),
    "restic": (
        restic,
        [
            dict(min=512 * K, avg=1 * K * K, max=8 * K * K, level=0, bytes=4 << 20),
            dict(min=512, avg=1 * K, max=8 * K, level=0),
            dict(min=64, avg=256, max=1 * K, level=0),
            dict(min=2 * K, avg=8 * K, max=64 * K, level=0, polynomial=0x3ABC9BFF07D9E5),
        ],
    ),
}
KEYED = {"rabin", "rabin-nc", "adler"}
