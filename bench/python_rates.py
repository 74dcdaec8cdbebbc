#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""What the Python package's calls move between a volume and the memory of a GPU, in GB/s: tensors,
small ranges, small files, files of safetensors beside the own loader of safetensors; and how long
gofs.cuda.link takes.

usage: python_rates.py VOLUME FOLDER [--gigabytes N] [--files N]

VOLUME is an image, which is made where it is missing; one in memory wants room for all that is
written to it, as in "/dev/shm/vol.img?media=memory&spare=24G". FOLDER has the file of safetensors
for its own loader. Each line is the middle one of five; what is read is compared with what was
written. Needs a GPU and torch; safetensors, where its loader is to be compared with.
"""

from __future__ import annotations

import argparse
import importlib.util
import os
import pathlib
import statistics
import time
from typing import TYPE_CHECKING, Any

import torch

import gofs
import gofs.cuda
import gofs.safetensors
from gofs.torch import BatchLoader

if TYPE_CHECKING:
    from collections.abc import Callable

GIB = 1 << 30
TIMES = 5
SMALL = 16 << 10
RANGES = 100_000
DIRECTORY = "/files"

KERNEL = r"""
#include <gofs/gofs_device.h>
extern "C" __global__ void read_block(const void* volume, int fd, char* buffer,
                                      unsigned long long bytes) {
  gofs_pread_block(volume, fd, buffer + blockIdx.x * bytes, bytes, blockIdx.x * bytes);
}
"""


def measure(title: str, size: int, act: Callable[[], Any], times: int = TIMES) -> None:
    took = []
    for _ in range(times):
        torch.cuda.synchronize()
        began = time.perf_counter()
        act()
        torch.cuda.synchronize()
        took.append(time.perf_counter() - began)
    seconds = statistics.median(took)
    print(f"{title:<46} {seconds * 1e3:>9.2f} ms {size / seconds / 1e9:>7.2f} GB/s", flush=True)


def expect(same: bool, title: str) -> None:
    if not same:
        raise SystemExit(f"python_rates: {title}: other bytes than were written")


def of_one_file(volume: gofs.Volume) -> None:
    tensor = torch.randint(0, 256, (GIB,), dtype=torch.uint8, device="cuda")
    found = torch.zeros_like(tensor)

    def write_new() -> None:
        volume.write("/tensor", tensor)

    def remove() -> None:
        volume.unlink("/tensor")

    write_new()
    remove()
    measure("write, 1 GiB, a new file", GIB, write_new, times=1)
    measure("write, 1 GiB, instead of what is there", GIB, write_new)
    with volume.open("/tensor", "r+b", buffering=0) as file:
        measure("pwrite, 1 GiB, over what is there", GIB, lambda: file.pwrite(tensor, 0))
    measure("read_into, 1 GiB", GIB, lambda: volume.read_into("/tensor", found))
    expect(torch.equal(tensor, found), "read_into")
    pinned = torch.zeros(GIB, dtype=torch.uint8, pin_memory=True)
    measure("read_into, 1 GiB of pinned memory", GIB, lambda: volume.read_into("/tensor", pinned))
    expect(torch.equal(pinned, tensor.cpu()), "pinned memory")

    order = torch.randperm(GIB // SMALL)[:RANGES].tolist()
    order += torch.randint(0, GIB // SMALL, (RANGES - len(order),)).tolist()
    rows = torch.zeros((RANGES, SMALL), dtype=torch.uint8, device="cuda")
    with volume.open("/tensor", "rb", buffering=0) as file:
        ranges = [(file, at * SMALL, rows[i]) for i, at in enumerate(order)]
        measure(
            f"read_ranges, {RANGES:,} of 16 KiB", RANGES * SMALL, lambda: volume.read_ranges(ranges)
        )
        offsets = torch.tensor(order) * SMALL
        rows.zero_()
        measure(
            f"read_rows, {RANGES:,} of 16 KiB",
            RANGES * SMALL,
            lambda: volume.read_rows(file, offsets, rows),
        )
        volume.write("/rows", tensor)
        measure(
            f"write_rows, {RANGES:,} of 16 KiB, over what is there",
            RANGES * SMALL,
            lambda: volume.write_rows("/rows", offsets, rows),
        )
        volume.unlink("/rows")
    wanted = tensor.reshape(-1, SMALL)[torch.tensor(order, device="cuda")]
    expect(torch.equal(rows, wanted), "read_ranges")


def of_many_files(volume: gofs.Volume, count: int) -> None:
    contents = os.urandom(SMALL)
    there = len(volume.listdir(DIRECTORY)) if volume.exists(DIRECTORY) else 0
    volume.makedirs(DIRECTORY, exist_ok=True)
    for first in range(there, count, 10_000):
        names = range(first, min(first + 10_000, count))
        volume.write_many(DIRECTORY, {f"{name:07d}": contents for name in names})
    paths = [f"{DIRECTORY}/{name:07d}" for name in range(count)]
    size = count * SMALL
    measure(
        f"read_many, {count:,} files of 16 KiB",
        size,
        lambda: volume.read_many(paths, device="cuda"),
    )
    measure(
        f"read_many, packed, {count:,} files of 16 KiB",
        size,
        lambda: volume.read_many(paths, packed=True, device="cuda"),
    )
    room = torch.zeros(size, dtype=torch.uint8, device="cuda")
    offsets = list(range(0, size + 1, SMALL))
    measure(
        f"read_many_into, {count:,} files of 16 KiB",
        size,
        lambda: volume.read_many_into(paths, room, offsets),
    )
    wanted = torch.frombuffer(bytearray(contents), dtype=torch.uint8).cuda()
    expect(there > 0 or bool((room.reshape(count, SMALL) == wanted).all()), "read_many_into")
    del room
    measure(
        f"read_dir, {count:,} files of 16 KiB",
        size,
        lambda: volume.read_dir(DIRECTORY, device="cuda"),
    )
    for batch in (64, 512, 4096):
        loader = BatchLoader(volume, paths, batch)
        measure(f"BatchLoader, batches of {batch}", size, lambda: sum(1 for _ in loader), times=3)


def of_safetensors(volume: gofs.Volume, folder: pathlib.Path, size: int) -> None:
    part = 256 << 20
    tensors = {
        f"t{n}": torch.randn(part // 2, dtype=torch.bfloat16, device="cuda")
        for n in range(size // part)
    }
    volume.sync()  # what was written before is no part of it
    measure(
        f"safetensors.save_file, {size / GIB:.0f} GiB, durable",
        size,
        lambda: gofs.safetensors.save_file(volume, tensors, "/t.safetensors"),
        times=3,
    )

    def load() -> dict[str, Any]:
        return gofs.safetensors.load_file(volume, "/t.safetensors", "cuda", framework="pt")

    found = load()
    expect(all(torch.equal(found[name], tensors[name]) for name in tensors), "safetensors")
    del found
    measure(f"safetensors.load_file, {size / GIB:.0f} GiB", size, load)
    if importlib.util.find_spec("safetensors") is None:
        print("safetensors is not installed: its own loader is not measured")
        return
    import safetensors.torch

    own = folder / "t.safetensors"

    def save_own() -> None:
        safetensors.torch.save_file(tensors, own)
        with own.open("rb") as file:
            os.fsync(file)

    measure(
        f"safetensors' own writer, {size / GIB:.0f} GiB to {folder}", size, save_own, times=3
    )
    measure(
        f"safetensors' own loader, {size / GIB:.0f} GiB of {folder}",
        size,
        lambda: safetensors.torch.load_file(own, device="cuda"),
    )
    own.unlink()


def of_linking() -> None:
    for title in ("gofs.cuda.link, compiled and linked", "gofs.cuda.link, again"):
        began = time.perf_counter()
        module = gofs.cuda.link(KERNEL)
        took = time.perf_counter() - began
        print(f"{title:<46} {took * 1e3:>9.2f} ms   {module.timings}")


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").split("\n\n")[0])
    parser.add_argument("volume")
    parser.add_argument("folder", type=pathlib.Path)
    parser.add_argument("--gigabytes", type=int, default=8)
    parser.add_argument("--files", type=int, default=100_000)
    wanted = parser.parse_args()
    image = wanted.volume.split("?")[0]
    if not os.path.exists(image):
        gofs.mkfs(image, (2 * wanted.gigabytes + 8) * GIB + 2 * wanted.files * SMALL)
    of_linking()
    with gofs.mount(wanted.volume, writable=True, backend="cuda") as volume:
        of_one_file(volume)
        of_many_files(volume, wanted.files)
        of_safetensors(volume, wanted.folder, wanted.gigabytes * GIB)


if __name__ == "__main__":
    main()
