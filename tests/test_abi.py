#!/usr/bin/env python3
"""The binary interface is what tests/abi.txt says: exported functions, struct sizes, enum values.

A difference is not wrong in itself: the author of one decides which version it belongs to (before
1.0 a new minor one), then writes the file again with `python3 tests/test_abi.py BUILD --write`.

Usage: test_abi.py BUILD [--write]
"""
import difflib
import pathlib
import platform
import re
import subprocess
import sys

sys.dont_write_bytecode = True
import interface  # noqa: E402

HERE = pathlib.Path(__file__).resolve().parent
PINNED = HERE / "abi.txt"


def exported(build):
    listing = subprocess.run(["nm", "-D", "--defined-only", str(build / "libsafer.so")], check=True, capture_output=True,
                             text=True).stdout
    return sorted(line.split()[-1].split("@")[0] for line in listing.splitlines() if " T " in line)


def not_listed(sizes):
    """Structs and enums of the header that tests/abi.c leaves out."""
    shown = set(re.findall(r"^(?:size|value) (\w+)", sizes, re.MULTILINE))
    defined = set(re.findall(r"^typedef (?:struct|enum) (\w+) \{", interface.text(), re.MULTILINE))
    return sorted(defined - shown)


def main():
    build = pathlib.Path(sys.argv[1])
    sizes = subprocess.run([str(build / "tests/abi")], check=True, capture_output=True, text=True).stdout
    functions = exported(build)
    today = "".join(f"function {name}\n" for name in functions) + sizes
    if sys.argv[2:] == ["--write"]:
        PINNED.write_text(today)
        print(f"wrote {PINNED}")
        return 0
    failed = 0
    left_out = not_listed(sizes)
    print("FAIL" if left_out else "ok  ", "tests/abi.c lists every struct and enum of safer.h", *left_out)
    failed += bool(left_out)
    stray = [name for name in functions if not name.startswith("safer_")]
    print("FAIL" if stray or len(functions) < 50 else "ok  ", "the library exports functions named safer_, and nothing else",
          *stray)
    failed += bool(stray) or len(functions) < 50
    if platform.machine() not in ("x86_64", "AMD64", "aarch64"):
        print("skipped: abi.txt was written where pointers have 64 bits")
    else:
        difference = list(difflib.unified_diff(PINNED.read_text().splitlines(), today.splitlines(), "tests/abi.txt",
                                               "this build", lineterm="", n=0))
        print("FAIL" if difference else "ok  ", "functions, sizes and values are those of tests/abi.txt")
        print(*difference, sep="\n" if difference else "", end="\n" if difference else "")
        failed += bool(difference)
    print(f"{3 - failed} passed, {failed} failed")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
