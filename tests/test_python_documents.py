#!/usr/bin/env python3
"""The package's docstrings and the notebook, executed: test_python_documents.py [TEST...] BUILD_DIR. Run by ctest.

The notebook runs in Debian's Jupyter, or this one's; without it the test is skipped with a line.
"""
import asyncio
import contextlib
import doctest
import importlib
import json
import os
import shutil
import subprocess
import sys
import unittest
import urllib.request

sys.dont_write_bytecode = True
import test_cli  # noqa: E402
import test_python as base  # noqa: E402
from test_python import PACKAGE, ROOT, python_with, temporary  # noqa: E402

safer = None
NOTEBOOK = ROOT / "examples/python_notebook.ipynb"


def prepare():
    global safer
    base.prepare(Documents)
    safer = base.safer


def check_docstrings(names):
    """Runs the examples of modules in the folder of the demo; (failed, tried)."""
    import safer_nlp
    import safer_nlp.aio
    test = safer_nlp.load_data("demo/test.tsv")
    lexicon = safer_nlp.Lexicon.load("demo.lex").with_kernel("component")
    lexicon.save("component.lex")
    model = safer_nlp.train("ngram.safetensors", safer_nlp.load_data("demo/train.tsv"), arch="ngram", bits=18, lexicon=lexicon)
    known = dict(safer=safer_nlp, safer_nlp=safer_nlp, asyncio=asyncio, urllib=urllib, pipeline=model, texts=test.texts, labels=test.labels,
                 test_texts=test.texts, test_labels=test.labels, lexicon=lexicon, model=model)
    failed = tried = 0
    for name in names:
        found = doctest.testmod(importlib.import_module(name), extraglobs=known, optionflags=doctest.ELLIPSIS)
        failed, tried = failed + found.failed, tried + found.attempted
    return failed, tried


class Documents(unittest.TestCase):
    def test_docstrings(self):
        """every example in a docstring runs and prints what it says"""
        names = ["safer_nlp", *(f"safer_nlp.{path.stem}" for path in sorted((PACKAGE / "safer_nlp").glob("*.py"))
                                if path.stem not in ("__init__", "sklearn"))]
        folder = temporary("docs")
        folder.mkdir()
        shutil.copytree(temporary("demo"), folder / "demo")
        shutil.copy(temporary("demo.lex"), folder)
        with contextlib.chdir(folder) if hasattr(contextlib, "chdir") else self.inside(folder):
            failed, tried = check_docstrings(names)
            self.assertEqual(failed, 0)
            self.assertGreater(tried, 12)
            python = python_with("sklearn")
            done = subprocess.run([python, "-c", f"import sys\nsys.path[:0] = [{str(ROOT / 'tests')!r}, {str(PACKAGE)!r}]\n"
                                   "import test_python_documents as t\nprint(t.check_docstrings(['safer_nlp.sklearn']))"],
                                  capture_output=True, text=True, env={**os.environ, "PYTHONDONTWRITEBYTECODE": "1", "OMP_NUM_THREADS": "1"})
            self.assertEqual(done.stdout.strip(), "(0, 4)", done.stdout + done.stderr)

    @contextlib.contextmanager
    def inside(self, folder):
        before = os.getcwd()
        os.chdir(folder)
        try:
            yield
        finally:
            os.chdir(before)

    def test_notebook(self):
        """examples/python_notebook.ipynb runs in Jupyter: figures, a plot, a frame, no error; it is stored without outputs"""
        stored = json.loads(NOTEBOOK.read_text())
        self.assertFalse(any(cell.get("outputs") or cell.get("execution_count") for cell in stored["cells"]))
        python = python_with("nbclient", "ipykernel", "sklearn", "pandas", "matplotlib")
        build = temporary("x").parent
        done = subprocess.run([python, "-c", RUN, NOTEBOOK, temporary("out.ipynb")], capture_output=True, text=True, timeout=500, cwd=ROOT / "examples",
                              env={**os.environ, "PYTHONPATH": str(PACKAGE), "PYTHONDONTWRITEBYTECODE": "1", "OMP_NUM_THREADS": "1",
                                   "SAFER_BUILD": str(base.library.parent), "MPLCONFIGDIR": str(build), "IPYTHONDIR": str(build),
                                   "JUPYTER_RUNTIME_DIR": str(build / "jupyter"), "TMPDIR": str(build)})
        self.assertEqual(done.returncode, 0, done.stderr[-3000:])
        outputs = [output for cell in json.loads(temporary("out.ipynb").read_text())["cells"] for output in cell.get("outputs", [])]
        self.assertFalse([output for output in outputs if output["output_type"] == "error"])
        pages = ["".join(output["data"].get("text/html", "")) for output in outputs if "data" in output]
        self.assertTrue(any("certified and answered" in page for page in pages))
        self.assertTrue(any("changeable" in page for page in pages))
        self.assertTrue(any("image/png" in output.get("data", {}) for output in outputs))
        printed = "".join("".join(output.get("text", "")) for output in outputs if output.get("name") == "stdout")
        self.assertIn("verified:", printed)
        self.assertIn(" 0 broken", printed)


RUN = """
import sys, nbclient, nbformat
book = nbformat.read(sys.argv[1], 4)
nbclient.NotebookClient(book, timeout=400, kernel_name="python3").execute()
nbformat.write(book, sys.argv[2])
"""


if __name__ == "__main__":
    test_cli.run_tests(sys.modules["__main__"], prepare)
