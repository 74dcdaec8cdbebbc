# SPDX-License-Identifier: Apache-2.0
"""The contents of one file, read and written by its path."""

from __future__ import annotations

import os
from contextlib import closing
from typing import TYPE_CHECKING, Any

from gofs import _moving
from gofs._buffers import memory_to_fill, memory_to_read
from gofs._device import common_stream
from gofs._gpu_memory import gpu_memory
from gofs._modes import REPLACES
from gofs._new_arrays import read_array
from gofs._numbers import not_negative, permissions_number, truth_value
from gofs._read_sizes import within
from gofs._transfer import Transfer, read_async, write_async

if TYPE_CHECKING:
    from gofs._typing import AnyPath, Memory, Stream
    from gofs._volume import Volume


def read_file(
    volume: Volume, path: AnyPath, offset: int, size: int | None, dtype: Any, like: Any
) -> Any:
    """Volume.read()."""
    if dtype is not None or like is not None:
        return read_array(volume, path, offset, size, dtype, like)
    not_negative("offset", offset, path)
    with closing(volume._core.open(path, os.O_RDONLY, 0)) as file:
        if size is None:
            return file.pread(max(file.stat().size_bytes - offset, 0), offset)
        return file.pread(within(file, not_negative("size", size, path), offset), offset)


def read_into(
    volume: Volume, path: AnyPath, buffer: Memory, offset: int, stream: Stream | None
) -> int:
    """Volume.read_into()."""
    memory = gpu_memory(volume, buffer, fills=True)
    with closing(volume._core.open(path, os.O_RDONLY, 0)) as file:
        begin = not_negative("offset", offset, path)
        if memory is None:
            return file.pread_into(memory_to_fill(buffer), begin)
        order = common_stream([memory], stream)
        return _moving.read(volume._core, [(file, begin, memory)], [path], order)[0]


def read_into_async(
    volume: Volume, path: AnyPath, buffer: Memory, offset: int, stream: Stream | None
) -> Transfer:
    """Volume.read_into_async()."""
    memory = gpu_memory(volume, buffer, fills=True)
    if memory is None:
        return Transfer(path, read_into(volume, path, buffer, offset, stream))
    begin = not_negative("offset", offset, path)
    order = common_stream([memory], stream)
    return read_async(volume._core, path, memory, begin, order)


def write_file(
    volume: Volume,
    path: AnyPath,
    data: Memory,
    permissions: int,
    stream: Stream | None,
    *,
    sync: bool,
) -> int:
    """Volume.write()."""
    permissions, sync = permissions_number(permissions), truth_value("sync", sync)
    memory = gpu_memory(volume, data, fills=False)
    if memory is None:
        return volume._core.write(path, memory_to_read(data), REPLACES, permissions, sync)
    # What can be refused is, before the file that is there is emptied.
    order = common_stream([memory], stream)
    _moving.check(volume._core, [memory], order)
    with closing(volume._core.open(path, REPLACES, permissions)) as file:
        _moving.write(volume._core, [(file, 0, memory)], [path], order)
        if sync:
            file.sync()
    return memory.size


def write_file_async(
    volume: Volume,
    path: AnyPath,
    data: Memory,
    permissions: int,
    stream: Stream | None,
    *,
    sync: bool,
) -> Transfer:
    """Volume.write_async()."""
    permissions, sync = permissions_number(permissions), truth_value("sync", sync)
    memory = gpu_memory(volume, data, fills=False)
    if memory is None:
        return Transfer(path, write_file(volume, path, data, permissions, stream, sync=sync))
    order = common_stream([memory], stream)
    return write_async(volume._core, path, memory, permissions, order, sync=sync)
