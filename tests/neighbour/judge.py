#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Has GoFS and fio each write to a partition of one disk at once, and check what they read.

GoFS has the first by `media=hosted` (gofs_traffic): it is mounted again every few seconds, in both
modes in turn. fio has the second, which begins where the first ends. Neither may find anything but
what it wrote, fsck.f2fs finds nothing wrong at the end, and what lies before, behind and between
them is as it was. `N passed, N failed` is the last line.
"""

import argparse
import json
import os
import pathlib
import random
import subprocess
import sys

HERE = pathlib.Path(__file__).resolve().parent
ROOT = HERE.parent.parent
sys.path[:0] = [str(HERE), str(ROOT / "scripts"), str(ROOT / "tests" / "kernel")]
import disk  # noqa: E402
import images  # noqa: E402
import kernel_guest  # noqa: E402
from kernel_guest import GuestError  # noqa: E402

WORK = ROOT / "build" / "neighbour"
MIB = 1 << 20
GOFS_PART = (1 * MIB, 256 * MIB)
FIO_PART = (257 * MIB, 64 * MIB)
DISK_BYTES = 322 * MIB
EDGES = ((512, 1 * MIB), (321 * MIB, 322 * MIB))  # which nothing may write to
TOOLS = {"mkfs.f2fs": "f2fs-tools", "fsck.f2fs": "f2fs-tools", "losetup": "mount",
         "addpart": "util-linux", "fio": "fio"}
END_S = 120  # for what is under way at the end


def say(text):
    print(text, flush=True)


def fio_command(device, seconds, rate, seed):
    """Random writes all over the device, each block of which is read back before it is written
    again."""
    return ["fio", "--name=neighbour", f"--filename={device}", "--ioengine=libaio", "--direct=1",
            "--rw=randwrite", "--bs=4k", "--iodepth=16", "--verify=crc32c", "--verify_fatal=1",
            "--verify_backlog=512", "--verify_state_save=0", "--time_based", f"--runtime={seconds}",
            f"--rate={rate}", f"--randseed={seed}", "--allow_mounted_write=0",
            "--output-format=json"]


def traffic_command(args, device):
    return [args.traffic, device, "--seconds", str(args.seconds), "--seed", str(args.seed),
            *(["--no-uring"] if args.no_uring else [])]


class Counter:
    def __init__(self):
        self.passed = self.failed = 0

    def check(self, name, complaint=""):
        if not complaint:
            self.passed += 1
            return
        self.failed += 1
        say(f"  FAIL {name}: {complaint}")


def edge_bytes(first, end):
    return random.Random(first).randbytes(end - first)


def make_disk(image):
    disk.let_go(image)
    image.unlink(missing_ok=True)
    with open(image, "wb") as file:
        file.truncate(DISK_BYTES)
        for first, end in EDGES:
            file.seek(first)
            file.write(edge_bytes(first, end))


def spoiled_edges(image):
    with open(image, "rb") as file:
        for first, end in EDGES:
            file.seek(first)
            if file.read(end - first) != edge_bytes(first, end):
                return f"bytes from {first} to {end} are not what they were"
    return ""


def fio_complaint(code, output):
    """What fio has found, or that it did nothing; and what it did, in words."""
    begin = output.find("{")
    if code != 0 or begin < 0:
        return f"status {code}: {output[:begin if begin > 0 else 2000]}", ""
    job = json.loads(output[begin:])["jobs"][0]
    wrote, read = job["write"]["io_bytes"], job["read"]["io_bytes"]
    words = f"fio: {wrote // MIB} MiB written, {read // MIB} MiB read"
    if job["error"] != 0:
        return f"error {job['error']}", words
    return ("" if wrote > 0 and read > 0 else "it did nothing"), words


def start(command, log):
    return subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=log,
                            stderr=subprocess.STDOUT, cwd=WORK)


def end(process, seconds):
    """Its status; -1 if it had to be ended."""
    try:
        return process.wait(seconds)
    except subprocess.TimeoutExpired:
        process.kill()
        process.wait()
        return -1


def side_by_side(args, gofs_device, fio_device, counter):
    fio_log, traffic_log = WORK / "fio.log", WORK / "traffic.log"
    with open(fio_log, "wb") as of_fio, open(traffic_log, "wb") as of_traffic:
        fio = start(fio_command(fio_device, args.seconds, args.rate, args.seed), of_fio)
        traffic = start(traffic_command(args, gofs_device), of_traffic)
        statuses = [end(each, args.seconds + END_S) for each in (traffic, fio)]
    text = traffic_log.read_text(errors="replace").strip()
    say(text)
    counter.check("gofs_reads_what_it_wrote", "" if statuses[0] == 0 else f"status {statuses[0]}")
    if args.no_uring:
        refused = "io_uring: Operation not permitted" in text
        counter.check("threads_do_the_work", "" if refused else f"not so: {text}")
    complaint, words = fio_complaint(statuses[1], fio_log.read_text(errors="replace"))
    say(words)
    counter.check("fio_reads_what_it_wrote", complaint)


def judge(args, counter):
    image = WORK / "disk.img"
    make_disk(image)
    with disk.with_partitions(image, (GOFS_PART, FIO_PART)) as ((of_gofs, of_fio), words):
        say(f"neighbour: {words}, for {args.seconds} s")
        images.must_run(["mkfs.f2fs", "-q", "-f", of_gofs])
        side_by_side(args, of_gofs, of_fio, counter)
        counter.check("fsck_finds_nothing", "; ".join(images.fsck(of_gofs)))
    counter.check("nothing_else_was_written_to", spoiled_edges(image))
    if counter.failed == 0:
        image.unlink()


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--traffic",
                        default=str(ROOT / "build" / "cpu" / "tests" / "neighbour" /
                                    "gofs_traffic"))
    parser.add_argument("--seconds", type=int, default=60)
    parser.add_argument("--rate", default="16m", help="bytes a second that fio writes at most")
    parser.add_argument("--no-uring", action="store_true",
                        help="io_uring is refused to GoFS, which has threads do its work then")
    parser.add_argument("--seed", type=int, default=random.randrange(1 << 31))
    args = parser.parse_args()
    os.environ["PATH"] += ":/usr/sbin:/sbin"
    counter = Counter()
    say(f"neighbour: --seed {args.seed}")
    try:
        kernel_guest.require_tools(TOOLS)
        with images.only_one(WORK):
            judge(args, counter)
    except disk.NoLoopDevices as why:
        say(f"neighbour: skipped, there is no loop device to be had: {why}")
        say("0 passed, 0 failed, 1 skipped")
        return 0
    except (GuestError, OSError, subprocess.SubprocessError) as error:
        print(f"neighbour: {error}", file=sys.stderr)
        return 1
    say(f"{counter.passed} passed, {counter.failed} failed")
    return 0 if counter.failed == 0 and counter.passed > 0 else 1


if __name__ == "__main__":
    sys.exit(main())
