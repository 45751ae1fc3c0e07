#!/usr/bin/env python3
"""What is said to people, and in whose words: test_messages.py [TEST...] BUILD_DIR. Run by ctest.

The library marks the members of its structs of options in its messages (include/safer/base.h); the program says
options instead, and the Python package arguments. All messages are read in the source, and provoked option by option.
"""
import inspect
import json
import os
import pathlib
import re
import signal
import subprocess
import sys
import time

sys.dont_write_bytecode = True
import test_cli  # noqa: E402  (it runs no test by being imported)
from cli_runs import must  # noqa: E402
from test_cli import DONE, INPUT, INTERRUPTED, USAGE, Case, exists, run, write  # noqa: E402
from test_docs import help_of, help_options, verbs  # noqa: E402

ROOT = pathlib.Path(__file__).resolve().parent.parent

# Members that no option sets: of a programmer's own making.
PROGRAMMERS = {"labels_of", "most_texts", "on_disk"}


def make_files():
    write("train.tsv", "".join(f"{i}\t{i % 2}\t{('a bad film', 'a good film')[i % 2]} number {i % 5} of them\n" for i in range(24)))
    write("one.tsv", "1\t1\tgood\n")
    write("s.table", "good\tfine great\nbad\tpoor awful\nfilm\tmovie\n")
    write("one.table", "good\tfine\n")
    must("lexicon", "import", "--table", "s.table", "--kernel", "component", "-o", "s.lex")
    must("lexicon", "import", "--table", "one.table", "--kernel", "component", "-o", "one.lex")
    must("train", "--arch", "ngram", "--data", "train.tsv", "--lexicon", "s.lex", "-o", "n.model")
    must("certify", "--model", "n.model", "--lexicon", "s.lex", "--data", "train.tsv", "-o", "run.jsonl")


def members():
    """The members of all structs of options."""
    found = set()
    for header in (ROOT / "include/safer").glob("*.h"):
        text = re.sub(r"/\*.*?\*/", "", header.read_text(), flags=re.S)
        for body in re.findall(r"typedef struct safer_\w*options \{(.*?)\n\} ", text, re.S):
            for declaration in body.split(";"):
                found.update(re.findall(r"(\w+)\s*(?=,|$)", declaration.strip()))
    return found - {"size", "context", "log"}


def messages():
    """(file, message) for every string of a failure in the source, marks of printf included."""
    for path in sorted((ROOT / "src").rglob("*.c")):
        text = path.read_text()
        for call in re.finditer(r"(?:SAFER_(?:INVALID|INPUT),|sf_loader_fail\(\w+, \w+, error,)\s*((?:\"(?:[^\"\\]|\\.)*\"\s*(?:PRIu64\s*)?)+)", text):
            yield path.relative_to(ROOT), "".join(re.findall(r'"((?:[^"\\]|\\.)*)"', call[1])).replace('\\"', '"')


def marked():
    """The members that messages name, each with a message."""
    found = {}
    for _, message in messages():
        for name in re.findall(r"`([^`]*)`", message):
            found.setdefault(name, message)
    table = (ROOT / "src/train/train.c").read_text()  # "`%s` is ..." has its names there
    for name in re.findall(r'\{"([a-z_.]+)", o->', table):
        found.setdefault(name, "train.c")
    return found


class Source(Case):
    def test_marked(self):
        """every member that a message names is between backquotes, and nothing else is"""
        known, count = members(), 0
        for path, message in messages():
            plain = re.sub(r'"[^"]*"|`[^`]*`', "", message)
            options = re.findall(r"(?<!-)--[a-z][a-z-]*", plain)
            self.assertTrue(not options or "exec:" in message or "safer train" in message, f"{path}: {message}: the library has no options of a program")
            bare = [word for word in re.findall(r"\b[a-z]+(?:_[a-z]+)+\b", plain) if word in known]
            self.assertEqual(bare, [], f"{path}: {message}")
            for name in re.findall(r"`([^`]*)`", message):
                count += 1
                if "%" not in name:
                    self.assertIn(name.split(".")[-1], known | {"groups", "max_unpacked", "output", "resume", "size"}, f"{path}: {message}")
        self.assertGreater(count, 100, "the source is not read as it is written")

    def test_first_word(self):
        """a message about a parameter does not begin with its bare name"""
        known, seen = members(), 0
        for path in sorted((ROOT / "src").rglob("*.c")):
            for message in re.findall(r'SAFER_INVALID,\s*"((?:[^"\\]|\\.)*)"', path.read_text()):
                first = re.match(r"`?([a-z0-9_.]+)`?(?:: | is | must )", message)
                if first and first[1] in known:
                    seen += 1
                    self.assertEqual(message[0], "`", f"{path}: {message}")
        self.assertGreater(seen, 80)

    def test_options(self):
        """every member that a message names has an option; the names that differ lead to options that exist"""
        options = {option[2:] for verb in verbs() for section in help_options(help_of(*verb)).values() for option in section}
        table = (ROOT / "cli/members.c").read_text()
        others = dict(re.findall(r'\{"([a-z_.]+)", "([a-z-]+)"[},]', table))
        self.assertGreater(len(others), 10)
        self.assertLessEqual(set(others.values()), options)
        for name, message in marked().items():
            if "%" not in name and name not in PROGRAMMERS:
                self.assertIn(others.get(name, name.replace("_", "-")), options, message)

    def test_arguments(self):
        """the same for the Python package: arguments of its functions"""
        sys.path.insert(0, str(ROOT / "python"))
        os.environ.setdefault("SAFER_LIBRARY", str(pathlib.Path(test_cli.program).parent / "libsafer.so"))
        import safer_nlp
        from safer_nlp import _errors
        things = [getattr(safer_nlp, name) for name in dir(safer_nlp) if name[0] != "_"]
        functions = [f for thing in things if callable(thing) for f in (thing, *(getattr(thing, n) for n in vars(thing) if n[0] != "_" and isinstance(thing, type)))
                     if inspect.isfunction(f) or inspect.ismethod(f)]
        arguments = {name for function in functions for name in inspect.signature(function).parameters}
        foreign = {"crew", "crew.timeout", "max_unpacked", "model"}  # no crew there; the model is the first argument
        for name, message in marked().items():
            if "%" not in name and name not in PROGRAMMERS | foreign:
                self.assertIn(_errors._ARGUMENTS.get(name, name.rpartition(".")[2]), arguments, message)
        with self.assertRaisesRegex(safer_nlp.InvalidError, "^delete: "):
            safer_nlp.draws(safer_nlp.Lexicon.load(test_cli.temporary / "s.lex"), "a good film", delete=1.5)


class Provoked(Case):
    # What a verb needs besides the option that is wrong.
    NEEDS = {("lexicon", "build"): ("--vectors", "none.txt", "-o", "x.lex"), ("lexicon", "import"): ("--table", "s.table", "-o", "x.lex"),
             ("lexicon", "stats"): ("s.lex", "--data", "train.tsv"),
             ("train",): ("--arch", "cnn", "--dim", "4", "--epochs", "1", "--data", "train.tsv", "--lexicon", "s.lex", "-o", "x.model"),
             ("certify",): ("--model", "n.model", "--lexicon", "s.lex", "--data", "train.tsv"),
             ("predict",): ("a", "--model", "n.model", "--lexicon", "s.lex"),
             ("verify",): ("run.jsonl", "--model", "n.model", "--lexicon", "s.lex", "--data", "train.tsv"),
             ("attack",): ("--model", "n.model", "--lexicon", "s.lex", "--data", "train.tsv", "--smoothed"),
             ("report",): ("run.jsonl", "-o", "x.html"), ("evidence",): ("run.jsonl", "-o", "x"), ("merge",): ("run.jsonl", "-o", "x.jsonl"),
             ("serve",): ("--model", "n.model", "--lexicon", "s.lex", "--port", "0"), ("fold",): ("--lexicon", "s.lex", "a"),
             ("sample",): ("--lexicon", "s.lex", "a"),
             ("sweep",): ("--arch", "ngram", "--data", "train.tsv", "--dev", "train.tsv", "--lexicon", "s.lex", "-o", "x")}
    LASTING = {"--port", "--threads", "--mpi", "--mpi-timeout", "--access-log"}  # a right value makes it serve, or start many

    def test_every_option(self):
        """each option with values that may be wrong: what is said names options, never members"""
        known = {name for name in members() if "_" in name} | {name for name in marked() if "." in name}
        refusals, done_once = 0, set()
        for verb in verbs():
            for section, options in help_options(help_of(*verb)).items():
                if section in done_once:
                    continue  # the same in every verb that has it
                done_once |= {section} & {"Everywhere", "Remote models (exec, http)", "Many processes"}
                for option, (value, _) in options.items():
                    if not value or option in self.LASTING:
                        continue
                    for wrong in ("0", "nonsense"):
                        if verb == ("serve",) and wrong == "0" and option not in ("--max-body", "--max-text", "--max-texts", "--queue", "--connections", "--deadline"):
                            continue  # it would serve
                        done = run(*verb, *self.NEEDS.get(verb, ()), option, wrong)
                        place = (verb, option, wrong, done.err)
                        self.assertNotIn("`", done.err, place)
                        said = {word.strip(":;,()") for word in done.err.split()} & known
                        self.assertEqual(said, set(), place)
                        refusals += done.code == USAGE
        self.assertGreater(refusals, 80)

    def test_words(self):
        """messages that spoke of members, in the words of the command line"""
        base = ("--model", "n.model", "--lexicon", "s.lex")
        for arguments, words in (
                (("serve", *base, "--host", "0.0.0.0"), "--host: 0.0.0.0 can be reached by others, and there is no token; give --auth-env or --auth-file, or --without-token"),
                (("serve", *base, "--max-texts", 9, "--queue", 3), "--max-texts: 9 (1 to --queue)"),
                (("serve", *base, "--client-rate", 1e9), "--client-rate: 1e+09 (0 to 1000000)"),
                (("attack", *base, "--data", "train.tsv", "--smoothed", "--max-queries", 3), "--max-queries: 3, but one vote may take --n = 200"),
                (("train", "--arch", "ngram", "--ngrams", 9, "--data", "train.tsv", "-o", "x"), "--ngrams is 9; it must be from 1 to 8"),
                (("train", "--arch", "cnn", "--train-vectors", "--data", "train.tsv", "-o", "x"),
                 "--train-vectors is for a defense; otherwise vectors are trained unless --freeze is set"),
                (("train", "--arch", "cnn", "--min-count", 0, "--data", "train.tsv", "-o", "x"), "--min-count is 0; it must be from 1 to 2147483647"),
                (("certify", "--model", "http://203.0.113.7/", "--labels", "0,1", "--token-env", "NONE_SUCH", "--lexicon", "s.lex", "--data", "train.tsv"),
                 "--token-env: the environment variable \"NONE_SUCH\" is not set"),
                (("lexicon", "import", "--table", "s.table", "--kernel", "none", "-o", "x"), '--kernel "none": expected auto, topk:K')):
            self.refused(run(*arguments), USAGE, words)
        self.refused(run("certify", *base, "--data", "train.tsv", "--text-column", "x"), INPUT, 'no column "x" for --text-column')

    def test_keys(self):
        """in the configuration of compare an option is a key"""
        write("c.json", json.dumps({"data": {"d": {"train": "train.tsv", "test": "train.tsv", "lexicon": "s.lex"}},
                                    "models": {"m": {"arch": "cnn", "dim": 4, "min-count": 0}}, "defenses": {"k": {"kernel": "component"}}}))
        done = run("compare", "c.json", "-o", "compared")
        self.assertEqual(done.code, USAGE, done)
        self.assertIn('"min-count" is 0; it must be', done.err)
        self.assertNotIn("min_count", done.out + done.err)

    def test_records(self):
        """a member of a records file is one of the file, not an option"""
        lines = (test_cli.temporary / "run.jsonl").read_text().splitlines()
        first = json.loads(lines[0])
        first["alpha"] = 1.5
        write("wrong.jsonl", "\n".join([json.dumps(first), *lines[1:]]) + "\n")
        done = run("verify", "wrong.jsonl")
        self.assertEqual(done.code, INPUT, done)
        self.assertNotIn("--alpha", done.err)

    def test_script(self):
        """a program given as a model: how to ask it"""
        write("x.py", "print(1)\n")
        self.refused(run("certify", "--model", "x.py", "--lexicon", "s.lex", "--data", "train.tsv"), USAGE, "--model 'exec:python3 x.py'")


class Help(Case):
    def test_help_verb(self):
        """safer help VERB prints what VERB --help does, for actions too"""
        for verb in verbs():
            self.assertEqual(self.ok(run("help", *verb)), help_of(*verb), verb)
        self.assertEqual(self.ok(run("help", "lexicon")), help_of("lexicon"))
        self.assertEqual(self.ok(run("help")), help_of())
        self.refused(run("help", "lexikon"), USAGE, "there is no verb lexikon; did you mean lexicon?")
        self.refused(run("help", "lexicon", "bild"), USAGE, "there is no action bild; did you mean build?")


    def test_one_name(self):
        """one thing has one name in all help: a folder, a text, a run; and what is not a word of ours is not used"""
        others = {"directory": "folder", "directories": "folders", "DIR": "FOLDER", "instance": "text", "instances": "texts", "document": "text", "documents": "texts",
                  "perturbation": "substitution", "category": "class", "categories": "classes", "corpus": "data"}
        for verb in verbs():
            text = help_of(*verb).split("\nExamples:\n")[0]
            found = set(re.findall(r"[A-Za-z]+", text)) & set(others)
            self.assertEqual(found, set(), (verb, {word: others[word] for word in found}))
        for path, message in messages():
            found = (set(re.findall(r"[A-Za-z]+", message)) & set(others)) - ({"directory"} if "zip file's directory" in message else set())
            self.assertEqual(found, set(), (path, message))


class Model(Case):
    def test_show(self):
        """what a model is: architecture, labels, size, arithmetic, lexicon, kernel, defense, deletion"""
        must("train", "--arch", "cnn", "--dim", 4, "--epochs", 1, "--delete", "keep:3", "--data", "train.tsv", "--lexicon", "s.lex", "-o", "d.model")
        must("train", "--arch", "ngram", "--data", "train.tsv", "-o", "plain.model")
        lexicon = json.loads(self.ok(run("lexicon", "check", "s.lex", "--json")))["sha256"]
        size = (test_cli.temporary / "d.model").stat().st_size
        shown = dict(line.split(None, 1) for line in self.ok(run("model", "show", "d.model")).splitlines())
        self.assertEqual(shown, {"architecture": "cnn", "labels": "0, 1", "size": f"{size:,} bytes", "arithmetic": "portable, on this machine",
                                 "lexicon": lexicon, "kernel": "component", "defense": "none", "deletion": "keep:3", "seed": "1",
                                 "sha256": test_cli.sha256_of("d.model")})
        shown = self.ok(run("model", "show", "plain.model"))
        self.assertIn("lexicon      none: plain text\nkernel       none\n", shown)
        told = json.loads(self.ok(run("model", "show", "d.model", "--json")))
        self.assertEqual((told["bytes"], told["arithmetic"], told["trained_with"]["delete"]), (size, "portable", "keep:3"))


class Numbers(Case):
    def test_singular(self):
        """one of anything is not called several"""
        base = ("--model", "n.model", "--lexicon", "one.lex", "--data", "one.tsv")
        write("v.txt", "good 1 0\nfine 1 0.01\n")
        write("pair.txt", "good\n")
        said = [run(*arguments) for arguments in (
            ("certify", *base, "-o", "one.jsonl"), ("verify", "one.jsonl"), ("verify", "one.jsonl", *base), ("attack", *base, "--max-queries", 1),
            ("attack", *base, "--against", "one.jsonl"), ("lexicon", "stats", "one.lex", "--data", "one.tsv"), ("lexicon", "check", "one.lex"),
            ("lexicon", "show", "one.lex", "good"), ("certify", *base, "--shard", "1/1", "-o", "part.jsonl"), ("merge", "part.jsonl", "-o", "merged.jsonl"),
            ("report", "one.jsonl", "-o", "one.html"), ("lexicon", "import", "--table", "one.table", "--vocab-from", "one.tsv", "--min-count", 1, "-o", "y.lex"),
            ("lexicon", "build", "--vectors", "v.txt", "--all-but-the-top", 0, "--synonyms", "pair.txt", "-o", "y.lex"),
            ("lexicon", "build", "--vectors", "v.txt", "--all-but-the-top", 0, "--vocab-from", "one.tsv", "--min-count", 1, "-o", "y.lex"),
            ("report", "one.jsonl", "--data", "train.tsv", "-o", "z.html"))]
        for done in said:
            wrong = re.findall(r"(?<![\d.,])1 (?:more )?[a-z]+s\b(?! (?:of|a) )[^\n]*", done.out + done.err)
            wrong = [words for words in wrong if not re.match(r"1 (?:was|is|has|\w+ss)\b", words)]
            self.assertEqual(wrong, [], done)
        self.assertGreaterEqual(sum(done.code == DONE for done in said), 12)
        self.assertIn("1 record holds", said[1].out)


class Signals(Case):
    def ended(self, number, *arguments):
        """Starts a run of a slow program, sends a signal when it is at work, and returns what it said."""
        write("slow.py", "import sys, json, time\nopen('asked', 'w')\nfor line in sys.stdin:\n    time.sleep(0.1)\n    texts = json.loads(line)['texts']\n"
              "    print(json.dumps({'id': json.loads(line)['id'], 'labels': ['1'] * len(texts)}), flush=True)\n")
        child = subprocess.Popen([test_cli.program, "certify", "--model", "exec:python3 slow.py", "--model-name", "slow", "--labels", "0,1", "--workers", "1",
                                  "--lexicon", "s.lex", "--data", "train.tsv", *arguments], cwd=test_cli.temporary, stdin=subprocess.DEVNULL,
                                 stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
        for _ in range(600):
            if exists("ended.jsonl") or ("-o" not in arguments and exists("asked")):
                break
            time.sleep(0.05)
        child.send_signal(number)
        out, err = child.communicate(timeout=60)
        return test_cli.Result(child.returncode, out, err)

    def test_resume(self):
        """SIGTERM and Ctrl-C: what happened and how to go on, in one line, with --quiet too"""
        for name, number in (("SIGTERM", signal.SIGTERM), ("Ctrl-C", signal.SIGINT)):
            for quiet in ((), ("--quiet",)):
                done = self.ended(number, "-o", "ended.jsonl", "--n", "100000", "--n0", "1000", *quiet)
                self.refused(done, INTERRUPTED, f"cancelled by {name}", "; continue with --resume")
                self.assertTrue(exists("ended.jsonl"))
                (test_cli.temporary / "ended.jsonl").unlink()

    def test_nothing_kept(self):
        """without -o FILE there is nothing to resume, and nothing is said of it"""
        done = self.ended(signal.SIGTERM, "--n", "100000")
        self.refused(done, INTERRUPTED, "cancelled by SIGTERM")
        self.assertNotIn("resume", done.err)

    def test_at_once(self):
        """what has nothing to bring to an end says that it was SIGTERM"""
        child = subprocess.Popen([test_cli.program, "predict", "--model", "n.model", "--lexicon", "s.lex", "--seed", "1", "--quiet"], cwd=test_cli.temporary,
                                 stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
        time.sleep(0.5)
        child.send_signal(signal.SIGTERM)
        child.wait(timeout=60)
        self.assertEqual((child.returncode, child.stderr.read()), (INTERRUPTED, "safer: cancelled by SIGTERM\n"))
        child.stdin.close()
        child.stdout.close()
        child.stderr.close()


if __name__ == "__main__":
    test_cli.run_tests(sys.modules["__main__"], make_files)
