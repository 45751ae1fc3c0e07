#!/usr/bin/env python3
"""What a release consists of: test_packages.py [TEST...] BUILD_DIR. Run by ctest.

The source archive, the wheel and its tag, the Debian packages and the recipes, as far as seconds allow: files and versions
fit together, archives hold what they must, and nothing else. scripts/dist --try, scripts/try-wheel and scripts/try-deb build
and install them.
"""
import base64
import email
import hashlib
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
