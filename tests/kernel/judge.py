#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Has the Linux kernel write F2FS images, then compares what gofs reads from them with what the
kernel said about them. Called by scripts/kernel_judge.sh, whose --help describes the options.
"""

import argparse
import fnmatch
import json
import os
import pathlib
import subprocess
import sys
import tarfile
import time
import unittest

import compare
import compare_test
import coverage
import images
import matrix
from kernel_guest import GuestError

HERE = pathlib.Path(__file__).resolve().parent
ROOT = HERE.parent.parent
WORK = ROOT / "build" / "kernel"
# A backend that takes long to start is asked for this many probes of an image, not for all.
PROBES_MAX = {"cuda": 40}


def say(text):
    print(text, flush=True)


def pack(folder, index, target):
    """Writes one compressed archive per image (with its manifest) and the index into `target`."""
    target.mkdir(parents=True, exist_ok=True)
    total = 0
    for entry in index["images"]:
        archive = target / f"{entry['name']}.tar.xz"
        # GNU tar stores only what a sparse file has; Python's tarfile makes it sparse again.
        with open(archive, "wb") as file:
            tar = subprocess.Popen(["tar", "--format=gnu", "-S", "-cf", "-", "-C", folder,
                                    entry["image"], entry["manifest"]], stdout=subprocess.PIPE)
            xz = subprocess.run(["xz", "-6", "-T2"], stdin=tar.stdout, stdout=file, check=False)
            tar.stdout.close()
            if tar.wait() != 0 or xz.returncode != 0:
                raise GuestError(f"could not pack {archive}")
        total += archive.stat().st_size
    (target / "images.json").write_text(json.dumps(index, indent=1) + "\n")
    say(f"kernel judge: {len(index['images'])} archives in {target}, {total / 1e6:.1f} MB")


def unpack(source, target):
    """Unpacks what pack() wrote, unless `target` has just that. Returns the index."""
    index = json.loads((source / "images.json").read_text())
    done = target / "images.json"
    if done.exists() and json.loads(done.read_text()) == index:
        return index
    done.unlink(missing_ok=True)
    for entry in index["images"]:
        archive = source / f"{entry['name']}.tar.xz"
        if not archive.exists():
            raise GuestError(f"{archive} is missing")
        with tarfile.open(archive, "r:xz") as tar:
            for member in tar:
                if member.name in (entry["image"], entry["manifest"]):
                    (target / member.name).unlink(missing_ok=True)
                    tar.extract(member, target)
    done.write_text(json.dumps(index))
    return index


def is_wanted(name, args):
    if args.small and name not in matrix.SMALL:
        return False
    return not args.only or any(fnmatch.fnmatch(name, pattern)
                                for pattern in args.only.split(","))


def select(chosen, args):
    chosen = [image for image in chosen if is_wanted(image.name, args)]
    if not chosen:
        raise GuestError("no image has such a name; there are " +
                         " ".join(image.name for image in matrix.IMAGES + matrix.LONG_IMAGES))
    return tuple(chosen)


def place(args):
    """(folder of the images to judge by, those to be made in it)."""
    if args.use:
        return WORK / "used", ()
    chosen = select(matrix.LONG_IMAGES if args.long else matrix.IMAGES, args)
    whole = chosen == matrix.IMAGES and args.mkfs == "mkfs.f2fs"
    return WORK / ("images" if whole else "images-long" if args.long else "images-some"), chosen


def obtain(folder, chosen, args):
    """The index of `folder`, after making the images or unpacking given ones."""
    if args.use:
        source = pathlib.Path(args.use)
        if not (source / "images.json").exists():
            raise GuestError(f"{source} has no images.json; make it with --make-only {source}")
        return unpack(source, folder)
    index = images.make(chosen, folder, WORK, say, 7200 if args.long else 1500,
                        args.mkfs)
    if folder.name == "images":
        missing = coverage.report(folder, index, say)
        if missing:
            raise GuestError("no image has: " + ", ".join(missing))
    return index


def judge_the_judge():
    """(passed, failed) of compare_test.py: before compare.py's word counts for anything."""
    suite = unittest.defaultTestLoader.loadTestsFromModule(compare_test)
    result = unittest.TextTestRunner(stream=sys.stdout, verbosity=0).run(suite)
    failed = len(result.failures) + len(result.errors)
    return result.testsRun - failed, failed


def judge(folder, index, args):
    """(passed, failed) over all images, and over what the comparison itself must find."""
    chosen = [entry for entry in index["images"]
              if not args.use or is_wanted(entry["name"].partition("+")[0], args)]
    if not chosen:
        raise GuestError("none of the images has such a name")
    passed, failed = judge_the_judge()
    for entry in chosen:
        started = time.monotonic()
        comparison = compare.Comparison(
            compare.Gofs(args.gofs, args.backend), folder / entry["image"],
            folder / entry["manifest"], entry["refused"], entry["unclean"],
            PROBES_MAX.get(args.backend, 0), say)
        comparison.run()
        verdict = "ok  " if comparison.failed == 0 else "FAIL"
        counts = f"{comparison.passed:6} passed {comparison.failed:5} failed"
        say(f"{verdict} {entry['name']:26} {counts}"
            f"  {time.monotonic() - started:5.1f} s  ({comparison.summary()})")
        passed += comparison.passed
        failed += comparison.failed
    return passed, failed


def main():
    parser = argparse.ArgumentParser(
        prog="kernel_judge.sh",
        description="Compare what gofs reads from F2FS images with what the Linux kernel, which "
                    "wrote them, says is there.")
    parser.add_argument("--gofs", default=os.environ.get("GOFS", str(ROOT / "build" / "gofs")),
                        help="the command under test (default: $GOFS, or build/gofs)")
    parser.add_argument("--backend", default="", help="passed on to gofs: cpu or cuda")
    parser.add_argument("--only", default="", metavar="NAME,...", help="these images; * and ? work")
    parser.add_argument("--small", action="store_true", help="a dozen images instead of all")
    parser.add_argument("--long", action="store_true",
                        help="instead a directory of a million entries and volumes above 1 TiB")
    parser.add_argument("--mkfs", default="mkfs.f2fs", metavar="PROGRAM",
                        help="another version's (an old one does not know all of our options)")
    parser.add_argument("--make-only", metavar="DIR",
                        help="make the images and pack them into DIR; compare nothing")
    parser.add_argument("--use", metavar="DIR",
                        help="judge by the images that --make-only left in DIR (no QEMU needed)")
    args = parser.parse_args()
    started = time.monotonic()
    try:
        folder, chosen = place(args)
        with images.only_one(folder):
            index = obtain(folder, chosen, args)
            if args.make_only:
                pack(folder, index, pathlib.Path(args.make_only))
                say(f"kernel judge: {time.monotonic() - started:.0f} s")
                return 0
            passed, failed = judge(folder, index, args)
    except (GuestError, OSError, ValueError, subprocess.SubprocessError) as error:
        print(f"kernel_judge: {error}", file=sys.stderr)
        return 1
    say(f"kernel judge: images of Linux {index['kernel']}, {time.monotonic() - started:.0f} s")
    say(f"{passed} passed, {failed} failed")
    return 0 if failed == 0 and passed > 0 else 1


if __name__ == "__main__":
    sys.exit(main())
