#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Has GoFS drive an NVMe controller that it did not write, on a kernel with a real IOMMU.

A QEMU guest has the controller; the kernel's nvme driver writes a file system to it, then it is
bound to vfio-pci and driven by our programs, then it is given back and the kernel looks at what is
there. fsck.f2fs looks last, on the host. `N passed, N failed` is the last line.
"""

import argparse
import os
import pathlib
import subprocess
import sys

HERE = pathlib.Path(__file__).resolve().parent
ROOT = HERE.parent.parent
sys.path[:0] = [str(HERE), str(ROOT / "scripts"), str(ROOT / "tests" / "kernel")]
import guest  # noqa: E402
import images  # noqa: E402
import kernel_guest  # noqa: E402
from kernel_guest import GuestError  # noqa: E402

WORK = ROOT / "build" / "kernel"
IMAGE_BYTES = 256 << 20
TOOLS = {"mkfs.f2fs": "f2fs-tools", "fsck.f2fs": "f2fs-tools", "ldd": "libc-bin"}

# ---- the steps, each a part of the script that the guest runs ------------------------------------

KERNEL_WRITES = r"""
kernel_writes() {
  [ "$(driver)" = nvme ] && appears $disk && mount -t f2fs $disk $mnt &&
    dd if=/dev/urandom of=$mnt/kernel bs=64k count=40 && sha256sum $mnt/kernel > /tmp/sum &&
    umount $mnt
}
check the_kernel_writes_a_file kernel_writes
"""

DOCTOR = r"""
# Says so of the SSD: a line of `gofs doctor` that begins with $1 and has $2 in it.
diagnosed() { /gofs doctor $ssd | tee /tmp/doctor | grep "^$1" | grep -e "$2" || {
  cat /tmp/doctor; false; } }
mount -t f2fs $disk $mnt
check doctor_leaves_a_mounted_disk_to_linux diagnosed 'vfio-pci  *no' 'in use'
umount $mnt
check doctor_says_how_to_bind_it diagnosed 'vfio-pci  *no' 'drivers_probe'
"""

DOCTOR_BOUND = r"""
check doctor_asks_the_controller diagnosed 'controller  *yes' ' 16 I/O queues'
check doctor_asks_the_namespace diagnosed 'namespace  *yes  *256.0 MiB' '4096 (in use)'
check doctor_finds_nothing_missing sh -c "/gofs doctor $ssd"
check doctor_counts_huge_pages diagnosed 'huge pages  *no' '64 of 2 MiB are free'
"""

SELF_TEST = r"""
check the_controller_is_bound_to_vfio to_vfio
/selftest $ssd $peer > /tmp/selftest 2>&1
code=$?
cat /tmp/selftest
grep -E '^(PASS|FAIL) ' /tmp/selftest >> /o/results
check the_self_test_ends test $code -le 1
# 0x7ff000000 is the address that one of the tests makes up.
sleep 0.5
check a_stray_access_is_a_fault_of_the_iommu sh -c \
  "dmesg | grep -E 'DMAR: .*Write.* device \[00:04\.0\].* fault addr (0x)?7ff000000'"
"""

KILLED = r"""
killed() {
  for pause in 0.3 0.7 1.1 1.7 2.3; do
    /selftest $ssd $peer > /tmp/killed 2>&1 &
    sleep $pause
    kill -9 $!
    wait $!
    grep FAIL /tmp/killed && return 1
  done
  /selftest $ssd $peer
}
check a_process_that_is_killed_leaves_the_ssd_usable killed
"""

GIVEN_BACK = r"""
check the_controller_is_given_back to_nvme
kernel_reads() {
  mount -t f2fs $disk $mnt && sha256sum -c /tmp/sum && umount $mnt
}
check the_kernel_finds_its_file_again kernel_reads
"""

END = "dmesg > /o/dmesg.log; true\n"


# ---- before and after the guest ------------------------------------------------------------------


def say(text):
    print(text, flush=True)


def make_image(path):
    path.unlink(missing_ok=True)
    with open(path, "wb") as file:
        file.truncate(IMAGE_BYTES)
    images.must_run(["mkfs.f2fs", "-q", "-w", "4096", path])


class Counter:
    def __init__(self):
        self.passed = self.failed = 0

    def add(self, passed, text):
        if passed:
            self.passed += 1
        else:
            self.failed += 1
            say("  " + text)

    def read(self, results):
        """Lines that start with PASS or FAIL."""
        lines = results.read_text(errors="replace").splitlines() if results.exists() else []
        for line in lines:
            self.add(line.startswith("PASS "), line)
        if not lines:
            self.add(False, "the guest left no results")


def judge(args, work, counter):
    kernel = kernel_guest.prepare(WORK / "guest")
    image = work / "ssd.img"
    make_image(image)
    files = guest.with_libraries(args.selftest, "selftest")
    files.update(guest.with_libraries(args.gofs, "gofs"))
    script = "".join([KERNEL_WRITES, DOCTOR, SELF_TEST, DOCTOR_BOUND, KILLED, GIVEN_BACK, END])
    out = work / "guest"
    seconds = guest.boot(kernel, script, image, files, out, args.timeout)
    counter.read(out / "results")
    if counter.failed:
        say(kernel_guest.tail(out / "script.log", 60))
    for complaint in images.check_kernel_log((out / "dmesg.log").read_text(errors="replace")):
        counter.add(False, "the kernel said: " + complaint)
    complaints = images.fsck(image)
    counter.add(not complaints, "fsck.f2fs: " + "; ".join(complaints))
    say(f"physical: kernel {kernel.release}, {seconds:.1f} s from start to power-off")
    if counter.failed == 0:
        image.unlink()


def main():
    parser = argparse.ArgumentParser(
        prog="physical_judge.sh",
        description="Drive QEMU's NVMe controller by VFIO, in a guest with an IOMMU.")
    parser.add_argument("--gofs", default=os.environ.get("GOFS", str(ROOT / "build" / "gofs")))
    parser.add_argument("--selftest", default=os.environ.get(
        "GOFS_SELFTEST", str(ROOT / "build/cpu/tests/physical/gofs_vfio_selftest")))
    parser.add_argument("--timeout", type=int, default=600, metavar="SECONDS")
    args = parser.parse_args()
    counter = Counter()
    try:
        kernel_guest.require_tools({**kernel_guest.TOOLS, **TOOLS})
        work = WORK / "physical"
        with images.only_one(work):
            judge(args, work, counter)
    except (GuestError, OSError, subprocess.SubprocessError) as error:
        print(f"physical: {error}", file=sys.stderr)
        return 1
    say(f"{counter.passed} passed, {counter.failed} failed")
    return 0 if counter.failed == 0 and counter.passed > 0 else 1


if __name__ == "__main__":
    sys.exit(main())
