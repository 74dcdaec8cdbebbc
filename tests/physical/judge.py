#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Has GoFS drive an NVMe controller that it did not write, on a kernel with a real IOMMU.

A QEMU guest has the controller; the kernel's nvme driver writes a file system to it, then it is
bound to vfio-pci and driven by our programs, then it is given back and the kernel looks at what is
there. fsck.f2fs looks last, on the host. `N passed, N failed` is the last line.
"""

import argparse
import contextlib
import dataclasses
import hashlib
import os
import pathlib
import random
import shutil
import subprocess
import sys

HERE = pathlib.Path(__file__).resolve().parent
ROOT = HERE.parent.parent
sys.path[:0] = [str(HERE), str(ROOT / "scripts"), str(ROOT / "tests" / "kernel")]
import guest  # noqa: E402
import images  # noqa: E402
import kernel_guest  # noqa: E402
from kernel_guest import EmulatorError, GuestError  # noqa: E402

WORK = ROOT / "build" / "kernel"
IMAGE_BYTES = 256 << 20
STRIPE_CHUNK = 64 << 10
STRIPE_BYTES = 96 << 20  # of each SSD
STRAY = "7ff000000"  # the address that the self-test makes up
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

QTEST = rf"""
reads_qtest() {{
  mount -t f2fs "$(disk_of {guest.QTEST_SSD})" $mnt && (cd $mnt && sha256sum -c /qtest.sums) &&
    umount $mnt
}}
check the_kernel_reads_what_gofs_wrote_over_qtest reads_qtest
"""

STRIPED = rf"""
striped="vfio:{guest.STRIPE[0]}+vfio:{guest.STRIPE[1]}?stripe={STRIPE_CHUNK >> 10}K"
check the_stripes_first_ssd_is_bound bind_to_vfio {guest.STRIPE[0]}
check the_stripes_second_ssd_is_bound bind_to_vfio {guest.STRIPE[1]}
check gofs_writes_to_a_stripe round_trip "$striped" "$striped&depth=16" /striped
check a_stripe_says_that_it_is_one sh -c "/gofs info '$striped' | grep 'ssd  *2 NVMe SSDs'"
check one_ssd_alone_is_no_volume sh -c "! /gofs info vfio:{guest.STRIPE[1]}"
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
check doctor_tries_its_doorbells diagnosed 'doorbells  *yes' 'those who wait'
check doctor_finds_nothing_missing sh -c "/gofs doctor $ssd"
check doctor_counts_huge_pages diagnosed 'huge pages  *no' '64 of 2 MiB are free'
"""

SELF_TEST = rf"""
check the_controller_is_bound_to_vfio to_vfio
/selftest $ssd $peer > /tmp/selftest 2>&1
code=$?
cat /tmp/selftest
grep -E '^(PASS|FAIL) ' /tmp/selftest >> /o/results
check the_self_test_ends test $code -le 1
sleep 0.5
check a_stray_access_is_a_fault_of_the_iommu sh -c \
  "dmesg | grep -E 'DMAR: .*Write.* device \[00:04\.0\].* fault addr (0x)?{STRAY}'"
"""

GOFS = r"""
vol="vfio:$ssd"
in_peer="vfio:$ssd?queues=4&queues=$peer&data=$peer"
make_files() {
  mkdir -p /tmp/in/many
  for i in $(seq 40); do
    dd if=/dev/urandom of=/tmp/in/many/$i bs=$((i * 613)) count=1 2>/dev/null
  done
  dd if=/dev/urandom of=/tmp/in/large bs=64k count=200 2>/dev/null
  : > /tmp/in/empty
  (cd /tmp && find in -type f -exec sha256sum {} + | sort -k 2) > /tmp/in.sums
}
# Whether the volume $1 holds in the directory $2 what was made.
holds() {
  /gofs sum "$1" -r $2 | sed "s|  $2/|  in/|" | sort -k 2 > /tmp/found.sums
  diff /tmp/in.sums /tmp/found.sums
}
# Puts all of it into a new directory, and reads it in another way.
round_trip() { /gofs mkdir "$1" $3 && /gofs put "$1" -r /tmp/in $3 && holds "$2" $3/in; }
comes_back() {
  rm -rf /tmp/back
  /gofs get "$1" -r $2 /tmp/back && diff -r /tmp/in /tmp/back
}
reads_kernel() {
  /gofs sum "$1" /kernel | cut -d' ' -f1 > /tmp/a
  cut -d' ' -f1 /tmp/sum | cmp - /tmp/a
}
make_files
check gofs_reads_what_the_kernel_wrote reads_kernel "$vol"
check gofs_reads_it_with_all_in_a_peers_bar reads_kernel "$in_peer"
check gofs_reads_it_with_a_relay reads_kernel "$vol?doorbell=cpu"
check gofs_writes_through_host_memory round_trip "$vol" "$vol" /host
check gofs_writes_through_a_peers_bar round_trip "$in_peer" "$vol" /peer
check gofs_writes_through_a_relay round_trip "$vol?doorbell=cpu&queues=2&depth=16" "$in_peer" /relay
check gofs_gives_back_what_it_was_given comes_back "$in_peer" /host/in
check gofs_has_its_queues_there sh -c "/gofs info '$in_peer' | grep \"KiB of $peer\""
check gofs_names_the_ssd sh -c "/gofs info $vol | grep 'ssd  *NVMe SSD, $vol'"
check a_namespace_that_is_not_there_is_refused sh -c "! /gofs info $vol/9"
"""


# A user who is not root, with and without what docs/operating.md says that he needs.
USER = r"""
mkdir -p /etc
echo nobody:x:65534:65534::/:/bin/sh > /etc/passwd
group=/dev/vfio/$(basename "$(readlink $pci/iommu_group)")
# With $1 KiB of locked memory, or "unlimited".
as_user() {
  local limit=$1
  shift
  (ulimit -l $limit && su -s /bin/sh nobody -c "$*")
}
# What fails must say $1.
fails_with() {
  local words=$1
  shift
  "$@" > /tmp/refused 2>&1 && return 1
  cat /tmp/refused
  grep -q -e "$words" /tmp/refused
}
diagnosed_to_user() { as_user 64 /gofs doctor $ssd | grep "^$1" | grep -e "$2"; }
chmod 666 /dev/vfio/vfio
check a_user_without_the_group_is_told fails_with "chown USER $group" \
  as_user unlimited /gofs info "$vol"
check doctor_tells_the_user diagnosed_to_user 'VFIO access  *no' "chown USER $group"
chown nobody $group
check a_user_without_locked_memory_is_told fails_with 'now 64 KiB.*ulimit -l unlimited' \
  as_user 64 /gofs info "$vol"
check doctor_tells_the_user_of_locked_memory diagnosed_to_user 'locked memory  *no' '64.0 KiB'
check a_user_with_both_mounts_it as_user unlimited /gofs sum "$vol" /kernel
"""


def gofs_killed(parts):
    """gofs is killed while it writes, after these parts of the time that it takes; each time it had
    put a file there before, and ended."""
    return r"""
now() { cut -d' ' -f1 /proc/uptime; }
put_all() { /gofs mkdir "$1" $2 && /gofs put "$1" -r /tmp/in $2; }
killed_gofs() {
  local i=0 began=$(now) way pause
  put_all "$vol" /killed0 || return 1
  local whole=$(awk "BEGIN { print $(now) - $began }")
  for part in """ + " ".join(f"{part:.3f}" for part in parts) + r"""; do
    i=$((i + 1))
    /gofs put "$vol" /tmp/in/many/$i /done$i || return 1
    case $((i % 3)) in 0) way="$in_peer" ;; *) way="$vol" ;; esac
    pause=$(awk "BEGIN { print $whole * $part }")
    put_all "$way" /killed$i &
    sleep $pause
    # The program, not the shell that waits for it.
    killall -9 gofs && killed=$((killed + 1)) && echo "killed after $pause s of $whole s"
    wait
  done
}
# What ended well is there, whatever was killed afterwards.
done_is_there() {
  local i=0
  for pause in $(seq """ + str(len(parts)) + r"""); do
    i=$((i + 1))
    sum=$(/gofs sum "$vol" /done$i | cut -d' ' -f1)
    [ "$sum" = "$(sha256sum < /tmp/in/many/$i | cut -d' ' -f1)" ] || return 1
  done
  holds "$vol" /host/in && holds "$vol" /peer/in
}
killed=0
check gofs_is_killed_while_it_writes killed_gofs
check most_were_killed_before_they_ended test $((2 * killed)) -ge """ + str(len(parts)) + r"""
check what_was_finished_before_is_there done_is_there
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
mount_again() { mount -t f2fs $disk $mnt; }
check the_kernel_mounts_it mount_again
check the_kernel_finds_its_file_again sha256sum -c /tmp/sum
for place in host peer relay; do
  check the_kernel_finds_what_gofs_wrote_by_$place diff -r /tmp/in $mnt/$place/in
done
finished() {
  for file in $mnt/done*; do cmp $file /tmp/in/many/${file#$mnt/done} || return 1; done
}
check the_kernel_finds_what_was_finished finished
check the_kernel_lets_it_go umount $mnt
"""

END = "dmesg > /o/dmesg.log; true\n"


# ---- before and after the guest ------------------------------------------------------------------


def say(text):
    print(text, flush=True)


def built(program):
    """A program of this folder, of the preset that build/gofs belongs to."""
    preset = (ROOT / "build" / "gofs").resolve().parents[2]
    return str(preset / "tests" / "physical" / program)


def make_image(path, size=IMAGE_BYTES):
    path.unlink(missing_ok=True)
    with open(path, "wb") as file:
        file.truncate(size)
    images.must_run(["mkfs.f2fs", "-q", "-w", "4096", path])


def write_over_qtest(program, folder):
    """An image that GoFS wrote on QEMU's controller without a guest, and the sums of its files."""
    shutil.rmtree(folder, ignore_errors=True)
    run = subprocess.run(
        [program, "--gtest_filter=*files_survive_a_remount_with_lbas_of_512_bytes"],
        env={**os.environ, "GOFS_KEEP_IMAGE": str(folder)}, stdin=subprocess.DEVNULL, text=True,
        stdout=subprocess.PIPE, stderr=subprocess.STDOUT, timeout=300, check=False)
    files = sorted(path for path in folder.glob("data/*") if path.is_file())
    if run.returncode != 0 or not files:
        raise GuestError(f"{program} left no image: {run.stdout[-2000:]}")
    sums = "".join(f"{hashlib.sha256(path.read_bytes()).hexdigest()}  data/{path.name}\n"
                   for path in files)
    return folder / "image", sums.encode()


def deal_out(whole, parts):
    """A volume's image as the SSDs of a stripe have it, chunk after chunk in turn."""
    with open(whole, "rb") as source, contextlib.ExitStack() as stack:
        targets = [stack.enter_context(open(part, "wb")) for part in parts]
        for number in range(len(parts) * STRIPE_BYTES // STRIPE_CHUNK):
            targets[number % len(parts)].write(source.read(STRIPE_CHUNK))


def join(parts, whole):
    with open(whole, "wb") as target, contextlib.ExitStack() as stack:
        sources = [stack.enter_context(open(part, "rb")) for part in parts]
        for number in range(len(parts) * STRIPE_BYTES // STRIPE_CHUNK):
            target.write(sources[number % len(parts)].read(STRIPE_CHUNK))


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


@dataclasses.dataclass
class Disks:
    """The images that the guest's SSDs have, each with a volume."""
    plain: pathlib.Path
    over_qtest: pathlib.Path
    sums: bytes  # of what over_qtest holds, for sha256sum
    whole: pathlib.Path  # what the stripe's parts are of
    parts: list

    @staticmethod
    def make(work, qtest):
        plain, whole = work / "ssd.img", work / "striped.img"
        make_image(plain)
        make_image(whole, 2 * STRIPE_BYTES)
        parts = [work / f"striped{number}.img" for number in range(2)]
        deal_out(whole, parts)
        return Disks(plain, *write_over_qtest(qtest, work / "qtest"), whole, parts)

    def by_address(self):
        return {guest.SSD: (self.plain, 4096), guest.QTEST_SSD: (self.over_qtest, 512),
                **{address: (part, 4096) for address, part in zip(guest.STRIPE, self.parts)}}


def boot(args, kernel, work, out):
    """Makes the disks and boots the guest with them; twice if QEMU crashes."""
    luck = random.Random(args.seed)
    moments = [luck.uniform(0.02, 0.98) for _ in range(args.kills)]
    script = "".join([KERNEL_WRITES, QTEST, DOCTOR, SELF_TEST, DOCTOR_BOUND, KILLED, GOFS, STRIPED,
                      USER, gofs_killed(moments), GIVEN_BACK, END])
    for is_last in (False, True):
        disks = Disks.make(work, args.qtest)
        files = guest.with_libraries(args.selftest, "selftest")
        files.update(guest.with_libraries(args.gofs, "gofs"))
        files["qtest.sums"] = disks.sums
        try:
            return disks, guest.boot(kernel, script, disks.by_address(), files, out, args.timeout)
        except EmulatorError as error:
            if is_last:
                raise
            say(f"physical: {error}\nphysical: once more, with fresh disks")


def judge(args, work, counter):
    kernel = kernel_guest.prepare(WORK / "guest")
    out = work / "guest"
    disks, seconds = boot(args, kernel, work, out)
    counter.read(out / "results")
    if counter.failed:
        say(kernel_guest.tail(out / "script.log", 60))
    dmesg = (out / "dmesg.log").read_text(errors="replace")
    for complaint in images.check_kernel_log(dmesg):
        counter.add(False, "the kernel said: " + complaint)
    faults = [line for line in dmesg.splitlines() if "fault addr" in line and STRAY not in line]
    counter.add(not faults, "the IOMMU had to stop the SSD: " + "; ".join(faults))
    join(disks.parts, disks.whole)
    judged = (disks.plain, disks.over_qtest, disks.whole)
    for one in judged:
        complaints = images.fsck(one)
        counter.add(not complaints, f"fsck.f2fs of {one.name}: " + "; ".join(complaints))
    say(f"physical: kernel {kernel.release}, {seconds:.1f} s from start to power-off")
    if counter.failed == 0:
        for one in (*judged, *disks.parts):
            one.unlink()


def main():
    parser = argparse.ArgumentParser(
        prog="physical_judge.sh",
        description="Drive QEMU's NVMe controller by VFIO, in a guest with an IOMMU.")
    parser.add_argument("--gofs", default=os.environ.get("GOFS", str(ROOT / "build" / "gofs")))
    parser.add_argument("--selftest", default=built("gofs_vfio_selftest"),
                        help="a program for the guest (vfio_selftest.cpp)")
    parser.add_argument("--qtest", default=built("qemu_volume_test"),
                        help="writes a volume on QEMU's controller without a guest")
    parser.add_argument("--kills", type=int, default=8, metavar="N",
                        help="how often gofs is killed while it writes")
    parser.add_argument("--seed", type=int, default=random.randrange(1 << 32))
    parser.add_argument("--timeout", type=int, default=600, metavar="SECONDS")
    args = parser.parse_args()
    counter = Counter()
    say(f"physical: --seed {args.seed}")
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
