#!/usr/bin/env python3
"""scripts/soak-serve, for seconds: it passes, and fails when the server keeps memory with every answer.
test_soak_serve.py BUILD_DIR. Run by ctest."""
import pathlib
import re
import subprocess
import sys

SCRIPT = pathlib.Path(__file__).resolve().parent.parent / "scripts/soak-serve"
build = pathlib.Path(sys.argv[-1])
if re.search("SAFER_SANITIZE:STRING=.*thread", (build / "CMakeCache.txt").read_text()):
    print("skipped: ThreadSanitizer does not say how much is allocated")
    print("[  PASSED  ] 0 test(s).")
    sys.exit(0)
runs = [subprocess.Popen([sys.executable, SCRIPT, "--minutes", "0.08", "--clients", "4", *more, build], stdout=subprocess.PIPE,
                         stderr=subprocess.STDOUT, text=True) for more in ((), ("--leak", "50000"))]
(sound, leaking) = [run.communicate(timeout=300)[0] for run in runs]
assert runs[0].returncode == 0, sound
assert re.search(r"(?m)^[1-9]\d* requests .* 0 lost or wrong; [1-9]\d* reloads; 0 crashes \(exit 0\)$", sound), sound
assert runs[1].returncode == 1, leaking
assert re.search(r"(?m)^wrong: it holds [1-9]\d+ bytes more for every request$", leaking), leaking
print("[  PASSED  ] 2 test(s).")
