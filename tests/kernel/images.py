# SPDX-License-Identifier: Apache-2.0
"""Makes the images of matrix.py with the kernel's help, and keeps them until a source changes.

For each there are NAME.img and NAME.manifest (what the kernel said, one JSON object a line; see
guest/manifest.h) in one folder, together with `images.json`, which says what is there and how it
was made. fsck.f2fs must find nothing wrong with any of them, or the images are not taken.
"""

import contextlib
import fcntl
import hashlib
import json
import pathlib
import re
import shutil
import struct
import subprocess
import sys
import time
import zlib

HERE = pathlib.Path(__file__).resolve().parent
ROOT = HERE.parent.parent
sys.path[:0] = [str(ROOT / "scripts"), str(HERE)]
import coverage  # noqa: E402
import kernel_guest  # noqa: E402
from kernel_guest import GuestError  # noqa: E402

BLOCK = 4096
TOOLS = {"mkfs.f2fs": "f2fs-tools", "fsck.f2fs": "f2fs-tools", "g++": "g++"}
FSCK_COMPLAINT = re.compile(
    rb"\[ASSERT\]|\[FIX\]|\[Fail\]|Invalid|Error|Wrong|unreachable|Mismatch", re.IGNORECASE)
# Lines of a clean run that match all the same.
FSCK_HARMLESS = re.compile(rb"\[Ok\.\.\]|Info: |Unreachable nat entries +\[Ok")
# What the kernel may say about these volumes; anything else with F2FS in it is an error.
KERNEL_HARMLESS = re.compile(
    r"Found nat_bits in checkpoint|Mounted with checkpoint version|Using encoding defined|"
    r"recover fsync data on readonly fs|recovery fsync data, check_only: 0")


@contextlib.contextmanager
def only_one(folder):
    """Two runs would overwrite each other's files in `folder`: the second one waits."""
    folder.mkdir(parents=True, exist_ok=True)
    with open(folder / "lock", "w", encoding="ascii") as file:
        deadline = time.monotonic() + 3600
        while True:
            try:
                fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
                break
            except BlockingIOError:
                if time.monotonic() > deadline:
                    raise GuestError(f"another run has held {file.name} for an hour") from None
                time.sleep(1)
        yield


def run(command, timeout_s=600):
    result = subprocess.run([str(word) for word in command], stdin=subprocess.DEVNULL,
                            stdout=subprocess.PIPE, stderr=subprocess.STDOUT, timeout=timeout_s,
                            check=False)
    return result.returncode, result.stdout


def must_run(command, timeout_s=600):
    code, output = run(command, timeout_s)
    if code != 0:
        raise GuestError(" ".join(str(word) for word in command) + f" ended with {code}:\n" +
                         output.decode("utf-8", "replace")[-3000:])
    return output


# ---- the program that runs in the guest ----------------------------------------------------------


def sources():
    return sorted((HERE / "guest").glob("*.cpp")) + sorted((HERE / "guest").glob("*.h"))


def file_hash(paths):
    digest = hashlib.sha256()
    for path in paths:
        digest.update(path.name.encode() + b"\0" + path.read_bytes())
    return digest.hexdigest()


def build_guest_program(folder):
    program = folder / "judge"
    stamp = folder / "judge.stamp"
    key = file_hash(sources())
    if program.exists() and stamp.exists() and stamp.read_text() == key:
        return program
    kernel_guest.require_tools(TOOLS)
    folder.mkdir(parents=True, exist_ok=True)
    cpps = [path for path in sources() if path.suffix == ".cpp"]
    must_run(["g++", "-std=c++20", "-O2", "-static", "-Wall", "-Wextra", "-Werror", "-o", program,
              *cpps])
    # The judge's own measure first: SHA-256 of every length around its block size.
    sample = folder / "sample"
    for size in (0, 1, 55, 56, 57, 63, 64, 65, 119, 128, 1000003):
        data = hashlib.shake_128(str(size).encode()).digest(size)
        sample.write_bytes(data)
        said = must_run([program, "sha256", sample]).decode().strip()
        if said != hashlib.sha256(data).hexdigest():
            raise GuestError(f"the guest program computes a wrong SHA-256 for {size} bytes")
    sample.unlink()
    stamp.write_text(key)
    return program


# ---- the script that runs in the guest -----------------------------------------------------------

PRELUDE = r"""
chmod 755 /judge
seconds() { cut -d' ' -f1 /proc/uptime; }
# scene NAME SEED SCALE
scene() {
  local before=$(seconds)
  /judge scene $1 $mnt $2 $3
  echo "$before - $(seconds) $1 $3"
}
mount_it() { mount -t f2fs -o "$1" $disk $mnt; }
# One image after the other, whichever is next; two of these run at a time.
worker() {
  for job in $JOBS; do
    mkdir /tmp/claim/$job 2>/dev/null || continue
    mkdir -p /o/$job /mnt/$job
    ( set -e; disk=/disk/$job; mnt=/mnt/$job; dev=$(basename $(readlink $disk)); job_$job
    ) > /o/$job/log 2>&1
    echo $? > /o/$job/rc
    echo "guest: $job done after $(seconds) s" > /dev/console
  done
}
mkdir -p /tmp/claim
"""


def job_name(image):
    """A name that is also a shell function's and a disk's serial number (20 characters at most)."""
    return image.name.replace("-", "_")[:20]


def job_script(image):
    first = image.mount or "rw"
    lines = [f"job_{job_name(image)}() {{", f"  mount_it {first}"]
    if image.end:
        lines.append("  echo 1000000 > /sys/fs/f2fs/$dev/cp_interval")
    take_manifest = f"  /judge manifest $mnt /o/{job_name(image)}/manifest {image.whole_max}"
    for index, step in enumerate(image.steps):
        words = step.split()
        seed = zlib.crc32(f"{image.name}/{index}/{step}".encode())
        scale = words[1] if len(words) > 1 else "0"
        if words[0] == "remount":
            lines += ["  umount $mnt", f"  mount_it {words[1] if len(words) > 1 else first}"]
        elif words[0] == "sync":
            lines.append("  sync -f $mnt/.")
        elif words[0] == "set":
            lines.append(f"  echo {words[2]} > /sys/fs/f2fs/$dev/{words[1]}")
        elif words[0] == "crash":
            # From here on nothing may write a checkpoint, or the manifest would be of the past.
            lines += ["  sync -f $mnt/.", take_manifest,
                      f"  /judge versions $disk > /o/{job_name(image)}/versions",
                      f"  scene crash {seed} {scale}"]
            if image.end == "torn":
                lines += [f"  /judge versions $disk > /o/{job_name(image)}/versions_crash",
                          "  sync -f $mnt/."]
        else:
            lines.append(f"  scene {words[0]} {seed} {scale}")
    if not image.end:
        lines += ["  umount $mnt", "  mount_it ro,noatime", take_manifest, "  umount $mnt"]
    lines.append("}")
    return "\n".join(lines)


def guest_script(images):
    parts = [PRELUDE]
    parts += [job_script(image) for image in images]
    parts.append("JOBS='" + " ".join(job_name(image) for image in images) + "'")
    parts.append("worker & worker & wait")
    for image in images:
        if image.end:
            job = job_name(image)
            parts.append(f"/judge versions /disk/{job} > /o/{job}/versions_end")
    parts.append("cat /o/*/rc | sort -u | tr -d '\\n' > /o/codes; [ $(cat /o/codes) = 0 ]")
    return "\n".join(parts) + "\n"


# ---- before and after the guest ------------------------------------------------------------------


def make_empty(image, path, mkfs):
    with open(path, "wb") as file:
        file.truncate(image.size)
    must_run([mkfs, "-q", *image.mkfs, path])
    # mkfs writes the empty tables of large volumes as zeros; they need no room on this disk.
    must_run(["fallocate", "--dig-holes", path])
    if image.old_mkfs:
        for pack in coverage.Volume(path).packs:
            flags = struct.pack("<I", pack.flags & ~0x80)
            head = coverage.with_crc(pack.head[:132] + flags + pack.head[136:])
            overwrite(path, pack.start * BLOCK, head)
            overwrite(path, pack.last * BLOCK, head)


def overwrite(path, offset, data):
    with open(path, "r+b") as file:
        file.seek(offset)
        file.write(data)


def tear(path):
    """Destroys the last block of the newer checkpoint, as a power cut while writing it would."""
    overwrite(path, coverage.Volume(path).current().last * BLOCK, b"\xa5" * BLOCK)


def damage(path, how):
    """Damage that costs nothing: there is a second copy of what is destroyed."""
    if how == "superblock_0":
        overwrite(path, 1024, b"\0" * 3072)
    elif how == "superblock_1":
        overwrite(path, BLOCK + 1024, b"\xff" * 3072)
    elif how == "other_pack":
        volume = coverage.Volume(path)
        other = min(volume.packs, key=lambda pack: (pack.version, -pack.number))
        overwrite(path, other.start * BLOCK, b"\x5a" * BLOCK)
    else:
        raise ValueError(how)


def fsck(path):
    """Complaints of fsck.f2fs about the image, which it leaves as it is; empty when clean."""
    code, output = run(["fsck.f2fs", "--dry-run", path])
    lines = [line for line in output.splitlines()
             if FSCK_COMPLAINT.search(line) and not FSCK_HARMLESS.search(line)]
    if code != 0:
        lines.append(b"exit code %d" % code)
    return [line.decode("utf-8", "replace") for line in lines]


def check_kernel_log(text):
    return [line for line in text.splitlines()
            if re.search(r"F2FS|BUG|WARNING|Oops|I/O error", line)
            and not KERNEL_HARMLESS.search(line)]


def check_versions(image, out):
    """A reason why the image does not end as it should, or nothing."""
    if not image.end:
        return ""
    at_manifest = (out / "versions").read_text().split()
    at_end = (out / "versions_end").read_text().split()
    if image.end == "crash" and at_manifest != at_end:
        return f"a checkpoint was written after the manifest: {at_manifest}, then {at_end}"
    if image.end == "torn":
        if at_manifest != (out / "versions_crash").read_text().split():
            return "a checkpoint was written before the one to be torn"
        if sum(a != b for a, b in zip(at_manifest, at_end)) != 1:
            return f"not exactly one checkpoint after the manifest: {at_manifest}, then {at_end}"
    return ""


def sparse_copy(source, target):
    must_run(["cp", "--sparse=always", source, target])


def cache_key(images, kernel, mkfs):
    program = pathlib.Path(shutil.which(mkfs) or mkfs).read_bytes()
    text = repr(images).encode() + program + kernel.release.encode()
    text += file_hash(sources() + [HERE / "images.py", HERE / "coverage.py"]).encode()
    return hashlib.sha256(text).hexdigest()


def make(images, folder, work, log=print, timeout_s=1500, mkfs="mkfs.f2fs"):
    """Fills `folder` with the images, unless it has just these already. Returns its index."""
    folder = pathlib.Path(folder)
    work = pathlib.Path(work)
    kernel_guest.require_tools({**kernel_guest.TOOLS, **TOOLS, "fallocate": "util-linux"})
    with only_one(work):
        kernel = kernel_guest.prepare(work / "guest")
        program = build_guest_program(work)
    key = cache_key(images, kernel, mkfs)
    index_path = folder / "images.json"
    if index_path.exists():
        index = json.loads(index_path.read_text())
        if index["key"] == key and all((folder / e["image"]).exists() for e in index["images"]):
            log(f"kernel judge: {len(index['images'])} images as made before")
            return index
    for old in folder.glob("*.*"):  # but not the lock
        old.unlink()
    started = time.monotonic()
    disks = []
    for image in images:
        path = folder / f"{image.name}.img"
        make_empty(image, path, mkfs)
        disks.append((job_name(image), path))
    log(f"kernel judge: {len(images)} empty volumes in {time.monotonic() - started:.1f} s")
    out = folder / "guest"
    try:
        seconds = kernel_guest.boot(kernel, guest_script(images), disks,
                                    {"judge": program.read_bytes()}, out, timeout_s=timeout_s,
                                    memory_mib=3072)
    except GuestError as error:
        raise GuestError(f"{error}\n" + failed_jobs(images, out)) from None
    log(f"kernel judge: Linux {kernel.release} filled them in {seconds:.1f} s")

    problems = check_kernel_log((out / "dmesg").read_text(errors="replace"))
    entries = []
    started = time.monotonic()
    for image in images:
        path = folder / f"{image.name}.img"
        guest_out = out / job_name(image)
        reason = check_versions(image, guest_out)
        if reason:
            problems.append(f"{image.name}: {reason}")
            continue
        if image.end == "torn":
            tear(path)
        manifest = folder / f"{image.name}.manifest"
        shutil.move(str(guest_out / "manifest"), manifest)
        # A torn checkpoint is what fsck complains about, rightly.
        if image.end != "torn":
            problems += [f"{image.name}: fsck.f2fs: {line}" for line in fsck(path)]
        entry = {"name": image.name, "image": path.name, "manifest": manifest.name,
                 "refused": list(image.refused), "unclean": bool(image.end)}
        entries.append(entry)
        for how in image.damaged:
            copy = folder / f"{image.name}+{how}.img"
            sparse_copy(path, copy)
            damage(copy, how)
            entries.append({**entry, "name": f"{image.name}+{how}", "image": copy.name})
    log(f"kernel judge: fsck.f2fs looked at them in {time.monotonic() - started:.1f} s")
    if problems:
        raise GuestError("the images are not what they should be:\n" + "\n".join(problems[:40]))
    # "made" tells two sets apart that were made from the same sources.
    index = {"key": key, "made": time.time_ns(), "kernel": kernel.release, "images": entries}
    index_path.write_text(json.dumps(index, indent=1) + "\n")
    return index


def failed_jobs(images, out):
    text = []
    for image in images:
        log = out / job_name(image) / "log"
        code = out / job_name(image) / "rc"
        if code.exists() and code.read_text().strip() != "0":
            text.append(f"{image.name}:\n" + kernel_guest.tail(log, 8))
    return "\n".join(text)
