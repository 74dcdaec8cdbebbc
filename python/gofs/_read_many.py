# SPDX-License-Identifier: Apache-2.0
"""Many whole files, read by few calls."""

from __future__ import annotations

import itertools
import operator
import os
from typing import TYPE_CHECKING, Any

from gofs import _moving
from gofs._arrays import default_framework, framework_named
from gofs._buffers import bytes_to_fill
from gofs._device import common_stream
from gofs._gpu_memory import gpu_memory
from gofs._numbers import LONG_MAX, whole_number
from gofs._packed import PackedFiles, read_packed, read_packed_array

if TYPE_CHECKING:
    from collections.abc import Sequence

    from gofs._arrays import Framework
    from gofs._typing import AnyPath, Memory, Stream
    from gofs._volume import Volume

# Where each of several files begins in one piece of memory: no type is aligned to more.
_ALIGNMENT = 256


def read_many(
    volume: Volume, paths: Sequence[AnyPath], packed: bool, framework: str | None, device: Any
) -> list[Any] | PackedFiles:
    """Volume.read_many()."""
    names = [os.fspath(path) for path in paths]  # asked for here, and nowhere else
    found = _read_named(volume, names, packed, framework, device)
    return found._replace(names=list(paths)) if isinstance(found, PackedFiles) else found


def _read_named(
    volume: Volume, paths: Sequence[str | bytes], packed: bool, framework: str | None, device: Any
) -> list[Any] | PackedFiles:
    if framework is None and device is None:
        return read_packed(volume, paths) if packed else _read_each(volume, paths)
    place = "cpu" if device is None else device
    made = framework_named(framework or default_framework(place), place, volume)
    if not packed:
        return _read_arrays(volume, paths, made)
    files = read_packed_array(volume, paths, made)
    return files._replace(data=made.place(files.data))


def _read_each(volume: Volume, paths: Sequence[AnyPath]) -> list[bytes]:
    return volume._core.read_files_as_bytes(paths, volume._core.sizes(paths))


def _read_arrays(volume: Volume, paths: Sequence[AnyPath], made: Framework) -> list[Any]:
    rooms = volume._core.sizes(paths, _ALIGNMENT)
    offsets = [0, *itertools.accumulate(rooms)]
    data = made.empty(offsets[-1])
    counts = read_many_into(volume, paths, data, offsets, made.stream)
    return made.parts(made.place(data), rooms, counts)


def read_many_into(
    volume: Volume,
    paths: Sequence[AnyPath],
    buffer: Memory,
    offsets: list[int],
    stream: Stream | None,
) -> list[int]:
    """Volume.read_many_into()."""
    names = [os.fspath(path) for path in paths]
    if len(offsets) != len(paths) + 1:
        raise ValueError(f"{len(offsets)} offsets for {len(paths)} files: one more than files")
    offsets = _whole_numbers(offsets)
    if offsets[0] < 0 or sorted(offsets) != offsets:
        raise ValueError("offsets: none is negative, or less than the one before")
    memory = gpu_memory(volume, buffer, fills=True)
    if memory is None:
        flat = bytes_to_fill(buffer)
        _expect_room(offsets[-1], len(flat))
        return volume._core.read_files_to_host(names, offsets, flat)
    _expect_room(offsets[-1], memory.size)
    order = common_stream([memory], stream)
    return _moving.read_files(volume._core, names, offsets, memory, order)


def _whole_numbers(offsets: list[Any]) -> list[int]:
    try:
        return list(map(operator.index, offsets))
    except TypeError:
        for each in offsets:
            whole_number("offsets", each, least=-LONG_MAX, most=LONG_MAX)
        raise


def _expect_room(wanted: int, size: int) -> None:
    if wanted > size:
        raise ValueError(f"the buffer has {size} bytes, and the files are to have {wanted}")


def read_dir(
    volume: Volume, directory: str, packed: bool, framework: str | None, device: Any
) -> dict[str, Any] | PackedFiles:
    """Volume.read_dir()."""
    with volume.scandir(directory) as entries:
        found = {entry.name: entry.path for entry in entries if entry.is_file()}
    names = sorted(found)
    paths = [found[name] for name in names]
    if packed:
        files = volume.read_many(paths, packed=True, framework=framework, device=device)
        return files._replace(names=names)
    return dict(zip(names, volume.read_many(paths, framework=framework, device=device)))
