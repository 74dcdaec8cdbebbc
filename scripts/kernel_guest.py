#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Boots a stock Linux kernel in a small QEMU guest, so that the kernel itself can be asked what is
on a disk image (or to write one).

The guest is emulated (TCG), so no KVM is needed and none is used: it behaves the same in a virtual
machine, in a container and on bare metal. It has no network and sees only the disks it is given.

  prepare(cache)   downloads the distribution's kernel package once, keeps vmlinuz and the few
                   modules that F2FS on virtio needs, and packs them with busybox into an initramfs;
                   with GOFS_GUEST_KERNEL=newest in the environment that of Debian's sid
  boot(...)        runs one shell script in the guest against any number of disk images, and brings
                   back what the script left under /o

What a script finds in the guest: busybox's commands; each disk as /disk/SERIAL; the files it was
given; /o, an empty folder. It must unmount what it mounted: the guest powers off *without* syncing,
so a file system that is still mounted is left as after a power cut, which some scripts want.

From a shell:
  kernel_guest.py prepare
  kernel_guest.py run --script S.sh --out DIR [--disk IMG]... [--file GUESTPATH=HOSTPATH]...
"""

import argparse
import dataclasses
import gzip
import hashlib
import io
import lzma
import os
import pathlib
import re
import shutil
import signal
import subprocess
import sys
import tarfile
import tempfile
import time

ROOT = pathlib.Path(__file__).resolve().parent.parent
DEFAULT_CACHE = ROOT / "build" / "kernel" / "guest"

# Tool -> Debian package. Checked before anything else, so that a missing one is named at once.
TOOLS = {
    "qemu-system-x86_64": "qemu-system-x86",
    "busybox": "busybox-static",
    "apt-get": "apt",
    "dpkg-deb": "dpkg",
}

# The first of these that apt knows names the kernel: Debian, then Ubuntu.
KERNEL_METAPACKAGES = ("linux-image-amd64", "linux-image-virtual", "linux-image-generic")

# Roots of the module tree to carry; what they depend on follows. Those not needed to mount a plain
# image are optional: a kernel may have them built in, or not at all.
MODULES_REQUIRED = ("virtio_pci", "virtio_blk", "f2fs")
MODULES_OPTIONAL = ("crc32_generic", "quota_v2", "sha256_generic", "sha512_generic", "hmac", "cbc",
                    "ecb", "xts", "cts", "raid0")
# Sets of modules that are carried, and loaded when a script says `load_modules NAME`.
MODULE_SETS = {"physical": ("nvme", "vfio_iommu_type1", "vfio_pci")}
# Where those live inside the package; the rest of it (drivers, sound, ...) is not unpacked.
MODULE_FOLDERS = ("kernel/arch/x86/crypto/", "kernel/block/", "kernel/crypto/",
                  "kernel/drivers/block/", "kernel/drivers/md/", "kernel/drivers/nvme/",
                  "kernel/drivers/vfio/", "kernel/drivers/virtio/", "kernel/fs/f2fs/",
                  "kernel/fs/quota/", "kernel/fs/unicode/", "kernel/lib/", "kernel/virt/lib/")

MAX_DISKS = 28  # free slots on the q35 root bus, less one for the results
OUT_DISK_BYTES = 4 << 30  # sparse: costs only what the guest writes

# An emulated processor on a busy host gets its ticks late. The kernel must not conclude from that
# that its timer is broken (it panics while booting), nor that a processor is stuck.
PATIENCE = "no_timer_check nowatchdog rcupdate.rcu_cpu_stall_suppress=1"
BOOT_TRIES = 2
READY = "guest: ready"

# In front of every script.
PRELUDE = r"""load_modules() {
  for module in $(cat /modules/$1); do
    insmod /modules/$module || return
  done
}
"""

INIT = r"""#!/bin/busybox sh
/bin/busybox --install -s /bin
export PATH=/bin
mkdir -p /proc /sys /dev /o /mnt /disk /tmp
mount -t proc proc /proc
mount -t sysfs sys /sys
mount -t devtmpfs dev /dev
mount -t debugfs debug /sys/kernel/debug 2>/dev/null
mount -t tmpfs -o size=75% tmpfs /o
for module in $(cat /modules/order); do
  insmod /modules/$module || echo "insmod $module failed" >> /o/boot_errors
done
for disk in /sys/block/vd*; do
  ln -s /dev/${disk##*/} /disk/$(cat $disk/serial)
done
echo "guest: ready after $(cut -d' ' -f1 /proc/uptime) s"
sh /guest/run.sh > /o/script.log 2>&1
echo $? > /o/script.rc
dmesg > /o/dmesg
echo "guest: done after $(cut -d' ' -f1 /proc/uptime) s"
tar cf - -C /o . | dd of=/disk/gofs-out bs=1M conv=fsync 2>/dev/null
poweroff -n -f
"""


class GuestError(Exception):
    """Something outside our control failed; the text says what and what to do."""


class EmulatorError(GuestError):
    """QEMU itself crashed, whatever its guest did; with fresh disks it may be tried again."""


@dataclasses.dataclass
class Kernel:
    release: str
    vmlinuz: pathlib.Path
    initrd: pathlib.Path


def require_tools(tools=TOOLS):
    missing = [f"{tool} (package {package})" for tool, package in tools.items()
               if not shutil.which(tool)]
    if missing:
        raise GuestError("missing: " + ", ".join(missing) + "; apt-get install " +
                         " ".join(tools[m.split(" ")[0]] for m in missing))


# ---- the initramfs: a newc cpio archive, written here so that no root rights are needed ----------


class Cpio:
    """Collects files and folders and yields a newc archive (padded so that another may follow)."""

    def __init__(self):
        self._out = io.BytesIO()
        self._folders = set()
        self._inode = 0

    def _entry(self, name, mode, data=b""):
        self._inode += 1
        fields = (self._inode, mode, 0, 0, 1, 0, len(data), 0, 0, 0, 0, len(name) + 1, 0)
        header = b"070701" + b"".join(b"%08X" % f for f in fields)
        self._out.write(header + name.encode() + b"\0")
        self._pad()
        self._out.write(data)
        self._pad()

    def _pad(self):
        self._out.write(b"\0" * (-self._out.tell() % 4))

    def folder(self, name):
        name = name.strip("/")
        if not name or name in self._folders:
            return
        self.folder(os.path.dirname(name))
        self._folders.add(name)
        self._entry(name, 0o040755)

    def file(self, name, data, mode=0o755):
        name = name.strip("/")
        self.folder(os.path.dirname(name))
        self._entry(name, 0o100000 | mode, data)

    def finish(self):
        self._entry("TRAILER!!!", 0)
        self._out.write(b"\0" * (-self._out.tell() % 512))
        return self._out.getvalue()


# ---- the kernel package --------------------------------------------------------------------------


class Apt:
    """The packages that this machine's apt knows, or, `newest`, those of Debian's sid, of which the
    lists are kept in `folder`, so that the machine's own stay as they are."""

    SID = "deb [signed-by=/usr/share/keyrings/debian-archive-keyring.gpg] {} sid main\n"
    MIRROR = "http://deb.debian.org/debian"

    def __init__(self, newest, folder):
        self.options = []
        if not newest:
            return
        lists = folder / "apt"
        (lists / "lists" / "partial").mkdir(parents=True, exist_ok=True)
        (lists / "sid.list").write_text(self.SID.format(self.MIRROR))
        self.options = ["-o", f"Dir::Etc::sourcelist={lists / 'sid.list'}",
                        "-o", "Dir::Etc::sourceparts=-", "-o", f"Dir::State::lists={lists}/lists",
                        "-o", f"Dir::Cache={lists}", "-o", "APT::Sandbox::User=root"]
        self.must(["update"], folder)

    def show(self, *args):
        result = subprocess.run(["apt-cache", *self.options, *args], stdin=subprocess.DEVNULL,
                                capture_output=True, text=True, timeout=120, check=False)
        return result.stdout if result.returncode == 0 else ""

    def must(self, words, folder):
        command = ["apt-get", "-q", "-o", "APT::Sandbox::User=root", *self.options, *words]
        try:
            result = subprocess.run(command, cwd=folder, stdin=subprocess.DEVNULL, text=True,
                                    stdout=subprocess.PIPE, stderr=subprocess.STDOUT, timeout=900,
                                    check=False)
        except subprocess.TimeoutExpired:
            raise GuestError("apt-get " + " ".join(words) + " took more than 15 minutes") from None
        if result.returncode != 0:
            raise GuestError("apt-get " + " ".join(words) + " failed:\n" + result.stdout +
                             "(try 'apt-get update' first)")


def kernel_packages(apt):
    """Names of the packages to download: the image, and where modules or the kernel itself have
    packages of their own (Ubuntu; Debian from Linux 7 on) these as well."""
    for meta in KERNEL_METAPACKAGES:
        found = re.search(r"Depends: (linux-image-[0-9][^\s<>]*)", apt.show("depends", meta))
        if not found:
            continue
        image = found.group(1)
        wanted = [image]
        for line in apt.show("depends", image).splitlines():
            part = re.search(r"(linux-(?:modules-extra|modules|binary|base)-[0-9][^\s<>]*)", line)
            if part and part.group(1) not in wanted:
                wanted.append(part.group(1))
        return wanted
    raise GuestError("apt knows no kernel package (" + ", ".join(KERNEL_METAPACKAGES) +
                     "); run 'apt-get update'")


def unpack(deb, folder):
    """Takes vmlinuz and the modules in MODULE_FOLDERS out of a package."""
    with subprocess.Popen(["dpkg-deb", "--fsys-tarfile", str(deb)], stdin=subprocess.DEVNULL,
                          stdout=subprocess.PIPE) as process:
        with tarfile.open(fileobj=process.stdout, mode="r|") as archive:
            for member in archive:
                found = re.match(r"\./(?:usr/)?(?:boot/vmlinuz-(.+)|lib/modules/([^/]+)/(.*))",
                                 member.name)
                if not found or not member.isfile():
                    continue
                release, folder_release, inside = found.groups()
                if inside == "vmlinuz":  # where Debian has it from 7 on
                    release = folder_release
                if release:
                    target = folder / f"vmlinuz-{release}"
                elif inside.startswith(MODULE_FOLDERS) or inside == "modules.builtin":
                    target = folder / "modules" / inside
                else:
                    continue
                target.parent.mkdir(parents=True, exist_ok=True)
                target.write_bytes(archive.extractfile(member).read())
    if process.returncode != 0:
        raise GuestError(f"{deb.name}: dpkg-deb failed; delete it and try again")


def module_name(path):
    return re.sub(r"\.ko(\.\w+)?$", "", os.path.basename(path)).replace("-", "_")


def module_bytes(path):
    if path.suffix == ".xz":
        return lzma.decompress(path.read_bytes())
    if path.suffix == ".zst":
        require_tools({"zstd": "zstd"})
        return subprocess.run(["zstd", "-dcq", str(path)], stdout=subprocess.PIPE,
                              check=True).stdout
    return path.read_bytes()


def load_orders(folder):
    """Lists of modules to load, {"order": [(name, bytes)], and each of MODULE_SETS: those that
    "order" lacks}, dependencies first (from each module's .modinfo)."""
    files = {module_name(p.name): p for p in (folder / "modules").rglob("*.ko*")}
    builtin_list = folder / "modules" / "modules.builtin"
    builtin = set()
    if builtin_list.exists():
        builtin = {module_name(line) for line in builtin_list.read_text().split()}
    seen = set()

    def visit(name, required, order):
        if name in seen:
            return
        seen.add(name)
        if name not in files:
            if required and name not in builtin:
                raise GuestError(f"the kernel package has no module {name}")
            return
        data = module_bytes(files[name])
        depends = re.search(rb"\0depends=([^\0]*)\0", data)
        for other in (depends.group(1).decode().split(",") if depends else []):
            if other:
                visit(other.replace("-", "_"), True, order)
        order.append((name, data))

    orders = {"order": []}
    # Optional ones first: f2fs asks for crc32 when it is loaded.
    for name in MODULES_OPTIONAL:
        visit(name, False, orders["order"])
    for name in MODULES_REQUIRED:
        visit(name, True, orders["order"])
    for key, names in MODULE_SETS.items():
        orders[key] = []
        for name in names:
            visit(name, True, orders[key])
    return orders


def static_busybox():
    path = shutil.which("busybox")
    with open(path, "rb") as file:
        data = file.read()
    if b"ld-linux" in data[:4096]:
        raise GuestError(f"{path} is not statically linked; apt-get install busybox-static")
    return data


def recipe_stamp():
    """Changes when what goes into the initramfs changes."""
    recipe = repr((INIT, MODULES_REQUIRED, MODULES_OPTIONAL, MODULE_SETS, MODULE_FOLDERS))
    return hashlib.sha256(recipe.encode()).hexdigest()[:16]


def prepare(cache=DEFAULT_CACHE, refresh=False):
    """Returns a Kernel that can be booted, downloading it if the cache has none."""
    require_tools()
    newest = os.environ.get("GOFS_GUEST_KERNEL") == "newest"
    cache = pathlib.Path(f"{cache}-newest" if newest else cache)
    stamp = cache / "stamp"
    if not refresh and stamp.exists():
        recipe, release = stamp.read_text().split()
        kernel = Kernel(release, cache / f"vmlinuz-{release}", cache / "initrd.gz")
        if recipe == recipe_stamp() and kernel.vmlinuz.exists() and kernel.initrd.exists():
            return kernel
    cache.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(dir=cache) as work:
        work = pathlib.Path(work)
        apt = Apt(newest, work)
        packages = kernel_packages(apt)
        print("kernel guest: fetching " + " ".join(packages), file=sys.stderr, flush=True)
        apt.must(["download", *packages], work)
        for deb in sorted(work.glob("*.deb")):
            unpack(deb, work)
        images = list(work.glob("vmlinuz-*"))
        if len(images) != 1:
            raise GuestError(f"{len(images)} kernels in " + " ".join(packages) + ", wanted one")
        release = images[0].name[len("vmlinuz-"):]
        base = Cpio()
        base.file("init", INIT.encode())
        base.file("bin/busybox", static_busybox())
        for key, order in load_orders(work).items():
            for name, data in order:
                base.file(f"modules/{name}.ko", data, 0o644)
            base.file(f"modules/{key}", "\n".join(f"{name}.ko" for name, _ in order).encode(),
                      0o644)
        (cache / "initrd.gz").write_bytes(gzip.compress(base.finish(), 6, mtime=0))
        shutil.move(str(images[0]), cache / images[0].name)
    stamp.write_text(f"{recipe_stamp()} {release}\n")
    return Kernel(release, cache / f"vmlinuz-{release}", cache / "initrd.gz")


# ---- booting -------------------------------------------------------------------------------------


def tail(path, lines=30):
    try:
        text = pathlib.Path(path).read_bytes().decode("utf-8", "replace")
    except OSError:
        return "(nothing)"
    return "\n".join(text.splitlines()[-lines:])


def run_to_end(command, console, timeout_s):
    """Returns the signal that ended QEMU, 0 if none did."""
    with open(console, "wb") as log:
        process = subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=log,
                                   stderr=subprocess.STDOUT)
        try:
            process.wait(timeout_s)
        except subprocess.TimeoutExpired:
            raise GuestError(f"the guest was still running after {timeout_s} s; it said:\n" +
                             tail(console)) from None
        finally:
            if process.poll() is None:
                process.kill()
                process.wait(30)
    return max(0, -process.returncode)


def boot(kernel, script, disks=(), files=None, out=None, timeout_s=300, memory_mib=2048, cpus=2,
         machine="q35", devices=(), kernel_options=""):
    """Boots the guest, runs `script` (text) and unpacks what it left in /o into the folder `out`.

    disks: [(serial, path)], at most MAX_DISKS; files: {path in the guest: bytes}; devices: further
    arguments for QEMU, before those of the disks.
    Raises GuestError when the guest did not get to its end in time or the script failed,
    EmulatorError when QEMU did not.
    """
    disks = list(disks)
    if len(disks) > MAX_DISKS:
        raise GuestError(f"{len(disks)} disks, at most {MAX_DISKS} in one boot")
    out = pathlib.Path(out)
    shutil.rmtree(out, ignore_errors=True)
    out.mkdir(parents=True)
    overlay = Cpio()
    overlay.file("guest/run.sh", (PRELUDE + script).encode())
    for name, data in (files or {}).items():
        overlay.file(name, data)
    console = out / "console.log"
    with tempfile.TemporaryDirectory(dir=out.parent) as work:
        work = pathlib.Path(work)
        initrd = work / "initrd"
        base = kernel.initrd.read_bytes()
        # The kernel looks for a further archive at multiples of four bytes only.
        initrd.write_bytes(base + b"\0" * (-len(base) % 4) + overlay.finish())
        out_disk = work / "out.raw"
        with open(out_disk, "wb") as file:
            file.truncate(OUT_DISK_BYTES)
        command = ["qemu-system-x86_64", "-accel", "tcg,thread=multi", "-cpu", "max",
                   "-machine", machine, "-m", str(memory_mib), "-smp", str(cpus), "-nodefaults",
                   "-display", "none", "-serial", "stdio", "-no-reboot",
                   "-kernel", str(kernel.vmlinuz), "-initrd", str(initrd),
                   "-append",
                   f"console=ttyS0 quiet panic=-1 oops=panic {PATIENCE} {kernel_options}",
                   *devices]
        for index, (serial, path) in enumerate([*disks, ("gofs-out", out_disk)]):
            # cache=unsafe: a guest's flush need not reach the host's disk, the image is a test's.
            command += ["-drive", f"if=none,id=d{index},file={path},format=raw,cache=unsafe,"
                        "discard=unmap,detect-zeroes=unmap",
                        "-device", f"virtio-blk-pci,drive=d{index},serial={serial}"]
        started = time.monotonic()
        for _ in range(BOOT_TRIES):
            killed_by = run_to_end(command, console, timeout_s)
            # A guest that has not got as far as to look at its disks may simply be started again.
            if READY in tail(console, 1000):
                break
        seconds = time.monotonic() - started
        if killed_by:
            raise EmulatorError(f"QEMU was ended by {signal.Signals(killed_by).name} after "
                                f"{seconds:.0f} s; the guest had said:\n" + tail(console))
        try:
            with tarfile.open(out_disk, "r:") as archive:
                for member in archive:
                    if member.isfile():
                        target = out / os.path.normpath(member.name)
                        target.parent.mkdir(parents=True, exist_ok=True)
                        with archive.extractfile(member) as source, open(target, "wb") as sink:
                            shutil.copyfileobj(source, sink)
        except tarfile.TarError as error:
            raise GuestError(f"the guest ended after {seconds:.0f} s without its results ({error})"
                             f"; it said:\n" + tail(console))
    if not (out / "script.rc").exists():
        raise GuestError(f"the guest ended after {seconds:.0f} s without its results; it said:\n" +
                         tail(console))
    if (out / "boot_errors").exists():
        raise GuestError("the guest could not load a module: " + tail(out / "boot_errors"))
    code = (out / "script.rc").read_text().strip()
    if code != "0":
        raise GuestError(f"the script in the guest ended with {code}; it said:\n" +
                         tail(out / "script.log"))
    return seconds


def main():
    parser = argparse.ArgumentParser(description="Boot a stock kernel in a QEMU guest.")
    parser.add_argument("--cache", default=DEFAULT_CACHE, type=pathlib.Path)
    commands = parser.add_subparsers(dest="command", required=True)
    get = commands.add_parser("prepare", help="download the kernel and pack the initramfs")
    get.add_argument("--refresh", action="store_true", help="even if the cache has one")
    run = commands.add_parser("run", help="run a shell script in the guest")
    run.add_argument("--script", required=True, type=pathlib.Path)
    run.add_argument("--out", required=True, type=pathlib.Path, help="folder for the results")
    run.add_argument("--disk", action="append", default=[], help="an image; /disk/0, /disk/1, ...")
    run.add_argument("--file", action="append", default=[], metavar="GUEST=HOST")
    run.add_argument("--timeout", type=int, default=300, help="seconds")
    args = parser.parse_args()
    try:
        if args.command == "prepare":
            kernel = prepare(args.cache, args.refresh)
            print(f"kernel {kernel.release}: {kernel.vmlinuz} {kernel.initrd}")
            return 0
        kernel = prepare(args.cache)
        files = {}
        for pair in args.file:
            guest, _, host = pair.partition("=")
            files[guest] = pathlib.Path(host).read_bytes()
        seconds = boot(kernel, args.script.read_text(), list(enumerate(args.disk)), files, args.out,
                       args.timeout)
        print((args.out / "script.log").read_text(errors="replace"), end="")
        print(f"guest: kernel {kernel.release}, {seconds:.1f} s from start to power-off")
        return 0
    except (GuestError, OSError) as error:
        print(f"kernel_guest: {error}", file=sys.stderr)
        return 1


if __name__ == "__main__":
    sys.exit(main())
