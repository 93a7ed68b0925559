"""The chunker that hides its cuts: a plain transcription of docs/format/chunkers.md."""

from gear import table


def times_x(h):
    """h times x: bytes move up by one, the last comes back rotated by a bit; x^128 = x^7 + x^2 + x + 1."""
    last = h >> 120
    h = (h << 8) % (1 << 128) | (last << 1 & 255) | last >> 7
    return h ^ (1 << 8 | 1 << 16 | 1 << 56) if last >> 7 else h


def product(a, b):
    """In the field of AES, modulo x^8 + x^4 + x^3 + x + 1."""
    result = 0
    while b:
        result ^= a * (b & 1)
        a = a << 1 ^ (0x11B if a >> 7 else 0)
        b >>= 1
    return result


def s_box(byte):
    inverse = next((i for i in range(256) if product(byte, i) == 1), 0)
    turns = [(inverse << k | inverse >> (8 - k)) & 255 for k in range(5)]
    return turns[0] ^ turns[1] ^ turns[2] ^ turns[3] ^ turns[4] ^ 0x63


S_BOX = [s_box(byte) for byte in range(256)]
TWICE = [product(byte, 2) for byte in range(256)]
THRICE = [product(byte, 3) for byte in range(256)]


def round_keys(key):
    words, constant = [list(key[i : i + 4]) for i in (0, 4, 8, 12)], 1
    while len(words) < 44:
        word = words[-1]
        if len(words) % 4 == 0:
            word = [S_BOX[byte] for byte in word[1:] + word[:1]]
            word[0] ^= constant
            constant = TWICE[constant]
        words.append([a ^ b for a, b in zip(word, words[-4])])
    return [sum(words[4 * r : 4 * r + 4], []) for r in range(11)]


def aes(keys, block):
    state = [a ^ b for a, b in zip(block, keys[0])]
    for key in keys[1:]:
        state = [S_BOX[state[5 * i % 16]] for i in range(16)]
        if key is not keys[10]:
            state = [
                TWICE[state[i]]
                ^ THRICE[state[i // 4 * 4 + (i + 1) % 4]]
                ^ state[i // 4 * 4 + (i + 2) % 4]
                ^ state[i // 4 * 4 + (i + 3) % 4]
                for i in range(16)
            ]
        state = [a ^ b for a, b in zip(state, key)]
    return bytes(state)


EXAMPLE = aes(round_keys(bytes(range(16))), bytes(17 * i for i in range(16)))
assert EXAMPLE.hex() == "69c4e0d86a7b0430d8cdb78070b4c55a", "FIPS 197, appendix C.1"


def shield(p, key):
    numbers = table(key)
    joined = [numbers[i] + (numbers[i + 1] << 64) for i in range(0, 18, 2)]
    entering = [0] * 256
    for byte in range(256):
        for t in range(8):
            entering[byte] ^= joined[t] * (byte >> t & 1)
    leaving = list(entering)
    for _ in range(64):
        leaving = [times_x(h) for h in leaving]
    keys = round_keys(joined[8].to_bytes(16, "little"))
    bits = p["avg"].bit_length() - 1
    strict, loose = (1 << (bits + p["level"])) - 1, (1 << (bits - p["level"])) - 1
    normal = p.get("normal_bytes", p["avg"])

    def cut(data):
        h = 0
        for byte in data[p["min"] - 64 : p["min"]]:
            h = times_x(h) ^ entering[byte]
        for i in range(p["min"], len(data)):
            h = times_x(h) ^ entering[data[i]] ^ leaving[data[i - 64]]
            value = aes(keys, h.to_bytes(16, "little"))[:8]
            if int.from_bytes(value, "little") & (strict if i < normal else loose) == 0:
                return i
        return len(data)

    return cut


K = 1024
CASES = {
    "shield": (
        shield,
        [
            dict(min=2 * K, avg=8 * K, max=64 * K, level=2, bytes=1 << 18),
            dict(min=6 * K, avg=8 * K, max=64 * K, level=2, normal_bytes=10 * K),
            dict(min=64, avg=256, max=1 * K, level=0, bytes=1 << 16),
            dict(min=1 * K, avg=4 * K, max=16 * K, level=1),
            dict(min=300, avg=2 * K, max=8 * K, level=3, bytes=1 << 16),
        ],
    ),
}
KEYED = {"shield"}
