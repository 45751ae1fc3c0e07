#!/usr/bin/env python3
"""The Makefile, scripts/bootstrap and the configuration: test_make.py [TEST...] BUILD_DIR. Run by ctest.

Every target is listed by `make help` and run by something: the cheap ones here, install by
test_install.py, the rest by the public workflow of continuous integration.
"""
import json
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
WORKFLOW = ROOT / ".github/workflows/ci.yml"


def run(*arguments, **options):
    environment = {name: value for name, value in os.environ.items() if name not in ("MAKEFLAGS", "MFLAGS", "MAKELEVEL")}
    return subprocess.run([str(a) for a in arguments], capture_output=True, text=True, timeout=300,
                          **{"cwd": ROOT, "env": environment, **options})


def phony():
    return re.search(r"^\.PHONY: (.*)$", (ROOT / "Makefile").read_text(), re.M)[1].split()


def rules():
    """The targets of the Makefile: name -> what each depends on."""
    found = re.findall(r"^([a-z][a-z-]*):(?!=)([^#\n]*)", (ROOT / "Makefile").read_text(), re.M)
    return {name: needs.split() for name, needs in found}


class Targets(unittest.TestCase):
    def setUp(self):
        if not shutil.which("make"):
            self.skipTest("make is not installed")

    def test_help(self):
        """make help lists every target once, and no other"""
        done = run("make", "help")
        self.assertEqual((done.returncode, done.stderr), (0, ""))
        lines = done.stdout.splitlines()
        self.assertTrue(all(re.match(r"make( [a-z-]+)? {2,}\S", line) for line in lines), done.stdout)
        listed = [line.split()[1] for line in lines if not line.startswith("make  ")]
        self.assertEqual(sorted(listed), sorted(phony()))
        self.assertEqual(sorted(rules()), sorted(phony()))

    def test_commands(self):
        """what every target would do can be said, and our own builds stop at warnings"""
        for target in phony():
            done = run("make", "-n", "BOOTSTRAP=:", target)
            self.assertEqual((done.returncode, done.stderr), (0, ""), target)
            configured = [line for line in done.stdout.splitlines() if " cmake -S . " in line]
            needed = {"bootstrap": 0, "format": 0, "proof": 0, "dist": 0, "wheel": 0, "deb": 0, "clean": 0, "help": 0, "test": 2}.get(target, 1)
            self.assertEqual(len(configured), needed, target)
            self.assertTrue(all("-DSAFER_WERROR=ON" in line for line in configured), target)
        self.assertIn("-DSAFER_WERROR=OFF", run("make", "-n", "BOOTSTRAP=:", "WERROR=OFF", "build").stdout)

    def test_uncounted(self):
        """make coverage leaves out tests that do not run its build, by their whole names: none in C"""
        left_out = re.search(r"-E '([^']*)'", run("make", "-n", "BOOTSTRAP=:", "coverage").stdout)[1]
        names = [path.stem for path in ROOT.glob("tests/test_*.*")] + [path.stem for path in ROOT.glob("tests/fuzz/fuzz_*.c")] + ["same_bits"]
        self.assertEqual(sorted(name for name in names if re.search(left_out, name)), sorted(
            ["same_bits", *("test_" + name for name in "abi browser build format fuzz_list install make packages proof rooms trial".split()),
             *(path.stem for path in ROOT.glob("tests/test_python*.py"))]))

    def test_bootstrap(self):
        """make continues where there is no apt-get, and stops where a package cannot be had"""
        for code, expected in ((0, 0), (3, 0), (1, 2)):
            self.assertEqual(run("make", "bootstrap", f"BOOTSTRAP=sh -c 'exit {code}'").returncode, expected, code)

    def test_clean(self):
        """make clean removes every folder that a target builds in, and nothing else"""
        folder = pathlib.Path(tempfile.mkdtemp(dir=test_cli.temporary))
        shutil.copy(ROOT / "Makefile", folder)
        built = set(re.findall(r"\(call (?:configure|compile),([a-z-]+)", (ROOT / "Makefile").read_text())) | {"out/demo"}
        self.assertGreater(len(built), 4)
        for name in (*built, "src", "out/mine"):
            (folder / name).mkdir(parents=True)
        self.assertEqual(run("make", "clean", cwd=folder).returncode, 0)
        self.assertEqual(sorted(str(path.relative_to(folder)) for path in folder.rglob("*")),
                         ["Makefile", "out", "out/mine", "src"])

    def test_run_by_something(self):
        """continuous integration runs every target, by itself or as a part of another"""
        called = set(re.findall(r'(?:run: |")make ([a-z-]+)', WORKFLOW.read_text()))
        self.assertLessEqual(called, set(phony()))
        needs, reached = rules(), set()
        while called:
            target = called.pop()
            reached.add(target)
            called |= set(needs[target]) - reached
        self.assertEqual(set(phony()) - reached, {"all"}, "all is build")

    def test_workflow(self):
        """the workflow is YAML, runs the two commands in containers, and knows no secrets"""
        text = WORKFLOW.read_text()
        self.assertNotIn("secrets", text)
        try:
            import yaml
        except ImportError:
            self.skipTest("no yaml for this Python")
        jobs = yaml.safe_load(text)["jobs"]
        ran = [step.get("run", "") for step in jobs["commands"]["steps"]]
        self.assertEqual([line for line in ran if line.startswith("make ")], ["make demo", "make test"])
        self.assertEqual(jobs["commands"]["container"], "${{ matrix.image }}")


# Stands for apt-cache, apt-get, dpkg-query and id. "state" lists what is installed, "known" what apt
# could install, "bad" what it fails at; apt-cache answers in German unless it is asked for English.
STUB = r"""#!/bin/sh
cd "$(dirname "$0")" || exit 9
case ${0##*/} in
  id) echo 0 ;;
  dpkg-query) case "$*" in *Version*) echo 1:14.0 ;; *) sed 's/^/installed /' state ;; esac ;;
  apt-cache)
    word=Installationskandidat
    [ "$LC_ALL" != C ] || word=Candidate
    if grep -qx "$2" known; then echo "  $word: 1:14.0"; else echo "  $word: (none)"; fi ;;
  apt-get)
    echo "$*" >>log
    while [ $# -gt 0 ] && [ "$1" != install ]; do shift; done
    [ $# -gt 0 ] || exit 0
    for name; do if grep -qx "$name" bad; then echo "E: broken" && exit 100; fi; done
    for name; do case $name in install | -*) ;; *) echo "$name" >>state ;; esac; done ;;
esac
"""


class Bootstrap(unittest.TestCase):
    """scripts/bootstrap, on a system that is made up."""

    def setUp(self):
        self.folder = pathlib.Path(tempfile.mkdtemp(dir=test_cli.temporary))
        for name in ("apt-cache", "apt-get", "dpkg-query", "id"):
            (self.folder / name).write_text(STUB)
            (self.folder / name).chmod(0o755)
        self.write(state=[], known=[], bad=[])
        self.needed = self.bootstrap("--check").stdout.split()
        self.assertIn("mandoc", self.needed)
        self.needed.remove("libclang-rt-dev")  # named after the version of clang, which nothing knew
        self.needed.append("libclang-rt-14-dev")
        self.write(known=[*self.needed, "clang-format-14"])

    def write(self, **lists):
        for name, words in lists.items():
            (self.folder / name).write_text("".join(word + "\n" for word in words))

    def installed(self):
        return set((self.folder / "state").read_text().split())

    def bootstrap(self, *arguments):
        environment = {**os.environ, "PATH": f"{self.folder}{os.pathsep}{os.environ['PATH']}", "LANG": "de_DE.UTF-8"}
        environment.pop("LC_ALL", None)
        return run(ROOT / "scripts/bootstrap", *arguments, env=environment)

    def test_all(self):
        """installs all, whatever the language, and then does nothing"""
        done = self.bootstrap()
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertEqual(self.installed(), {*self.needed, "clang-format-14"})
        log = (self.folder / "log").read_text()
        self.assertNotIn("update", log, "apt knew all packages")
        self.assertEqual((self.bootstrap().stderr, (self.folder / "log").read_text()), ("", log))

    def test_one(self):
        """--check names what is missing and installs nothing"""
        self.write(state=[name for name in self.needed if name != "mandoc"])
        done = self.bootstrap("--check")
        self.assertEqual((done.returncode, done.stdout), (1, "mandoc\n"))
        self.assertFalse((self.folder / "log").exists())

    def test_proof(self):
        """Coq is asked for by --proof alone"""
        self.assertNotIn("coq", " ".join(self.needed))
        self.write(state=self.needed)
        done = self.bootstrap("--proof", "--check")
        self.assertEqual((done.returncode, done.stdout.split()[0]), (1, "coq"))
        self.assertTrue(all("coq" in name for name in done.stdout.split()), done.stdout)

    def test_optional(self):
        """what can be done without never fails: apt does not know it, or cannot install it"""
        self.write(state=self.needed, known=self.needed)
        done = self.bootstrap()
        self.assertEqual((done.returncode, done.stderr, (self.folder / "log").exists()), (0, "", False))
        self.write(state=self.needed[1:], known=[*self.needed, "clang-format-14"], bad=["clang-format-14"])
        done = self.bootstrap()
        self.assertEqual((done.returncode, self.installed()), (0, set(self.needed)), done.stderr)
        self.write(bad=[self.needed[0]], state=self.needed[1:])
        self.assertEqual(self.bootstrap().returncode, 1, "what is needed does fail")

    def test_misuse(self):
        """an unknown option is refused, and a system without apt told what to install"""
        self.assertEqual(self.bootstrap("--chekc").returncode, 2)
        for name in ("bash", "env", "dirname"):
            (self.folder / name).symlink_to(shutil.which(name))
        for name in ("apt-get", "dpkg-query"):
            (self.folder / name).unlink()
        done = run(ROOT / "scripts/bootstrap", env={"PATH": str(self.folder)})
        self.assertEqual(done.returncode, 3)
        self.assertIn("mandoc", done.stderr)


class Configuration(unittest.TestCase):
    def configure(self, *options):
        """Configures in a folder of its own: the commands of the compiler."""
        folder = pathlib.Path(tempfile.mkdtemp(dir=test_cli.temporary))
        done = run("cmake", "-S", ROOT, "-B", folder, *options)
        self.assertEqual(done.returncode, 0, done.stderr)
        return [entry["command"] for entry in json.loads((folder / "compile_commands.json").read_text())]

    def test_compilers(self):
        """gcc and clang both configure; warnings are errors only where that is asked for"""
        for compiler, *options in (("gcc",), ("clang",), ("gcc", "-DSAFER_WERROR=ON")):
            if shutil.which(compiler):
                commands = self.configure(f"-DCMAKE_C_COMPILER={compiler}", *options)
                self.assertGreater(len(commands), 200)
                strict = {bool({"-Werror", "-Werror=all-warnings"} & set(command.split())) for command in commands}
                self.assertEqual(strict, {bool(options)}, compiler)


if __name__ == "__main__":
    test_cli.run_tests(sys.modules["__main__"], lambda: None)
