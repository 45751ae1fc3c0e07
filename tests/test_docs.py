#!/usr/bin/env python3
"""Keeps the documentation true: test_docs.py [TEST...] BUILD_DIR. Run by ctest.

Blocks marked ```console in README.md and docs/*.md are run, one temporary folder per
document: lines that begin with "$ " are commands (a backslash at the end continues on the
next line), the lines below are what they print, stdout and stderr together. A line "..."
stands for any number of lines. Commands must end with exit status 0. The folder holds
demo/train.tsv, demo/dev.tsv, demo/test.tsv and demo/synonyms.tsv, and compare.json and
compare-edits.json of examples/; safer and check-certificates are in the PATH.
Blocks marked ```sh are shown, not run; ```c must compile; ```python are run in the same
folder, each on its own, unless a package that they import is not installed, or a first
line "# needs ..." names what is not there.
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
import test_rooms  # noqa: E402

ROOT = pathlib.Path(__file__).resolve().parent.parent
PAGES = [ROOT / "README.md", *sorted((ROOT / "docs").glob("*.md"))]
DOCUMENTS = [*PAGES, ROOT / "CHANGELOG.md", ROOT / "CONTRIBUTING.md", ROOT / "SECURITY.md"]
EXAMPLES = [ROOT / "examples/compare.json", ROOT / "examples/compare-edits.json"]
MANUAL = pathlib.Path(sys.argv[-1]).resolve() / "safer.1"  # made while safer is built

# Options of other programs that a page may name.
FOREIGN = {"examples/exec_transformers.py": {"--label", "--fixed", "--threshold"},
           "scripts/bootstrap": {"--check", "--browser", "--service", "--proof", "--notebook", "--packages"}, "scripts/dist": {"--try"}, "scripts/deb": {"--tests"},
           "scripts/try-wheel": {"--suite", "--wheel"}, "scripts/try-deb": {"--from"}, "scripts/release": {"--url", "--dry-run", "--set-version"},
           "docker": {"--read-only"}, "gpg": {"--detach-sign"}, "cmake --install": {"--install"}, "text-embeddings-router": {"--model-id", "--port"}, "pkg-config": {"--cflags", "--libs"},
           "cmake": {"--build"}, "ctest": {"--test-dir", "--output-on-failure"}, "tests/test_abi.py": {"--write"}, "scripts/coverage": {"--missed"}, "scripts/test-gpu": {"--speed", "--forms", "--small", "--no-build", "--no-sanitizer"}, "tests/test_kill.py": {"--kills"}, "scripts/soak-serve": {"--minutes"}, "scripts/-encoders": {"--initial"}, "scripts/adapt-encoder": {"--seconds", "--mask"}, "scripts/records": {"--unlabelled"}, "scripts/agreement": {"--draws", "--certificates", "--clear", "--torch"}, "scripts/hostile": {"--files"}, "check-certificates": {"--texts"}, "scripts/bench-mpi": {"--only"}, "sbatch": {"--array"}, "scripts/trial-mpi": {"--kills", "--seed"}, "mpirun": {"--bind-to", "--hostfile", "--mca"}, "cosign": {"--statement", "--key", "--bundle", "--type"}}

demo = None  # a folder with the demo's data


def prepare():
    global demo
    demo = test_cli.temporary / "demo"
    build = pathlib.Path(test_cli.program).parent
    subprocess.run([build / "demo-reviews", demo], check=True, capture_output=True)
    shutil.copy(ROOT / "demo/synonyms.tsv", demo)


# ---------------------------------------------------------------- reading pages

def blocks(path, kind):
    """The fenced blocks of a kind: (number of the first line, lines)."""
    found, inside, start, fence = [], None, 0, False
    for number, line in enumerate(path.read_text().splitlines(), 1):
        if line.startswith("```"):
            if not fence:
                inside, start = ([], number + 1) if line[3:].strip() == kind else (None, 0)
            elif inside is not None:
                found.append((start, inside))
            fence = not fence
        elif fence and inside is not None:
            inside.append(line)
    if fence:
        raise AssertionError(f"{path.name}: a ``` that never ends")
    return found


def commands(path):
    """The commands of a page: (line, command, lines shown below it or None)."""
    found = []
    for start, lines in blocks(path, "console"):
        at = 0
        while at < len(lines):
            if not lines[at].startswith("$ "):
                raise AssertionError(f"{path.name}, line {start + at}: a console block begins with \"$ \"")
            number, command = start + at, lines[at][2:]
            while command.endswith("\\"):
                at += 1
                command += "\n" + lines[at]
            shown = []
            at += 1
            while at < len(lines) and not lines[at].startswith("$ "):
                shown.append(lines[at].rstrip())
                at += 1
            found.append((number, command, shown))
    return found


def agrees(shown, real):
    """Whether the real lines are the shown ones, "..." standing for any number of lines."""
    if not shown:
        return not real
    if shown[0] == "...":
        return any(agrees(shown[1:], real[i:]) for i in range(len(real) + 1))
    return bool(real) and shown[0] == real[0] and agrees(shown[1:], real[1:])


def first_difference(shown, real):
    for line in shown:
        if line != "..." and line not in real:
            return f"this line is not printed: {line}"
    return "lines are missing, surplus or in another order"


# ---------------------------------------------------------------- reading helps

def help_of(*verb):
    done = test_cli.run(*verb, "--help")
    if done.code:
        raise AssertionError(f"safer {' '.join(verb)} --help: {done}")
    return done.out


def listed(text, heading):
    """The first words of the lines below a heading of a help text."""
    part = text.split(f"\n{heading}:\n")[1].split("\n\n")[0] if f"\n{heading}:\n" in text else ""
    return re.findall(r"^  ([a-z]+) ", part, re.M)


def verbs():
    """("lexicon", "build"), ... as the program itself lists them."""
    found = []
    for verb in listed(help_of(), "Verbs"):
        actions = listed(help_of(verb), "Actions")
        found += [(verb, action) for action in actions] or [(verb,)]
    return found


def help_options(text):
    """The options of a help text: section -> {option: (value, description)}."""
    found, section = {}, None
    for line in text.split("\nExamples:\n")[0].splitlines():
        if re.fullmatch(r"[A-Z][^:]*:", line):
            section = found.setdefault(line[:-1], {})
        option = re.match(r"  (--[a-z0-9-]+)(?: (\S+))?  +(.*)", line)
        if option:
            section[option[1]] = (option[2], option[3])
    return found


def all_options():
    found = {"--version"}
    for verb in verbs():
        for options in help_options(help_of(*verb)).values():
            found |= set(options)
    return found


def manual_options():
    """The manual page's options: subsection -> {option: (value, text below it)}."""
    found, section, option = {}, None, None
    for line in MANUAL.read_text().splitlines():
        if line.startswith((".Ss ", ".Sh ")):
            section, option = line[4:], None
        elif re.match(r"\.It Fl -", line):
            name, value = re.fullmatch(r"\.It Fl -([a-z0-9-]+)(?: Ar (\S+))?", line).groups()
            option = "--" + name
            found.setdefault(section, {})[option] = [value, ""]
        elif option:
            found[section][option][1] += line + "\n"
    return found


def can_import(python, names):
    done = subprocess.run([python, "-c", "".join(f"import {name}\n" for name in sorted(names))], capture_output=True)
    return done.returncode == 0


class Pages(unittest.TestCase):
    def run_page(self, path):
        folder = pathlib.Path(tempfile.mkdtemp(dir=test_cli.temporary))
        shutil.copytree(demo, folder / "demo")
        for example in EXAMPLES:
            shutil.copy(example, folder)
        build = str(pathlib.Path(test_cli.program).parent)
        environment = {**os.environ, "PATH": os.pathsep.join((build, str(ROOT / "tools"), os.environ["PATH"])), "LC_ALL": "C.UTF-8"}
        found = commands(path)
        for number, command, shown in found:
            done = subprocess.run(["sh", "-c", command], cwd=folder, env=environment, stdin=subprocess.DEVNULL,
                                  stdout=subprocess.PIPE, stderr=subprocess.STDOUT, timeout=300)
            real = [line.rstrip() for line in done.stdout.decode().splitlines()]
            where = f"{path.name}, line {number}: {command}\n"
            self.assertEqual(done.returncode, 0, where + "\n".join(real))
            if shown:
                problem = first_difference(shown, real) + "\nit prints:\n" + "\n".join(real)
                self.assertTrue(agrees(shown, real), where + problem)
        return len(found)

    def test_matching(self):
        """the matcher itself: order, gaps, missing and surplus lines"""
        real = ["a", "b", "c", "d"]
        for shown in (["a", "b", "c", "d"], ["...", "d"], ["a", "..."], ["a", "...", "d"],
                      ["...", "b", "...", "d", "..."]):
            self.assertTrue(agrees(shown, real), shown)
        for shown in (["a", "b", "c"], ["b", "c", "d"], ["a", "...", "c"], ["...", "c", "b", "..."],
                      ["...", "e", "..."], ["a", "d"]):
            self.assertFalse(agrees(shown, real), shown)

    def test_blocks(self):
        """every block says what it is, and every page that should has commands"""
        for path in DOCUMENTS:
            fences = [line for line in path.read_text().splitlines() if line.startswith("```")]
            self.assertEqual(len(fences) % 2, 0, path.name)
            for line in fences[::2]:
                self.assertIn(line, ("```", "```console", "```sh", "```c", "```python"), path.name)
        for name in ("README.md", "lexicon.md", "data.md", "train.md", "certify.md", "report.md"):
            path = next(page for page in PAGES if page.name == name)
            self.assertGreaterEqual(len(commands(path)), 5, name)

    def test_links(self):
        """links inside the documents lead somewhere"""
        for path in DOCUMENTS:
            for target in re.findall(r"\]\(([^)\s]+)\)", path.read_text()):
                if target.startswith("http"):
                    continue
                name, _, anchor = target.partition("#")
                file = path.parent / name if name else path
                self.assertTrue(file.exists(), f"{path.name} links to {target}")
                if anchor:
                    headings = re.findall(r"^#+ (.*)$", file.read_text(), re.M)
                    anchors = {re.sub(r"[^\w\- ]", "", heading.lower()).replace(" ", "-") for heading in headings}
                    self.assertIn(anchor, anchors, f"{path.name} links to {target}")

    def test_paths(self):
        """files of the tree that a document names exist"""
        named = {(path.name, name) for path in DOCUMENTS if path.name != "CHANGELOG.md"
                 for name in re.findall(r"`((?:src|cli|tests|scripts|include|\.github)/[\w./-]+)`", path.read_text())}
        self.assertGreater(len(named), 20)
        for page, name in sorted(named):
            self.assertTrue("NAME" in name or (ROOT / name).exists(), f"{page} names {name}")

    def test_rooms(self):
        """docs/design.md has the rooms in their order"""
        shown = re.findall(r"^\| `src/(\w+)` \|", (ROOT / "docs/design.md").read_text(), re.M)
        self.assertEqual(shown, [*test_rooms.ORDER, *test_rooms.PLUGINS])

    def test_readme_begins(self):
        """README shows make demo and make test before anything else"""
        lines = [line for block in blocks(ROOT / "README.md", "sh")[:1] for line in block[1]]
        self.assertEqual([" ".join(line.split()[:2]) for line in lines], ["make demo", "make test"])
        text = (ROOT / "README.md").read_text()
        self.assertEqual(text.index("```"), text.index("```sh\nmake demo"))
        self.assertLess(text[:text.index("```")].count("\n"), 15)
        makefile = (ROOT / "Makefile").read_text()
        for target in ("demo", "test"):
            self.assertRegex(makefile, rf"(?m)^{target}:")

    def test_make_targets(self):
        """every make target that a document names exists"""
        phony = set(re.search(r"^\.PHONY: (.*)$", (ROOT / "Makefile").read_text(), re.M)[1].split())
        for path in DOCUMENTS:
            named = re.findall(r"`make ((?:[a-z-]+ ?)+)", path.read_text())
            named += [line[5:] for _, block in blocks(path, "sh") for line in block if line.startswith("make ")]
            for words in named:
                for target in re.match(r"[a-z -]*", words)[0].split():
                    self.assertIn(target, phony, path.name)

    def test_options_exist(self):
        """no document names an option that does not exist"""
        known = all_options() | set().union(*FOREIGN.values())
        self.assertGreater(len(known), 20)
        for path in DOCUMENTS:
            for option in re.findall(r"(?<![\w-])(--[a-z][a-z0-9-]*)", path.read_text()):
                self.assertIn(option, known, path.name)

    def test_tables_of_the_report(self):
        """docs/lexicon.md names every member of the JSON report, and no other"""
        part = (ROOT / "docs/lexicon.md").read_text().split("\n## What is reported\n")[1].split("\n\n`stats`")[0]
        rows = [line.split("|")[1] for line in part.splitlines() if line.startswith("| `")]
        named = {name for row in rows for name in re.findall("`([a-z0-9_]+)`", row)}
        folder = test_cli.temporary
        (folder / "r.vec").write_text("good 1 2\ngreat 1 2.5\nbad 2 -1\nawful 2 -1.5\n")
        (folder / "r.sim").write_text("good great 9\ngood bad 1\nbad awful 8\n")
        done = test_cli.lexicon("build", "--vectors", "r.vec", "--all-but-the-top", 0, "--simlex", "r.sim", "-o",
                                "r.lex", "--json")
        self.assertEqual(done.code, 0, done.err)
        self.assertEqual(named, set(test_cli.json.loads(done.out)))

    def test_tables_of_a_run(self):
        """docs/certify.md names every member of the JSON, the configuration and the records, and no other"""
        folder, page = test_cli.temporary, (ROOT / "docs/certify.md").read_text()
        (folder / "m.table").write_text("good\tgreat fine\nbad\tawful poor\nfilm\tmovie picture\n")
        (folder / "m.tsv").write_text("".join(f"{i}\t{i % 2}\t{('A bad film. ', 'A good film. ')[i % 2] * (1 + i % 3 * 4)}\n"
                                              for i in range(40)))
        for arguments in (("lexicon", "import", "--table", "m.table", "--kernel", "component", "-o", "m.lex"),
                          ("train", "--arch", "ngram", "--data", "m.tsv", "--lexicon", "m.lex", "--bits", 10, "-o", "m.model")):
            self.assertEqual(test_cli.run(*arguments).code, 0)
        done = test_cli.run("certify", "--model", "m.model", "--lexicon", "m.lex", "--data", "m.tsv", "--json", "-o", "m.jsonl")
        self.assertEqual(done.code, 0, done.err)
        config, *records = map(test_cli.json.loads, (folder / "m.jsonl").read_text().splitlines())
        members = set().union(*records, ("assumes", "margins", "margin_at", "margin_radius", "margin_next"))  # of remote models, and of bounds: test_cli_verify.py, test_cli_ibp.py
        self.assertEqual({record["exact"] for record in records}, {True, False}, "both kinds of records are needed")
        tables = [{name for line in table.splitlines() for name in re.findall("`([a-z_0-9]+)`", line.split("|")[1])}
                  for table in re.findall(r"^\| member \| \|\n((?:\|.*\n)+)", page, re.M)]
        self.assertEqual(tables, [set(test_cli.json.loads(done.out)), set(config), members])

    def test_compare(self):
        """docs/compare.md shows the configuration of examples/"""
        for example in EXAMPLES:
            self.assertIn(f"```\n{example.read_text()}```\n", (ROOT / "docs/compare.md").read_text())

    def test_code(self):
        """C examples compile without warnings"""
        compiler = os.environ.get("CC") or shutil.which("cc")
        if not compiler:
            self.skipTest("no C compiler")
        found = [(path, block) for path in PAGES for block in blocks(path, "c")]
        self.assertTrue(found)
        for path, (number, lines) in found:
            done = subprocess.run([compiler, "-std=c11", "-Wall", "-Wextra", "-Werror", "-fsyntax-only",
                                   f"-I{ROOT}/include", "-xc", "-"],
                                  input="\n".join(lines).encode() + b"\n", capture_output=True)
            self.assertEqual(done.returncode, 0, f"{path.name}, line {number}: {done.stderr.decode()}")

    def test_python(self):
        """Python examples run"""
        found = [(path, block) for path in PAGES for block in blocks(path, "python")]
        build, skipped = pathlib.Path(test_cli.program).parent, set()
        environment = {**os.environ, "PYTHONPATH": str(ROOT / "python"), "SAFER_LIBRARY": str(build / "libsafer.so.0.2"),
                       "PATH": f"{build}{os.pathsep}{os.environ['PATH']}"}
        if (build / "CMakeCache.txt").read_text().find("SAFER_SANITIZE:STRING=\n") < 0:
            self.skipTest("a library with sanitizers cannot be loaded by Python")
        self.assertTrue(found)
        for path, (number, lines) in found:
            imported = {name for line in lines for name in re.findall(r"^(?:import|from) (\w+)", line)} - {"safer_nlp"}
            needed = lines[0][8:].split(" ") if lines[0].startswith("# needs ") else []
            interpreter = next((python for python in (sys.executable, "/usr/bin/python3") if can_import(python, imported)), None)
            if needed or not interpreter:
                skipped.add(" ".join(needed or sorted(imported)))
                continue
            folder = pathlib.Path(tempfile.mkdtemp(dir=test_cli.temporary))
            shutil.copytree(demo, folder / "demo")
            done = subprocess.run([interpreter, "-"], input="\n".join(lines).encode() + b"\n", cwd=folder, env=environment,
                                  capture_output=True, timeout=300)
            self.assertEqual(done.returncode, 0, f"{path.name}, line {number}: {done.stderr.decode()}")
        if skipped:
            print(f"        skipped examples that need {'; '.join(sorted(skipped))}")

    def test_nothing_private(self):
        """no document names a folder of one person's machine"""
        for path in (*DOCUMENTS, MANUAL):
            self.assertNotRegex(path.read_text(), r"(?<![\w.])/(work|home|root|tmp|mnt)/", path.name)

    def test_what_delta_bounds(self):
        """one sentence says what delta bounds, wherever a reader may look; nothing says more"""
        places = ("README.md", "docs/certify.md", "docs/attack.md", "docs/serve.md", "docs/proof.md", "docs/safer.1.in", "include/safer/certify.h",
                  "python/README.md", "python/safer_nlp/_certify.py", "src/report/page.c", "web/explorer.js", "web/openapi.json", "scripts/demo")
        for place in places:
            words = re.sub(r"""[*"'+`\\]|</?code>|^\.Fl -|this\.start\.""", " ", (ROOT / place).read_text(), flags=re.M)
            self.assertRegex(" ".join(words.split()), r"(?i)the chance that a text that could be attacked gets a certificate is at most "
                             r"(δ|delta|delta_text|1%) ?; it is not the chance that a given certificate is wrong", place)
        for folder, kinds in (("", ("md",)), ("docs", ("md", "in")), ("include", ("h",)), ("python", ("md", "py")), ("web", ("js", "html", "json")),
                              ("src/report", ("c",)), ("cli", ("c",)), ("scripts", ("demo",))):
            for path in (p for kind in kinds for p in ((ROOT / folder).glob("*.md") if not folder else (ROOT / folder).rglob(f"*{kind}"))):
                if path.name != "CHANGELOG.md":
                    words = " ".join(path.read_text(errors="replace").split())
                    self.assertNotRegex(words, r"error probability|receives? a certificate is at most|certificate is wrong with|"
                                        r"wrong with (a )?probability|without sampling error", path.name)

    def test_licence(self):
        """LICENSE is the whole Apache licence, and the header names it"""
        text = (ROOT / "LICENSE").read_text()
        self.assertIn("Apache License\n                           Version 2.0, January 2004", text)
        self.assertIn("END OF TERMS AND CONDITIONS", text)
        self.assertIn("SPDX-License-Identifier: Apache-2.0", (ROOT / "include/safer.h").read_text())

    def test_changelog(self):
        """CHANGELOG begins with the version of the header, or with the one to come above it"""
        done = test_cli.run("--version")
        version = done.out.split()[1]
        sections = re.findall(r"^## (\S+) - (unreleased|\d{4}-\d\d-\d\d)$", (ROOT / "CHANGELOG.md").read_text(), re.M)
        self.assertEqual(len(sections), len(re.findall(r"^## ", (ROOT / "CHANGELOG.md").read_text(), re.M)))
        numbers = [tuple(map(int, number.split("."))) for number, _ in sections]
        self.assertEqual(numbers, sorted(set(numbers), reverse=True), "the newest first")
        below = sections[1:] if sections[0][0] != version and sections[0][1] == "unreleased" else sections
        self.assertEqual(below[0][0], version)


def page_test(path):
    def test(self):
        self.run_page(path)
    test.__doc__ = f"the commands of {path.relative_to(ROOT)} print what it shows"
    return test


for page in PAGES:
    if blocks(page, "console"):
        setattr(Pages, f"test_run_{page.stem.lower()}", page_test(page))


class Manual(unittest.TestCase):
    def test_verbs(self):
        """the manual page has a section for every verb, and no other"""
        sections = set(re.findall(r"^\.Ss (.*)$", MANUAL.read_text(), re.M))
        self.assertEqual(sections, {" ".join(verb) for verb in verbs()} | {"Everywhere"})
        for verb in verbs():
            self.assertRegex(MANUAL.read_text(), rf"(?m)^\.Cm {' '.join(verb)}$")

    def test_options(self):
        """the manual page and the helps have the same options, values and defaults"""
        manual = manual_options()
        for verb in verbs():
            sections = help_options(help_of(*verb))
            shared = sections.pop("Everywhere")
            own = {option: entry for options in sections.values() for option, entry in options.items()}
            for name, options in ((" ".join(verb), own), ("Everywhere", shared)):
                self.assertEqual(set(manual.get(name, {})), set(options), name)  # a verb may have none of its own
                for option, (value, text) in options.items():
                    self.assertEqual(manual[name][option][0], value, f"{name} {option}")
                    default = re.search(r"\(default:? ([^)]*)\)", text)
                    if default:
                        self.assertIn(default[0], " ".join(manual[name][option][1].split()), f"{name} {option}")

    def test_notes(self):
        """what the template adds to an option stands in every verb that it names; one about nothing is refused"""
        pages, template = MANUAL.parent / "safer-pages", ROOT / "docs/safer.1.in"
        manual = manual_options()
        notes = re.findall(r"^@note (.*) --(\S+)\n((?:[^@].*\n)+)", template.read_text(), re.M)
        self.assertGreater(len(notes), 20)
        for names, option, lines in notes:
            for verb in names.split(", "):
                self.assertIn(lines, manual["Everywhere" if verb == "everywhere" else verb]["--" + option][1])
        for line, words in (("@note certify --nothing", "no such verb or option"), ("@note certify, no --model", "no such verb or option"),
                            ("@about nothing", "no such verb or option"), ("@nothing", "there is no @nothing")):
            bad = test_cli.write("noted.1.in", f".Dd x\n{line}\nText.\n")
            done = subprocess.run([pages, "man", bad, "noted.1"], cwd=test_cli.temporary, capture_output=True, text=True)
            self.assertEqual(done.returncode, test_cli.INPUT, done)
            self.assertIn(words, done.stderr)
            self.assertIn("line 2", done.stderr)
            self.assertFalse(test_cli.exists("noted.1"))

    def test_exit_status(self):
        """the manual page, README and the help list the same exit codes"""
        codes = re.findall(r"(\d+) [a-z]", help_of().split("Exit status:")[1])
        part = MANUAL.read_text().split(".Sh EXIT STATUS")[1].split(".Sh")[0]
        self.assertEqual(re.findall(r"^\.It (\d+)$", part, re.M), codes)
        readme = (ROOT / "README.md").read_text().split("## Exit status")[1].split("\n## ")[0]
        self.assertEqual(re.findall(r"^\| (\d+) \|", readme, re.M), codes)

    def lint_mandoc(self, page):
        done = subprocess.run(["mandoc", "-T", "lint", "-W", "warning", page], capture_output=True, text=True)
        return done.stdout + done.stderr

    def lint_groff(self, page):
        """What groff warns of, but for lines that cannot be broken: these are no fault of the page."""
        done = subprocess.run(["groff", "-mandoc", "-Tutf8", "-Kutf8", "-wmac", "-Wbreak", "-rLL=78n", page],
                              capture_output=True, text=True, env={**os.environ, "LC_ALL": "C.UTF-8"})
        if not done.stderr:
            self.assertIn("lexicon build", re.sub(r"\x1b\[[0-9;]*m|.\x08", "", done.stdout))
        return done.stderr

    def test_lint(self):
        """mandoc and groff, where they are installed, find no fault with the manual page"""
        found = [lint for tool, lint in (("mandoc", self.lint_mandoc), ("groff", self.lint_groff)) if shutil.which(tool)]
        if not found:
            self.skipTest("neither mandoc nor groff is installed")
        bad = test_cli.temporary / "bad.1"
        bad.write_text(MANUAL.read_text() + ".Pq Nosuchmacro\n.Nosuchmacro x\n")
        wide = test_cli.temporary / "wide.1"
        wide.write_text(MANUAL.read_text() + ".Pp\n" + 200 * "x" + "\n")
        for lint in found:
            self.assertEqual(lint(MANUAL), "")
            self.assertEqual(lint(wide), "", "a word wider than the page is no fault")
            self.assertIn("Nosuchmacro", lint(bad), "a fault is seen")

    def test_examples(self):
        """the manual page's examples use options that exist"""
        known = all_options()
        examples = MANUAL.read_text().split(".Sh EXAMPLES")[1].split(".Sh")[0]
        found = re.findall(r"(?<![\w-])(--[a-z][a-z0-9-]*)", examples)
        self.assertTrue(found)
        self.assertLessEqual(set(found), known)


if __name__ == "__main__":
    test_cli.run_tests(sys.modules["__main__"], prepare)
