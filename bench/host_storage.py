#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Compares GoFS on files or block devices (media=hosted) with fio on the same file in the same run.

A target is a block device, or a file that is made and removed again; what an existing one holds is
lost, and --overwrite says that this is meant. Its beginning becomes a volume, of which
`gofs bench storage` measures a file; behind that fio reads and writes with io_uring, with as many
threads and as many requests outstanding. Both take turns in each pass, and medians count. Both use
O_DIRECT, or neither where it is refused. CPU time is user and system time of all threads of the
host; of fio without what an empty run takes. Beside them `gofs_baselines` reads and writes a file
in the same folder (basic, rpc, cufile), where that program was built.

Prints a table; --json FILE gets an object a line, which bench/targets.py holds against what is
wanted. A CPU has no more requests outstanding than it has processors.
"""

import argparse
import ctypes
import json
import mmap
import os
import pathlib
import re
import shutil
import signal
import stat
import statistics
import subprocess
import sys
import tempfile
import time

ROOT = pathlib.Path(__file__).resolve().parent.parent
# What reads in order comes before what writes at random: in mode=lfs that leaves no block where it
# was.
WORKS = {"random-read": ("randread", 4096), "sequential-read": ("read", 128 << 10),
         "sequential-write": ("write", 128 << 10), "random-write": ("randwrite", 4096)}
BATCHES = ("batch-create", "batch-read")
BASELINES = ("basic", "rpc", "cufile")
PIECE = 4 << 20
LOOK_S = 0.01


def size(text):
    """64M, 2G."""
    match = re.fullmatch(r"(\d+)([KMG]?)", text)
    if not match:
        raise argparse.ArgumentTypeError(f"{text} is no size such as 512M or 4G")
    return int(match[1]) << {"": 0, "K": 10, "M": 20, "G": 30}[match[2]]


class Ended:
    """What a program has left: its output, CPU time, and most of its memory at a time."""

    def __init__(self, status, output, errors, cpu_s, peaks):
        self.status = status
        self.output = output
        self.errors = errors
        self.cpu_s = cpu_s
        self.peaks = peaks


def look_at_memory(pid, peaks):
    """Notes what a process has, where that is more than before."""
    try:
        with open(f"/proc/{pid}/status", encoding="ascii", errors="replace") as lines:
            for line in lines:
                name, _, value = line.partition(":")
                if name in ("RssAnon", "RssShmem", "VmLck", "VmPin"):
                    peaks[name] = max(peaks.get(name, 0), int(value.split()[0]) << 10)
    except (OSError, ValueError, IndexError):
        pass  # it has ended


def die_with_parent():
    """In a child: no measurement goes on after this program was killed."""
    ctypes.CDLL(None).prctl(1, signal.SIGKILL)


def run(command, end_at):
    """Runs a program until time.monotonic() is `end_at` at most."""
    peaks: dict[str, int] = {}
    with tempfile.TemporaryFile() as output, tempfile.TemporaryFile() as errors:
        child = subprocess.Popen([str(word) for word in command], stdin=subprocess.DEVNULL,
                                 stdout=output, stderr=errors, preexec_fn=die_with_parent)
        while True:
            pid, status, usage = os.wait4(child.pid, os.WNOHANG)
            if pid != 0:
                break
            look_at_memory(child.pid, peaks)
            if time.monotonic() > end_at:
                child.kill()
                _, status, usage = os.wait4(child.pid, 0)
                break
            time.sleep(LOOK_S)
        child.returncode = os.waitstatus_to_exitcode(status)
        texts = []
        for file in (output, errors):
            file.seek(0)
            texts.append(file.read().decode(errors="replace"))
    return Ended(child.returncode, texts[0], texts[1], usage.ru_utime + usage.ru_stime, peaks)


def takes_o_direct(path):
    """Whether a file or device is read past the page cache."""
    try:
        file = os.open(path, os.O_RDONLY | os.O_DIRECT)
    except OSError:
        return False
    try:
        with mmap.mmap(-1, 4096) as page:
            return os.preadv(file, [page], 0) == 4096
    except OSError:
        return False
    finally:
        os.close(file)


class Target:
    """A file or device: a volume at its beginning, and behind it what fio has."""

    def __init__(self, path, options):
        self.path = os.path.abspath(path)
        self.made = not os.path.exists(self.path)
        self.is_device = not self.made and stat.S_ISBLK(os.stat(self.path).st_mode)
        if not self.made and not options.overwrite:
            raise SystemExit(f"{path}: is there already; --overwrite would have it lost")
        self.volume_bytes = options.volume_bytes
        self.fio_bytes = options.fio_bytes
        self.direct = False

    def prepare(self, gofs, end_at):
        """Empty it is not sparse: what is not there yet costs more to write than what is."""
        if self.made:
            os.close(os.open(self.path, os.O_CREAT | os.O_EXCL | os.O_WRONLY, 0o600))
        if not self.is_device:
            os.truncate(self.path, 0)
            self.fill(0, self.volume_bytes)
        made = run([gofs, "mkfs", "-f", "--size", self.volume_bytes, self.path], end_at)
        if made.status != 0:
            raise SystemExit(f"{self.path}: {made.errors.strip() or 'mkfs took too long'}")
        self.fill(self.volume_bytes, self.fio_bytes)
        self.direct = takes_o_direct(self.path)

    def fill(self, begin, count):
        piece = os.urandom(PIECE)
        file = os.open(self.path, os.O_WRONLY)
        try:
            for at in range(begin, begin + count, PIECE):
                os.pwrite(file, piece[:begin + count - at], at)
            os.fsync(file)
        finally:
            os.close(file)

    def remove(self):
        if self.made and os.path.exists(self.path):
            os.unlink(self.path)


class Fio:
    """fio, where it is."""

    def __init__(self, options):
        self.program = shutil.which(options.fio)
        self.threads = options.threads
        self.seconds = options.seconds
        self.problem = None if self.program else f"no {options.fio}"
        self.empty_cpu_s = 0.0

    def command(self, target, work, outstanding, *more):
        how, block = WORKS[work]
        jobs = min(self.threads, outstanding)
        each = target.fio_bytes // jobs // block * block
        return [self.program, "--name=beside", f"--filename={target.path}", f"--rw={how}",
                f"--bs={block}", "--ioengine=io_uring", f"--iodepth={outstanding // jobs}",
                f"--numjobs={jobs}", "--thread", "--group_reporting",
                f"--direct={int(target.direct)}", f"--offset={target.volume_bytes}",
                f"--offset_increment={each}", f"--size={each}", "--norandommap",
                "--randrepeat=0", "--fallocate=none", "--output-format=json",
                *(more or ("--time_based", f"--runtime={int(self.seconds * 1000)}ms"))]

    def measure(self, target, work, outstanding, end_at):
        """A sample, or None, and then `problem` says why."""
        if self.problem:
            return None
        if not self.empty_cpu_s:
            empty = self.command(target, "random-read", self.threads, "--number_ios=1")
            self.empty_cpu_s = min(run(empty, end_at).cpu_s for _ in range(3))
        ended = run(self.command(target, work, outstanding), end_at)
        if ended.status != 0:
            words = (ended.errors or ended.output).strip().splitlines()
            self.problem = f"fio: {words[-1] if words else f'status {ended.status}'}"
            return None
        # What it says before that is for people.
        job = json.loads(ended.output[ended.output.index("{"):])["jobs"][0]
        side = job["read" if WORKS[work][0].endswith("read") else "write"]
        cpu_s = max(ended.cpu_s - self.empty_cpu_s, 0.0)
        return {"ops_per_s": side["iops"],
                "cpu_us_per_op": cpu_s * 1e6 / max(side["total_ios"], 1)}


class Samples:
    """Of all passes, by point and by who it was."""

    def __init__(self):
        self.all = {}

    def add(self, point, name, sample):
        if sample is not None:
            self.all.setdefault(point, {}).setdefault(name, []).append(sample)

    def median(self, point, name):
        samples = self.all[point].get(name)
        if not samples:
            return None
        return {key: statistics.median(one[key] for one in samples) for key in samples[0]}


class Comparison:
    """All passes on one target."""

    def __init__(self, target, options):
        self.target = target
        self.options = options
        self.gofs = options.build / "src/cli/gofs"
        self.bench = options.build / "src/cli/gofs-bench"
        self.baselines = options.build / "bench/baselines/gofs_baselines"
        self.fio = Fio(options)
        self.samples = Samples()
        self.about = {}
        self.memory = {}
        self.notes = []
        self.passes = 0

    def note(self, words):
        if words and words not in self.notes:
            self.notes.append(words)

    def spec(self, variant):
        escaped = "".join(f"%{byte:02X}" if chr(byte) in "?+%" else chr(byte)
                          for byte in os.fsencode(self.target.path))
        more = "" if variant == "default" else f"&{variant}"
        return f"file:{escaped}?media=hosted&threads={self.options.threads}{more}"

    def measure_gofs(self, variant, works, end_at):
        """The points of one variant: what was outstanding where so much was wanted."""
        options = self.options
        ended = run([self.bench, "storage", self.spec(variant), "--backend", options.backend,
                     "--works", ",".join(works), "--outstanding",
                     ",".join(map(str, options.outstanding)), "--file-bytes", options.file_bytes,
                     "--files", options.files, "--seconds", options.seconds, "--json"], end_at)
        rows = [json.loads(line) for line in ended.output.splitlines()]
        if ended.status != 0:
            raise SystemExit(f"gofs bench storage, {variant}: "
                             f"{ended.errors.strip() or 'it took too long'}")
        name = "gofs" if variant == "default" else f"gofs {variant}"
        points = []
        for row in rows:
            if row["bench"] == "storage volume":
                self.about[name] = row
            elif row["bench"] == "storage memory":
                self.memory[name] = {**row, **{f"{key}_peak": value
                                               for key, value in ended.peaks.items()}}
            else:
                point = row["work"], row["outstanding"], row["bytes"]
                self.samples.add(point, name, {"ops_per_s": row["ops_per_s"],
                                               "cpu_us_per_op": row["cpu_us_per_op"]})
                points.append(point)
        return points

    def measure_baselines(self, end_at):
        """Those that are there: 4 KiB at random places."""
        options = self.options
        if self.target.is_device:
            return self.note("baselines: they want a folder, not a device")
        if not self.baselines.exists():
            return self.note(f"baselines: no {self.baselines}")
        folder = os.path.dirname(self.target.path)
        ended = run([self.baselines, "--backend", options.backend, "--folder", folder,
                     "--cufile-folder", folder, "--models", "file", "--direct", "--only",
                     ",".join(BASELINES), "--pattern", "random", "--outstanding",
                     ",".join(map(str, options.outstanding)), "--large-mib",
                     max(min(options.file_bytes, options.fio_bytes) >> 20, 1), "--runs", 1,
                     "--seconds", options.seconds, "--json"], end_at)
        if ended.status != 0:
            return self.note(f"baselines: {ended.errors.strip() or 'they took too long'}")
        for line in ended.output.splitlines():
            row = json.loads(line)
            if "ops_per_s" not in row:
                if row.get("name") in BASELINES:
                    self.note(f"{row['name']}: {row.get('note', 'not available')}")
                continue
            rate = row["ops_per_s"]["median"]
            cpu_us = row["cores"] * 1e6 / rate if rate else 0
            # One that cannot have so many outstanding stands for itself at its most.
            for point in self.samples.all:
                if point[0] == f"random-{row['work']}" and point[1] >= row["outstanding"]:
                    best = self.samples.all[point].setdefault(row["name"], [])
                    if not best or row["outstanding"] >= best[-1]["outstanding"]:
                        kept = [one for one in best if one["outstanding"] == row["outstanding"]]
                        best[:] = kept + [{"ops_per_s": rate, "cpu_us_per_op": cpu_us,
                                           "outstanding": row["outstanding"]}]
        return None

    def run_pass(self, end_at):
        works = [work for work in self.options.works if work in WORKS]
        batches = [work for work in self.options.works if work in BATCHES]
        points = []
        for variant in self.options.variants:
            points += self.measure_gofs(variant, works + batches, end_at)
        for work, outstanding, _ in dict.fromkeys(points):
            if work in WORKS:
                sample = self.fio.measure(self.target, work, outstanding, end_at)
                self.samples.add((work, outstanding, WORKS[work][1]), "fio", sample)
        self.note(self.fio.problem)
        if not self.options.no_baselines and any(work.startswith("random") for work in works):
            self.measure_baselines(end_at)
        self.passes += 1

    def run(self, end_at):
        """As many passes as there is time for, one at least."""
        self.target.prepare(self.gofs, end_at)
        longest = 0.0
        while self.passes < self.options.passes:
            began = time.monotonic()
            if self.passes and began + longest > end_at:
                self.note(f"{self.passes} of {self.options.passes} passes: no more time")
                break
            self.run_pass(end_at)
            longest = max(longest, time.monotonic() - began)

    def rows(self):
        """An object for each point."""
        first = next(iter(self.about.values()))
        for point, by_name in self.samples.all.items():
            names = {name: self.samples.median(point, name) for name in by_name}
            row = {"bench": "host_storage", "target": self.target.path,
                   "direct": self.target.direct, "backend": first["backend"],
                   "threads": self.options.threads, "work": point[0], "outstanding": point[1],
                   "bytes": point[2], "passes": self.passes, "names": names}
            fio = names.get("fio")
            for name, ours in names.items():
                if fio and name.startswith("gofs"):
                    ours["ratio"] = ours["ops_per_s"] / fio["ops_per_s"]
                    if fio["cpu_us_per_op"]:
                        ours["cpu_ratio"] = ours["cpu_us_per_op"] / fio["cpu_us_per_op"]
            yield row
        yield {"bench": "host_storage memory", "target": self.target.path, "names": self.memory,
               "about": self.about, "notes": self.notes}


def print_table(comparison, rows):
    target = comparison.target
    access = "O_DIRECT" if target.direct else "O_DIRECT is refused: direct=0 for fio"
    print(f"{target.path}: {access}, {comparison.options.threads} threads, "
          f"{comparison.passes} passes of {comparison.options.seconds} s")
    for name, about in comparison.about.items():
        print(f"  {name}: {about['ssd']}, mode {about['mode']}, backend {about['backend']}")
    print(f"{'work':<17}{'outst.':>7}  {'who':<17}{'operations/s':>13}{'of fio':>8}"
          f"{'CPU us':>9}{'of fio':>8}")
    for row in rows[:-1]:
        for name, one in row["names"].items():
            ratio = f"{one['ratio']:.2f}" if "ratio" in one else ""
            cpu_ratio = f"{one['cpu_ratio']:.2f}" if "cpu_ratio" in one else ""
            print(f"{row['work']:<17}{row['outstanding'] or 'batch':>7}  {name:<17}"
                  f"{one['ops_per_s']:>13.0f}{ratio:>8}{one['cpu_us_per_op']:>9.2f}"
                  f"{cpu_ratio:>8}")
    for name, memory in comparison.memory.items():
        print(f"memory of {name}: at most {memory.get('RssAnon_peak', 0) >> 20} MiB anonymous, "
              f"{memory['pinned_bytes'] >> 20} MiB pinned, "
              f"{memory['resident_peak_bytes'] >> 20} MiB resident")
    for words in comparison.notes:
        print(f"note: {words}")


def parse():
    parser = argparse.ArgumentParser(description=__doc__,
                                     formatter_class=argparse.RawDescriptionHelpFormatter)
    split = lambda text: text.split(",")
    parser.add_argument("targets", metavar="TARGET", nargs="+", help="a file or block device")
    parser.add_argument("--overwrite", action="store_true", help="what it holds may be lost")
    parser.add_argument("--build", type=pathlib.Path, default=ROOT / "build/cpu",
                        help="where GoFS was built (default build/cpu)")
    parser.add_argument("--backend", default="cpu", choices=("cpu", "cuda", "auto"))
    parser.add_argument("--fio", default="fio", help="the program")
    parser.add_argument("--works", type=split, default=[*WORKS, *BATCHES],
                        help=f"of {', '.join([*WORKS, *BATCHES])}; all if not given")
    parser.add_argument("--outstanding", type=lambda text: [int(one) for one in split(text)],
                        default=[1, 4, 16, 32, 64, 128, 256])
    parser.add_argument("--threads", type=int, default=max(min((os.cpu_count() or 1) // 4, 4), 1),
                        help="of the hosted SSD, and of fio (default as many as a hosted SSD has)")
    parser.add_argument("--variants", type=split, default=["default"],
                        help="options of the volume, such as default,poll=always,mode=lfs")
    parser.add_argument("--passes", type=int, default=3)
    parser.add_argument("--seconds", type=float, default=0.5, help="of each point and pass")
    parser.add_argument("--volume-bytes", type=size, default=4 << 30, help="of the volume")
    parser.add_argument("--file-bytes", type=size, default=1 << 30, help="of its file, whole MiB")
    parser.add_argument("--fio-bytes", type=size, default=1 << 30, help="that are fio's")
    parser.add_argument("--files", type=int, default=10_000, help="of 16 KiB, in a batch")
    parser.add_argument("--no-baselines", action="store_true")
    parser.add_argument("--limit", type=float, default=3600, help="seconds that all may take")
    parser.add_argument("--json", type=pathlib.Path, help="gets an object a line")
    options = parser.parse_args()
    for work in options.works:
        if work not in WORKS and work not in BATCHES:
            parser.error(f"{work}: no work is called that")
    if options.threads < 1 or options.passes < 1 or min(options.outstanding) < 1:
        parser.error("threads, passes and what is outstanding are 1 at least")
    if options.backend == "cpu":
        most = os.cpu_count() or 1
        options.outstanding = sorted({min(one, most) for one in options.outstanding})
    return options


def main():
    options = parse()
    # Who is told to end leaves nothing behind either.
    signal.signal(signal.SIGTERM, lambda *_: sys.exit("ended"))
    end_at = time.monotonic() + options.limit
    for number, path in enumerate(options.targets):
        target = Target(path, options)
        comparison = Comparison(target, options)
        now = time.monotonic()
        try:
            comparison.run(now + (end_at - now) / (len(options.targets) - number))
        finally:
            target.remove()
        rows = list(comparison.rows())
        print_table(comparison, rows)
        if options.json is not None:
            with open(options.json, "a", encoding="utf-8") as file:
                file.writelines(json.dumps(row) + "\n" for row in rows)
    return 0


if __name__ == "__main__":
    sys.exit(main())
