"""What the tests of the program share, beyond test_cli: files made beforehand, and records read back."""
import json
import sys
from decimal import ROUND_DOWN, ROUND_UP, Decimal

import test_cli
from test_cli import DONE, run

UNMET = 1


def must(*arguments):
    """Makes something that all tests need."""
    result = run(*arguments)
    if result.code != DONE:
        sys.exit(f"cannot make the common files: safer {' '.join(map(str, arguments))}: {result}")


def read_run(name):
    """The configuration and the records of a run."""
    lines = [json.loads(line) for line in (test_cli.temporary / name).read_text().splitlines()]
    return lines[0], lines[1:]


def cut(share):
    """A share as it is printed: in per cent with two decimals, never rounded up."""
    return f"{(100 * Decimal(repr(share))).quantize(Decimal('0.01'), ROUND_DOWN)}%"


def outward(interval):
    """The ends of an interval as they are printed: the lower one cut, the upper one rounded up."""
    low, high = (100 * Decimal(end) for end in interval)
    return f"{low.quantize(Decimal('0.01'), ROUND_DOWN)} to {high.quantize(Decimal('0.01'), ROUND_UP)}"


def is_answered(record):
    """Whether the deployed vote gives the class that the certificate is about."""
    return not record["abstained"] and record["prediction"] == record["target"]


def without_times(name):
    """A run's configuration and records, less what differs from one time to the next. (The seal is that
    of the rest.)"""
    config, records = read_run(name)
    return [{key: value for key, value in line.items() if key not in ("date", "seconds")} for line in (config, *records)]


def xxh64(data, seed=0):
    """XXH64 (Collet): what seals lexicons and records."""
    mask, p1, p2, p3, p4, p5 = 2**64 - 1, 11400714785074694791, 14029467366897019727, 1609587929392839161, 9650029242287828579, 2870177450012600261

    def rotate(x, r):
        return (x << r | x >> 64 - r) & mask

    def mix(acc, lane):
        return rotate((acc + lane * p2) & mask, 31) * p1 & mask

    def number(at, size):
        return int.from_bytes(data[at:at + size], "little")

    at, h = 0, (seed + p5) & mask
    if len(data) >= 32:
        lanes = [(seed + p1 + p2) & mask, (seed + p2) & mask, seed, (seed - p1) & mask]
        while at + 32 <= len(data):
            lanes = [mix(lane, number(at + 8 * i, 8)) for i, lane in enumerate(lanes)]
            at += 32
        h = sum(rotate(lane, r) for lane, r in zip(lanes, (1, 7, 12, 18))) & mask
        for lane in lanes:
            h = ((h ^ mix(0, lane)) * p1 + p4) & mask
    h = (h + len(data)) & mask
    for size, multiplier, r, factor, plus in ((8, None, 27, p1, p4), (4, p1, 23, p2, p3), (1, p5, 11, p1, 0)):
        while at + size <= len(data):
            value = mix(0, number(at, 8)) if multiplier is None else number(at, size) * multiplier & mask
            h = (rotate(h ^ value, r) * factor + plus) & mask
            at += size
    for shift, factor in ((33, p2), (29, p3), (32, 1)):
        h = (h ^ h >> shift) * factor & mask
    return h


def seal(config, records):
    """A run of format 2 with seals that fit, as a forger would write it."""
    lines, seed = [], 0
    for entry in (config, *records):
        body = json.dumps({k: v for k, v in entry.items() if k not in ("check", "date", "seconds")}, separators=(",", ":"), ensure_ascii=False)
        check = xxh64(body.encode(), seed)
        seed = seed or check
        outside = '"seconds":0.5,' if lines else f'"date":"{entry["date"]}",' if "date" in entry else ""
        lines.append(f'{body[:-1]},{outside}"check":"{check:016x}"}}')
    return "".join(line + "\n" for line in lines)
