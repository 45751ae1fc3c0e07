#!/usr/bin/env python3
"""The rooms of src/ stand in one order: a room may use those before it, never one after it.

Two graphs are computed and compared with the order: what the files #include, and which
symbols their object files take from each other. The program and the Python package
stand above the library and know its public header alone. And what answers or decides
calls no function of the C library whose last bits depend on machine or version.

Usage: test_rooms.py BUILD
"""
import pathlib
import re
import subprocess
import sys

ORDER = ("base text nn data lexicon draw stats model remote ibp train run certify attack report serve").split()
ROOT = pathlib.Path(__file__).resolve().parent.parent
SOURCE = ROOT / "src"
# The room of a plugin, which is no part of the library: it knows the headers by which it is loaded, and the library
# knows none of its own.
PLUGINS = {"cuda": {"nn/device.h", "nn/encoder.h", "base/error.h"},
           "mpi": {"run/transport.h", "base/error.h"}}
# Headers that show how something is made inside: the rooms that may look.
INSIDE = {"model/cnn.h": "model ibp train", "model/bert.h": "model train", "model/ngram.h": "model train",
          "model/context.h": "model train", "model/context_sum.h": "model ibp train",
          "ibp/network.h": "ibp train"}
# Functions of libm that need not round correctly (sqrt, fma, floor, ldexp and their like must), and who may call them:
# rooms whose results no record holds, and the file with the loss of training. All others have base/elementary.h.
INEXACT = {f"{name}{suffix}" for suffix in ("", "f", "l") for name in
           "acos acosh asin asinh atan atan2 atanh cbrt cos cosh erf erfc exp exp10 exp2 expm1 hypot lgamma log log10 log1p log2 pow sin "
           "sincos sinh tan tanh tgamma".split()}
MAY_CALL = {"lexicon", "train", "report", "nn/layers.c"}
INCLUDE = re.compile(r'^\s*#\s*include\s+"([^"]+)"', re.MULTILINE)


def room_of(path):
    return path.relative_to(SOURCE).parts[0]


def includes():
    """(user, used): (file, file) for every edge between two rooms."""
    edges = {}
    for path in sorted(SOURCE.glob("*/*.[ch]")):
        for name in INCLUDE.findall(path.read_text()):
            target = SOURCE / name
            if room_of(path) not in PLUGINS and target.exists() and room_of(target) != room_of(path):
                edges.setdefault((room_of(path), room_of(target)), []).append(f"{path.relative_to(SOURCE)} includes {name}")
    return edges


def objects(build):
    """(file, symbol, kind) of all symbols of all object files, as the linker sees them."""
    files = sorted((build / "CMakeFiles/objects.dir/src").glob("*/*.o"))
    assert files, f"no object files below {build}"
    listing = subprocess.run(["nm", "-A", "-P", *map(str, files)], check=True, capture_output=True, text=True).stdout
    for line in listing.splitlines():
        name, symbol, kind = re.match(r"(.*\.o): (\S+) (\S)", line).groups()
        place = pathlib.Path(name)
        yield f"{place.parent.name}/{place.name.removesuffix('.o')}", symbol, kind


def symbols(found):
    """The same for symbols."""
    defined = {symbol: place for place, symbol, kind in found if kind.isupper() and kind != "U"}
    edges = {}
    for place, symbol, kind in found:
        target = defined.get(symbol)
        if kind in "Uu" and target and target.split("/")[0] != place.split("/")[0]:
            edges.setdefault((place.split("/")[0], target.split("/")[0]), []).append(f"{place} uses {symbol} of {target}")
    return edges


def inexact(found):
    """Calls of functions whose bits depend on the machine."""
    return [f"{place} calls {symbol}" for place, symbol, kind in found
            if kind in "Uu" and symbol in INEXACT and not {place, place.split("/")[0]} & MAY_CALL]


def against_the_order(edges):
    return [reason for (user, used), reasons in sorted(edges.items()) for reason in reasons
            if ORDER.index(used) > ORDER.index(user)]


def inside(edges):
    """Inner headers that other rooms include."""
    return [reason for (user, _), reasons in sorted(edges.items()) for reason in reasons
            for name in [reason.split()[-1]] if name in INSIDE and user not in INSIDE[name].split()]


def plugins():
    """What stands on the wrong side of a plugin's table."""
    wrong = []
    for path in sorted(SOURCE.glob("*/*")):
        for name in INCLUDE.findall(path.read_text()):
            used = name.split("/")[0]
            if room_of(path) in PLUGINS and used != room_of(path) and name not in PLUGINS[room_of(path)]:
                wrong.append(f"{path.relative_to(SOURCE)} includes {name}")
            if room_of(path) not in PLUGINS and used in PLUGINS:
                wrong.append(f"{path.relative_to(SOURCE)} includes {name}")
    return wrong


def outside():
    """What stands above the library includes its public header and its own files only."""
    wrong = []
    for path in sorted([*ROOT.glob("cli/**/*.[ch]"), *ROOT.glob("examples/*.c")]):
        for name in INCLUDE.findall(path.read_text()):
            if name != "safer.h" and not (ROOT / "cli" / name).exists():
                wrong.append(f"{path.relative_to(ROOT)} includes {name}")
    return wrong


def main():
    build = pathlib.Path(sys.argv[1])
    rooms = {path.name for path in SOURCE.iterdir() if path.is_dir()}
    # A test that cannot fail is a defect: an edge the wrong way must be seen.
    assert against_the_order({("base", "serve"): ["seen"], ("serve", "base"): ["not seen"]}) == ["seen"]
    assert inside({("certify", "ibp"): ["x.c includes ibp/network.h", "x.c includes ibp/bounds.h"]}) == ["x.c includes ibp/network.h"]
    assert inexact([("stats/x.c", "log", "U"), ("train/x.c", "log", "U"), ("stats/x.c", "sqrt", "U")]) == ["stats/x.c calls log"]
    found = list(objects(build))
    included, linked = includes(), symbols(found)
    assert ("certify", "stats") in included and ("certify", "stats") in linked, "the graphs are not read"
    checks = [
        ("every folder of src/ is a room of the order", [f"src/{r} is no room of the order" for r in sorted(rooms - set(ORDER) - set(PLUGINS))]),
        ("plugins and the library know each other by their table alone", plugins()),
        ("every room of the order is there", [f"src/{r} is missing" for r in sorted(set(ORDER) - rooms)]),
        ("no #include against the order", against_the_order(included)),
        ("no symbol against the order", against_the_order(linked)),
        ("inner headers are there", [f"src/{name} is missing" for name in INSIDE if not (SOURCE / name).exists()]),
        ("inner headers stay with the rooms that may look", inside(included)),
        ("the program knows safer.h alone", outside()),
        ("what answers or decides calls nothing whose bits depend on the machine", inexact(found)),
    ]
    failed = 0
    for title, wrong in checks:
        failed += bool(wrong)
        print(f"{'FAIL' if wrong else 'ok  '} {title}")
        for reason in wrong:
            print(f"     {reason}")
    print(f"{len(checks) - failed} passed, {failed} failed")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
