#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Saves and loads a state dict on the GPU: by gofs.torch.checkpoint on a volume, and beside it by
torch.save and by the own writer of torch.distributed.checkpoint on the machine's file system. All
are durable before the clock stops.

usage: checkpoint.py VOLUME FOLDER [--parameters N] [--times N]

VOLUME is an image, which is made where it is missing. The best of all times is printed. Needs a GPU
and torch.
"""

from __future__ import annotations

import argparse
import os
import pathlib
import shutil
import time
from typing import TYPE_CHECKING, Any

import torch
import torch.distributed.checkpoint as dcp

import gofs
from gofs.torch.checkpoint import GofsReader, GofsWriter

if TYPE_CHECKING:
    from collections.abc import Callable

WIDTH = 4096


def make_state(parameters: int) -> dict[str, torch.Tensor]:
    """Layers as a language model has them, in bfloat16."""
    layer = {"attention": 4 * WIDTH * WIDTH, "up": 4 * WIDTH * WIDTH, "norm": WIDTH}
    count = max(parameters // sum(layer.values()), 1)
    generator = torch.Generator("cuda").manual_seed(1)
    return {
        f"layers.{number}.{name}": torch.randn(
            size, dtype=torch.bfloat16, device="cuda", generator=generator
        )
        for number in range(count)
        for name, size in layer.items()
    }


def best(times: int, act: Callable[[], Any], before: Callable[[], Any] = lambda: None) -> float:
    """Seconds of the fastest."""
    took = []
    for _ in range(times):
        before()
        torch.cuda.synchronize()
        began = time.perf_counter()
        act()
        torch.cuda.synchronize()
        took.append(time.perf_counter() - began)
    return min(took)


def sync_all(folder: pathlib.Path) -> None:
    for path in [*folder.rglob("*"), folder]:
        descriptor = os.open(path, os.O_RDONLY)
        os.fsync(descriptor)
        os.close(descriptor)


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
    image = wanted.volume.split("?")[0]
    if not os.path.exists(image):
        gofs.mkfs(image, 4 * size + (1 << 30))
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
        print(
            f"{title:<28} save {saved:>6.2f} s {size / saved / 1e9:>6.2f} GB/s"
            f"   load {loaded:>6.2f} s {size / loaded / 1e9:>6.2f} GB/s",
            flush=True,
        )

    print(f"{size / 1e9:.2f} GB in {len(state)} tensors")
    with gofs.mount(wanted.volume, writable=True, backend="cuda") as volume:
        report(
            "gofs.torch.checkpoint",
            lambda: dcp.save(state, storage_writer=GofsWriter(volume, "/ckpt"), no_dist=True),
            lambda: dcp.load(state, storage_reader=GofsReader(volume, "/ckpt"), no_dist=True),
        )
    own = wanted.folder / "dcp"

    def save_by_torch() -> None:
        torch.save(state, wanted.folder / "state.pt")
        sync_all(wanted.folder)

    def load_by_torch() -> None:
        loaded = torch.load(wanted.folder / "state.pt", map_location="cuda", weights_only=True)
        for name, tensor in loaded.items():
            state[name].copy_(tensor)

    def save_by_dcp() -> None:
        dcp.save(state, storage_writer=dcp.FileSystemWriter(own, sync_files=True), no_dist=True)
        sync_all(own)

    report("torch.save", save_by_torch, load_by_torch)
    report(
        "torch.distributed.checkpoint",
        save_by_dcp,
        lambda: dcp.load(state, storage_reader=dcp.FileSystemReader(own), no_dist=True),
    )
    shutil.rmtree(own)
    (wanted.folder / "state.pt").unlink()


if __name__ == "__main__":
    main()
