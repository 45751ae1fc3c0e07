#!/usr/bin/env python3
"""Options as they are told and as they are: test_cli_options.py [TEST...] BUILD_DIR. Run by ctest.

Choices, defaults, and completions for shells, all against the program itself.
"""
import hashlib
import json
import pathlib
import re
import shlex
import shutil
import subprocess
import sys

sys.dont_write_bytecode = True
import test_cli  # noqa: E402  (it runs no test by being imported)
from test_cli import USAGE, Case, run, write  # noqa: E402
from test_docs import help_of, help_options, verbs  # noqa: E402

completions = None  # the folder with them


def make_files():
    global completions
    completions = pathlib.Path(test_cli.program).parent / "completions"
    write("train.tsv", "".join(f"{i}\t{i % 2}\t{('a bad film', 'a good film')[i % 2]} number {i % 5} of them\n" for i in range(24)))
    write("s.table", "good\tfine great\nbad\tpoor awful\nfilm\tmovie\n")
    done = run("lexicon", "import", "--table", "s.table", "--kernel", "component", "-o", "s.lex")
    if done.code:
        sys.exit(f"cannot make the common lexicon: {done}")


def options_of(verb):
    return {name: entry for section in help_options(help_of(*verb)).values() for name, entry in section.items()}


def choices():
    """(verb, option, names) of every choice, as the completion for bash has them."""
    found, verb = [], None
    for line in (completions / "safer").read_text().splitlines():
        verb = (re.match(r"    '([a-z ]+)'\)", line) or (None, verb))[1]
        choice = re.match(r"        (--[a-z-]+)\) kind=choice choices='(.*)' ;;", line)
        if choice:
            found.append((tuple(verb.split()), choice[1], choice[2].split()))
    return found


class Uses(Case):
    def test_train(self):
        """train: an option that the architecture has no use for is refused by name, whichever it is; the others are taken"""
        words, learned, encoded = {"bow", "cnn"}, {"bow", "cnn", "charcnn", "bert", "context"}, {"bert", "context"}
        uses = {"ngrams 2": {"ngram"}, "bits 10": {"ngram"}, "dropout 0.3": learned, "rate 0.01": learned, "decay 0.01": learned, "clip 2": {"charcnn", "bert"},
                "warmup 0.2": {"charcnn", "bert"}, "batch 8": learned, "epochs 2": learned | {"ngram"}, "patience 1": learned, "pool mean": words | {"bert"},
                "precision f32": encoded | {"charcnn"}, "vectors v": words, "dim 8": words, "widths 4": {"cnn"}, "filters 8": {"cnn"}, "hidden 8": words,
                "max-words 9": words, "min-count 3": words | {"context"}, "freeze": words, "characters 99": {"charcnn"}, "size large": {"charcnn"},
                "encoder e": encoded, "train-layers 1": {"bert"}, "tokens 9": encoded, "truncation-side left": encoded, "context 8": {"context"},
                "kappa 0.5": {"context"}, "ramp 2": set(), "margin 3": set()}
        told = set(re.findall(r"^  (--[a-z-]+)", help_of("train").split("\nngram:\n")[1].split("\nEverywhere:\n")[0], re.M))
        apart = {"--defense", "--device", "--train-vectors", "--triplet", "--resume"}  # the library says what is wrong with these, or nothing is
        self.assertEqual(told - apart, {"--" + option.split()[0] for option in uses})
        for option, archs in uses.items():
            for arch in ("ngram", "bow", "cnn", "charcnn", "bert", "context"):
                done = run("train", "--data", "none.tsv", "--arch", arch, "-o", "m", *("--" + option).split())
                name = option.split()[0]
                self.assertEqual(done.code == USAGE, arch not in archs, (option, arch, done.err))
                if arch not in archs:
                    self.assertRegex(done.err, rf"--{name} is for .*, not for {arch} ", (option, arch))
        for option in ("kappa 0.5", "ramp 2", "margin 3", "clip 2"):
            self.assertNotEqual(run("train", "--data", "none.tsv", "--arch", "cnn", "--defense", "ibp-jia", "-o", "m", *("--" + option).split()).code, USAGE, option)
        self.assertEqual(run("train", "--data", "none.tsv", "-o", "m", "--tokens", "9").code, USAGE)
        self.assertNotEqual(run("train", "--data", "none.tsv", "-o", "m", "--vectors", "v", "--filters", "9").code, USAGE)


class Choices(Case):
    def test_choices(self):
        """an option that is one of several names: the help names all, all are taken, another is refused with the list"""
        found = choices()
        names = {option for _, option, _ in found}
        self.assertEqual(names, {"--arch", "--arithmetic", "--cache", "--defense", "--edit-kind", "--format", "--method", "--metric", "--pool", "--precision", "--profile",
                                 "--size", "--stage", "--truncation-side", "--what"})
        for verb, option, allowed in found:
            text = options_of(verb)[option][1]
            for name in allowed:
                self.assertRegex(text, rf"(?<![\w-]){name}(?![\w-])", (verb, option))
                self.assertEqual(run(*verb, option, name, "--help").code, 0, (verb, option, name))
            shown = ", ".join(allowed[:-1]) + " or " + allowed[-1]
            self.refused(run(*verb, option, "nonsense", "--help"), USAGE, f"{option} nonsense: {shown} (see safer {' '.join(verb)} --help)")
        self.assertIn((("sweep",), "--method", ["adaptive", "binomial", "hoeffding"]), found)
        self.assertIn((("certify",), "--method", ["adaptive", "binomial", "hoeffding", "ibp", "groups"]), found)

    def test_configurations(self):
        """the same names in a configuration of compare: another is refused with its place and the list"""
        for part, words in (('"arch": "gpt"', 'models.m.arch is "gpt": ngram, bow, cnn, charcnn, bert or context'),
                            ('"arch": "bow", "pool": "sum"', 'models.m.pool is "sum": mean, max or cls')):
            write("c.json", '{"data": {"d": {"train": "train.tsv", "test": "train.tsv", "lexicon": "s.lex"}}, "models": {"m": {%s}},'
                  ' "defenses": {"k": {"kernel": "component"}}}' % part)
            self.refused(run("compare", "c.json", "-o", "none"), test_cli.INPUT, "c.json: " + words)


class Defaults(Case):
    def test_filled_in(self):
        """every default in a help is filled in, and is that of the option, not of what was given before --help"""
        for verb in verbs():
            text = help_of(*verb)
            self.assertNotRegex(text, r"\{default\}|\{choices\}|default none|default -1")
            for option, (value, _) in options_of(verb).items():
                if value == "N":
                    self.assertEqual(run(*verb, option, 77, "--help").out, text, (verb, option))

    def test_once(self):
        """no verb has two options of one name, of which only the first could be given"""
        for verb in verbs():
            names = re.findall(r"^  (--[a-z0-9-]+)", help_of(*verb), re.M)
            self.assertEqual(sorted(names), sorted(set(names)), verb)

    def told(self, arch):
        """What safer train tells of its defaults for an architecture, as options."""
        text = {option: entry[1] for option, entry in options_of(("train",)).items()}
        place = ["bow", "cnn", "charcnn", "bert"].index(arch)
        given = []
        for option in ("--dropout", "--decay", "--batch", "--epochs", "--patience"):
            values = re.search(r"\(([^;)]*)(?:; [^)]*)?\)$", text[option])[1].split(", ")
            given += [option, values[place].replace("never", "0")]
        usual, charcnn = re.search(r"\(([\d.]+); charcnn ([\d.]+);", text["--rate"]).groups()
        given += ["--rate", charcnn if arch == "charcnn" else usual]
        if arch == "charcnn":
            for option in ("--clip", "--warmup"):
                given += [option, re.search(r"\(([\d.]+)\)$", text[option])[1]]
            given += ["--precision", re.search(r"\((\w+)\)$", text["--precision"])[1]]
        else:
            given += ["--pool", re.search(r"words \((\w+)\)", text["--pool"])[1]]
        return given

    def trained(self, arch, *options):
        small = {"charcnn": ("--characters", 128), "bow": ("--dim", 4)}.get(arch, ("--dim", 4, "--filters", 4))
        report = json.loads(self.ok(run("train", "--arch", arch, "--data", "train.tsv", *small, *options, "-o", "d.model", "--json")))
        model = hashlib.sha256((test_cli.temporary / "d.model").read_bytes()).hexdigest()
        return model, report["epochs"], report["best_epoch"], report["loss"]

    def test_training(self):
        """defaults of training that depend on the architecture: giving those that the help tells changes no byte"""
        for arch in ("bow", "cnn", "charcnn"):
            usual, told = self.trained(arch), self.told(arch)
            self.assertEqual(self.trained(arch, *told), usual, told)
            epochs = int(told[told.index("--epochs") + 1])
            self.assertEqual(self.trained(arch, "--patience", 0)[1], epochs, "so many are run where none stops it")
            for option in ("--dropout", "--decay", "--rate") if arch != "charcnn" else ():
                other = [0.03 if told[i - 1] == option else word for i, word in enumerate(told)]
                self.assertNotEqual(self.trained(arch, *other), usual, f"{option} changes nothing: it is not tested")

    def test_defenses(self):
        """the same for training by interval bounds"""
        text = {option: entry[1] for option, entry in options_of(("train",)).items()}
        epochs, clip, exact_epochs, rate = re.search(r"(\d+) epochs, clip ([\d.]+); exact: .* (\d+) epochs, rate (\d+)", text["--defense"]).groups()
        kappa, exact_kappa = re.search(r"\(default ([\d.]+); exact ([\d.]+)\)", text["--kappa"]).groups()
        self.assertIn("(default: two thirds of all; exact 0)", text["--ramp"])
        lexicon = ("--lexicon", "s.lex", "--defense")
        for arch, defense, told in (("cnn", "ibp-jia", ("--epochs", epochs, "--clip", clip, "--kappa", kappa, "--ramp", int(epochs) * 2 // 3)),
                                    ("bow", "exact", ("--epochs", exact_epochs, "--rate", rate, "--kappa", exact_kappa, "--ramp", 0))):
            more = ("--hidden", 0) if defense == "exact" else ()
            usual = self.trained(arch, *lexicon, defense, *more)
            self.assertEqual(self.trained(arch, *lexicon, defense, *more, *told), usual)
            self.assertNotEqual(self.trained(arch, *lexicon, defense, *more, *told[:1], int(told[1]) - 1, *told[2:]), usual)


class Completion(Case):
    def complete(self, *words):
        """What bash offers for the last of these words."""
        line = " ".join(shlex.quote(word) for word in words)
        done = subprocess.run(["bash", "--norc", "-c", f"source {shlex.quote(str(completions / 'safer'))}; COMP_WORDS=({line}); "
                               f"COMP_CWORD={len(words) - 1}; _safer; printf '%s\\n' \"${{COMPREPLY[@]}}\""],
                              capture_output=True, text=True, cwd=test_cli.temporary)
        self.assertEqual((done.returncode, done.stderr), (0, ""), words)
        return [word for word in done.stdout.split("\n") if word]

    def test_parses(self):
        """the scripts are right in bash and, where they are installed, in zsh and fish"""
        missing = []
        for shell, name in (("bash", "safer"), ("zsh", "_safer"), ("fish", "safer.fish")):
            if not shutil.which(shell):
                missing.append(shell)
                continue
            done = subprocess.run([shell, "-n", completions / name], capture_output=True, text=True)
            self.assertEqual((done.returncode, done.stderr), (0, ""), shell)
            bad = write(f"bad.{shell}", (completions / name).read_text() + "\nif true; then (\n")
            self.assertNotEqual(subprocess.run([shell, "-n", bad], capture_output=True, cwd=test_cli.temporary).returncode, 0, shell)
        if missing:
            print(f"        skipped {' and '.join(missing)}, which are not installed")

    def test_everything(self):
        """all scripts have every verb and every option of it"""
        bash, zsh, fish = ((completions / name).read_text() for name in ("safer", "_safer", "safer.fish"))
        for verb in verbs():
            name = " ".join(verb)
            self.assertIn(f"complete -c safer -n '__safer_is {name}' -l help", fish)
            of_zsh = zsh.split(f"\n    '{name}')\n")[1].split(";;\n")[0]
            of_bash = bash.split(f"\n    '{name}')\n")[1].split("esac ;;\n")[0]
            for option, (value, text) in options_of(verb).items():
                self.assertRegex(of_bash, rf"options='(?:.* )?{option}[ ']")
                self.assertRegex(of_zsh, rf"'\*?{option}{'=' if value else ''}\[")
                self.assertIn(f"complete -c safer -n '__safer_is {name}' -l {option[2:]} ", fish)

    def test_bash(self):
        """bash completes verbs, actions, options, names and files"""
        self.assertEqual(self.complete("safer", "s"), ["serve", "sample", "sweep"])
        self.assertEqual(self.complete("safer", "--v"), ["--version"])
        self.assertEqual(self.complete("safer", "lexicon", ""), [*test_cli.ACTIONS, "--help"])
        self.assertEqual(self.complete("safer", "model", "c"), ["convert"])
        self.assertEqual(self.complete("safer", "certify", "--me"), ["--method"])
        self.assertEqual(self.complete("safer", "lexicon", "build", "--all"), ["--all-but-the-top"])
        self.assertEqual(self.complete("safer", "lexicon", "show", "--a"), ["--all"])
        self.assertEqual(set(self.complete("safer", "train", "--")), set(options_of(("train",))))
        self.assertEqual(self.complete("safer", "certify", "--method", ""), ["adaptive", "binomial", "hoeffding", "ibp", "groups"])
        self.assertEqual(self.complete("safer", "attack", "--method", "p"), ["pwws"])
        self.assertEqual(self.complete("safer", "certify", "--method", "=", "h"), ["hoeffding"])
        self.assertEqual(self.complete("safer", "certify", "--method", "="), ["adaptive", "binomial", "hoeffding", "ibp", "groups"])
        self.assertEqual(self.complete("safer", "certify", "--n", ""), [], "a number cannot be completed")
        write("folder of mine/file.tsv", "")
        for words in (("certify", "--data"), ("certify", "-o"), ("lexicon", "build", "--vocab-from"), ("verify",), ("verify", "--resume")):
            self.assertEqual(self.complete("safer", *words, "folder"), ["folder of mine"], words)
        self.assertEqual(self.complete("safer", "nothing", "--"), [])

    def test_fish(self):
        """fish completes the same, where it is installed"""
        if not shutil.which("fish"):
            self.skipTest("fish is not installed")
        write("unlike others/file.tsv", "")
        for line, words in (("safer s", ["sample", "serve", "sweep"]), ("safer model ", ["average", "convert", "show"]), ("safer certify --me", ["--method"]),
                            ("safer lexicon show --a", ["--all"]), ("safer attack --method ", ["genetic", "pwws", "random", "textfooler"]),
                            ("safer certify --data unl", ["unlike others/"]), ("safer certify --n ", []), ("safer --v", ["--version"])):
            done = subprocess.run(["fish", "--no-config", "-c", f"source {shlex.quote(str(completions / 'safer.fish'))}; complete -C '{line}'"],
                                  capture_output=True, text=True, cwd=test_cli.temporary)
            self.assertEqual((done.returncode, done.stderr, sorted(word.split("\t")[0] for word in done.stdout.splitlines())), (0, "", words), line)


if __name__ == "__main__":
    test_cli.run_tests(sys.modules["__main__"], make_files)
