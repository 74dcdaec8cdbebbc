#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Lets the Linux kernel recover from crashes of GoFS, and GoFS from crashes of the kernel.

gofs_crash makes images of power cuts in scenarios with fsync; the kernel mounts and unmounts each;
gofs_crash compares what is there then with what was promised, and fsck.f2fs looks at it. Some are
of volumes that were striped over three SSDs when the power failed, joined for the kernel. In the
first guest the kernel writes a volume, syncs some files, and the guest ends: gofs must recover
these files.
`N passed, N failed` is the last line.
"""

import argparse
import os
import pathlib
import re
import shlex
import shutil
import subprocess
import sys

import compare
import images
import kernel_guest
from kernel_guest import GuestError

HERE = pathlib.Path(__file__).resolve().parent
ROOT = HERE.parent.parent
WORK = ROOT / "build" / "kernel"
KERNEL_VOLUME_BYTES = 128 << 20
KERNEL_VOLUME = "kernel"
# Scenarios, and cuts of each. The long run has all scenarios with fsync.
SHORT = (("fsync_create", "fsync_overwrite", "fsync_holes", "fsync_truncate_node_levels",
          "fsync_inline_data", "fsync_reserve", "fsync_recreate", "fsync_small_xattrs",
          "fsync_large_xattrs", "fsync_right_after_the_mount", "fdatasync", "rename_then_fsync",
          "fsync_names_that_are_durable"), 2)
LONG_CUTS = 8
# Of the scenarios, one in so many again on a striped volume.
STRIPED_EVERY = 3
STRIPED = ["--disks", "3", "--chunk", "8192"]
# One of the two checkpoints may not be there yet, or be half written.
KERNEL_HARMLESS = re.compile(r"recover|invalid crc|checkpoint: version")

# The kernel's own crash: what is synced is listed with its SHA-256 before the guest ends, mounted.
KERNEL_CRASH = f"""
mkdir -p /mnt/crash
mount -t f2fs /disk/{KERNEL_VOLUME} /mnt/crash
cd /mnt/crash
random() {{
  dd if=/dev/urandom of=$1 bs=$2 count=$3 seek=${{4:-0}} conv=notrunc$5 2>/dev/null
}}
for i in $(seq 10); do random old$i 3000 $((i * i)); done
mkdir dir
random open 4096 4
sync
for i in $(seq 5); do mv old$i dir/moved$i; random dir/moved$i 10 2 5 ,fsync; done
for i in 6 7 8 9 10; do random old$i 1000 3 $((i * 2)) ,fsync; done
for i in $(seq 30); do random new$i 700 $((i * i / 4)) 0 ,fsync; done
for i in $(seq 5); do random dir/new$i 4096 5 $((i * i * 50)) ,fsync; done
for i in 6 7 8; do truncate -s $((i * 1000)) old$i; random old$i 10 1 1 ,fsync; done
random old10 4096 900 700 ,fsync
sha256sum old[6-9] old10 new* dir/new* dir/moved* > /o/synced
for i in $(seq 5); do random lost$i 4096 5; random old1$i 1 1; done
cd /
"""


def say(text):
    print(text, flush=True)


def recover(folder):
    """All images in the folder, mounted and unmounted by the kernel; each guest takes some.

    Where the kernel's own volume is there, the first guest crashes with it mounted.
    """
    kernel = kernel_guest.prepare(WORK / "guest")
    rest = sorted(path for path in folder.glob("*.img") if path.stem != KERNEL_VOLUME)
    first = (folder / (KERNEL_VOLUME + ".img")).exists()
    while rest:
        some, rest = rest[:kernel_guest.MAX_DISKS - 1], rest[kernel_guest.MAX_DISKS - 1:]
        disks = [(str(i), path) for i, path in enumerate(some)]
        script = "set -e\nmkdir /mnt/image\n"
        for serial, path in disks:
            script += (f"echo {path.stem}\nmount -t f2fs /disk/{serial} /mnt/image\n"
                       "umount /mnt/image\n")
        if first:
            script += KERNEL_CRASH
            disks.append((KERNEL_VOLUME, folder / (KERNEL_VOLUME + ".img")))
        out = folder / ("guest" if first else "guest-more")
        seconds = kernel_guest.boot(kernel, script, disks, {}, out, timeout_s=600)
        say(f"  {len(some)} images recovered by the kernel, {seconds:.1f} s in the guest")
        log = (out / "dmesg").read_text(errors="replace")
        wrong = [line for line in images.check_kernel_log(log) if not KERNEL_HARMLESS.search(line)]
        if wrong:
            raise GuestError("the kernel says: " + "; ".join(wrong[:5]))
        first = False


def recover_cuts(gofs_crash, names, options, folder):
    """Cuts of these scenarios, which the kernel recovers in `folder`: (passed, failed)."""
    command = [*gofs_crash, *options, "--images", folder,
               "--recovered-by", f"'{sys.executable}' '{__file__}' --recover"]
    for name in names:
        command += ["--scenario", name]
    result = subprocess.run([str(word) for word in command], stdin=subprocess.DEVNULL,
                            stdout=subprocess.PIPE, timeout=3600, check=False)
    print(result.stdout.decode(errors="replace"), end="", flush=True)
    said = re.search(rb"(\d+) images recovered, (\d+) of them wrong", result.stdout)
    if not said:
        raise GuestError(f"gofs_crash ended with {result.returncode}")
    return int(said[1]) - int(said[2]), int(said[2])


def check_kernel_volume(gofs, folder):
    """What gofs recovers of what the kernel had synced: (passed, failed)."""
    image = folder / (KERNEL_VOLUME + ".img")
    synced = dict(reversed(line.split("  ", 1))
                  for line in (folder / "guest" / "synced").read_text().splitlines())
    before = gofs.must("sum", str(image), "-r").out.decode()
    gofs.must("mkdir", str(image), "/after")
    after = gofs.must("sum", str(image), "-r").out.decode()
    found = dict(reversed(line.split("  ", 1)) for line in after.splitlines())
    wrong = [name for name, digest in synced.items() if found.get("/" + name) != digest]
    for name in wrong:
        say(f"  {name}: {found.get('/' + name, 'not there')}, synced as {synced[name]}")
    complaints = images.fsck(image)
    for complaint in complaints:
        say(f"  fsck.f2fs: {complaint}")
    # Or else this proves nothing.
    if "/new1\n" in before:
        say("  the kernel had written a checkpoint")
        complaints.append("")
    say(f"  {len(synced)} files that the kernel had synced, {len(wrong)} of them wrong")
    return len(synced) - len(wrong) + 1 - bool(complaints), len(wrong) + bool(complaints)


def main():
    parser = argparse.ArgumentParser(
        prog="kernel_crashes.sh",
        description="Let the Linux kernel recover crashes of gofs, and the other way round.")
    parser.add_argument("--gofs", default=os.environ.get("GOFS", str(ROOT / "build" / "gofs")))
    parser.add_argument("--gofs-crash", default=str(ROOT / "build/cpu/tests/judges/gofs_crash"))
    parser.add_argument("--long", action="store_true", help="all scenarios with fsync")
    parser.add_argument("--seed", default="1")
    parser.add_argument("--recover", type=pathlib.Path, help=argparse.SUPPRESS)
    args = parser.parse_args()
    try:
        if args.recover:
            recover(args.recover)
            return 0
        kernel_guest.require_tools({**kernel_guest.TOOLS, **images.TOOLS})
        work = WORK / "crashes"
        with images.only_one(work):
            for old in work.glob("*.img"):
                old.unlink()
            for old in ("guest", "guest-more", "striped"):
                shutil.rmtree(work / old, ignore_errors=True)
            (work / "striped").mkdir()
            with open(work / (KERNEL_VOLUME + ".img"), "wb") as file:
                file.truncate(KERNEL_VOLUME_BYTES)
            images.must_run(["mkfs.f2fs", "-q", work / (KERNEL_VOLUME + ".img")])
            gofs_crash = shlex.split(args.gofs_crash)
            names, cuts = SHORT
            if args.long:
                listed = images.must_run([*gofs_crash, "--list"]).decode().split()
                names, cuts = [name for name in listed if "sync" in name], LONG_CUTS
            options = ["--cuts", str(cuts), "--seed", args.seed]
            results = [
                recover_cuts(gofs_crash, names, options, work),
                recover_cuts(gofs_crash, names[::STRIPED_EVERY], options + STRIPED,
                             work / "striped"),
                check_kernel_volume(compare.Gofs(args.gofs), work),
            ]
            passed, failed = (sum(counts) for counts in zip(*results))
            if failed == 0:
                for image in work.rglob("*.img"):
                    image.unlink()
    except (GuestError, compare.ProtocolError, OSError, ValueError,
            subprocess.SubprocessError) as error:
        print(f"kernel_crashes: {error}", file=sys.stderr)
        return 1
    say(f"{passed} passed, {failed} failed")
    return 0 if failed == 0 and passed > 0 else 1


if __name__ == "__main__":
    sys.exit(main())
