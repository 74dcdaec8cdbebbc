#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Lets GoFS and the Linux kernel write one volume in turns.

Each round: gofs changes the volume (put, mkdir, ln, mv, rm, truncate, chmod, chown, touch), and
fsck.f2fs looks at it; the kernel mounts it, writes down all that it finds, changes it in its own
way and unmounts; fsck.f2fs looks again. What the kernel found must be what gofs was given and what
gofs reads; what it left must be what gofs then reads. `N passed, N failed` is the last line.

With --disks the volume lies on several: an md array of RAID level 0 that gofs makes and the kernel
assembles, with mdadm's opinion of its superblocks. With --mdadm it is mdadm, in a guest of its own,
that makes the array, and gofs only the volume on it.
"""

import argparse
import hashlib
import os
import pathlib
import random
import re
import shutil
import socket
import stat
import struct
import subprocess
import sys
import time

import compare
import images
import kernel_guest
from kernel_guest import GuestError

HERE = pathlib.Path(__file__).resolve().parent
ROOT = HERE.parent.parent
WORK = ROOT / "build" / "kernel"
VOLUME_BYTES = 256 << 20
CHUNK_BYTES = 64 << 10
WHOLE_MAX = 64 << 20  # the kernel hashes files up to this size
SIZES = (0, 1, 700, 3400, 3500, 4095, 4096, 4097, 9000, 40_000, 100_000, 1_000_000)

TYPES = {stat.S_IFREG: "regular", stat.S_IFDIR: "directory", stat.S_IFLNK: "symlink",
         stat.S_IFCHR: "character", stat.S_IFBLK: "block", stat.S_IFIFO: "fifo",
         stat.S_IFSOCK: "socket"}

# What the kernel does to the volume in a round; $mnt is its root, $round the round's number.
CHANGES = r"""
cd $mnt
rm -r tree$round/d1
rm tree$round/many/n1*
mv tree$round/d2 tree$round/moved
mv tree$round/size9000 tree$round/many/size9000
mv tree$round/size4096 tree$round/size4097
mkdir -p kernel$round/a/b/c
for i in $(seq 150); do echo $i > kernel$round/a/file$i; done
cp -r tree$round/moved kernel$round/copied
dd if=/dev/urandom of=kernel$round/large bs=64k count=40 2>/dev/null
dd if=/dev/urandom of=tree$round/size100000 bs=1k seek=90 count=40 conv=notrunc 2>/dev/null
for i in 1 2 3; do echo appended >> tree$round/size700; done
echo more than an inode has room for: $(seq 2000) >> tree$round/size3400
truncate -s 5000 tree$round/size40000
truncate -s 7000000 tree$round/size1
ln tree$round/size4095 kernel$round/hard
ln -s ../../nowhere kernel$round/a/soft
mkfifo kernel$round/fifo
mknod kernel$round/node c 10 200
chmod 4750 tree$round/size0
chown 12:34 tree$round/size3500
touch -d '2001-02-03 04:05:06' tree$round/size1
cd /
"""


def say(text):
    print(text, flush=True)


class Counter:
    def __init__(self):
        self.passed = self.failed = 0

    def check(self, name, difference):
        if not difference:
            self.passed += 1
            return
        self.failed += 1
        if self.failed <= 40:
            say(f"  {name}: {difference}")


# ---- what gofs is given --------------------------------------------------------------------------


def make_tree(top, seed):
    """A tree with everything that gofs can make."""
    luck = random.Random(seed)
    top.mkdir(parents=True)
    for size in SIZES:
        (top / f"size{size}").write_bytes(luck.randbytes(size))
    with open(top / "sparse", "wb") as file:
        for block in (0, 7, 900, 2000, 3000):
            file.seek(block * 4096 + 13)
            file.write(luck.randbytes(5000))
        file.truncate(20 << 20)
    for name in ("many", "d1", "d2", "d3", "d4", "empty"):
        (top / name).mkdir()
    for i in range(400):
        (top / "many" / f"n{i}").write_bytes(luck.randbytes(i))
    for folder in ("d1", "d2", "d3", "d4"):
        deep = top / folder
        for i in range(12):
            deep = deep / f"level{i}"
            deep.mkdir()
            (deep / "file").write_bytes(luck.randbytes(300 * i))
    odd = os.fsencode(top) + b"/odd \xff\x01 name"
    with open(odd, "wb") as file:
        file.write(b"odd")
    (top / ("l" * 255)).write_bytes(b"long")
    os.symlink("size700", top / "soft")
    os.symlink("t" * 3000, top / "soft-long")
    os.link(top / "size9000", top / "many" / "hard")
    os.link(top / "soft", top / "soft-hard", follow_symlinks=False)
    os.mkfifo(top / "fifo", 0o640)
    with socket.socket(socket.AF_UNIX) as end:
        before = os.getcwd()
        os.chdir(top)  # such a path may not be long
        end.bind("socket")
        os.chdir(before)
    if os.geteuid() == 0:
        os.mknod(top / "block", stat.S_IFBLK | 0o600, os.makedev(259, 70_000))
        os.mknod(top / "character", stat.S_IFCHR | 0o666, os.makedev(1, 3))
    try:
        for i in range(12):
            os.setxattr(top / "size4096", f"user.number{i}", luck.randbytes(20 * i))
            os.setxattr(top / "many", f"user.n{i}", b"")
    except OSError:
        say("  (without extended attributes: this file system has none)")
    os.chmod(top / "size0", 0o6755)
    os.chmod(top / "d2", 0o1777)
    os.chmod(top / "size4097", 0)
    for i, name in enumerate(("size1", "many", "empty")):
        os.utime(top / name, ns=(1_111_111_111_000_000_001 + i, 1_222_222_222_999_999_999))


class Volume:
    """The volume, and the host's tree of what gofs has put into it."""

    def __init__(self, gofs, backend, work, disks, kernel=None):
        """`kernel`: in whose guest mdadm makes the array; None: gofs makes it."""
        self.gofs = compare.Gofs(gofs, backend)
        self.host = work / "host"
        self.whole = work / "volume.img"  # as fsck.f2fs wants it
        if disks == 1:
            self.disks = [self.whole]
            with open(self.whole, "wb") as file:
                file.truncate(VOLUME_BYTES)
            images.must_run(["mkfs.f2fs", "-q", self.whole])
            return
        self.disks = [work / f"disk{i}.img" for i in range(disks)]
        for disk in self.disks:
            disk.unlink(missing_ok=True)
        if kernel is None:
            self.gofs.must("mkfs", f"{self.spec()}?stripe={CHUNK_BYTES}", "--size",
                           str(VOLUME_BYTES))
        else:
            for disk in self.disks:
                with open(disk, "wb") as file:
                    file.truncate(VOLUME_BYTES // disks + (8 << 20))
            make_array(kernel, self.disks, work / "guest")
            self.gofs.must("mkfs", self.spec())
        # Where the volume lies on each disk, as the superblock says in sectors.
        with open(self.disks[0], "rb") as file:
            file.seek(4096 + 128)
            start, sectors = struct.unpack("<QQ", file.read(16))
        self.start = start * 512
        self.chunks = sectors * 512 // CHUNK_BYTES

    def spec(self):
        return "+".join(str(disk) for disk in self.disks)

    def copied(self, work):
        """The name of a copy of it."""
        copies = [work / f"before{i}.img" for i in range(len(self.disks))]
        for disk, copy in zip(self.disks, copies):
            images.sparse_copy(disk, copy)
        return "+".join(str(copy) for copy in copies)

    def gather(self):
        """The volume in one file."""
        if len(self.disks) == 1:
            return self.whole
        with open(self.whole, "wb") as whole:
            parts = [open(disk, "rb") for disk in self.disks]
            for part in parts:
                part.seek(self.start)
            for _ in range(self.chunks):
                for part in parts:
                    whole.write(part.read(CHUNK_BYTES))
            for part in parts:
                part.close()
        return self.whole

    def check_superblocks(self, counter):
        """mdadm's opinion, where the volume is an array."""
        for number, disk in enumerate(self.disks if len(self.disks) > 1 else ()):
            said = images.must_run(["mdadm", "--examine", disk]).decode()
            for word in ("Version : 1.2", "Raid Level : raid0", "State : clean", "- correct",
                         f"Raid Devices : {len(self.disks)}", f"Active device {number}",
                         f"Chunk Size : {CHUNK_BYTES >> 10}K"):
                counter.check(f"mdadm --examine {disk.name}", "" if word in said else
                              f"it does not say '{word}': {said}")

    def do(self, command, *words):
        self.gofs.must(command, self.spec(), *[str(word) for word in words])

    def write(self, number):
        """A new tree, and changes of it by each of gofs's commands."""
        name = f"tree{number}"
        top = self.host / name
        make_tree(top, number)
        self.do("put", top, "/", "-r")
        self.do("mkdir", "-p", "-m", "750", f"/{name}/made/by/gofs")
        (top / "made/by/gofs").mkdir(parents=True)
        for folder in ("made", "made/by", "made/by/gofs"):
            os.chmod(top / folder, 0o750 if folder.endswith("gofs") else 0o755)
        self.do("ln", f"/{name}/size4097", f"/{name}/made/hard")
        os.link(top / "size4097", top / "made/hard")
        self.do("ln", "-s", "over there", f"/{name}/made/soft")
        os.symlink("over there", top / "made/soft")
        for file, size in (("size1000000", 123_456), ("sparse", 3_000_000), ("size3500", 9_999_999),
                           ("many/n300", 10)):
            self.do("truncate", f"/{name}/{file}", size)
            os.truncate(top / file, size)
        self.do("rm", "-r", f"/{name}/d3")
        shutil.rmtree(top / "d3")
        for old, new in (("d4", "made/d4"), ("many/n8", "many/n9"), ("soft-long", "made/by/soft")):
            self.do("mv", f"/{name}/{old}", f"/{name}/{new}")
            os.rename(top / old, top / new)
        self.do("chmod", "4711", f"/{name}/many/n5")
        os.chmod(top / "many/n5", 0o4711)
        if os.geteuid() == 0:
            self.do("chown", "77:88", f"/{name}/many/n6")
            os.chown(top / "many/n6", 77, 88)
        self.do("touch", "-t", "1234567890.5", f"/{name}/many/n7")
        os.utime(top / "many/n7", ns=(1_234_567_890_500_000_000,) * 2)

    def write_what_the_kernel_made(self, number):
        """Files that the kernel wrote in the round before."""
        made = f"/kernel{number}"
        self.do("truncate", f"{made}/large", 100_000)
        self.do("truncate", f"{made}/a/file7", 50_000)
        self.do("chmod", "600", f"{made}/a/file8")
        self.do("ln", f"{made}/a/file9", f"{made}/a/b/ninth")
        self.do("put", self.host / f"tree{number}" / "size100000", f"{made}/a/file10")
        self.do("put", self.host / f"tree{number}" / "many", f"{made}/a/b", "-r")
        self.do("mkdir", f"/tree{number}/moved/new")
        self.do("mv", f"{made}/copied", f"/tree{number}/moved/copied")
        self.do("rm", f"{made}/hard", f"{made}/a/file11", f"{made}/fifo")
        self.do("rm", "-r", f"/tree{number}/many")


def make_array(kernel, disks, out):
    """Has mdadm make an array of the disks, in a guest."""
    program = pathlib.Path("/usr/sbin/mdadm")
    files = {"usr/sbin/mdadm": program.read_bytes()}
    for path in re.findall(r"/\S+", images.must_run(["ldd", program]).decode()):
        files[path.lstrip("/")] = pathlib.Path(path).read_bytes()
    names = [f"disk{i}" for i in range(len(disks))]
    script = f"""
set -e
chmod 755 /usr/sbin/mdadm
mkdir -p /run/mdadm
chmod 755 $(find / -name 'ld-linux*' -type f)
export MDADM_NO_UDEV=1
mknod /dev/md0 b 9 0 2>/dev/null || true
/usr/sbin/mdadm --create /dev/md0 --run --level=0 --metadata=1.2 --chunk={CHUNK_BYTES >> 10} \
  --raid-devices={len(disks)} {" ".join("/disk/" + name for name in names)}
/usr/sbin/mdadm --stop /dev/md0
"""
    kernel_guest.boot(kernel, script, list(zip(names, disks)), files, out)


def describe(path):
    """What the kernel should say of it, as far as gofs was told."""
    status = os.lstat(path)
    said = {"type": TYPES[stat.S_IFMT(status.st_mode)], "mode": stat.S_IMODE(status.st_mode),
            "nlink": status.st_nlink}
    if os.geteuid() == 0:
        said |= {"uid": status.st_uid, "gid": status.st_gid}
    if stat.S_ISLNK(status.st_mode):
        said["target_hex"] = os.fsencode(os.readlink(path)).hex()
    if stat.S_ISREG(status.st_mode):
        with open(path, "rb") as file:
            digest = hashlib.sha256(file.read()).hexdigest()
        said |= {"size": status.st_size, "sha256": digest}
    if stat.S_ISBLK(status.st_mode) or stat.S_ISCHR(status.st_mode):
        said["rdev"] = [os.major(status.st_rdev), os.minor(status.st_rdev)]
    try:
        names = sorted(os.fsencode(name) for name in os.listxattr(path, follow_symlinks=False)
                       if name.startswith("user."))
        said["xattrs"] = [[name.hex(), os.getxattr(path, name, follow_symlinks=False).hex()]
                          for name in names]
    except OSError:
        said["xattrs"] = []
    return said


def check_given(counter, host, name, manifest):
    """The tree `name` of the host against what the kernel found."""
    _, objects = compare.read_manifest(manifest)
    wanted = {}
    top = os.fsencode(host / name)
    for folder, folders, files in os.walk(top):
        for entry in [b"."] + folders + files:
            path = os.path.normpath(os.path.join(folder, entry))
            wanted[b"/" + os.path.relpath(path, os.fsencode(host))] = describe(path)
    for path, said in wanted.items():
        found = objects.get(path)
        if found is None:
            counter.check(compare.show(path), "gofs was given it, the kernel does not find it")
            continue
        wrong = [f"{field} {found.get(field, [])}, given {value}" for field, value in said.items()
                 if found.get(field, []) != value]
        counter.check(compare.show(path), "; ".join(wrong)[:300])
    for path in objects:
        if path.startswith(f"/{name}/".encode()) and path not in wanted:
            counter.check(compare.show(path), "the kernel finds it, nobody made it")
    # Times of a few that were set and not changed after.
    for inside in ("many/n7", "size1", "empty"):
        status = os.lstat(host / name / inside)
        path = f"/{name}/{inside}".encode()
        given = list(divmod(status.st_mtime_ns, 1_000_000_000))
        counter.check(f"{inside} (mtime)", "" if objects[path]["mtime"] == given else
                      f"{objects[path]['mtime']}, given {given}")


# ---- the rounds ----------------------------------------------------------------------------------


def guest_script(number, disks):
    assemble = "disk=/disk/volume0\n"
    if disks > 1:
        members = " ".join(f"/disk/volume{i}" for i in reversed(range(disks)))
        assemble = f"disk=/dev/md0\n/judge assemble $disk {members}\n"
    return images.PRELUDE + f"""
set -e
{assemble}
mnt=/mnt/volume round={number}
mkdir -p $mnt
mount_it ro,noatime
/judge manifest $mnt /o/found {WHOLE_MAX}
umount $mnt
mount_it rw
{CHANGES}
mkdir $mnt/kernel{number}/churned
mnt=$mnt/kernel{number}/churned scene churn {number} 150
umount $mnt
mount_it ro,noatime
/judge manifest $mnt /o/left {WHOLE_MAX}
umount $mnt
"""


def compare_whole(counter, what, volume, image, manifest):
    comparison = compare.Comparison(volume.gofs, image, manifest, say=say)
    comparison.run()
    say(f"  {what}: {comparison.passed} passed, {comparison.failed} failed")
    counter.passed += comparison.passed
    counter.failed += comparison.failed


def check_fsck(counter, who, volume):
    counter.check(f"fsck.f2fs after {who}", "; ".join(images.fsck(volume.gather()))[:500])


def play(number, volume, kernel, program, work, counter):
    started = time.monotonic()
    say(f"round {number}")
    if number > 1:
        volume.write_what_the_kernel_made(number - 1)
    volume.write(number)
    check_fsck(counter, "gofs", volume)
    before = volume.copied(work)
    out = work / "guest"
    disks = [(f"volume{i}", disk) for i, disk in enumerate(volume.disks)]
    seconds = kernel_guest.boot(kernel, guest_script(number, len(disks)), disks,
                                {"judge": program.read_bytes()}, out, timeout_s=400)
    for line in images.check_kernel_log((out / "dmesg").read_text(errors="replace")):
        counter.check("the kernel's log", line)
    check_given(counter, volume.host, f"tree{number}", out / "found")
    compare_whole(counter, "what gofs wrote, as the kernel finds it", volume, before, out / "found")
    check_fsck(counter, "the kernel", volume)
    compare_whole(counter, "what the kernel left, as gofs reads it", volume, volume.spec(),
                  out / "left")
    say(f"  {time.monotonic() - started:.1f} s, {seconds:.1f} of them in the guest")


def main():
    parser = argparse.ArgumentParser(
        prog="kernel_rounds.sh",
        description="Let gofs and the Linux kernel write one volume in turns.")
    parser.add_argument("--gofs", default=os.environ.get("GOFS", str(ROOT / "build" / "gofs")),
                        help="the command under test (default: $GOFS, or build/gofs)")
    parser.add_argument("--backend", default="", help="passed on to gofs: cpu or cuda")
    parser.add_argument("--rounds", type=int, default=2)
    parser.add_argument("--disks", type=int, default=1, help="that the volume is striped over")
    parser.add_argument("--mdadm", action="store_true", help="makes the array")
    args = parser.parse_args()
    counter = Counter()
    work = WORK / "rounds"
    try:
        kernel_guest.require_tools({**kernel_guest.TOOLS, **images.TOOLS})
        with images.only_one(WORK):
            kernel = kernel_guest.prepare(WORK / "guest")
            program = images.build_guest_program(WORK)
        with images.only_one(work):
            for old in ("host", "guest"):
                shutil.rmtree(work / old, ignore_errors=True)
            volume = Volume(args.gofs, args.backend, work, args.disks,
                            kernel if args.mdadm else None)
            volume.check_superblocks(counter)
            for number in range(1, args.rounds + 1):
                play(number, volume, kernel, program, work, counter)
    except (GuestError, compare.ProtocolError, OSError, ValueError,
            subprocess.SubprocessError) as error:
        print(f"kernel_rounds: {error}", file=sys.stderr)
        return 1
    say(f"{counter.passed} passed, {counter.failed} failed")
    return 0 if counter.failed == 0 and counter.passed > 0 else 1


if __name__ == "__main__":
    sys.exit(main())
