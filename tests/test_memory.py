#!/usr/bin/env python3
"""Training with less and less memory: test_memory.py BUILD_DIR. Run by ctest.

The address space is limited as by `ulimit -v`, at many values from too little to enough. Each time the program ends
with status 0 and the same model, or with status 4 and one line that says why; never by a signal. (Where not even the
libraries can be loaded, the loader says so: status 127. GnuTLS, which libcurl brings, says a line of its own when it
cannot begin.)
"""
import pathlib
import resource
import subprocess
import sys
import tempfile

sys.dont_write_bytecode = True
import faulty  # noqa: E402

KB = 1024
STEPS = 24


def limited(program, kilobytes, *arguments):
    """(exit status, stderr) under a limit."""
    def limit():
        resource.setrlimit(resource.RLIMIT_AS, (kilobytes * KB, kilobytes * KB))
        resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    done = subprocess.run([program, *map(str, arguments)], preexec_fn=limit, stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL,
                          stderr=subprocess.PIPE, timeout=300)
    lines = done.stderr.decode(errors="replace").splitlines(keepends=True)
    return done.returncode, "".join(line for line in lines if not line.startswith("Error in GnuTLS initialization"))


def main():
    build = pathlib.Path(sys.argv[-1]).resolve()
    if faulty.module_of(build) is None:
        print("skipped: a sanitizer needs terabytes of addresses")
        return 0
    tried, found = 0, []
    with tempfile.TemporaryDirectory(prefix="safer-memory-") as name:
        folder = pathlib.Path(name)
        rows = (f"{i}\t{'neg' if i % 2 else 'pos'}\tthe film {i % 7} is {'bad' if i % 2 else 'good'} {'and dull ' * (i % 50)}\n" for i in range(400))
        (folder / "data.tsv").write_text("".join(rows))
        for arch, options in (("cnn", ("--dim", 20)), ("cnn", ("--dim", 20, "--threads", 2)), ("bow", ("--dim", 20)), ("ngram", ("--bits", 16))):
            model = folder / "model"
            arguments = ("train", "--arch", arch, *options, "--data", folder / "data.tsv", "--dev", folder / "data.tsv", "--epochs", 1,
                         "--quiet", "-o", model)
            low, high, best = 0, 1 << 22, None
            while high - low > 2000:  # the least that is enough
                middle = (low + high) // 2
                if limited(build / "safer", middle, *arguments)[0] == 0:
                    high, best = middle, model.read_bytes()
                else:
                    low = middle
            for step in range(STEPS + 1):
                kilobytes = int(high * (0.3 + 0.8 * step / STEPS))
                model.unlink(missing_ok=True)
                code, message = limited(build / "safer", kilobytes, *arguments)
                tried += 1
                right = code == 0 and model.read_bytes() == best or code == 127 or \
                    code == 4 and message.startswith("safer: ") and message.count("\n") == 1 and not model.exists()
                if not right:
                    found.append(f"{arch} {options}, {kilobytes} KB: exit {code}, {message!r}")
            print(f"{arch} {' '.join(map(str, options))}: {high} KB are enough", flush=True)
    for line in found:
        print(line)
    print(f"{tried} runs with little memory: {len(found)} findings")
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main())
