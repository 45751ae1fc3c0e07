#!/usr/bin/env python3
"""The proof: test_proof.py [TEST...] BUILD_DIR. Run by ctest.

With Coq, make proof must hold and rest on the allowed axioms alone; without, that part is skipped.
The rest needs no Coq: nothing is admitted, and docs/proof.md names the theorems and functions there are.
"""
import os
import pathlib
import re
import shutil
import subprocess
import sys
import tempfile
import unittest

sys.dont_write_bytecode = True
import test_cli  # noqa: E402  (it runs no test by being imported)

ROOT = pathlib.Path(__file__).resolve().parent.parent
PAGE = ROOT / "docs/proof.md"
FILES = sorted((ROOT / "proof").glob("*.v"))
ALLOWED = {"sig_forall_dec", "sig_not_dec", "functional_extensionality_dep", "classic"}
# Words that let Coq accept what was not proven, or that change what it checks.
FORBIDDEN = re.compile(r"\b(Admitted|admit|Axioms?|Parameters?|Conjecture|give_up|Abort|bypass_check|Unset|"
                       r"type-in-type|vm_cast_no_check|native_cast_no_check)\b")


def code(text):
    """Coq without its comments, which nest."""
    kept, depth = [], 0
    for part in re.split(r"(\(\*|\*\))", text):
        depth += {"(*": 1, "*)": -1}.get(part, 0)
        if depth == 0 and part != "*)":
            kept.append(part)
    return "".join(kept)


def printed():
    """The theorems of Assumptions.v, in its order."""
    return re.findall(r"^Print Assumptions (\w+)\.$", (ROOT / "proof/Assumptions.v").read_text(), re.M)


def proof(folder=ROOT, **options):
    return subprocess.run([str(folder / "scripts/proof")], capture_output=True, text=True, timeout=1200, **options)


def copy():
    """A tree with the proof alone."""
    folder = pathlib.Path(tempfile.mkdtemp(dir=test_cli.temporary))
    shutil.copytree(ROOT / "proof", folder / "proof")
    (folder / "scripts").mkdir()
    shutil.copy(ROOT / "scripts/proof", folder / "scripts")
    return folder


class Files(unittest.TestCase):
    def test_nothing_admitted(self):
        """no theorem is taken for granted"""
        self.assertEqual(len(FILES), 12)
        for path in FILES:
            self.assertIsNone(FORBIDDEN.search(code(path.read_text())), path.name)
        self.assertEqual(code("a (* b (* Admitted *) c *) d").split(), ["a", "d"])
        self.assertTrue(FORBIDDEN.search(code("(* fine *) Admitted.")))

    def test_hypotheses(self):
        """hypotheses and variables stand inside sections, where theorems carry them"""
        for path in FILES:
            depth = 0
            for line in code(path.read_text()).splitlines():
                depth += bool(re.match(r"\s*Section\b", line)) - bool(re.match(r"\s*End\b", line))
                if re.match(r"\s*(Hypothes[ie]s|Variables?|Context)\b", line):
                    self.assertGreater(depth, 0, f"{path.name}: {line}")
            self.assertEqual(depth, 0, path.name)

    def test_all_compiled(self):
        """scripts/proof checks every file, and no line is too long"""
        listed = re.search(r"^files=\(([\w ]+)\)", (ROOT / "scripts/proof").read_text(), re.M)[1].split()
        self.assertEqual(sorted(listed), sorted(path.stem for path in FILES))
        for path in FILES:
            self.assertLessEqual(max(map(len, path.read_text().splitlines())), 120, path.name)


class Page(unittest.TestCase):
    """docs/proof.md"""

    def rows(self):
        return re.findall(r"^\| `(\w+)` \| (.*) \| (.*) \|$", PAGE.read_text(), re.M)

    def test_theorems(self):
        """the page has every theorem whose axioms are printed, and no other"""
        named = [row[0] for row in self.rows()]
        self.assertEqual(len(named), len(set(named)))
        self.assertEqual(set(named), set(printed()))
        stated = re.findall(r"^\s*(?:Theorem|Corollary) (\w+)", "".join(path.read_text() for path in FILES), re.M)
        self.assertLessEqual(set(named), set(stated))

    def test_examples(self):
        """the page names every computed instance, and none that is not there"""
        stated = re.findall(r"^Example (\w+)", "".join(path.read_text() for path in FILES), re.M)
        self.assertEqual(len(stated), len(set(stated)))
        shown = PAGE.read_text().split("\nComputed instances")[1].split("\n\n")[0]
        self.assertEqual(set(re.findall(r"`(\w+)`", shown)) - set(printed()), set(stated))

    def test_functions(self):
        """every function that relies on a theorem is defined in the file that is named"""
        found = 0
        for theorem, _, users in self.rows():
            pairs = re.findall(r"`(src/[\w/]+\.c)`: ((?:`\w+`(?:, )?)+)", users)
            self.assertTrue(pairs, theorem)
            for path, names in pairs:
                for name in re.findall(r"`(\w+)`", names):
                    self.assertRegex((ROOT / path).read_text(), rf"(?m)^[a-z][\w *]*\b{name}\(", f"{theorem}: {path}")
                    found += 1
        self.assertGreater(found, 80)
        source = "".join(path.read_text() for path in (ROOT / "src").glob("*/*.c"))
        for name in set(re.findall(r"`((?:sf|safer)_\w+)`", PAGE.read_text())):
            self.assertRegex(source, rf"(?m)^[a-z][\w *]*\b{name}\(", name)

    def test_lines(self):
        """the page has the length of every file"""
        shown = re.findall(r"^\| `proof/(\w+\.v)` \| (\d+) \|", PAGE.read_text(), re.M)
        self.assertEqual(sorted(shown), sorted((path.name, str(len(path.read_text().splitlines()))) for path in FILES))

    def test_axioms(self):
        """the page shows the axioms that are allowed"""
        block = PAGE.read_text().split("\n## Axioms\n")[1].split("```")[1]
        self.assertEqual(set(re.findall(r"^\w+\.(\w+)", block, re.M)), ALLOWED)


class Script(unittest.TestCase):
    def test_skipped(self):
        """without Coq make proof says in one line that it was skipped"""
        folder = pathlib.Path(tempfile.mkdtemp(dir=test_cli.temporary))
        for name in ("bash", "env", "dirname"):
            (folder / name).symlink_to(shutil.which(name))
        done = proof(env={"PATH": str(folder)})
        self.assertEqual((done.returncode, done.stderr), (0, ""))
        self.assertRegex(done.stdout, r"\Aproof: skipped: coqc is not installed .*--proof.*\n\Z")

    def test_holds(self):
        """make proof holds, and rests on the allowed axioms alone"""
        environment = {name: value for name, value in os.environ.items() if not name.startswith(("MAKE", "MFLAGS"))}
        done = subprocess.run(["make", "--no-print-directory", "proof"], cwd=ROOT, env=environment, capture_output=True,
                              text=True, timeout=1200)
        self.assertEqual(done.returncode, 0, done.stderr)
        skipped = re.match(r"proof: skipped: (.*)", done.stdout)
        if skipped:
            self.skipTest(skipped[1])
        log = done.stdout
        parts = re.split(r"^@?(\w+)\n +: ", log, flags=re.M)
        self.assertEqual(parts[1::2], printed())
        for name, part in zip(parts[1::2], parts[2::2]):
            statement, _, axioms = part.partition("\nAxioms:\n")
            if not axioms:
                self.assertIn("\nClosed under the global context", statement, name)
                continue
            used = {line.split(" ")[0].split(".")[-1] for line in axioms.splitlines()
                    if re.match(r"[A-Z]\w*\.", line)}
            self.assertTrue(used, name)
            self.assertLessEqual(used, ALLOWED, name)
            self.assertEqual([line for line in axioms.splitlines() if not line.startswith((" ", "proof: "))
                              and line.split(" ")[0].split(".")[-1] not in ALLOWED], [], name)
        self.assertIn(f"proof: {len(printed())} theorems hold", log)

    def test_fails(self):
        """a theorem that does not hold is refused; what was checked is not checked again"""
        folder = copy()
        smoothing = folder / "proof/Smoothing.v"
        right = smoothing.read_text()
        smoothing.write_text(right.replace("Rabs (expect ks' h - expect ks h) <= 1 - product",
                                           "Rabs (expect ks' h - expect ks h) < 1 - product"))
        self.assertNotEqual(smoothing.read_text(), right)
        done = proof(folder)
        if done.stdout.startswith("proof: skipped"):
            self.skipTest("coqc is not installed")
        self.assertEqual(done.returncode, 1)
        self.assertIn("proof: Smoothing.v does not hold", done.stderr)
        self.assertEqual(proof(folder).returncode, 1, "and it stays refused")
        (folder / "proof/Assumptions.v").write_text("From Safer Require Import Smoothing.\n"
                                                    "Print Assumptions smoothing_shift.\n")
        script = folder / "scripts/proof"
        script.write_text(re.sub(r"^files=\(.*?\)", "files=(Smoothing Assumptions)", script.read_text(), flags=re.M))
        smoothing.write_text(right)
        first, second = proof(folder), proof(folder)
        self.assertEqual((first.returncode, second.returncode), (0, 0), first.stderr)
        self.assertIn("proof: Smoothing.v\n", first.stdout)
        self.assertNotIn("proof: Smoothing.v\n", second.stdout)
        self.assertIn("proof: 1 theorems hold", second.stdout)


if __name__ == "__main__":
    test_cli.run_tests(sys.modules["__main__"], lambda: None)
