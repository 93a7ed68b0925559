"""Chunkers that judge bytes without a hash: plain transcriptions of docs/format/chunkers.md."""


def big_endian(data, i):
    return int.from_bytes(data[i : i + 8], "big")


def scrambled(data, i):
    value = 0
    for j in (i, i + 2, i + 4, i + 6):
        number = data[j] + 256 * data[j + 1]
        value = value * 65536 + number * 0xF34D % 65536
    return value


def window(mean):
    """mean / (e - 1), rounded."""
    return (mean * 10**9 + 859140914) // 1718281828


def asymmetric(data, value, first, w):
    if len(data) < first + 8:
        return len(data)
    maximum, greatest = first, value(data, first)
    for i in range(first + 1, len(data) - 7):
        if i > maximum + w:
            break
        if value(data, i) > greatest:
            maximum, greatest = i, value(data, i)
    return min(len(data), maximum + w + 1)


def ae(p, key):
    return lambda data: asymmetric(data, big_endian, 0, window(p["avg"]))


def ae2(p, key):
    w = window(p["avg"] - p["min"])
    return lambda data: asymmetric(data, scrambled, p["min"], w)


def ram(p, key):
    w = p["avg"] - 256

    def cut(data):
        if len(data) < w:
            return len(data)
        greatest = max(data[:w])
        for i in range(w, len(data)):
            if data[i] >= greatest:
                return i + 1
        return len(data)

    return cut


def maxp(p, key):
    h = (p["avg"] - 1) // 2

    def cut(data):
        values = [scrambled(data, i) for i in range(len(data) - 7)]
        for i in range(h, len(values) - h):
            around = values[i - h : i] + values[i + 1 : i + h + 1]
            # The first comparison only saves time.
            if values[i] > values[i + 1] and values[i] > max(around):
                return i
        return len(data)

    return cut


WAIT_PAIRS = {2: 7, 3: 29, 4: 147, 5: 873, 6: 6114, 7: 49312, 8: 450682}


def seqcdc(p, key):
    sequence = p.get("sequence_bytes", 5)
    trigger = p.get("jump_trigger", 50)
    wait = WAIT_PAIRS[sequence]
    jump = 0
    if 255 * wait > 512 * trigger and p["avg"] > p["min"] + wait:
        jump = (p["avg"] - p["min"] - wait) * 512 * trigger // (255 * wait - 256 * trigger)
    jump = p.get("jump_bytes", jump)

    def cut(data):
        i, rises, falls = p["min"], 0, 0
        while i < len(data):
            if data[i] > data[i - 1]:
                rises += 1
                if rises == sequence:
                    return i
            elif data[i] < data[i - 1]:
                rises = 0
                falls += 1
                if falls == trigger:
                    falls = 0
                    i += jump
            i += 1
        return len(data)

    return cut


K = 1024
USUAL = dict(min=2 * K, avg=8 * K, max=64 * K, level=0)
SMALL = dict(min=40, avg=300, max=1500, level=0)
CASES = {
    "ae": (ae, [USUAL, SMALL]),
    "ae2": (ae2, [USUAL, SMALL, dict(min=4 * K, avg=8 * K, max=64 * K, level=0)]),
    "ram": (ram, [USUAL, dict(min=40, avg=600, max=2000, level=0)]),
    "maxp": (maxp, [dict(USUAL, bytes=1 << 19), dict(SMALL, bytes=1 << 16)]),
    "seqcdc": (
        seqcdc,
        [
            USUAL,
            dict(min=40, avg=1200, max=5000, level=0),
            dict(min=4 * K, avg=8 * K, max=16 * K, level=0, jump_bytes=256),
            dict(min=1, avg=256, max=1 * K, level=0,
                 sequence_bytes=3, jump_trigger=7, jump_bytes=20),
        ],
    ),
}
KEYED = set()
