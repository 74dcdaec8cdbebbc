#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Lists the registers and the stack that a kernel has which makes one call of the device API, as
nvlink reports them: compiled as it comes, and with -maxrregcount=64, which leaves a multiprocessor
room for 1,024 of its threads. Needs nvcc, no GPU; takes two minutes. Exit status 1 if a kernel is
above the limit all the same.
"""
import argparse
import pathlib
import re
import subprocess
import sys
import tempfile

ROOT = pathlib.Path(__file__).resolve().parent.parent
REGISTERS_MAX = 64
GROUPS = ("thread", "warp", "block", "grid")
SINGLE = ("thread", "warp")  # what others take as well, but leave to one of their warps
# What stands for `$` is the group.
SHARED_CALLS = {
    "pread": "pread($, vol, fd, buffer, bytes, offset)",
    "pwrite": "pwrite($, vol, fd, buffer, bytes, offset)",
}
CALLS = {
    "open": "open($, vol, path, kOpenReadWrite | kOpenCreate, 0644)",
    "close": "close($, vol, fd)",
    "read": "read($, vol, fd, buffer, bytes)",
    "pread_async, wait": "wait($, vol, pread_async($, vol, fd, buffer, bytes, offset))",
    "write": "write($, vol, fd, buffer, bytes)",
    "pwrite_async, wait": "wait($, vol, pwrite_async($, vol, fd, buffer, bytes, offset))",
    "ftruncate": "ftruncate($, vol, fd, bytes)",
    "fsync": "fsync($, vol, fd)",
    "sync": "sync($, vol)",
    "stat": "stat($, vol, path, static_cast<Stat*>(buffer))",
    "readdir": "readdir($, vol, fd, static_cast<NamedEntry*>(buffer), 64)",
    "mkdir": "mkdir($, vol, path)",
    "unlink": "unlink($, vol, path)",
    "rename": "rename($, vol, path, path + bytes)",
}


def kernels():
    """Yields (name of the kernel, call, group, expression)."""
    for calls, groups in ((SHARED_CALLS, GROUPS), (CALLS, SINGLE)):
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


def measure(nvcc, folder, flags):
    """The kernels' registers and bytes of stack."""
    compiled = folder / "calls.o"
    subprocess.run([nvcc, "-std=c++20", "-arch=sm_90", "-rdc=true", "-O3",
                    "--expt-relaxed-constexpr", f"-I{ROOT}/src", f"-I{ROOT}/include", *flags, "-c",
                    str(folder / "calls.cu"), "-o", str(compiled)], check=True)
    said = subprocess.run([nvcc, "-arch=sm_90", "-dlink", "-Xnvlink", "--verbose", str(compiled),
                           "-o", str(folder / "linked.o")],
                          check=True, capture_output=True, text=True)
    found = re.findall(r"Function properties for '(\w+)':\n.*?used (\d+) registers,.*?(\d+) stack",
                       said.stdout + said.stderr)
    return {name.removeprefix("kernel_"): (int(registers), int(stack))
            for name, registers, stack in found}


def main():
    argparse.ArgumentParser(description=__doc__).parse_args()
    nvcc = subprocess.run([ROOT / "scripts/nvcc.sh"], check=True, capture_output=True,
                          text=True).stdout.strip()
    with tempfile.TemporaryDirectory() as temporary:
        folder = pathlib.Path(temporary)
        (folder / "calls.cu").write_text(source())
        free = measure(nvcc, folder, [])
        limited = measure(nvcc, folder, [f"-maxrregcount={REGISTERS_MAX}"])
    print(f"{'call':<20} {'group':<8} {'registers':>9} {'stack':>6}   "
          f"with -maxrregcount={REGISTERS_MAX}: registers, stack")
    above = 0
    for name, call, group, _ in kernels():
        registers, stack = free[name]
        fewer, more_stack = limited[name]
        above += fewer > REGISTERS_MAX
        print(f"{call:<20} {group:<8} {registers:>9} {stack:>6}   {fewer:>9} {more_stack:>6}")
    print(f"{len(limited) - above} passed, {above} failed")
    return 1 if above else 0


if __name__ == "__main__":
    sys.exit(main())
