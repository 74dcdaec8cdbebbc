#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Small files for training: read by gofs.torch.BatchLoader straight to the GPU, by torch's
DataLoader from the machine's own file system, and by one kernel in Python that opens each file by
its name. It prints the rate of each, the share of the time in which the GPU had nothing to compute,
and how many processor cores were busy.

usage: images.py VOLUME FOLDER [--files N] [--bytes N] [--batch N] [--workers N]

VOLUME is an image, which is made where it is missing and keeps the files; FOLDER gets the same
files, and lies on the file system to compare with. Nothing is dropped from Linux's page cache: what
fits there is read from memory. Needs a GPU, torch and numba-cuda.
"""

from __future__ import annotations

import argparse
import os
import pathlib
import resource
import time
from typing import Any

import numpy
import torch

if not hasattr(numpy, "row_stack"):  # which numba-cuda looks for, and numpy 2.5 has no more
    vars(numpy)["row_stack"] = numpy.vstack
from numba import cuda
from torch.utils.data import DataLoader, Dataset

import gofs
import gofs.numba
from gofs.torch import BatchLoader

DIRECTORY = "/images"
FILES_AT_ONCE = 10_000


def name_of(number: int) -> str:
    return f"{number:07d}.bin"


def contents_of(number: int, size: int) -> bytes:
    return numpy.random.default_rng(number).bytes(size)


def make_files(volume: gofs.Volume, folder: pathlib.Path, count: int, size: int) -> None:
    """What is not there yet."""
    volume.makedirs(DIRECTORY, exist_ok=True)
    folder.mkdir(parents=True, exist_ok=True)
    there = len(volume.listdir(DIRECTORY))
    for first in range(there, count, FILES_AT_ONCE):
        numbers = range(first, min(first + FILES_AT_ONCE, count))
        files = {name_of(number): contents_of(number, size) for number in numbers}
        volume.write_many(DIRECTORY, files)
        for name, contents in files.items():
            (folder / name).write_bytes(contents)
    volume.sync()


class Folder(Dataset[torch.Tensor]):
    """The files of a folder, as torch's own way has them."""

    def __init__(self, folder: pathlib.Path, count: int) -> None:
        self._folder = folder
        self._count = count

    def __len__(self) -> int:
        return self._count

    def __getitem__(self, number: int) -> torch.Tensor:
        contents = (self._folder / name_of(number)).read_bytes()
        return torch.frombuffer(bytearray(contents), dtype=torch.uint8)


class Step:
    """What is computed of each batch, and for how long."""

    def __init__(self, size: int) -> None:
        self._weights = torch.randn(size, 256, device="cuda", dtype=torch.float16)
        self._events: list[tuple[torch.cuda.Event, torch.cuda.Event]] = []
        self.sum = 0

    def __call__(self, rows: torch.Tensor) -> None:
        begin, end = (torch.cuda.Event(enable_timing=True) for _ in range(2))
        begin.record()
        (rows.half() / 255) @ self._weights
        total = rows.sum(dtype=torch.int64)
        end.record()
        self._events.append((begin, end))
        self.sum += int(total)

    def seconds(self) -> float:
        torch.cuda.synchronize()
        return float(sum(begin.elapsed_time(end) for begin, end in self._events)) / 1e3


def busy_seconds() -> float:
    """Of processors: this process's, and its children's that have ended."""
    used = [resource.getrusage(who) for who in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN)]
    return sum(one.ru_utime + one.ru_stime for one in used)


def measure(title: str, batches: Any, files_at_once: int, size: int) -> int:
    """Computes of all batches, and prints how that went; the sum of all bytes."""
    # What CUDA and cuBLAS load when they are first asked is no cost of reading.
    Step(size)(torch.zeros((files_at_once, size), dtype=torch.uint8, device="cuda"))
    step = Step(size)
    files = 0
    torch.cuda.synchronize()
    began, busy = time.perf_counter(), busy_seconds()
    for rows in batches:
        step(rows)
        files += len(rows)
    computed = step.seconds()
    took = time.perf_counter() - began
    cores = (busy_seconds() - busy) / took
    print(
        f"{title:<24}{files / took:>12,.0f} files/s {files * size / took / 1e9:>7.2f} GB/s"
        f"   GPU idle {1 - computed / took:>4.0%}   {cores:.1f} cores busy",
        flush=True,
    )
    return step.sum


@cuda.jit
def sum_files(volume: Any, names: Any, room: Any, sums: Any) -> None:
    """Each block takes one file after the other: opens it by its name, reads it, adds it up."""
    block, thread = cuda.blockIdx.x, cuda.threadIdx.x
    buffer = room[block]
    total = numpy.int64(0)
    for number in range(block, names.shape[0], cuda.gridDim.x):
        fd = gofs.numba.open_block(volume, names[number].ctypes.data, 0, 0)
        got = gofs.numba.pread_block(volume, fd, buffer.ctypes.data, buffer.nbytes, 0)
        for at in range(thread, got, cuda.blockDim.x):
            total += buffer[at]
        cuda.syncthreads()
        gofs.numba.close_block(volume, fd)
    cuda.atomic.add(sums, 0, total)


def measure_kernel(volume: gofs.Volume, count: int, size: int) -> int:
    width = len(f"{DIRECTORY}/{name_of(0)}") + 1
    texts = b"".join(f"{DIRECTORY}/{name_of(n)}\0".encode() for n in range(count))
    names = cuda.to_device(numpy.frombuffer(texts, numpy.uint8).reshape(count, width))
    blocks = 4 * torch.cuda.get_device_properties(0).multi_processor_count
    room = cuda.device_array((blocks, size), numpy.uint8)
    sums = cuda.to_device(numpy.zeros(1, numpy.int64))
    sum_files[1, 128](volume.device_handle, names[:0], room, sums)  # compiles it
    cuda.synchronize()
    began, busy = time.perf_counter(), busy_seconds()
    sum_files[blocks, 128](volume.device_handle, names, room, sums)
    cuda.synchronize()
    took = time.perf_counter() - began
    print(
        f"{'a kernel in Python':<24}{count / took:>12,.0f} files/s "
        f"{count * size / took / 1e9:>7.2f} GB/s   {'':>13}   "
        f"{(busy_seconds() - busy) / took:.1f} cores busy",
        flush=True,
    )
    return int(sums.copy_to_host()[0])


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("volume")
    parser.add_argument("folder", type=pathlib.Path)
    parser.add_argument("--files", type=int, default=1_000_000)
    parser.add_argument("--bytes", type=int, default=16384)
    parser.add_argument("--batch", type=int, default=4096)
    parser.add_argument("--workers", type=int, default=16)
    wanted = parser.parse_args()
    if not os.path.exists(wanted.volume.split("?")[0]):
        gofs.mkfs(wanted.volume.split("?")[0], wanted.files * (wanted.bytes + 8192) * 3 // 2)
    with gofs.mount(wanted.volume, writable=True, backend="cuda") as volume:
        make_files(volume, wanted.folder, wanted.files, wanted.bytes)
        paths = [f"{DIRECTORY}/{name_of(number)}" for number in range(wanted.files)]
        loader = BatchLoader(volume, paths, wanted.batch)
        ours = (batch.rows() for batch in loader)
        theirs = DataLoader(
            Folder(wanted.folder, wanted.files),
            wanted.batch,
            num_workers=wanted.workers,
            pin_memory=True,
        )
        sums = {
            measure("gofs.torch.BatchLoader", ours, wanted.batch, wanted.bytes),
            measure(
                "torch's DataLoader",
                (rows.cuda() for rows in theirs),
                wanted.batch,
                wanted.bytes,
            ),
            measure_kernel(volume, wanted.files, wanted.bytes),
        }
    if len(sums) != 1:
        raise SystemExit("images: they have read different bytes")


if __name__ == "__main__":
    main()
