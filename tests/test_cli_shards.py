#!/usr/bin/env python3
"""Runs in parts, and safer merge, as a person or a scheduler uses them: test_cli_shards.py [TEST...] BUILD_DIR.

What is merged is compared, byte by byte, with what one run writes. Run by ctest.
"""
import json
import lzma
import os
import pathlib
import random
import re
import resource
import signal
import subprocess
import sys
import time

sys.dont_write_bytecode = True
import faulty  # noqa: E402
import test_cli  # noqa: E402  (it runs no test by being imported)
from cli_runs import must, read_run, without_times  # noqa: E402
from test_cli import DONE, INPUT, INTERRUPTED, USAGE, Case, exists, run, write  # noqa: E402

ROOT = pathlib.Path(__file__).resolve().parent.parent
TEXTS = 23
ASKED = ("--model", "n.model", "--lexicon", "s.lex", "--data", "test.tsv")
BOUNDS = ("--method", "ibp", "--model", "bow.model", *ASKED[2:])
KINDS = {"adaptive": ("certify", *ASKED, "--n", 200, "--family-wise"),
         "binomial": ("certify", *ASKED, "--n", 100, "--method", "binomial"),
         "hoeffding": ("certify", *ASKED, "--n", 100, "--method", "hoeffding", "--unlabelled"),
         "exact": ("certify", *ASKED[:4], "--data", "short.tsv", "--n", 5000),
         "ibp": ("certify", *BOUNDS),
         "attack": ("attack", *ASKED),
         "smoothed": ("attack", *ASKED, "--smoothed", "--n", 20, "--method", "random", "--tries", 5)}
UNSEALED = re.compile(rb',"(?:seconds|date)":[^,]+(?=,"check":"[0-9a-f]{16}"}$)', re.M)
SCHEDULER = re.compile("SLURM_|JOB_COMPLETION_INDEX")


def make_files():
    """Reviews of many words and of few, two models, a lexicon."""
    for name in list(os.environ):
        if SCHEDULER.match(name):
            del os.environ[name]  # these tests may run in a task of an array themselves
    chance = random.Random(5)
    good, bad, other = ("good", "great", "fine"), ("bad", "awful", "poor"), ("film", "movie", "plot", "story", "the", "was", "of", "it")

    def rows(count, most):
        for i in range(count):
            words = [chance.choice((good, bad)[i % 2])] + [chance.choice((*other, *good[:1], *bad[:1])) for _ in range(chance.randrange(most))]
            yield f"r{i}\t{('pos', 'neg')[i % 2]}\t{' '.join(words).capitalize()}.\n"

    for name, count, most in (("train.tsv", 200, 30), ("test.tsv", TEXTS, 60), ("short.tsv", TEXTS, 4), ("many.tsv", 12000, 4)):
        write(name, "".join(rows(count, most)))
    write("table.tsv", "good\tgreat fine\nbad\tawful poor\nfilm\tmovie\nplot\tstory\n")
    must("lexicon", "import", "--table", "table.tsv", "--kernel", "topk:2", "-o", "s.lex")
    must("train", "--arch", "ngram", "--data", "train.tsv", "--lexicon", "s.lex", "--bits", 12, "-o", "n.model")
    must("train", "--arch", "bow", "--defense", "exact", "--hidden", 0, "--dim", 8, "--epochs", 2, "--min-count", 1, "--data", "train.tsv", "--lexicon",
         "s.lex", "-o", "bow.model")


def sealed(name):
    """The bytes of a run less what no seal covers."""
    return UNSEALED.sub(b"", (test_cli.temporary / name).read_bytes())


def lines_of(name):
    path = test_cli.temporary / name
    return path.read_bytes().count(b"\n") if path.exists() else 0


class Shards(Case):
    def fresh(self):
        Shards.runs = getattr(Shards, "runs", 0) + 1
        return f"run{Shards.runs}.jsonl"

    def whole(self, kind):
        """The file of one run, made once."""
        name = f"whole-{kind}.jsonl"
        if not exists(name):
            self.ok(run(*KINDS[kind], "-o", name, "--quiet"))
        return name

    def parts(self, kind, count):
        """The files of so many parts, made once."""
        names = [f"{kind}-{number}-of-{count}.jsonl" for number in range(1, count + 1)]
        for number, name in enumerate(names, 1):
            if not exists(name):
                self.ok(run(*KINDS[kind], "--shard", f"{number}/{count}", "-o", name, "--quiet"))
        return names

    def copied(self, names):
        """Copies to be damaged."""
        copies = [f"copy-{name}" for name in names]
        for name, copy in zip(names, copies):
            write(copy, (test_cli.temporary / name).read_bytes())
        return copies

    # ------------------------------------------------------------------ the same

    def test_same_bytes(self):
        """2, 3, 5 and 7 parts, and more parts than texts, in any order: the bytes of one run, but for seconds and date"""
        for kind in KINDS:
            whole = self.whole(kind)
            self.assertEqual(lines_of(whole), TEXTS + 1)
            if kind == "exact":
                self.assertTrue(all(record["exact"] for record in read_run(whole)[1]))
            for count in (2, 3, 5, 7) + (29,) * (kind in ("adaptive", "attack")):
                parts, name = self.parts(kind, count), self.fresh()
                self.assertEqual(sum(map(lines_of, parts)), TEXTS + count)
                out = self.ok(run("merge", *random.Random(count).sample(parts, count), "-o", name))
                self.assertEqual(out, f"wrote {name}: {TEXTS} records of {count} parts\n")
                self.assertEqual(sealed(name), sealed(whole), (kind, count))

    def test_date(self):
        """the date is that of the earliest part, or of SOURCE_DATE_EPOCH; then everything but the seconds is the same"""
        days = {1: 86400 * 3, 2: 86400, 3: 86400 * 2}
        for number, seconds in days.items():
            self.ok(run(*KINDS["ibp"], "--shard", f"{number}/3", "-o", f"dated{number}.jsonl", "--quiet", env={"SOURCE_DATE_EPOCH": str(seconds)}))
        for env, date in (({}, "1970-01-02T00:00:00Z"), ({"SOURCE_DATE_EPOCH": "0"}, "1970-01-01T00:00:00Z")):
            self.ok(run("merge", *(f"dated{number}.jsonl" for number in days), "-o", "dated.jsonl", "--quiet", env=env))
            self.assertEqual(read_run("dated.jsonl")[0]["date"], date)
        seconds = [record["seconds"] for record in read_run("dated.jsonl")[1]]
        own = {number: [record["seconds"] for record in read_run(f"dated{number}.jsonl")[1]] for number in days}
        self.assertEqual(seconds, [own[row % 3 + 1][row // 3] for row in range(TEXTS)])

    def test_part(self):
        """a part's configuration is that of the run and "shard"; its records are the run's"""
        config, records = read_run(self.whole("adaptive"))
        for number, name in enumerate(self.parts("adaptive", 5), 1):
            own_config, own_records = read_run(name)
            self.assertEqual(own_config.pop("shard"), [number, 5])
            for unlike in ("date", "check"):
                own_config.pop(unlike)
            self.assertEqual(own_config, {key: value for key, value in config.items() if key not in ("date", "check")})
            self.assertEqual([record["row"] for record in own_records], list(range(number, TEXTS + 1, 5)))
            for record in own_records:
                expected = records[record["row"] - 1]
                self.assertEqual({**record, "seconds": 0, "check": ""}, {**expected, "seconds": 0, "check": ""})

    def test_kills(self):
        """parts that are killed (kill -9) more than 100 times, and resumed: the same bytes"""
        chance, count = random.Random(1), 5
        for kind in ("adaptive", "binomial", "hoeffding", "exact", "ibp"):
            kills, parts = 0, [f"killed-{kind}-{number}.jsonl" for number in range(1, count + 1)]
            commands = [(*KINDS[kind], "--shard", f"{number}/{count}", "-o", name, "--resume", "--quiet") for number, name in enumerate(parts, 1)]
            for _ in range(2000):
                kills += self.killed(chance.choice(commands), chance.uniform(0, 0.02))
                if kills > 20:
                    break
            self.assertGreater(kills, 20, kind)
            for command in commands:
                self.ok(run(*command))
            self.ok(run("merge", *parts, "-o", f"killed-{kind}.jsonl", "--quiet"))
            self.assertEqual(sealed(f"killed-{kind}.jsonl"), sealed(self.whole(kind)))

    def killed(self, command, seconds):
        """Whether a run was still at work after so long; then it is not any more."""
        child = subprocess.Popen([test_cli.program, *map(str, command)], cwd=test_cli.temporary, stdin=subprocess.DEVNULL,
                                 stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        time.sleep(seconds)
        child.kill()
        return child.wait() == -signal.SIGKILL

    def test_unfinished(self):
        """a run that was killed leaves a part that is not finished; the message says how far it got"""
        slow = (*KINDS["hoeffding"], "--n", 100000, "--threads", 1)
        command = [test_cli.program, *map(str, slow), "--shard", "1/1", "-o", "slow.jsonl", "--quiet"]
        child = subprocess.Popen(command, cwd=test_cli.temporary, stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL)
        while lines_of("slow.jsonl") < 3 and child.poll() is None:
            time.sleep(0.001)
        child.kill()
        self.assertEqual(child.wait(), -signal.SIGKILL)
        self.refused(run("merge", "slow.jsonl", "-o", "x.jsonl"), INPUT, f"slow.jsonl ({lines_of('slow.jsonl') - 1} of {TEXTS} records)")

    def test_one_more_time(self):
        """a merged run is a run: it is verified, reported, and continued as finished"""
        name = self.fresh()
        self.ok(run("merge", *self.parts("adaptive", 3), "-o", name, "--quiet"))
        self.assertEqual(self.ok(run("verify", name, *ASKED)), self.ok(run("verify", self.whole("adaptive"), *ASKED)))
        before = (test_cli.temporary / name).read_bytes()
        self.assertEqual(json.loads(self.ok(run(*KINDS["adaptive"], "-o", name, "--resume", "--json")))["resumed"], TEXTS)
        self.assertEqual((test_cli.temporary / name).read_bytes(), before)
        self.ok(run("report", name, "-o", "merged.html", "--quiet"))
        attack = self.fresh()
        self.ok(run("merge", *self.parts("attack", 3), "-o", attack, "--quiet"))
        self.ok(run("report", name, "--data", "test.tsv", "--attack", attack, "-o", "merged.html", "--quiet"))

    # --------------------------------------------------------------------- a part

    def test_verify(self):
        """verify checks a part, says which it is and that there are others"""
        part = self.parts("adaptive", 3)[1]
        for more in ((), ASKED[2:], ASKED):
            out = self.ok(run("verify", part, *more))
            self.assertIn("part 2 of 3: 8 records hold", out)
            self.assertIn("the other parts of the run", out)
        found = json.loads(self.ok(run("verify", part, "--json")))
        self.assertEqual((found["shard"], found["records"]), ([2, 3], 8))
        self.assertNotIn("shard", json.loads(self.ok(run("verify", self.whole("adaptive"), "--json"))))
        copy, = self.copied([part])
        lines = (test_cli.temporary / copy).read_bytes().splitlines(True)
        for damaged, words in ((lines[:1] + lines[2:], ("line 2", "row 5")), (lines[:-1], ("7 of 8 records", "resume")),
                               (lines[:2] + lines[1:], ("line 3", "row 2"))):
            write(copy, b"".join(damaged))
            self.refused(run("verify", copy), INPUT, copy, *words)

    def test_whole_needed(self):
        """what speaks of a whole run refuses a part by name, and says what to do"""
        part, attack, whole = self.parts("adaptive", 3)[0], self.parts("attack", 3)[0], self.whole("adaptive")
        for arguments in (("report", part, "-o", "x.html"), ("report", whole, part, "-o", "x.html"), ("evidence", part, "-o", "x"),
                          ("evidence", whole, "--baseline", part, "-o", "x"), (*KINDS["adaptive"], "-o", "x.jsonl", "--not-worse-than", part)):
            self.refused(run(*arguments), INPUT, f"{part} is part 1 of 3: put all parts together with safer merge")
        self.refused(run("report", whole, "--data", "test.tsv", "--attack", attack, "-o", "x.html"), INPUT, f"{attack} is part 1 of 3")
        self.assertFalse(any(map(exists, ("x.html", "x", "x.jsonl"))))

    def test_results(self):
        """the figures of a part say that it is one; requirements are of whole runs"""
        out = self.ok(run(*KINDS["adaptive"], "--shard", "2/5"))
        self.assertRegex(out, r"^part +2 of 5; safer merge puts them together\n")
        self.assertEqual(json.loads(self.ok(run(*KINDS["adaptive"], "--shard", "2/5", "--json")))["shard"], [2, 5])
        self.assertEqual(json.loads(self.ok(run(*KINDS["attack"], "--shard", "2/5", "--json")))["shard"], [2, 5])
        self.assertRegex(self.ok(run(*KINDS["attack"], "--shard", "2/5")), r"(?m)^part +2 of 5")
        self.assertNotIn("shard", json.loads(self.ok(run(*KINDS["attack"], "--json"))))
        self.ok(run(*KINDS["adaptive"], "--shard", "29/29"))  # no text at all
        self.ok(run(*KINDS["attack"], "--shard", "29/29"))
        for gate in (("--require", 0.1), ("--require-recall", "pos=0.1"), ("--not-worse-than", self.whole("adaptive"), "-o", "x.jsonl")):
            self.refused(run(*KINDS["adaptive"], "--shard", "2/5", *gate), USAGE, f"{gate[0]} and --shard", "safer evidence")

    def test_against(self):
        """attack --against a part attacks its texts; its parts, and those of an attack against the run, are the same"""
        base = ("attack", *ASKED, "--n", 20)
        self.ok(run(*base, "--against", self.whole("adaptive"), "-o", "against.jsonl", "--quiet"))
        names = []
        for number, part in enumerate(self.parts("adaptive", 3), 1):
            names.append(f"against{number}.jsonl")
            self.assertRegex(self.ok(run(*base, "--against", part, "-o", names[-1])), rf"(?m)^part +{number} of 3")
            self.ok(run(*base, "--against", self.whole("adaptive"), "--shard", f"{number}/3", "-o", "of-whole.jsonl", "--quiet"))
            self.assertEqual(sealed(names[-1]), sealed("of-whole.jsonl"))
            self.assertEqual(self.ok(run(*base, "--against", part, "-o", names[-1], "--resume", "--quiet", "--json")).count('"shard"'), 1)
            os.remove(test_cli.temporary / "of-whole.jsonl")
        self.ok(run("merge", *names, "-o", "against-merged.jsonl", "--quiet"))
        self.assertEqual(sealed("against-merged.jsonl"), sealed("against.jsonl"))
        self.refused(run(*base, "--against", self.parts("adaptive", 3)[0], "--shard", "1/3"), USAGE, "is part 1 of 3 already")

    def test_resume(self):
        """a part is continued as this part only"""
        copy, = self.copied(self.parts("adaptive", 3)[1:2])
        for shard, there in ((("--shard", "1/3"), "[2,3] there, [1,3] here"), (("--shard", "2/4"), "[2,3] there, [2,4] here"),
                             ((), "[2,3] there, missing here")):
            self.refused(run(*KINDS["adaptive"], *shard, "-o", copy, "--resume"), INPUT, f"{copy} belongs to another run: shard is {there}")
        whole, = self.copied([self.whole("adaptive")])
        self.refused(run(*KINDS["adaptive"], "--shard", "2/3", "-o", whole, "--resume"), INPUT, "shard is missing there, [2,3] here")
        content = (test_cli.temporary / copy).read_bytes()
        for keep in (0, 20, len(content) // 2, len(content) - 1, len(content)):
            write(copy, content[:keep])
            self.ok(run(*KINDS["adaptive"], "--shard", "2/3", "-o", copy, "--resume", "--quiet"))
            self.assertEqual(without_times(copy), without_times(self.parts("adaptive", 3)[1]))

    def test_auto(self):
        """--shard auto: from Slurm's array, from 0 or 1; auto/N: also from a Job of Kubernetes"""
        def slurm(task, first, last, step=1, count=None):
            return {"SLURM_ARRAY_TASK_ID": task, "SLURM_ARRAY_TASK_MIN": first, "SLURM_ARRAY_TASK_MAX": last, "SLURM_ARRAY_TASK_STEP": step,
                    "SLURM_ARRAY_TASK_COUNT": count or last - first + 1}

        def asked(shard, env):
            return run(*KINDS["ibp"], "--shard", shard, "--json", env={name: str(value) for name, value in env.items()})

        for shard, env, found in (("auto", slurm(0, 0, 4), [1, 5]), ("auto", slurm(5, 1, 5), [5, 5]), ("auto/5", slurm(3, 3, 5, 2, 2), [3, 5]),
                                  ("auto/5", {"JOB_COMPLETION_INDEX": 0}, [1, 5]), ("2/3", {"JOB_COMPLETION_INDEX": 0}, [2, 3])):
            self.assertEqual(json.loads(self.ok(asked(shard, env)))["shard"], found)
        for shard, env, words in (("auto", {}, "neither SLURM_ARRAY_TASK_ID"), ("auto", {"JOB_COMPLETION_INDEX": 0}, "auto/N"),
                                  ("auto", {**slurm(1, 1, 5), "JOB_COMPLETION_INDEX": 0}, "both"), ("auto", slurm(3, 3, 5, 1, 2), "auto/N"),
                                  ("auto", slurm("x", 1, 5), '"x"'), ("0/3", {}, "K/N"), ("4/3", {}, "K/N"), ("three", {}, "K/N")):
            self.refused(asked(shard, env), USAGE, "safer certify: --shard: ", words, "safer certify --help")
        self.refused(run(*KINDS["attack"], "--shard", "0/1"), USAGE, "safer attack: --shard: ")

    # -------------------------------------------------------------------- examples

    def script(self, command, *arguments, **env):
        """Runs a shell script with safer in the PATH, as a scheduler would."""
        path = f"{pathlib.Path(test_cli.program).parent}:{os.environ['PATH']}"
        done = subprocess.run([*command, *map(str, arguments)], cwd=test_cli.temporary, capture_output=True, text=True, timeout=300,
                              env={**os.environ, "PATH": path, **{name: str(value) for name, value in env.items()}})
        self.assertEqual((done.returncode, done.stderr), (DONE, ""))

    def test_slurm_example(self):
        """examples/slurm-array.sh: all tasks of its array, one of them killed and run again by itself; merged"""
        path = ROOT / "examples/slurm-array.sh"
        first, last = map(int, re.search(r"^#SBATCH --array=(\d+)-(\d+)$", path.read_text(), re.M).groups())
        count, files = last - first + 1, ("n.model", "s.lex", "test.tsv", "slurm")
        array = {"SLURM_ARRAY_TASK_MIN": first, "SLURM_ARRAY_TASK_MAX": last, "SLURM_ARRAY_TASK_STEP": 1, "SLURM_ARRAY_TASK_COUNT": count}
        for task in range(first, last + 1):
            self.script(["sh", path], *files, SLURM_ARRAY_TASK_ID=task, SLURM_CPUS_PER_TASK=1, **array)
        write("slurm/part-7.jsonl", (test_cli.temporary / "slurm/part-7.jsonl").read_bytes()[:-10])
        again = {"SLURM_ARRAY_TASK_MIN": 3, "SLURM_ARRAY_TASK_MAX": 7, "SLURM_ARRAY_TASK_STEP": 4, "SLURM_ARRAY_TASK_COUNT": 2}
        self.script(["sh", path], *files, SLURM_ARRAY_TASK_ID=7, SHARD=f"auto/{count}", **again)
        self.ok(run("merge", *(f"slurm/part-{task}.jsonl" for task in range(first, last + 1)), "-o", "slurm/run.jsonl", "--quiet"))
        self.ok(run("certify", *ASKED, "-o", "slurm/whole.jsonl", "--quiet"))
        self.assertEqual(sealed("slurm/run.jsonl"), sealed("slurm/whole.jsonl"))

    def test_kubernetes_example(self):
        """examples/kubernetes-job.yaml: what each of its pods runs; merged"""
        text = (ROOT / "examples/kubernetes-job.yaml").read_text()
        count = int(re.search(r"^  completions: (\d+)$", text, re.M)[1])
        block = re.search(r"^            - \|\n((?: {14}.*\n)+)", text, re.M)[1]
        folder = test_cli.temporary / "pods"
        folder.mkdir()
        for name, own in (("n.model", "model.safetensors"), ("s.lex", "words.lex"), ("test.tsv", "test.tsv")):
            (folder / own).write_bytes((test_cli.temporary / name).read_bytes())
        for index in range(count):
            self.script(["sh", "-c"], block.replace("/data/", f"{folder}/"), JOB_COMPLETION_INDEX=index)
        self.ok(run("merge", *(f"pods/part-{index}.jsonl" for index in range(count)), "-o", "pods/run.jsonl", "--quiet"))
        files = ("--model", "pods/model.safetensors", "--lexicon", "pods/words.lex", "--data", "pods/test.tsv")
        self.ok(run("certify", *files, "-o", "pods/whole.jsonl", "--quiet"))
        self.assertEqual(sealed("pods/run.jsonl"), sealed("pods/whole.jsonl"))

    # ---------------------------------------------------------------------- forged

    def test_forged(self):
        """parts that do not belong together, or are not what they were: one line each, and no output"""
        parts = self.copied(self.parts("adaptive", 3))
        first, second, third = parts
        content = (test_cli.temporary / second).read_bytes()
        lines = content.splitlines(True)

        def refused(words, names=parts, code=INPUT):
            self.refused(run("merge", *names, "-o", "forged.jsonl"), code, *words)
            self.assertFalse(exists("forged.jsonl"))
            write(second, content)

        write(second, content.replace(b'"certified":true', b'"certified":false', 1).replace(b'"abstained":false', b'"abstained":true', 1))
        refused((second, "line ", "the check does not match: the line was changed"))
        for more, words in ((("--seed", 2), "seed is 1 there, 2 here"), (("--data", "short.tsv"), "data.name is \"test.tsv\" there"),
                            (("--n", 201), "n is 200 there, 201 here")):
            self.ok(run(*KINDS["adaptive"], *more, "--shard", "2/3", "-o", "other.jsonl", "--quiet"))
            if "--data" in more:  # names do not matter where there are digests
                words = "data.sha256 is "
            refused((f"other.jsonl (here) and {first} (there) are not of the same run: {words}",), (first, "other.jsonl", third))
            os.remove(test_cli.temporary / "other.jsonl")
        refused(("are not of the same run: ",), (first, self.parts("binomial", 3)[1], third))
        refused(("are not of the same run: ",), (first, self.parts("attack", 3)[1], third))
        refused(("is one of 5 parts", "one of 3"), (first, self.parts("adaptive", 5)[1], third))
        refused((f"{first} and copy2.jsonl are both part 1 of 3",), (first, write("copy2.jsonl", (test_cli.temporary / first).read_bytes()), second, third))
        refused(("2 of 3 parts are missing: 1, 3",), (second,))
        refused((f"{self.whole('adaptive')} is a whole run",), (*parts, self.whole("adaptive")))
        for keep in (30, len(lines[0]) - 1):
            write(second, content[:keep])
            refused((second, "line 1: the configuration is cut", "--resume"))
        write(second, content[:-1])
        refused((f"1 of 3 parts is not finished: {second} (7 of 8 records); run again with --resume",))
        write(second, b"".join(lines[:3]))
        refused((f"{second} (2 of 8 records)",))
        write(second, content + bytes(100))
        refused((f"{second} (8 of 8 records)",))
        write(second, content + lines[-1])
        refused((f"{second}: its records are 9, the texts of its part 8",))
        write(second, b"".join((lines[0], lines[2], lines[1], *lines[3:])))
        refused((second, "line 2", "row 5 stands here"))
        write(second, b"".join((lines[0].replace(b'"shard":[2,3]', b'"shard":[1,3]'), *lines[1:])))
        refused((second, "line 1", "the check does not match"))
        write(second, lzma.compress(content))
        refused((second, "what is packed must be unpacked first"))
        write(second, b"")
        refused((second, "is empty"))
        write("letter.txt", "Dear file,\n")
        refused(("letter.txt", "is not the output of a run"), (first, "letter.txt", third))
        os.makedirs(test_cli.temporary / "a-folder", exist_ok=True)
        refused(("a-folder is a folder",), (first, "a-folder", third))
        self.refused(run("merge", first, "absent.jsonl", third, "-o", "forged.jsonl"), 4, "absent.jsonl")
        self.ok(run("merge", *parts, "-o", "forged.jsonl", "--quiet"))
        os.remove(test_cli.temporary / "forged.jsonl")

    def test_output(self):
        """the output is no part, by whatever name; what is there is replaced as a whole or not at all"""
        parts = self.copied(self.parts("adaptive", 2))
        before = (test_cli.temporary / parts[0]).read_bytes()
        self.refused(run("merge", *parts, "-o", parts[0]), USAGE, "that is an input")
        os.link(test_cli.temporary / parts[0], test_cli.temporary / "linked.jsonl")
        self.refused(run("merge", *parts, "-o", "linked.jsonl"), USAGE, "linked.jsonl")
        self.assertEqual((test_cli.temporary / parts[0]).read_bytes(), before)
        self.refused(run("merge", *parts), USAGE, "-o FILE is needed")
        self.refused(run("merge", "-o", "x.jsonl"), USAGE, "merge")
        write("old.jsonl", "old\n")
        self.refused(run("merge", parts[0], "-o", "old.jsonl"), INPUT, "missing")
        self.assertEqual((test_cli.temporary / "old.jsonl").read_text(), "old\n")
        self.assertEqual(json.loads(self.ok(run("merge", *parts, "-o", "old.jsonl", "--json"))), {"output": "old.jsonl", "parts": 2, "records": TEXTS})
        self.assertEqual(sealed("old.jsonl"), sealed(self.whole("adaptive")))
        self.assertEqual(self.ok(run("merge", *parts, "-o", "/dev/stdout", "--quiet")).count("\n"), TEXTS + 2)

    # ------------------------------------------------------------------------ large

    def many(self):
        """Two parts of 12,000 texts."""
        names = ["many1.jsonl", "many2.jsonl"]
        for number, name in enumerate(names, 1):
            if not exists(name):
                self.ok(run("certify", *BOUNDS[:-2], "--data", "many.tsv", "--shard", f"{number}/2", "-o", name, "--quiet"))
        return names

    def test_interrupt(self):
        """Ctrl-C: exit 130"""
        names, pipe = self.many(), test_cli.temporary / "pipe"
        os.mkfifo(pipe)
        reader = os.open(pipe, os.O_RDONLY | os.O_NONBLOCK)  # who takes nothing, so that the merge waits
        child = subprocess.Popen([test_cli.program, "merge", *names, "-o", "pipe", "--quiet"], cwd=test_cli.temporary, stdin=subprocess.DEVNULL,
                                 stdout=subprocess.PIPE, stderr=subprocess.PIPE)
        self.wait_for_output(reader, child)
        child.send_signal(signal.SIGINT)
        out, _ = child.communicate(timeout=60)
        os.close(reader)
        self.assertEqual((child.returncode, out), (INTERRUPTED, b""))

    def wait_for_output(self, reader, child):
        while child.poll() is None:
            try:
                if os.read(reader, 1):
                    return
            except BlockingIOError:
                pass
            time.sleep(0.01)
        self.fail("it ended before it was interrupted")

    def test_memory(self):
        """memory does not grow with the number of records"""
        if faulty.module_of(pathlib.Path(test_cli.program).parent) is None:
            self.skipTest("a sanitizer needs terabytes of addresses")
        names, few = self.many(), self.parts("ibp", 2)

        def enough(parts, kilobytes):
            def limit():
                resource.setrlimit(resource.RLIMIT_AS, (kilobytes << 10, kilobytes << 10))
            return subprocess.run([test_cli.program, "merge", *parts, "-o", "limited.jsonl", "--quiet"], cwd=test_cli.temporary, preexec_fn=limit,
                                  stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, timeout=300).returncode == DONE

        low, high = 0, 1 << 22
        while high - low > 200:
            middle = (low + high) // 2
            low, high = (low, middle) if enough(few, middle) else (middle, high)
        self.assertGreater(sum((test_cli.temporary / name).stat().st_size for name in names), 2 << 20)
        self.assertTrue(enough(names, high + 512), high)


if __name__ == "__main__":
    test_cli.run_tests(sys.modules["__main__"], make_files)
