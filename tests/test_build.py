#!/usr/bin/env python3
"""How the installed files are built: test_build.py [TEST...] BUILD_DIR. Run by ctest.

The usual protections are in the program and in the library, and a build gives the same bytes in any
folder. Builds with sanitizers are not installed, and not looked at.
"""
import os
import pathlib
import platform
import re
import shutil
import subprocess
import sys
import tempfile
import unittest

sys.dont_write_bytecode = True
import test_cli  # noqa: E402  (it runs no test by being imported)

ROOT = pathlib.Path(__file__).resolve().parent.parent
PARTS = ("CMakeLists.txt", "bench", "cli", "demo", "docs", "examples", "include", "scripts", "src", "tests", "tools", "web")


def run(*arguments, **options):
    done = subprocess.run([str(a) for a in arguments], capture_output=True, text=True, timeout=1200, **options)
    if done.returncode:
        raise AssertionError(f"{arguments}: {done.stdout}{done.stderr}")
    return done.stdout


class Build(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.build = pathlib.Path(test_cli.program).parent
        cls.cache = dict(re.findall(r"^(\w+):\w+=(.*)$", (cls.build / "CMakeCache.txt").read_text(), re.M))
        if cls.cache.get("SAFER_SANITIZE") or cls.cache.get("SAFER_FUZZ") == "ON":
            raise unittest.SkipTest("a build with sanitizers is not installed")

    def test_hardened(self):
        """program and library: relocations read-only, no lazy binding, no executable stack, checked calls"""
        for path in (self.build / "safer", (self.build / "libsafer.so").resolve()):
            headers = run("readelf", "-hldW", path)
            self.assertRegex(headers, r"Type:\s+DYN", path)
            self.assertRegex(headers, r"GNU_RELRO", path)
            self.assertRegex(headers, r"FLAGS_1\).*\bNOW\b", path)
            self.assertRegex(headers, r"GNU_STACK\s.*\sRW\s", path)
            symbols = run("nm", "-D", path)
            self.assertIn("__stack_chk_fail", symbols, path)
            if self.cache.get("CMAKE_BUILD_TYPE") != "Debug":
                self.assertRegex(symbols, r"__\w+_chk@", path)
            if platform.machine() == "x86_64":
                # Every function that a pointer may lead to begins with endbr64.
                text = run("objdump", "-d", "--no-show-raw-insn", "--no-addresses", path)
                self.assertGreater(text.count("endbr64"), 500, path)
        self.assertRegex(run("readelf", "-dW", self.build / "safer"), r"FLAGS_1\).*\bPIE\b")

    def test_same_bytes(self):
        """a build in another folder gives the same program"""
        if self.cache.get("CMAKE_C_COMPILER_LAUNCHER"):
            self.skipTest("compiled through ccache, which may take objects from other folders")
        with tempfile.TemporaryDirectory(dir=test_cli.temporary) as folder:
            there = pathlib.Path(folder) / "a folder with a longer name" / "copy"
            there.mkdir(parents=True)
            for part in PARTS:
                (shutil.copytree if (ROOT / part).is_dir() else shutil.copy)(ROOT / part, there / part)
            run("cmake", "-S", there, "-B", there / "out", *(f"-D{name}={self.cache[name]}" for name in (
                "CMAKE_C_COMPILER", "CMAKE_BUILD_TYPE", "CMAKE_C_FLAGS", "SAFER_WERROR", "SAFER_HARDEN")
                if self.cache.get(name)))
            run("cmake", "--build", there / "out", "-j", os.cpu_count(), "--target", "safer")
            self.assertEqual((there / "out/safer").read_bytes() == (self.build / "safer").read_bytes(), True,
                             "the bytes differ")


if __name__ == "__main__":
    test_cli.run_tests(sys.modules["__main__"], lambda: None)
