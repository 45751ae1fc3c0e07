#!/usr/bin/env python3
"""What a release consists of: test_packages.py [TEST...] BUILD_DIR. Run by ctest.

The source archive, the wheel and its tag, the Debian packages and the recipes, as far as seconds allow: files and versions
fit together, archives hold what they must, and nothing else. scripts/dist --try, scripts/try-wheel and scripts/try-deb build
and install them.
"""
import base64
import email
import hashlib
import json
import lzma
import os
import pathlib
import re
import shutil
import subprocess
import sys
import tarfile
import tempfile
import unittest
import zipfile

sys.dont_write_bytecode = True
import serving  # noqa: E402
import test_cli  # noqa: E402  (it runs no test by being imported)

ROOT = pathlib.Path(__file__).resolve().parent.parent
VERSION = re.search(r"project\(safer VERSION ([\d.]+)", (ROOT / "CMakeLists.txt").read_text())[1]
SONAME = "libsafer.so." + re.match(r"0\.\d+|\d+", VERSION)[0]


def run(*arguments, good=True, **options):
    done = subprocess.run([str(a) for a in arguments], capture_output=True, text=True, timeout=300, **options)
    if good and done.returncode:
        raise AssertionError(f"{arguments}: {done.stdout}{done.stderr}")
    return done


def folder():
    return pathlib.Path(tempfile.mkdtemp(dir=test_cli.temporary))


# ------------------------------------------------------------------- sources

class Dist(unittest.TestCase):
    """scripts/dist"""

    @classmethod
    def setUpClass(cls):
        top = subprocess.run(["git", "rev-parse", "--show-toplevel"], cwd=ROOT, capture_output=True, text=True) if shutil.which("git") else None
        if not top or top.returncode or pathlib.Path(top.stdout.strip()) != ROOT:
            raise unittest.SkipTest("these sources are no git checkout, from which releases are made")
        cls.folder = folder()
        cls.archive = pathlib.Path(run(ROOT / "scripts/dist", "-o", cls.folder).stdout.strip())

    def test_contents(self):
        """every committed file, below one folder, and nothing else; the digest beside it is right"""
        self.assertEqual(self.archive.name, f"safer-{VERSION}.tar.xz")
        with tarfile.open(self.archive) as packed:
            names = {entry.name for entry in packed if not entry.isdir()}
        committed = run("git", "ls-tree", "-r", "-z", "--name-only", "HEAD", cwd=ROOT).stdout.rstrip("\0").split("\0")
        self.assertEqual(names, {f"safer-{VERSION}/{name}" for name in committed})
        digest = hashlib.sha256(self.archive.read_bytes()).hexdigest()
        self.assertEqual(self.archive.with_name(self.archive.name + ".sha256").read_text(), f"{digest}  {self.archive.name}\n")

    def test_again(self):
        """the same commit gives the same bytes: nothing of this moment or machine is in them"""
        packed = subprocess.run(["git", "archive", "--format=tar", f"--prefix=safer-{VERSION}/", "HEAD"], cwd=ROOT, capture_output=True).stdout
        self.assertTrue(lzma.open(self.archive).read() == packed)

    def test_builds(self):
        """what is unpacked is configured without git, tests too"""
        place = folder()
        with tarfile.open(self.archive) as packed:
            packed.extractall(place)
        hidden = place / "bin"
        hidden.mkdir()
        (hidden / "git").write_text("#!/bin/sh\necho git was asked >&2\nexit 127\n")
        (hidden / "git").chmod(0o755)
        environment = {**os.environ, "PATH": f"{hidden}{os.pathsep}{os.environ['PATH']}"}
        done = run("cmake", "-S", place / f"safer-{VERSION}", "-B", place / "made", "-G", "Unix Makefiles", "-DSAFER_CUDA=OFF", env=environment)
        self.assertNotIn("git was asked", done.stderr)

    def test_misuse(self):
        self.assertEqual(run(ROOT / "scripts/dist", "--nothing", good=False).returncode, 2)
        copy = folder() / "copy"
        (copy / "scripts").mkdir(parents=True)
        shutil.copy(ROOT / "scripts/dist", copy / "scripts")
        shutil.copy(ROOT / "CMakeLists.txt", copy)
        done = run(copy / "scripts/dist", good=False)
        self.assertEqual(done.returncode, 1)
        self.assertIn("no git checkout", done.stderr)


    def test_page(self):
        """the manual page of check-certificates has every option of its help, and mandoc finds no fault with it"""
        page = ROOT / "docs/check-certificates.1"
        options = set(re.findall(r"--[a-z]+", run(sys.executable, ROOT / "tools/check-certificates", "--help").stdout)) - {"--help"}
        self.assertEqual({"--" + name for name in re.findall(r"Fl -([a-z]+)", page.read_text())}, options)
        if not shutil.which("mandoc"):
            self.skipTest("mandoc is not installed")
        self.assertEqual(run("mandoc", "-T", "lint", "-W", "warning", page, good=False).stdout, "")


# ------------------------------------------------------------------- the tag

class Tag(unittest.TestCase):
    """scripts/wheel-tag, on libraries linked against C libraries of our own."""

    @classmethod
    def setUpClass(cls):
        cls.compiler = shutil.which(os.environ.get("CC") or "cc")
        if not cls.compiler:
            raise unittest.SkipTest("no C compiler")
        cls.folder = folder()
        versions = {"old": "GLIBC_2.17", "late": "GLIBC_2.34", "new": "GLIBC_2.99", "own": "GLIBC_PRIVATE", "named": "GLIBC_ABI_DT_RELR",
                    "strange": "GLIBC_WHAT"}
        script = "".join(f"{version} {{ global: {name}; }};\n" for name, version in versions.items())
        (cls.folder / "map").write_text(script)
        cls.make("libc.so.6", "".join(f"void {name}(void) {{}}\n" for name in versions), f"-Wl,--version-script={cls.folder}/map")
        cls.make("libother.so.1", "void other(void) {}\n")

    @classmethod
    def make(cls, name, code, *options):
        source = cls.folder / f"{name}.c"
        source.write_text(code)
        run(cls.compiler, "-shared", "-fPIC", "-nostdlib", "-Wl,--no-as-needed", f"-Wl,-soname,{name}", "-o", cls.folder / name, source, *options)
        return cls.folder / name

    def asks(self, *names, more=()):
        """A library that asks for functions of our C library."""
        declared = "".join(f"void {name}(void);\n" for name in names)
        code = declared + "void all(void) {" + "".join(f"{name}();" for name in names) + "}\n"
        return self.make("lib" + "_".join(names) + ".so", code, self.folder / "libc.so.6", *more)

    def tag(self, *files, good=True):
        return run(ROOT / "scripts/wheel-tag", *files, good=good)

    def test_newest(self):
        """the newest function of all files decides, and is named"""
        old, late = self.asks("old"), self.asks("old", "late")
        machine = os.uname().machine
        self.assertEqual(self.tag(old).stdout, f"manylinux_2_17_{machine}\n")
        done = self.tag(old, late)
        self.assertEqual(done.stdout, f"manylinux_2_34_{machine}\n")
        self.assertIn("glibc 2.34 or newer, for late in libold_late.so", done.stderr)
        self.assertIn("without that, 2.17, for old in", done.stderr)
        self.assertEqual(self.tag(self.asks("named")).stdout, f"manylinux_2_36_{machine}\n")

    def test_systems(self):
        """systems that are left out are named, and those that are served"""
        excluded, served = self.tag(self.asks("old", "late")).stderr.splitlines()[-2:]
        self.assertIn("excludes CentOS 7, ", excluded)
        self.assertIn("Debian 11", excluded)
        self.assertIn("Alpine", excluded)
        self.assertNotIn("Debian 12", excluded)
        self.assertIn("RHEL, Alma and Rocky 9", served)
        self.assertEqual(run(ROOT / "scripts/wheel-tag", "--quiet", self.asks("old")).stderr, "")
        self.assertIn("Debian 13", self.tag(self.asks("new")).stderr.split("excludes")[1])

    def test_refused(self):
        """private functions, unknown versions, libraries from outside, other files"""
        other = self.asks("old", more=[self.folder / "libother.so.1"])
        for files, words in (([self.asks("own")], "keeps for itself"), ([self.asks("strange")], "GLIBC_WHAT"),
                             ([other], "needs libother.so.1"), ([ROOT / "README.md"], "is no program or library"),
                             ([self.folder / "libother.so.1"], "no file asks for anything"), ([self.folder / "absent"], "absent")):
            done = self.tag(*files, good=False)
            self.assertEqual((done.returncode, done.stdout), (1, ""), words)
            self.assertIn(words, done.stderr)
        self.assertIn("manylinux_2_17", self.tag(other, self.folder / "libother.so.1").stdout)


# ----------------------------------------------------------------- the wheel

class Wheel(unittest.TestCase):
    """python/_backend.py as scripts/wheel calls it, with the library of this build."""

    @classmethod
    def setUpClass(cls):
        cls.build = pathlib.Path(test_cli.program).parent
        if re.search(r"^SAFER_SANITIZE:STRING=(.+)$", (cls.build / "CMakeCache.txt").read_text(), re.M):
            raise unittest.SkipTest("a library with sanitizers cannot be loaded into Python")
        cls.folder, licences = folder(), folder()
        (licences / "libfoo").write_text("as you like\n")
        code = ("import sys, _backend; folder, licences = sys.argv[1:]\n"
                "print(_backend.build_wheel(folder, {'platform': 'manylinux_2_99_x86_64', 'licenses': licences}), _backend.build_sdist(folder))")
        names = run(sys.executable, "-c", code, cls.folder, licences, env={
            **os.environ, "PYTHONPATH": str(ROOT / "python"), "PYTHONDONTWRITEBYTECODE": "1", "SAFER_LIBRARY": str(cls.build / SONAME)}).stdout.split()
        cls.wheel, cls.sources = (cls.folder / name for name in names)

    def test_contents(self):
        """modules, library, program, checker, page, licences; every file with its digest; programs can be run"""
        self.assertEqual(self.wheel.name, f"safer_nlp-{VERSION}-py3-none-manylinux_2_99_x86_64.whl")
        info, data = f"safer_nlp-{VERSION}.dist-info", f"safer_nlp-{VERSION}.data"
        place = folder()
        with zipfile.ZipFile(self.wheel) as wheel:
            names = set(wheel.namelist())
            modules = {f"safer_nlp/{path.name}" for path in (ROOT / "python/safer_nlp").glob("*.py")}
            self.assertEqual(names - modules, {
                "safer_nlp/py.typed", f"safer_nlp/{SONAME}", f"{data}/scripts/safer", f"{data}/scripts/check-certificates",
                *(f"{data}/data/share/man/man1/{name}.1" for name in ("safer", "check-certificates")), *(f"{info}/licenses/{name}" for name in ("LICENSE", "NOTICE", "libfoo")),
                *(f"{info}/{name}" for name in ("METADATA", "WHEEL", "RECORD"))})
            record = {line.split(",")[0]: line.split(",")[1:] for line in wheel.read(f"{info}/RECORD").decode().splitlines()}
            self.assertEqual(set(record), names)
            for name in names - {f"{info}/RECORD"}:
                digest = base64.urlsafe_b64encode(hashlib.sha256(wheel.read(name)).digest()).rstrip(b"=").decode()
                self.assertEqual(record[name], [f"sha256={digest}", str(wheel.getinfo(name).file_size)], name)
                executable = "/scripts/" in name or name.endswith(SONAME)
                self.assertEqual(oct(wheel.getinfo(name).external_attr >> 16), "0o100755" if executable else "0o100644", name)
            self.assertIn(f"Tag: py3-none-manylinux_2_99_x86_64\n", wheel.read(f"{info}/WHEEL").decode())
            wheel.extract(f"{data}/scripts/safer", place)
        program = place / data / "scripts/safer"
        program.chmod(0o755)
        self.assertEqual(run(program, "--version").stdout.split("\n")[0], f"safer {VERSION}")

    def test_metadata(self):
        """what an index shows: name, version, summary, licence, Python, classifiers, extras, a description"""
        with zipfile.ZipFile(self.wheel) as wheel:
            text = wheel.read(f"safer_nlp-{VERSION}.dist-info/METADATA").decode()
        fields = email.message_from_string(text)
        self.assertEqual((fields["Name"], fields["Version"], fields["License"]), ("safer_nlp", VERSION, "Apache-2.0"))
        self.assertEqual(fields["Requires-Python"], ">=3.9")
        self.assertGreater(len(fields.get_all("Classifier")), 8)
        extras = set(fields.get_all("Provides-Extra"))
        for one in fields.get_all("Requires-Dist"):
            self.assertIn(re.search(r'extra == "(\w+)"', one)[1], extras, "nothing is required without being asked for")
        self.assertIn("# safer for Python", fields.get_payload())
        self.assertNotRegex(fields.get_payload(), r"\]\((?!https?:)", "an index cannot follow paths of the repository")

    def test_sources(self):
        """the source archive has all that a build needs: CMake can be run on it, and finds every file that it names"""
        place = folder()
        with tarfile.open(self.sources) as packed:
            self.assertEqual({entry.name.split("/")[0] for entry in packed}, {f"safer_nlp-{VERSION}"})
            packed.extractall(place)
        top = place / f"safer_nlp-{VERSION}"
        self.assertEqual((top / "PKG-INFO").read_text().splitlines()[1:3], ["Name: safer_nlp", f"Version: {VERSION}"])
        run("cmake", "-S", top / "source", "-B", place / "made", "-G", "Unix Makefiles", "-DSAFER_TESTS=OFF", "-DSAFER_CUDA=OFF", "-DSAFER_MPI=OFF")
        lists = (ROOT / "CMakeLists.txt").read_text()
        used = set(re.findall(r"\b((?:scripts|docs|tools|src)/[\w./-]*\w|LICENSE|NOTICE|SECURITY\.md)", lists)) - {"src/mpi"}
        self.assertGreater(len(used), 8)
        self.assertEqual([name for name in used if not (top / "source" / name).exists() and "*" not in name], [])


# ------------------------------------------------------------- the container

class Container(unittest.TestCase):
    """packaging/Containerfile: there is no engine here to build it, so its parts are looked at one by one."""

    @classmethod
    def setUpClass(cls):
        text = re.sub(r"(?m)^#.*\n", "", (ROOT / "packaging/Containerfile").read_text()).replace("\\\n", " ")
        cls.lines = [line.split(None, 1) for line in text.splitlines() if line.strip()]
        last = max(i for i, line in enumerate(cls.lines) if line[0] == "FROM")
        cls.final = {word: rest for word, rest in cls.lines[last:]}

    def test_order(self):
        """two stages; the second runs as a number that is not root, after everything is in place"""
        words = [word for word, _ in self.lines]
        self.assertLessEqual(set(words), {"FROM", "RUN", "WORKDIR", "COPY", "LABEL", "USER", "EXPOSE", "HEALTHCHECK", "ENTRYPOINT", "CMD"})
        self.assertEqual((words.count("FROM"), words.count("USER"), words.count("CMD")), (2, 1, 1))
        self.assertRegex(self.final["USER"], r"^[1-9]\d*:[1-9]\d*$")
        self.assertEqual(words[words.index("USER"):], ["USER", "EXPOSE", "HEALTHCHECK", "ENTRYPOINT", "CMD"])
        for _, rest in (line for line in self.lines if line[0] == "RUN" and "apt-get install" in line[1]):
            self.assertRegex(rest, r"--no-install-recommends .* && rm -rf /var/lib/apt/lists/\*")

    def test_libraries(self):
        """it is built from the libraries of CMakeLists.txt, and the second stage has their shared forms"""
        first = next(rest for word, rest in self.lines if word == "RUN")
        development = set(re.findall(r"\b(\S+-dev)\b", first))
        bootstrap = (ROOT / "scripts/bootstrap").read_text()
        self.assertEqual(len(development), len(re.search(r"set\(libraries ([^)]*)\)", (ROOT / "CMakeLists.txt").read_text())[1].split()))
        for name in development:
            self.assertIn(f" {name}", bootstrap)
            stem = re.sub(r"(g?\d*)(-openssl)?-dev$", "", name)
            self.assertRegex(self.final["RUN"], rf"\s{stem}\d*", name)
        for name in re.findall(r"/source/(\S+)", " ".join(rest for word, rest in self.lines if word == "COPY")):
            self.assertTrue((ROOT / name).exists(), name)

    def test_command(self):
        """the options of its command exist, and other machines need a token"""
        command = json.loads(self.final["ENTRYPOINT"]) + json.loads(self.final["CMD"])
        self.assertEqual(command[:2], ["/usr/bin/safer", "serve"])
        known = test_cli.run("serve", "--help").out
        for option in (word for word in command if word.startswith("--")):
            self.assertIn(f"  {option} ", known)
        self.assertIn("--auth-env", command)
        done = test_cli.run(*(word.replace("/etc/safer/", "/nowhere/") for word in command[1:]))
        self.assertIn("SAFER_TOKEN", done.err, "without a token nothing starts")

    def test_health(self):
        """its question about health is answered by a server that runs, and fails where none does"""
        if not shutil.which("bash"):
            self.skipTest("bash is not installed")
        serving.make_files()
        command = json.loads(self.final["HEALTHCHECK"].split("CMD ", 1)[1])
        server = serving.Server("--model", "exec:python3 slow.py 0", "--labels", "neg,pos", "--random", "--lexicon", "c.lex")
        try:
            ask = [part.replace("/8080", f"/{server.port}") for part in command]
            self.assertEqual(run(*ask, good=False).returncode, 0)
        finally:
            server.stop()
        self.assertNotEqual(run(*ask, good=False).returncode, 0)


# ------------------------------------------------------------------- scripts

class Scripts(unittest.TestCase):
    def test_misuse(self):
        """help on stdout, whose options are those that the script knows; a wrong option is one line and status 2"""
        for name in ("dist", "wheel", "deb", "try-wheel", "try-deb", "aarch64", "newcomer"):
            path = ROOT / "scripts" / name
            shown = run(path, "--help")
            self.assertRegex(shown.stdout, rf"^Usage: scripts/{name} ")
            known = set(re.findall(r"-{1,2}[a-z]+", "".join(re.findall(r"(?m)^    (-[a-z |-]*)\)", path.read_text()))))
            self.assertEqual(set(re.findall(r"(?<=\[)--?[a-z]+", shown.stdout)), known - {"--help", "-h"}, name)
            wrong = run(path, "--nothing", good=False)
            self.assertEqual((wrong.returncode, wrong.stderr), (2, f"{name}: no such option: --nothing (see --help)\n"))


# ------------------------------------------------------------------- release

class Release(unittest.TestCase):
    """scripts/release"""

    def setUp(self):
        """A copy of what has a version, committed, whose changelog has a date."""
        self.copy = folder()
        for name in ("CMakeLists.txt", "CHANGELOG.md", "include", "python", "web", "examples", "docs/install.md", "tests/abi.txt",
                     "tests/test_docs.py", "tests/test_install.py", "tests/test_python.py", "scripts/release", "scripts/same-bits", "scripts/compare-sklearn", "packaging"):
            (self.copy / name).parent.mkdir(parents=True, exist_ok=True)
            (shutil.copytree if (ROOT / name).is_dir() else shutil.copy)(ROOT / name, self.copy / name)
        changes = self.copy / "CHANGELOG.md"
        changes.write_text(re.sub(rf"(?m)^## {re.escape(VERSION)} - .*$", f"## {VERSION} - 2026-12-24", changes.read_text()))
        if not shutil.which("git"):
            self.skipTest("git is not installed")
        self.git("init", "-q")
        self.commit()

    def git(self, *arguments):
        return run("git", "-c", "user.name=x", "-c", "user.email=x@example.org", *arguments, cwd=self.copy)

    def commit(self):
        self.git("add", "-A")
        self.git("commit", "-q", "--allow-empty", "-m", "x")

    def release(self, *arguments, good=True):
        return run(self.copy / "scripts/release", *arguments, good=good, cwd=self.copy)

    def test_versions(self):
        """all places name the version of CMakeLists.txt, and no other file names the library by a version"""
        done = self.release("--dry-run")
        self.assertEqual(done.stderr, "")
        self.assertIn(f"safer {VERSION}, into out/release/{VERSION}:\n  1. ", done.stdout)
        places = set(re.findall(r'"((?:tests|scripts)/[\w.-]+)"', (ROOT / "scripts/release").read_text()))
        for path in (*ROOT.glob("tests/*.py"), *ROOT.glob("scripts/*"), *ROOT.glob("python/**/*.py")):
            if path.is_file() and path != pathlib.Path(__file__).resolve() and re.search(r"libsafer\.so\.\d", path.read_text()):
                self.assertIn(str(path.relative_to(ROOT)), places)

    def test_set(self):
        """--set-version changes every place, back and forth"""
        self.release("--set-version", "1.2.3")
        self.assertIn("VERSION 1.2.3 ", (self.copy / "CMakeLists.txt").read_text())
        self.assertIn('"1.2.3", and 10203.', (self.copy / "include/safer/base.h").read_text())
        self.assertIn("libsafer.so.1\"", (self.copy / "tests/test_python.py").read_text())
        self.commit()
        done = self.release("--dry-run")
        self.assertEqual(done.stderr, 'release: CHANGELOG.md has no heading "## 1.2.3 - DATE"\n')
        self.release("--set-version", VERSION)
        self.git("diff", "--exit-code", "HEAD~1")
        self.assertEqual(self.release("--set-version", "1.0", good=False).returncode, 1)
        install, changes = self.copy / "docs/install.md", self.copy / "CHANGELOG.md"
        changes.write_text(changes.read_text().replace(" - 2026-12-24", " - unreleased"))
        self.release("--set-version", "1.2.3")
        self.assertIn("## 1.2.3 - unreleased\n", changes.read_text())
        self.assertNotIn(f"## {VERSION}", changes.read_text())
        for words in ("libsafer1_*.deb", "tar xf safer-1.2.3.tar.xz && cd safer-1.2.3\n", "safer_nlp-1.2.3.tar.gz", "libsafer.so.1\n"):
            self.assertIn(words, install.read_text())
        self.assertIn("soname 1\n", (self.copy / "tests/abi.txt").read_text())

    def test_refused(self):
        """changes, a place that was forgotten, no date, a tag: nothing is made"""
        (self.copy / "web/openapi.json").write_text((self.copy / "web/openapi.json").read_text().replace(VERSION, "9.9.9"))
        changes = self.copy / "CHANGELOG.md"
        changes.write_text(changes.read_text().replace("2026-12-24", "unreleased"))
        self.git("tag", f"v{VERSION}")
        done = self.release(good=False)
        self.assertEqual(done.returncode, 1)
        for words in ("web/openapi.json has 9.9.9", "a release has a date", "not committed", "there is a tag"):
            self.assertIn(words, done.stderr)
        self.assertFalse((self.copy / "out").exists())

    def test_whole(self):
        """with scripts of ours for the long ones: recipes have the digest, the notes the changes, SHA256SUMS all files, and a tag"""
        for name in ("dist", "wheel", "deb"):
            made = {"dist": f"safer-{VERSION}.tar.xz", "wheel": "x.whl", "deb": "x.deb"}[name]
            (self.copy / "scripts" / name).write_text(f'#!/bin/sh\necho {name} >"$2/{made}"\n')
            (self.copy / "scripts" / name).chmod(0o755)
        self.commit()
        self.git("config", "user.name", "x")
        self.git("config", "user.email", "x@example.org")
        self.release("--url", "https://example.com/files")
        place = self.copy / "out/release" / VERSION
        digest = hashlib.sha256(b"dist\n").hexdigest()
        for name in ("safer.rb", "meta.yaml"):
            text = (place / name).read_text()
            self.assertIn(digest, text)
            self.assertIn(f"https://example.com/files/safer-{VERSION}.tar.xz", text)
            self.assertNotRegex(text, r"@[A-Z]+@")
        self.assertIn("### Added", (place / f"NOTES-{VERSION}.md").read_text())
        self.assertNotIn("\n## ", (place / f"NOTES-{VERSION}.md").read_text())
        sums = run("sha256sum", "-c", "--quiet", "SHA256SUMS", cwd=place)
        self.assertEqual((sums.stdout, len((place / "SHA256SUMS").read_text().splitlines())), ("", len(list(place.iterdir())) - 1))
        self.assertEqual(self.git("tag").stdout.split(), [f"v{VERSION}"])

    def test_recipes(self):
        """what the recipes depend on is what CMakeLists.txt asks for"""
        for name, of in (("homebrew/safer.rb.in", {"libcrypto": "openssl@3", "libcurl": "curl", "libutf8proc": "utf8proc"}),
                         ("conda/meta.yaml.in", {"libcrypto": "openssl", "libutf8proc": "utf8proc"})):
            text = (ROOT / "packaging" / name).read_text()
            for library in re.search(r"set\(libraries ([^)]*)\)", (ROOT / "CMakeLists.txt").read_text())[1].split():
                self.assertRegex(text, rf'(depends_on "|    - ){re.escape(of.get(library, library))}\b', name)
            for option in re.findall(r"-D(SAFER_\w+)", text):
                self.assertRegex((ROOT / "CMakeLists.txt").read_text(), rf"option\({option} ", name)


if __name__ == "__main__":
    test_cli.run_tests(sys.modules["__main__"], lambda: None)
