#!/usr/bin/env python3
"""Power cuts on a simulated disk: test_power.py [VERB...] BUILD_DIR. Run by ctest.

A verb runs once, and faults.c writes down every call that changes a file. From this list come disks as they may be
after a power cut at any of its moments: what was synced is there; of the rest, writes are missing in any combination
(none, all, random ones; a hole holds zeros), and changes of names are missing from some moment on. On each disk, a
file that is written whole is absent, the old one or whole; a run that is resumed ends with the same records; and no
record that was synced is missing. Besides, a slow run is watched: every record is synced within a second or so.
"""
import pathlib
import random
import shutil
import sys

sys.dont_write_bytecode = True
import faulty  # noqa: E402
from faulty import Program  # noqa: E402
from test_faults import DONE, OLD, TEMPORARY, TEXTS, Trial, contents, make_files, plain, verb, verbs  # noqa: E402

VERBS = ("lexicon import", "train ngram", "train cnn", "certify", "certify --resume", "merge", "attack", "report", "evidence",
         "model convert", "compare")
RANDOM = 3  # subsets of what was not synced, for each moment
SLOW = 150  # milliseconds that the model of the slow run takes for a request
LATE = 3  # seconds: one is promised, and the machine may be busy


class Disk:
    """Files by name, each a list of changes; what is not synced may be missing."""

    def __init__(self, folder):
        self.folder = folder
        self.names, self.inodes, self.lasting = {}, {}, {}
        for path in folder.rglob("*"):
            if path.is_file() and path.name not in ("stdout", "stderr", "journal"):
                self.names[str(path)] = self.inodes[str(path.stat().st_ino)] = [["write", 0, path.read_bytes(), True]]
        self.lasting = dict(self.names)
        self.pending = []  # changes of names, in their order

    def full(self, name):
        return str(self.folder / name)

    def apply(self, line):
        _, what, inode, name, *rest = line.split("\t")
        if what == "create":
            self.inodes[inode] = []
            self.pending.append(("set", name, self.inodes[inode]))
        elif what == "write":
            self.inodes[inode].append(["write", int(rest[0]), bytes.fromhex(rest[1]), False])
        elif what == "truncate":
            self.inodes[inode].append(["truncate", int(rest[0]), b"", False])
        elif what == "rename":
            self.pending.append(("rename", self.full(rest[0]), self.full(rest[1])))
        elif what == "unlink":
            self.pending.append(("unlink", self.full(rest[0]), None))
        elif what == "sync" and inode in self.inodes and pathlib.Path(name).is_dir() is False:
            for change in self.inodes[inode]:
                change[3] = True
        elif what == "sync":
            self.lasting, self.pending = self.named([p for p in self.pending if pathlib.Path(p[1]).parent == pathlib.Path(name)]), \
                [p for p in self.pending if pathlib.Path(p[1]).parent != pathlib.Path(name)]

    def named(self, changes):
        """Which names there are after these changes."""
        names = dict(self.lasting)
        for what, name, more in changes:
            if what == "set":
                names[name] = more
            elif what == "unlink":
                names.pop(name, None)
            elif name in names:
                names[more] = names.pop(name)
        return names

    def after_cut(self, keep):
        """{name: bytes}, where keep(change) says whether one that was not synced is there all the same."""
        kept = [p for p in self.pending if keep(p)]
        kept = self.pending[:len(kept)]  # the file system keeps the order of these
        return {name: self.content(changes, keep) for name, changes in self.named(kept).items()}

    @staticmethod
    def content(changes, keep):
        content, size = bytearray(), 0
        for what, at, data, synced in changes:
            there = synced or keep(data)
            if what == "truncate" and there:
                del content[at:]
                size = min(size, at)
            elif what == "write":
                size = max(size, at + len(data)) if there else size
                content.extend(bytes(max(0, (at + len(data) if there else 0) - len(content))))
                if there:
                    content[at:at + len(data)] = data
        return bytes(content[:size])

    def records(self):
        """The lines of runs that are on the disk for certain."""
        return {name: self.content(changes, lambda _: False) for name, changes in self.lasting.items() if name.endswith(".jsonl")}


class Cuts:
    """The power cuts of one verb."""

    def __init__(self, program, folder, a_verb):
        self.trial = Trial(program, folder, a_verb)
        self.folder, self.verb = folder, a_verb
        self.tried, self.seen, self.found = 0, set(), []
        shutil.rmtree(folder)
        folder.mkdir()
        for name, content in {**dict.fromkeys(a_verb.old, OLD), **a_verb.begun}.items():
            (folder / name).write_bytes(content)
        disk = Disk(folder)
        assert program.run(folder, *a_verb.arguments, journal=1) == DONE
        lines = (folder / "journal").read_text().splitlines()
        assert any("\tsync\t" in line for line in lines), "nothing was synced"
        chance = random.Random(7)
        for line in lines:
            disk.apply(line)
            for keep in (lambda _: False, lambda _: True, *[lambda _: chance.random() < 0.5] * RANDOM):
                self.cut(disk, keep)
        self.moments = len(lines)

    def cut(self, disk, keep):
        files = disk.after_cut(keep)
        self.tried += 1
        if (key := frozenset(files.items())) in self.seen:
            return
        self.seen.add(key)
        shutil.rmtree(self.folder)
        self.folder.mkdir()
        for name, content in files.items():
            path = pathlib.Path(name)
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_bytes(content)
        wrong = self.wrong(contents(self.folder), disk.records())
        if wrong:
            self.found.append(f"{self.verb.name}, after {self.tried // (2 + RANDOM)} changes: {wrong}")

    def wrong(self, left, lasting):
        for name, content in lasting.items():
            if not left.get(pathlib.Path(name).name, left.get(str(pathlib.Path(name).relative_to(self.folder)), b"")).startswith(
                    content[:content.rfind(b"\n") + 1]):
                return f"{name}: a record that was synced is lost"
        for name, content in left.items():
            whole = self.trial.files.get(name)
            if TEMPORARY.search(name) or name.endswith((".jsonl", ".checkpoint")):
                continue
            if plain(content) != whole and not (name in self.verb.old and content == OLD) and not (name.endswith("made.json") and content):
                return f"{name} is torn: {len(content)} bytes"
        return self.trial.unfinished(left)


def watch_slow_run(program, files, folder, build):
    """How late a record was synced, in seconds, at most."""
    rows = "".join(f"{i}\t{'neg' if i % 2 else 'pos'}\tthe film is {'bad' if i % 2 else 'good'}\n" for i in range(12))
    (files / "slow.tsv").write_text(rows)
    folder.mkdir(exist_ok=True)
    slow = verb("slow", "certify", "--model", f"exec:{build / 'tests/answers'} {SLOW}", "--data", files / "slow.tsv", "--lexicon",
                files / "w.lex", "--labels", "neg,pos", "--model-name", "m", "--workers", 1, "--threads", 1, "--quiet", "--n", 10, "-o", "out.jsonl")
    assert program.run(folder, *slow.arguments, journal=1) == DONE, (folder / "stderr").read_text()
    late, waiting, begun = 0, [], None
    for line in (folder / "journal").read_text().splitlines():
        when, what, _, name = line.split("\t")[:4]
        begun = begun or float(when)
        if name.endswith("out.jsonl") and what == "write":
            waiting.append(float(when))
        elif name.endswith("out.jsonl") and what == "sync":
            late = max([late, *(float(when) - then for then in waiting)])
            waiting = []
    assert not waiting, "the last records were not synced"
    return late, float(when) - begun


def main():
    build = pathlib.Path(sys.argv[-1]).resolve()
    if faulty.module_of(build) is None:
        print("skipped: this build has a sanitizer, which has an allocator of its own")
        return 0
    found, disks, tried, moments = [], 0, 0, 0
    with faulty.fast_folder() as name:
        folder = pathlib.Path(name)
        files = folder / "files"
        files.mkdir()
        program = Program(build, folder / "first")
        make_files(program, files, 6 * TEXTS)
        wanted = sys.argv[1:-1] or VERBS
        for a_verb in verbs(build, files):
            if a_verb.name in wanted:
                cuts = Cuts(program, folder / "work", a_verb)
                print(f"{a_verb.name:20} {cuts.moments:4} changes {cuts.tried:6} power cuts {len(cuts.seen):5} different disks "
                      f"{len(cuts.found):3} findings", flush=True)
                found += cuts.found
                disks, tried, moments = disks + len(cuts.seen), tried + cuts.tried, moments + cuts.moments
        late, lasted = watch_slow_run(program, files, folder / "slow", build)
        print(f"a run of {lasted:.1f} s: every record was synced after {late:.2f} s at most")
        if late > LATE:
            found.append(f"a record was synced only after {late:.1f} s")
        program.close()
    for line in found[:40]:
        print(line)
    print(f"{moments} changes, {tried} power cuts, {disks} different disks: {len(found)} findings")
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main())
