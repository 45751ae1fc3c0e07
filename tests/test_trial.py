#!/usr/bin/env python3
"""The trial in small: test_trial.py [TEST...] BUILD_DIR. Run by ctest.

That build/bench/trial finds nothing wrong, and that it finds every fault which it puts, on request, into what the
library gives: a trial that cannot fail proves nothing. docs/RESULTS.md has the figures of the whole trial.
"""
import os
import re
import subprocess
import sys
import unittest

sys.dont_write_bytecode = True
import test_cli  # noqa: E402  (it runs no test by being imported)

# Fault: the arguments with which it must be found, and what is then said.
FAULTS = {
    "radius": ("instances --instances 1000", "CERTIFIED, BUT AN ATTACK SUCCEEDS"),
    "overlap": ("instances --instances 4000", "CERTIFIED, BUT AN ATTACK SUCCEEDS"),
    "tie": ("instances --instances 1000", "CERTIFIED, BUT AN ATTACK SUCCEEDS"),
    "class": ("instances --instances 1000", "the bound is above the truth"),
    "q": ("instances --instances 1000", "q is below"),
    "bound": ("instances --instances 1000", "the bound is above the truth"),
    "answer": ("instances --instances 1000", "is not the true one"),
    "draw": ("instances --instances 4000", "the draws of"),
    "plain": ("instances --instances 4000", "can be attacked: certified .* WRONG: too many"),
    "vote": ("instances --instances 4000", "it is not the winner .* WRONG: too many"),
    "record": ("instances --instances 1000", "does not verify"),
    "margin": ("models --instances 400", "a lead is below its margin"),
    "edits": ("edits --instances 2000", "CERTIFIED, BUT AN EDIT SUCCEEDS"),
    "delta": ("rates --texts 40", "[1-9][0-9]* too high"),
}


def trial(*arguments):
    return subprocess.run([os.path.join(os.path.dirname(test_cli.program), "bench/trial"), *arguments], capture_output=True, text=True, timeout=600)


class Trial(unittest.TestCase):
    def test_nothing_is_wrong(self):
        """nothing is wrong, and certificates are issued and withheld"""
        done = trial("instances", "--instances", "4000", "--seed", "2")
        self.assertEqual((done.returncode, done.stderr), (0, ""), done.stdout)
        self.assertIn("4000 instances and 400 records: 0 wrong", done.stdout)
        for what in (r"([\d.]+)% certified against all", r"([\d.]+)% up to a radius", r"([\d.]+)% not at all",
                     r"([\d.]+)% can be attacked"):
            self.assertGreater(float(re.search(what, done.stdout)[1]), 1, done.stdout)
        done = trial("models", "--instances", "400", "--seed", "2")
        self.assertEqual((done.returncode, done.stderr), (0, ""), done.stdout)
        self.assertIn("400 texts of 10 models: 0 wrong", done.stdout)

    def test_edits(self):
        """no edit succeeds against a certificate, and some certificates are as large as they can be"""
        done = trial("edits", "--instances", "4000", "--seed", "2")
        self.assertEqual((done.returncode, done.stderr), (0, ""), done.stdout)
        self.assertIn("4000 instances: 0 wrong", done.stdout)
        for what in (r"exact (\d+)", r"sampled (\d+)", r"(\d+) certified against", r"(\d+) can be attacked", r"(\d+) exact ones fall"):
            self.assertGreater(int(re.search(what, done.stdout)[1]), 40, done.stdout)

    def test_rates(self):
        """the rates of errors are not too high"""
        done = trial("rates", "--texts", "20")
        self.assertEqual(done.returncode, 0, done.stdout)
        self.assertIn("0 too high", done.stdout)

    def test_faults(self):
        """every fault is found"""
        names = re.search(r"--break NAME.*?:\s+([a-z ]+)\n", trial("--help").stdout, re.S)[1].split()
        self.assertEqual(sorted(names), sorted(FAULTS))
        for name, (arguments, said) in FAULTS.items():
            with self.subTest(name):
                done = trial(*arguments.split(), "--break", name)
                self.assertEqual(done.returncode, 1, done.stdout[-2000:])
                self.assertRegex(done.stdout, said)

    def test_replay(self):
        """an instance that went wrong goes wrong again on its own, and says how to repeat it"""
        first = trial("instances", "--instances", "300", "--break", "radius").stdout
        wrong, again = re.search(r"WRONG: (instance \d+: .*)\nagain: trial (.*)", first).groups()
        self.assertIn(wrong, trial(*again.split(), "--break", "radius").stdout)

    def test_usage(self):
        """misuse is one line"""
        for arguments in (["instances", "--instances"], ["instances", "--seed", "x"], ["rates", "--fast"],
                          ["instances", "--break", "nothing"]):
            done = trial(*arguments)
            self.assertEqual((done.returncode, done.stdout, done.stderr.count("\n")), (2, "", 1), done.stderr)
        self.assertEqual(trial().returncode, 2)
        self.assertEqual(trial("all").returncode, 2)


if __name__ == "__main__":
    test_cli.run_tests(sys.modules["__main__"], lambda: None)
