# SPDX-License-Identifier: Apache-2.0
"""Rows of one file: ranges of one size, moved between it and one array by one call."""

from __future__ import annotations

import array
import contextlib
import errno
from typing import TYPE_CHECKING, Any

from gofs._buffers import bytes_to_fill, bytes_to_read
from gofs._device import common_stream
from gofs._file import File
from gofs._gpu_memory import gpu_memory
from gofs._moving import refusals

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from gofs._typing import AnyPath, Memory, Stream
    from gofs._volume import Volume


def read_rows(
    volume: Volume,
    file: File | AnyPath,
    offsets: Sequence[int] | Any,
    rows: Memory,
    stream: Stream | None,
) -> list[int]:
    """Volume.read_rows()."""
    with _opened(volume, file, "rb") as opened:
        return _move(volume, opened, offsets, rows, stream, writes=False)


def write_rows(
    volume: Volume,
    file: File | AnyPath,
    offsets: Sequence[int] | Any,
    rows: Memory,
    stream: Stream | None,
) -> None:
    """Volume.write_rows()."""
    with _opened(volume, file, "r+b") as opened:
        _move(volume, opened, offsets, rows, stream, writes=True)


def _move(
    volume: Volume,
    file: File,
    offsets: Sequence[int] | Any,
    rows: Memory,
    stream: Stream | None,
    *,
    writes: bool,
) -> list[int]:
    begins = _integers(offsets)
    core = file._core_to_write(volume) if writes else file._core_to_read(volume)
    memory = file._gpu_memory_to_write(rows) if writes else gpu_memory(volume, rows, fills=True)
    if memory is not None:
        size = _row_bytes(len(begins), memory.size)
        order = common_stream([memory], stream)
        with refusals():
            counts = core.move_rows_of_gpu(begins, memory.address, size, writes, order)
    else:
        flat = bytes_to_read(rows) if writes else bytes_to_fill(rows)
        size = _row_bytes(len(begins), len(flat))
        counts = core.move_rows(begins, flat, size, writes)
    least = min(counts, default=size)
    if least < 0:
        code = -next(count for count in counts if count < 0)
        raise volume._core.error_of(code, file.name)
    if writes and least < size:
        raise volume._core.error_of(errno.ENOSPC, file.name)
    return counts


def _integers(offsets: Any) -> Any:
    """As 64-bit integers in the memory of the host; what lies there so is not copied."""
    if _is_of_truth_values(offsets):
        raise TypeError("offsets: integers from 0 to 2**63 - 1 are wanted, and no truth values")
    if hasattr(offsets, "__dlpack__") and hasattr(offsets, "tolist"):
        kind = str(getattr(offsets, "dtype", "")).rpartition(".")[2]
        device = str(getattr(offsets, "device", "cpu")).partition(":")[0]
        if kind == "int64" and device == "cpu" and offsets.ndim == 1:
            return _checked(offsets, int(offsets.min()) if len(offsets) else 0)
        offsets = offsets.tolist()
    try:
        made = array.array("q", offsets)
    except (TypeError, OverflowError) as error:
        raise type(error)(f"offsets: integers from 0 to 2**63 - 1 are wanted: {error}") from None
    return _checked(made, min(made, default=0))


def _is_of_truth_values(offsets: Any) -> bool:
    dtype = str(getattr(offsets, "dtype", "")).rpartition(".")[2]
    return dtype == "bool" or (isinstance(offsets, memoryview) and offsets.format == "?")


def _checked(offsets: Any, least: int) -> Any:
    if least < 0:
        raise ValueError(f"offsets: none is negative, as {least} is")
    return offsets


def _row_bytes(count: int, size: int) -> int:
    if count == 0 and size != 0:
        raise ValueError(f"no offsets, for rows of {size} bytes: one for each row")
    if count != 0 and size % count != 0:
        raise ValueError(f"{count} offsets, for rows of {size} bytes in all: one for each row")
    return size // count if count else 0


@contextlib.contextmanager
def _opened(volume: Volume, file: File | AnyPath, mode: str) -> Iterator[File]:
    if isinstance(file, File):
        yield file
        return
    with volume.open(file, mode, buffering=0) as opened:
        yield opened
