#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Lists the registers and the stack that a kernel has which makes one call of the device API, as
nvlink reports them, linked with libgofs_device.a (or the archive that is named). Needs nvcc, no
GPU. Exit status 1 if a kernel is above the 64 registers that leave a multiprocessor room for
blocks of 1,024 threads.
"""
import argparse
import pathlib
import re
import subprocess
import sys
import tempfile

ROOT = pathlib.Path(__file__).resolve().parent.parent
ARCHIVE = ROOT / "build/cuda/src/device/libgofs_device.a"
REGISTERS_MAX = 64
GROUPS = ("thread", "warp", "block", "grid")
ONE_WARP = ("thread", "warp")  # what is started and waited for
# What stands for `$` is the group.
CALLS = {
    "open": "open($, vol, path, kOpenReadWrite | kOpenCreate, 0644)",
    "close": "close($, vol, fd)",
    "pread": "pread($, vol, fd, buffer, bytes, offset)",
    "pwrite": "pwrite($, vol, fd, buffer, bytes, offset)",
    "read": "read($, vol, fd, buffer, bytes)",
    "write": "write($, vol, fd, buffer, bytes)",
    "ftruncate": "ftruncate($, vol, fd, bytes)",
    "fsync": "fsync($, vol, fd)",
    "sync": "sync($, vol)",
    "stat": "stat($, vol, path, static_cast<Stat*>(buffer))",
    "readdir": "readdir($, vol, fd, static_cast<NamedEntry*>(buffer), 64)",
    "mkdir": "mkdir($, vol, path)",
    "unlink": "unlink($, vol, path)",
    "rename": "rename($, vol, path, path + bytes)",
    "setxattr": "setxattr($, vol, path, path + bytes, buffer, bytes)",
    "batch_open": "batch_open($, vol, path, nullptr, 64)",
    "batch_read": "batch_read($, vol, fd, buffer, &offset)",
}
ONE_WARP_CALLS = {
    "pread_async, wait": "wait($, vol, pread_async($, vol, fd, buffer, bytes, offset))",
    "pwrite_async, wait": "wait($, vol, pwrite_async($, vol, fd, buffer, bytes, offset))",
}


def kernels():
    """Yields (name of the kernel, call, group, expression)."""
    for calls, groups in ((CALLS, GROUPS), (ONE_WARP_CALLS, ONE_WARP)):
        for call, expression in calls.items():
            for group in groups:
                name = re.sub(r"\W+", "_", call) + "_" + group
                yield name, call, group, expression.replace("$", f"this_{group}()")


def source():
    lines = ['#include "gofs/gofs.cuh"', "using namespace gofs;"]
    parameters = ("VolumeHandle vol, const char* path, int fd, void* buffer, uint64_t bytes, "
                  "uint64_t offset, int64_t* out")
    for name, _, _, expression in kernels():
        lines.append(f'extern "C" __global__ void kernel_{name}({parameters}) {{')
        lines.append(f"  *out = {expression};")
        lines.append("}")
    return "\n".join(lines) + "\n"


def measure(nvcc, folder, archive):
    """The kernels' registers and bytes of stack."""
    compiled = folder / "calls.o"
    subprocess.run([nvcc, "-std=c++17", "-arch=sm_90", "-rdc=true", f"-I{ROOT}/include", "-c",
                    str(folder / "calls.cu"), "-o", str(compiled)], check=True)
    said = subprocess.run([nvcc, "-arch=sm_90", "-dlink", "-Xnvlink", "--verbose", str(compiled),
                           str(archive), "-o", str(folder / "linked.o")],
                          check=True, capture_output=True, text=True)
    found = re.findall(r"Function properties for '(\w+)':\n.*?used (\d+) registers,.*?(\d+) stack",
                       said.stdout + said.stderr)
    return {name.removeprefix("kernel_"): (int(registers), int(stack))
            for name, registers, stack in found}


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("archive", nargs="?", default=ARCHIVE, type=pathlib.Path)
    archive = parser.parse_args().archive
    if not archive.exists():
        sys.exit(f"device_report: no {archive}: GOFS_CUDA=1 make build, or name the archive")
    nvcc = subprocess.run([ROOT / "scripts/nvcc.sh"], check=True, capture_output=True,
                          text=True).stdout.strip()
    with tempfile.TemporaryDirectory() as temporary:
        folder = pathlib.Path(temporary)
        (folder / "calls.cu").write_text(source())
        found = measure(nvcc, folder, archive)
    print(f"{'call':<20} {'group':<8} {'registers':>9} {'stack':>6}")
    above = 0
    for name, call, group, _ in kernels():
        registers, stack = found[name]
        above += registers > REGISTERS_MAX
        print(f"{call:<20} {group:<8} {registers:>9} {stack:>6}")
    print(f"{len(found) - above} passed, {above} failed")
    return 1 if above else 0


if __name__ == "__main__":
    sys.exit(main())
