"""The program with faults on demand: what tests/faults.c, which is preloaded into it, understands."""
import errno
import mmap
import os
import pathlib
import select
import signal
import struct
import subprocess
import tempfile

FIELDS = ("fail", "number", "later", "problem", "trace", "journal", "running", "allocations", "calls", "failed", "live", "files",
          "returned")  # the struct `state` of faults.c, in its order
CALLS = ("", "write", "fsync", "rename", "close", "ftruncate", "open", "unlink", "mkdir", "lock", "thread", "read", "map")
ALLOCATION, CALL = 1, 2
SIZE = 8 * len(FIELDS) + 4096
HALF, KILL = -1, -2

# What a failing call may say. Half of a write or read is no failure.
PROBLEMS = {
    "write": (errno.ENOSPC, errno.EIO, errno.EINTR, HALF), "read": (errno.EIO, errno.EINTR, HALF),
    "fsync": (errno.EIO, errno.ENOSPC, errno.EINTR), "rename": (errno.EIO, errno.ENOSPC), "close": (errno.EIO, errno.EINTR),
    "ftruncate": (errno.EIO, errno.EINTR), "open": (errno.ENOSPC, errno.EMFILE, errno.EINTR), "unlink": (errno.EIO,),
    "mkdir": (errno.ENOSPC,), "lock": (errno.ENOLCK, errno.EINTR), "thread": (errno.EAGAIN,), "map": (errno.ENOMEM,),
}


def module_of(build):
    """What is to be preloaded, or None: under a sanitizer, whose own allocator it would replace."""
    if "SAFER_SANITIZE:STRING=\n" not in (pathlib.Path(build) / "CMakeCache.txt").read_text():
        return None
    return pathlib.Path(build) / "tests/libfaults.so"


def fast_folder():
    """A folder for tests that make files by the thousand; with `with`."""
    return tempfile.TemporaryDirectory(prefix="safer-faults-", dir="/dev/shm" if os.access("/dev/shm", os.W_OK) else None)


class State:
    """The memory that is shared with the program."""

    def __init__(self, path):
        path.write_bytes(bytes(SIZE))
        with open(path, "r+b") as file:
            self.map = mmap.mmap(file.fileno(), SIZE)

    def __getattr__(self, name):
        return struct.unpack_from("<q", self.map, 8 * FIELDS.index(name))[0]

    def set(self, **values):
        for name, value in values.items():
            struct.pack_into("<q", self.map, 8 * FIELDS.index(name), value)

    def kinds(self):
        return [CALLS[k] for k in self.map[8 * len(FIELDS):][:self.calls]]


class Program:
    """A server that runs the program with any arguments, each time in a process of its own."""

    def __init__(self, build, folder, **environment):
        folder.mkdir(exist_ok=True)
        self.state = State(folder / "state")
        self.server = subprocess.Popen(
            [pathlib.Path(build) / "safer"], stdin=subprocess.PIPE, stdout=subprocess.PIPE, bufsize=0,
            env={**os.environ, "LD_PRELOAD": str(module_of(build)), "FAULTS_STATE": str(folder / "state"), "FAULTS_SERVER": "1",
                 "LC_ALL": "C.UTF-8", "SOURCE_DATE_EPOCH": "1700000000", **environment})

    def line(self, seconds):
        """A line of the server's; None when there is none for so long."""
        said = b""
        while not said.endswith(b"\n"):
            if not select.select([self.server.stdout], [], [], seconds)[0]:
                return None
            part = self.server.stdout.read(1)
            assert part, "the server of faults died"
            said += part
        return int(said)

    def run(self, folder, *arguments, stdin="/dev/null", stop=None, limit=60, **faults):
        """Runs it; what subprocess would return: the exit status, or the negative number of the signal, or None after
        `limit` seconds. `stop` is asked, again and again, whether the program should be told to end."""
        none = dict.fromkeys(FIELDS, 0)
        self.state.set(**{**none, **faults})
        self.server.stdin.write("\t".join(map(str, (folder, stdin, *arguments))).encode() + b"\n")
        child = self.line(limit)
        if stop:
            status = self.line(0.005)
            waited = 0
            while status is None and waited < limit:
                if stop():
                    os.kill(child, signal.SIGTERM)
                    stop = lambda: False
                status = self.line(0.005)
                waited += 0.005
        else:
            status = self.line(limit)
        if status is None:
            os.killpg(child, signal.SIGKILL)
            self.line(limit)
            return None
        return os.waitstatus_to_exitcode(status)

    def close(self):
        self.server.stdin.close()
        self.server.wait()
        self.server.stdout.close()
