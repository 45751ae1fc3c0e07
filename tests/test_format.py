#!/usr/bin/env python3
"""How the C code is laid out: test_format.py [TEST...] BUILD_DIR. Run by ctest.

What .clang-format says is checked by one version of clang-format, and skipped without it; the
limits on lines, functions and files need no tool.
"""
import pathlib
import re
import subprocess
import sys
import tempfile
import unittest

sys.dont_write_bytecode = True
import test_cli  # noqa: E402  (it runs no test by being imported)

ROOT = pathlib.Path(__file__).resolve().parent.parent
COLUMNS = 120    # the longest line
BODY = 60        # lines between the braces of a function, tables inside it not counted
EXPLAINED = 300  # a file above this many lines opens with a comment of at least two


def files(*folders):
    """The C files of the tree, or those below the given folders."""
    done = subprocess.run([ROOT / "scripts/format", "--list"], check=True, capture_output=True, text=True)
    return [ROOT / name for name in done.stdout.splitlines() if not folders or name.split("/")[0] in folders]


def functions(text):
    """(line, name, lines of the body) of every function whose braces stand on lines of their own, as
    .clang-format puts them. A `static const` table inside a function does not count."""
    found, lines = [], text.splitlines()
    start, table, count = None, False, 0
    for at, line in enumerate(lines):
        if start is None:
            if line == "{":
                start, table, count = at, False, 0
        elif line == "}":
            head = " ".join(reversed([lines[i] for i in range(start - 1, max(-1, start - 12), -1)]))
            names = re.findall(r"(\w+)\((?!\()", re.sub(r".*(?:[;}]|\*/) ", "", head))
            found.append((start + 1, names[0] if names else "?", count))
            start = None
        elif table:
            table = line != "    };"
        elif re.match(r"    static const .*= \{$", line):
            table = True
        else:
            count += 1
    if start is not None:
        raise AssertionError(f"line {start + 1}: a function that never ends")
    return found


def opening_comment(text):
    """How many lines the comment has with which a file opens."""
    comment = re.match(r"/\*.*?\*/|(?://.*\n)+", text, re.S)
    return len(comment[0].strip().splitlines()) if comment else 0


class Format(unittest.TestCase):
    def fail_with(self, wrong):
        if wrong:
            self.fail("\n" + "\n".join(wrong))

    def test_clang_format(self):
        """the tree is as .clang-format says, by clang-format 14"""
        with tempfile.NamedTemporaryFile("w", suffix=".c", dir=test_cli.temporary) as bad:
            (pathlib.Path(bad.name).parent / ".clang-format").write_text((ROOT / ".clang-format").read_text(encoding="utf-8"))
            bad.write("int  f( void ){return 0 ;}\n")
            bad.flush()
            done = subprocess.run([ROOT / "scripts/format", "--check", bad.name], capture_output=True, text=True)
            if done.returncode == 3:
                self.skipTest("clang-format 14 is not installed")
            self.assertEqual((done.returncode, done.stdout), (1, bad.name + "\n"), "a file that is not laid out is seen")
            subprocess.run([ROOT / "scripts/format", bad.name], check=True)
            self.assertEqual(pathlib.Path(bad.name).read_text(encoding="utf-8"), "int f(void) { return 0; }\n")
        done = subprocess.run([ROOT / "scripts/format", "--check"], capture_output=True, text=True)
        self.fail_with([f"{name}: run make format" for name in done.stdout.splitlines()])
        self.assertEqual((done.returncode, done.stderr), (0, ""))

    def test_columns(self):
        """no line is wider than 120 columns"""
        found = files()
        self.assertGreater(len(found), 300)
        self.fail_with([f"{path.relative_to(ROOT)}:{number}: {len(line)} columns"
                        for path in found for number, line in enumerate(path.read_text(encoding="utf-8").splitlines(), 1)
                        if len(line.expandtabs(8)) > COLUMNS])

    def test_counting(self):
        """how functions are counted: bodies, names, tables"""
        text = ("static int\tf(void) { return 1; }\n"
                "static const int table[] = {\n    1,\n};\n"
                "/* Why (g). */\nstatic int g(const int *x,\n             int y)\n{\n"
                "    static const int list[] = {\n        1,\n        2,\n    };\n    return x[y];\n}\n"
                "void h(void)\n{\n" + 61 * "    g();\n" + "}\n")
        self.assertEqual(functions(text), [(8, "g", 1), (16, "h", 61)])
        self.assertEqual([opening_comment(c) for c in ("/* a */\nint x;", "/* a\n * b */\n", "// a\n// b\nint x;", "int x;")],
                         [1, 2, 2, 0])

    def test_functions(self):
        """no C function of src/ and cli/ has more than 60 lines; kernels, whose parts share registers, may"""
        found = [(lines, f"{path.relative_to(ROOT)}:{number}: {name}: {lines} lines")
                 for path in files("src", "cli") if path.suffix in (".c", ".h") for number, name, lines in functions(path.read_text(encoding="utf-8"))]
        self.assertGreater(len(found), 1000)
        self.fail_with([text for lines, text in sorted(found, key=lambda f: -f[0]) if lines > BODY])

    def test_openings(self):
        """a file above 300 lines opens with what it is, in at least two lines"""
        texts = {path: path.read_text(encoding="utf-8") for path in files()}
        long = [path for path, text in texts.items() if text.count("\n") > EXPLAINED]
        self.assertTrue(long)
        self.fail_with([str(path.relative_to(ROOT)) for path in long if opening_comment(texts[path]) < 2])


if __name__ == "__main__":
    test_cli.run_tests(sys.modules["__main__"], lambda: None)
