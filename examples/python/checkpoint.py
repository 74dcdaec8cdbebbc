#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Saves and loads a state dict, on the GPU where there is one: by gofs.torch.checkpoint on a
volume, and beside it by torch.save and by the own writer of torch.distributed.checkpoint on the
machine's file system. All are durable before the clock stops.

usage: checkpoint.py VOLUME FOLDER [--parameters N] [--times N]
       torchrun --nproc-per-node N checkpoint.py SOCKET FOLDER [--parameters N] [--times N]

VOLUME is an image, which is made where it is missing. Ranks share the volume of the server at
SOCKET: each has the whole state on the same GPU, as with data parallelism, and saves a part of it.
The best of all times is printed. Needs torch.
"""

from __future__ import annotations

import argparse
import os
import pathlib
import shutil
import stat
import time
from typing import TYPE_CHECKING, Any

import torch
import torch.distributed as dist
import torch.distributed.checkpoint as dcp

import gofs
from gofs.torch.checkpoint import GofsReader, GofsWriter

if TYPE_CHECKING:
    from collections.abc import Callable

WIDTH = 4096
DEVICE = "cuda" if torch.cuda.is_available() else "cpu"
RANKS = int(os.environ.get("WORLD_SIZE", "1"))
IS_FIRST = int(os.environ.get("RANK", "0")) == 0


def make_state(parameters: int) -> dict[str, torch.Tensor]:
    """Layers as a language model has them, in bfloat16."""
    layer = {"attention": 4 * WIDTH * WIDTH, "up": 4 * WIDTH * WIDTH, "norm": WIDTH}
    count = max(parameters // sum(layer.values()), 1)
    generator = torch.Generator(DEVICE).manual_seed(1)
    return {
        f"layers.{number}.{name}": torch.randn(
            size, dtype=torch.bfloat16, device=DEVICE, generator=generator
        )
        for number in range(count)
        for name, size in layer.items()
    }


def wait_for_all() -> None:
    if DEVICE == "cuda":
        torch.cuda.synchronize()
    if RANKS > 1:
        dist.barrier()


def best(times: int, act: Callable[[], Any], before: Callable[[], Any] = lambda: None) -> float:
    """Seconds of the fastest, until the last rank is done."""
    took = []
    for _ in range(times):
        before()
        wait_for_all()
        began = time.perf_counter()
        act()
        wait_for_all()
        took.append(time.perf_counter() - began)
    return min(took)


def sync_all(folder: pathlib.Path) -> None:
    for path in [*folder.rglob("*"), folder]:
        descriptor = os.open(path, os.O_RDONLY)
        os.fsync(descriptor)
        os.close(descriptor)


def open_volume(spec: str, size: int) -> gofs.Volume:
    """One with room for a state of `size` bytes."""
    image = spec.split("?")[0]
    if os.path.exists(image) and stat.S_ISSOCK(os.stat(image).st_mode):
        return gofs.attach(spec)
    if RANKS > 1:
        raise SystemExit("checkpoint: ranks share a volume that gofsd serves; name its socket")
    if not os.path.exists(image):
        gofs.mkfs(image, 4 * size + (1 << 30))
    return gofs.mount(spec, writable=True, backend=DEVICE)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("volume")
    parser.add_argument("folder", type=pathlib.Path)
    parser.add_argument("--parameters", type=int, default=1_000_000_000)
    parser.add_argument("--times", type=int, default=3)
    wanted = parser.parse_args()
    state = make_state(wanted.parameters)
    size = sum(tensor.numel() * tensor.element_size() for tensor in state.values())
    digests = {name: tensor.view(torch.int16).sum().item() for name, tensor in state.items()}
    if RANKS > 1:
        dist.init_process_group("gloo")
    wanted.folder.mkdir(parents=True, exist_ok=True)

    def zero() -> None:
        for tensor in state.values():
            tensor.zero_()

    def report(title: str, save: Callable[[], Any], load: Callable[[], Any]) -> None:
        saved = best(wanted.times, save)
        loaded = best(wanted.times, load, zero)
        for name, tensor in state.items():
            if tensor.view(torch.int16).sum().item() != digests[name]:
                raise SystemExit(f"checkpoint: {title}: {name} has other values than before")
        if not IS_FIRST:
            return
        print(
            f"{title:<28} save {saved:>6.2f} s {size / saved / 1e9:>6.2f} GB/s"
            f"   load {loaded:>6.2f} s {size / loaded / 1e9:>6.2f} GB/s",
            flush=True,
        )

    if IS_FIRST:
        print(f"{size / 1e9:.2f} GB in {len(state)} tensors, {RANKS} rank(s)")
    with open_volume(wanted.volume, size) as volume:
        report(
            "gofs.torch.checkpoint",
            lambda: dcp.save(state, storage_writer=GofsWriter(volume, "/ckpt"), no_dist=RANKS == 1),
            lambda: dcp.load(state, storage_reader=GofsReader(volume, "/ckpt"), no_dist=RANKS == 1),
        )
    own = wanted.folder / "dcp"

    def save_by_torch() -> None:
        torch.save(state, wanted.folder / "state.pt")
        sync_all(wanted.folder)

    def load_by_torch() -> None:
        loaded = torch.load(wanted.folder / "state.pt", map_location=DEVICE, weights_only=True)
        for name, tensor in loaded.items():
            state[name].copy_(tensor)

    def save_by_dcp() -> None:
        writer = dcp.FileSystemWriter(own, sync_files=True)
        dcp.save(state, storage_writer=writer, no_dist=RANKS == 1)
        sync_all(own)

    if RANKS == 1:
        report("torch.save", save_by_torch, load_by_torch)
        (wanted.folder / "state.pt").unlink()
    report(
        "torch.distributed.checkpoint",
        save_by_dcp,
        lambda: dcp.load(state, storage_reader=dcp.FileSystemReader(own), no_dist=RANKS == 1),
    )
    if IS_FIRST:
        shutil.rmtree(own)
    if RANKS > 1:
        dist.destroy_process_group()


if __name__ == "__main__":
    main()
