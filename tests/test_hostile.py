#!/usr/bin/env python3
"""A few seconds of scripts/hostile on the ordinary build: test_hostile.py BUILD_DIR. Run by ctest.

scripts/soak has the rest, with sanitizers.
"""
import pathlib
import re
import subprocess
import sys
import tempfile
import unittest

ROOT = pathlib.Path(__file__).resolve().parent.parent
BUILD = pathlib.Path(sys.argv[-1]).resolve()


def hostile(*arguments):
    return subprocess.run([sys.executable, ROOT / "scripts/hostile", *map(str, arguments)], capture_output=True, text=True,
                          timeout=300)


class Hostile(unittest.TestCase):
    def test_share(self):
        """files of every format, and not one finding"""
        done = hostile("--files", 580, "--jobs", 2, "--seed", 11, BUILD)
        self.assertEqual((done.returncode, done.stderr), (0, ""), done.stdout)
        rows = [line.split() for line in done.stdout.splitlines()]
        self.assertEqual(rows[-2][0::4], ["all", "0"], done.stdout)
        self.assertEqual(rows[-1][:4], ["580", "files,", "0", "findings,"])
        for row in rows[1:-1]:
            files, refused, accepted, _ = map(int, row[-4:])
            self.assertEqual((files, refused + accepted), (files, files), row)
            self.assertGreaterEqual(files, 20, row)

    def test_findings(self):
        """a reader that fails is found: what its file was, and how, is said and kept"""
        with tempfile.TemporaryDirectory() as folder:
            build = pathlib.Path(folder)
            (build / "tests").mkdir()
            (build / "safer").symlink_to(BUILD / "safer")
            wrapper = build / "tests/hostile"
            wrapper.write_text(f"""#!/usr/bin/env python3
import subprocess, sys
child = subprocess.Popen(["{BUILD}/tests/hostile", sys.argv[1]], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
for line in sys.stdin:
    child.stdin.write(line)
    child.stdin.flush()
    code, rest = child.stdout.readline().split("\\t", 1)
    print({{"3": "-11", "0": "4"}}.get(code, code) if "honest-" not in line else code, rest, sep="\\t", end="", flush=True)
""")
            wrapper.chmod(0o755)
            done = hostile("--files", 6, "--only", "CSV", "--jobs", 1, build)
            self.assertEqual((done.returncode, done.stderr), (1, ""), done.stdout)
            self.assertIn("6 files, 6 findings", done.stdout)
            self.assertRegex(done.stdout, "CSV: (ended by signal 11|exit code 4): safer ")
            self.assertEqual(len(list((build / "hostile").glob("CSV-1-*/d.csv"))), 6)

    def test_misuse(self):
        done = hostile("nowhere")
        self.assertEqual(done.returncode, 1)
        self.assertIn("nowhere/tests/hostile is not there", done.stderr)
        self.assertTrue(re.search("invalid choice", hostile("--only", "PDF").stderr))


if __name__ == "__main__":
    unittest.main(argv=[sys.argv[0]], verbosity=1)
