# SPDX-License-Identifier: Apache-2.0
# mypy: disable-error-code="import-not-found"
"""Reading what a rank wants of a checkpoint, by one call for as much as memory is to hold."""

from __future__ import annotations

import contextlib
import io
import math
import posixpath
from typing import TYPE_CHECKING, Any

import torch
from torch.distributed.checkpoint.planner import LoadItemType

from gofs._boxes import RUN_BYTES_MIN, run_begins, run_bytes
from gofs._buffers import bytes_to_fill
from gofs._device import DeviceMemory
from gofs._gpu_memory import reached_memory

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from gofs._file import File
    from gofs._volume import Volume

# What is read to be copied to where it belongs is at most so much at a time, and one item.
_STAGED_BYTES_MAX = 256 << 20


class _Reads:
    """What is to be read, and what is to be done then."""

    def __init__(self, volume: Volume, folder: str, files: contextlib.ExitStack) -> None:
        self._volume = volume
        self._folder = folder
        self._stack = files
        self._files: dict[str, File] = {}
        self._ranges: list[tuple[File, int, Any]] = []
        self._after: list[Callable[[], None]] = []
        self._staged_bytes = 0

    def memory_of(self, tensor: Any) -> DeviceMemory | memoryview | None:
        """What is read into; None: of another GPU than the volume's."""
        memory = reached_memory(self._volume, tensor)
        if memory is None and str(tensor.device) == "cpu":
            return bytes_to_fill(tensor)
        return memory

    def add(self, place: Mapping[str, Any], begin: int, memory: Any) -> None:
        """`memory` is to have the item's bytes from `begin` on."""
        name = place["file"]
        if name not in self._files:
            path = posixpath.join(self._folder, name)
            self._files[name] = self._stack.enter_context(self._volume.open(path))
        self._ranges.append((self._files[name], place["offset"] + begin, memory))

    def then(self, act: Callable[[], None], staged_bytes: int = 0) -> None:
        """`act` is called when all that was added before is there."""
        self._after.append(act)
        self._staged_bytes += staged_bytes
        if self._staged_bytes >= _STAGED_BYTES_MAX:
            self.perform()

    def perform(self) -> None:
        counts = self._volume.read_ranges(self._ranges)
        for count, (file, offset, memory) in zip(counts, self._ranges):
            if count != _bytes_of(memory):
                raise ValueError(
                    f"{file.name!r}: the checkpoint is incomplete: the file ends at byte "
                    f"{offset + count}, within an item"
                )
        for act in self._after:
            act()
        self._ranges, self._after, self._staged_bytes = [], [], 0


def read_items(
    volume: Volume, folder: str, places: Mapping[Any, Any], items: Sequence[Any], planner: Any
) -> None:
    """Has `planner` take all of a load plan's items.

    Raises ValueError where the checkpoint has not what is wanted, and OSError as Volume.open().
    """
    with contextlib.ExitStack() as files:
        reads = _Reads(volume, folder, files)
        for item in items:
            place = places.get(item.storage_index)
            if place is None:
                raise ValueError(f"{folder}: the checkpoint has no {item.storage_index!r}")
            if item.type == LoadItemType.BYTE_IO:
                _add_bytes(reads, place, item, planner)
            else:
                _add_tensor(reads, place, item, planner)
        reads.perform()


def _add_bytes(reads: _Reads, place: Mapping[str, Any], item: Any, planner: Any) -> None:
    contents = bytearray(place["bytes"])
    reads.add(place, 0, contents)
    reads.then(lambda: planner.load_bytes(item, io.BytesIO(contents)), len(contents))


def _add_tensor(reads: _Reads, place: Mapping[str, Any], item: Any, planner: Any) -> None:
    if place["dtype"] is None:
        raise ValueError(f"{item.storage_index.fqn}: was saved as bytes, and is loaded as a tensor")
    target = planner.resolve_tensor(item).detach()
    offsets, lengths = tuple(item.storage_offsets), tuple(item.lengths)
    if tuple(target.shape) != lengths:
        raise ValueError(
            f"{item.storage_index.fqn}: the plan wants {lengths}, for a tensor of "
            f"{tuple(target.shape)}"
        )
    dtype = getattr(torch, place["dtype"])
    shape = tuple(place["shape"])
    ends = zip(offsets, lengths, shape)
    if any(begin < 0 or begin + size > whole for begin, size, whole in ends):
        raise ValueError(
            f"{item.storage_index.fqn}: the plan wants {lengths} from {offsets} on, of what "
            f"was saved as {shape}"
        )
    rows = dtype.itemsize * math.prod(shape[1:])  # bytes of one
    box = [range(begin, begin + size) for begin, size in zip(offsets, lengths)]
    run = run_bytes(shape, box, dtype.itemsize)
    is_whole_runs = run >= RUN_BYTES_MIN or run == _bytes_of(target)
    if is_whole_runs and _takes_bytes(target, dtype):
        memory = reads.memory_of(target)
        if memory is not None:
            for number, begin in enumerate(run_begins(shape, box, dtype.itemsize)):
                reads.add(place, begin, _part(memory, number * run, run))
            reads.then(lambda: planner.commit_tensor(item, target))
            return
    first, count = (offsets[0], lengths[0]) if shape else (0, 1)
    staged = torch.empty((count, *shape[1:]) if shape else (), dtype=dtype)
    if _bytes_of(staged) > 0:
        reads.add(place, first * rows, staged)

    def copy() -> None:
        part = staged
        for dim in range(1, len(shape)):
            part = part.narrow(dim, offsets[dim], lengths[dim])
        target.copy_(part)
        planner.commit_tensor(item, target)

    reads.then(copy, _bytes_of(staged))


def _takes_bytes(target: Any, dtype: Any) -> bool:
    """Whether the bytes of the file are those of the tensor's memory."""
    return bool(
        target.dtype == dtype
        and target.is_contiguous()
        and not target.is_conj()
        and not target.is_neg()
        and target.numel() > 0
    )


def _part(memory: DeviceMemory | memoryview, begin: int, size: int) -> DeviceMemory | memoryview:
    if isinstance(memory, memoryview):
        return memory[begin : begin + size]
    return memory.part(begin, size)


def _bytes_of(memory: Any) -> int:
    if isinstance(memory, (bytearray, memoryview)):
        return len(memory)
    if isinstance(memory, DeviceMemory):
        return memory.size
    return int(memory.numel() * memory.element_size())
