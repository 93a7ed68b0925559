"""The test data of the golden cuts, which any language can make again (docs/format/chunkers.md)."""

MASK = (1 << 64) - 1


def splitmix64(seed):
    """The outputs of splitmix64 (Steele et al., OOPSLA 2014) whose state starts as `seed`."""
    state = seed
    while True:
        state = (state + 0x9E3779B97F4A7C15) & MASK
        mixed = ((state ^ state >> 30) * 0xBF58476D1CE4E5B9) & MASK
        mixed = ((mixed ^ mixed >> 27) * 0x94D049BB133111EB) & MASK
        yield mixed ^ mixed >> 31


def random(seed, length):
    """The outputs from `seed`, little-endian, one after the other."""
    numbers = splitmix64(seed)
    out = bytearray()
    while len(out) < length:
        out += next(numbers).to_bytes(8, "little")
    return bytes(out[:length])


def symbols(seed, length):
    """`random`, each byte replaced by the hexadecimal digit of its low four bits, in lower case."""
    return bytes(b"0123456789abcdef"[byte % 16] for byte in random(seed, length))


def runs(seed, length):
    """Runs: an output x gives 1 + (x >> 8) % 4096 bytes x % 256 when bit 40 of x is 0, else as
    many bytes of the outputs that follow, little-endian, the last one cut short."""
    numbers = splitmix64(seed)
    out = bytearray()
    while len(out) < length:
        number = next(numbers)
        count = 1 + (number >> 8) % 4096
        if number >> 40 & 1 == 0:
            out += bytes([number % 256]) * count
        else:
            part = bytearray()
            while len(part) < count:
                part += next(numbers).to_bytes(8, "little")
            out += part[:count]
    return bytes(out[:length])


KINDS = {"random": random, "symbols": symbols, "runs": runs}
