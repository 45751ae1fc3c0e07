#!/usr/bin/env python3
"""The rooms of src/ stand in one order: a room may use those before it, never one after it.

Two graphs are computed and compared with the order: what the files #include, and which
symbols their object files take from each other. The program and the Python package
stand above the library and know its public header alone.

Usage: test_rooms.py BUILD
"""
import pathlib
import re
import subprocess
import sys

ORDER = ("base text nn data lexicon draw stats model remote ibp train run certify attack report serve").split()
ROOT = pathlib.Path(__file__).resolve().parent.parent
SOURCE = ROOT / "src"
# Headers that show how something is made inside: the rooms that may look.
INSIDE = {"model/cnn.h": "model ibp train", "model/bert.h": "model train", "model/ngram.h": "model train",
          "ibp/network.h": "ibp train"}
INCLUDE = re.compile(r'^\s*#\s*include\s+"([^"]+)"', re.MULTILINE)


def room_of(path):
    return path.relative_to(SOURCE).parts[0]


def includes():
    """(user, used): (file, file) for every edge between two rooms."""
    edges = {}
    for path in sorted(SOURCE.glob("*/*.[ch]")):
        for name in INCLUDE.findall(path.read_text()):
            target = SOURCE / name
            if target.exists() and room_of(target) != room_of(path):
                edges.setdefault((room_of(path), room_of(target)), []).append(f"{path.relative_to(SOURCE)} includes {name}")
    return edges


def symbols(build):
    """The same for symbols, as the linker sees them."""
    objects = sorted((build / "CMakeFiles/objects.dir/src").glob("*/*.o"))
    assert objects, f"no object files below {build}"
    listing = subprocess.run(["nm", "-A", "-P", *map(str, objects)], check=True, capture_output=True, text=True).stdout
    defined, wanted = {}, []
    for line in listing.splitlines():
        name, symbol, kind = re.match(r"(.*\.o): (\S+) (\S)", line).groups()
        place = pathlib.Path(name)
        place = f"{place.parent.name}/{place.name.removesuffix('.o')}"
        if kind in "Uu":
            wanted.append((place, symbol))
        elif kind.isupper():
            defined[symbol] = place
    edges = {}
    for place, symbol in wanted:
        target = defined.get(symbol)
        if target and target.split("/")[0] != place.split("/")[0]:
            edges.setdefault((place.split("/")[0], target.split("/")[0]), []).append(f"{place} uses {symbol} of {target}")
    return edges


def against_the_order(edges):
    return [reason for (user, used), reasons in sorted(edges.items()) for reason in reasons
            if ORDER.index(used) > ORDER.index(user)]


def inside(edges):
    """Inner headers that other rooms include."""
    return [reason for (user, _), reasons in sorted(edges.items()) for reason in reasons
            for name in [reason.split()[-1]] if name in INSIDE and user not in INSIDE[name].split()]


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
    included, linked = includes(), symbols(build)
    assert ("certify", "stats") in included and ("certify", "stats") in linked, "the graphs are not read"
    checks = [
        ("every folder of src/ is a room of the order", [f"src/{r} is no room of the order" for r in sorted(rooms - set(ORDER))]),
        ("every room of the order is there", [f"src/{r} is missing" for r in sorted(set(ORDER) - rooms)]),
        ("no #include against the order", against_the_order(included)),
        ("no symbol against the order", against_the_order(linked)),
        ("inner headers are there", [f"src/{name} is missing" for name in INSIDE if not (SOURCE / name).exists()]),
        ("inner headers stay with the rooms that may look", inside(included)),
        ("the program knows safer.h alone", outside()),
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
