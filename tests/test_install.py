#!/usr/bin/env python3
"""What make install leaves behind: test_install.py BUILD_DIR. Run by ctest.

An installed prefix is enough to build a program against the library: headers, pkg-config,
both libraries, and nothing exported that safer.h does not declare.
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
import interface  # noqa: E402
import test_cli  # noqa: E402  (it runs no test by being imported)

ROOT = pathlib.Path(__file__).resolve().parent.parent
prefix = None


def run(*arguments, **options):
    done = subprocess.run([str(a) for a in arguments], capture_output=True, text=True, timeout=300, **options)
    if done.returncode:
        raise AssertionError(f"{arguments}: {done.stdout}{done.stderr}")
    return done.stdout


class Install(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        global prefix
        build = pathlib.Path(test_cli.program).parent
        sanitized = re.search(r"^SAFER_SANITIZE:STRING=(.+)$", (build / "CMakeCache.txt").read_text(), re.M)
        if sanitized:
            raise unittest.SkipTest("a build with sanitizers is not installed")
        prefix = pathlib.Path(tempfile.mkdtemp(dir=test_cli.temporary)) / "prefix"
        run("cmake", "--install", build, "--prefix", prefix)

    def pkg_config(self, *arguments):
        found = next(prefix.rglob("safer.pc")).parent
        return run("pkg-config", *arguments, "safer", env={**os.environ, "PKG_CONFIG_PATH": str(found)}).split()

    def test_service(self):
        """systemd's unit is where systemd looks, and starts the program that is installed"""
        unit = (prefix / "lib/systemd/system/safer.service").read_text()
        cache = (pathlib.Path(test_cli.program).parent / "CMakeCache.txt").read_text()
        configured = re.search(r"^CMAKE_INSTALL_PREFIX:PATH=(.+)$", cache, re.M)[1]
        self.assertIn(f"\nExecStart={configured}/bin/safer serve ", unit)

    def test_example(self):
        """the C example builds against the prefix with cc and pkg-config, and certifies"""
        program = prefix / "certify"
        self.assertLessEqual(len((ROOT / "examples/certify.c").read_text().splitlines()), 60)
        run(os.environ.get("CC") or "cc", "-std=c11", "-Wall", "-Wextra", "-Werror", ROOT / "examples/certify.c",
            *self.pkg_config("--cflags", "--libs"), "-o", program)
        library = next(prefix.rglob("libsafer.so")).parent
        run(prefix / "bin/safer", "lexicon", "import", "--table", ROOT / "demo/synonyms.tsv", "--kernel", "component", "-o", prefix / "w.lex",
            "--quiet")
        out = run(program, prefix / "w.lex", "A wonderful film.", "The plot was dull.",
                  env={**os.environ, "LD_LIBRARY_PATH": str(library)}).splitlines()
        self.assertEqual(len(out), 2)
        self.assertRegex(out[0], r"^(positive|negative|abstained): ")
        bad = subprocess.run([program, prefix / "absent.lex", "x"], capture_output=True, text=True,
                             env={**os.environ, "LD_LIBRARY_PATH": str(library)})
        self.assertEqual(bad.returncode, 1)
        self.assertIn("absent.lex", bad.stderr)

    def test_checker(self):
        """the independent checker is installed, and can be run"""
        self.assertIn("--lexicon", run(prefix / "bin/check-certificates", "--help"))

    def test_version(self):
        """the program, the header and pkg-config name the same version"""
        version = self.pkg_config("--modversion")[0]
        self.assertIn(version, run(prefix / "bin/safer", "--version").split())

    def test_symbols(self):
        """the shared library has a SONAME and exports what the header declares, nothing else"""
        library = next(prefix.rglob("libsafer.so"))
        self.assertIn("libsafer.so.0.2", run("readelf", "-d", library))
        exported = set(re.findall(r" [A-Za-z] (\S+)$", run("nm", "-D", "--defined-only", library), re.M))
        header = re.sub(r"/\*.*?\*/", "", interface.text(prefix / "include"), flags=re.S)
        declared = set(re.findall(r"SAFER_API[^;(]*?\b(safer_\w+)\(", header))
        for name in re.findall(r"^SAFER_NAMED\((\w+)\);", header, re.M):
            declared |= {f"{name}_name", f"{name}_parse"}
        declared |= {f"{name}_init" for name in re.findall(r"^SAFER_OPTIONS\((\w+)\);", header, re.M)}
        self.assertGreater(len(declared), 30)
        self.assertEqual(exported, declared)

    def test_header_alone(self):
        """the header and each of its parts compile alone, as C and as C++"""
        for arguments in (["cc", "-std=c11", "-xc"], ["c++", "-std=c++17", "-xc++"]):
            if shutil.which(arguments[0]):
                for header in (prefix / "include").rglob("*.h"):
                    run(*arguments, "-Wall", "-Wextra", "-Wpedantic", "-Werror", "-fsyntax-only", f"-I{prefix}/include", header)

    def test_manual(self):
        """the manual page is where man looks"""
        self.assertIn(".Nm safer", (prefix / "share/man/man1/safer.1").read_text())

    def test_completions(self):
        """completions are where bash, zsh and fish look; the program that writes them is not installed"""
        for name, words in (("bash-completion/completions/safer", "complete -F _safer safer"),
                            ("zsh/site-functions/_safer", "#compdef safer"), ("fish/vendor_completions.d/safer.fish", "complete -c safer")):
            self.assertIn(words, (prefix / "share" / name).read_text(), name)
        self.assertEqual(sorted(path.name for path in (prefix / "bin").iterdir()), ["check-certificates", "safer"])

    def test_licences(self):
        """NOTICE has the licence of every library that is linked, and of no other; the bill of materials has versions"""
        documents = next(prefix.rglob("NOTICE")).parent
        for name in ("LICENSE", "NOTICE", "SECURITY.md"):
            self.assertEqual((documents / name).read_text(), (ROOT / name).read_text())
        rows = dict(re.findall(r"(?m)^  (\S+)  +(\S+(?: \S+)*)  +\S", (documents / "NOTICE").read_text()))
        needed = set(re.findall(r"NEEDED.*\[(\S+?)\.so", run("readelf", "-d", next(prefix.rglob("libsafer.so")))))
        system = {"libc", "libm", "libpthread", "libdl", "libgcc_s", "ld-linux-x86-64", "ld-linux-aarch64"}
        of_file = {"libjansson": "jansson", "libz": "zlib"}
        self.assertEqual({of_file.get(name, name) for name in needed - system}, set(rows))
        bom = json.loads((documents / "safer.cdx.json").read_text())
        self.assertEqual((bom["bomFormat"], bom["specVersion"]), ("CycloneDX", "1.6"))
        self.assertEqual(bom["metadata"]["component"]["version"], self.pkg_config("--modversion")[0])
        self.assertEqual({part["name"]: part["licenses"][0]["expression"] for part in bom["components"]}, rows)
        self.assertEqual(sorted(bom["dependencies"][0]["dependsOn"]), sorted(part["bom-ref"] for part in bom["components"]))
        for part in bom["components"]:
            self.assertRegex(part["version"], r"^\d+\.\d+")

    def test_destdir(self):
        """DESTDIR stands before the prefix"""
        folder = prefix.parent / "staged"
        run("cmake", "--install", pathlib.Path(test_cli.program).parent, "--prefix", "/usr", env={**os.environ, "DESTDIR": str(folder)})
        for name in ("bin/safer", "share/man/man1/safer.1", "share/bash-completion/completions/safer", "share/zsh/site-functions/_safer",
                     "share/fish/vendor_completions.d/safer.fish"):
            self.assertTrue((folder / "usr" / name).exists(), name)


if __name__ == "__main__":
    test_cli.run_tests(sys.modules["__main__"], lambda: None)
