# SPDX-License-Identifier: Apache-2.0
"""Files of safetensors on a volume: written whole, and read whole, by tensor or by rows.

    from gofs.safetensors import load_file, safe_open, save_file

    save_file(volume, {"weight": weight, "bias": bias}, "/model.safetensors")
    tensors = load_file(volume, "/model.safetensors")                # of numpy
    tensors = load_file(volume, "/model.safetensors", framework="pt", device="cuda")
    with safe_open(volume, "/model.safetensors") as file:
        part = file.get_slice("weight")[128:256]                     # only these rows are read

The files are those of the package safetensors, which reads and writes them as well. What is to be
read is checked as it does, and a header that has a name twice is refused, too.
"""

from __future__ import annotations

import operator
import os
from math import prod
from typing import TYPE_CHECKING, Any, cast

from gofs._arrays import described, framework_named, row_numbers, rows_within
from gofs._boxes import RUN_BYTES_MIN, box_of, is_truth_value, run_begins, run_bytes
from gofs._buffers import memory_to_fill
from gofs._closing import Closing, closed_on_error
from gofs._gathered_writes import GatheredWrites
from gofs._given_volume import given_volume
from gofs._numbers import by_name, truth_value
from gofs._replacing import replacing
from gofs._runs import merged, read_runs
from gofs._safetensors_header import (
    DTYPE_BITS,
    LENGTH_BYTES,
    Header,
    SafetensorError,
    TensorInfo,
    build_header,
    header_bytes,
    parse_header,
    tensor_bytes,
)

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from gofs._arrays import Framework
    from gofs._file import File
    from gofs._runs import Run
    from gofs._typing import AnyPath
    from gofs._volume import Volume

__all__ = [
    "SafetensorError",
    "SafetensorsFile",
    "TensorSlice",
    "load_file",
    "safe_open",
    "save_file",
]

# What is read of a file first: the header, unless it is of thousands of tensors.
_FIRST_BYTES = 64 << 10
# Memory has the same remainder as the file's offset, so that blocks go to where they belong.
_BLOCK_BYTES = 4096


def save_file(
    volume: Volume,
    tensors: Mapping[str, Any],
    path: AnyPath,
    metadata: Mapping[str, str] | None = None,
    *,
    sync: bool = True,
    permissions: int | None = None,
) -> int:
    """Writes arrays of numpy or CuPy, or tensors of torch, to a file, or replaces it; its size in
    bytes.

    Readers see the old file until the new one is complete, and with `sync` it is durable when this
    returns. The new file has the owner of the old one, and its permissions unless others are given
    (0o666 where there was none); where `path` is a symbolic link, what that leads to is replaced.
    Arrays are written from where they are, in the host's memory and in that of the GPU that has
    mounted the volume; from another GPU they go through a copy each. What several of them share is
    written for each.

    Raises TypeError and ValueError for what a file cannot have, or is not contiguous, and OSError
    as Volume.open() and its like. Then the old file is as it was.
    """
    volume = given_volume(volume)
    truth_value("sync", sync)
    items = by_name("tensors", tensors)
    given = {_text(name): described(name, tensor) for name, tensor in items}
    beginning, header = build_header(
        {name: (each.dtype, each.shape) for name, each in given.items()}, metadata
    )
    with replacing(volume, os.fsdecode(path), sync=sync, permissions=permissions) as file:
        writes = GatheredWrites(volume, cast("File", file.raw))
        writes.add(0, beginning)
        for name, info in header.tensors.items():
            writes.add(header.data_begin + info.begin, given[name].data)
        writes.perform()
    return header.data_begin + header.data_bytes


def load_file(
    volume: Volume, path: AnyPath, device: Any = "cpu", *, framework: str = "numpy"
) -> dict[str, Any]:
    """All tensors of a file by name: arrays of numpy, or with framework="pt" tensors of torch.

    They share one piece of memory, which is read by one call. `device` is for torch: where that is
    the GPU that has mounted the volume, the file is read straight to there; else the memory is
    copied as one piece.

    Raises SafetensorError (a ValueError) for what is no such file, TypeError for types that the
    framework lacks, and OSError as Volume.open() and its like.
    """
    with safe_open(volume, path, framework=framework, device=device) as file:
        return file.get_tensors()


def safe_open(
    volume: Volume, path: AnyPath, framework: str = "numpy", device: Any = "cpu"
) -> SafetensorsFile:
    """Opens a file whose tensors are read one by one; errors are those of load_file()."""
    maker = framework_named(framework, device, given_volume(volume))
    file = volume.open(path)
    with closed_on_error(file):
        return SafetensorsFile(volume, file, maker)


class SafetensorsFile(Closing):
    """An open file: safe_open() makes it. Several threads may use it."""

    def __init__(self, volume: Volume, file: File, framework: Framework) -> None:
        self._volume = volume
        self._file = file
        self._framework = framework
        self._header = _read_header(file)

    def close(self) -> None:
        self._file.close()

    def keys(self) -> list[str]:
        """The tensors' names, sorted."""
        return sorted(self._header.tensors)

    def offset_keys(self) -> list[str]:
        """The tensors' names, in the order of their data."""
        return list(self._header.tensors)

    def metadata(self) -> dict[str, str] | None:
        """What the file says of itself; None where it says nothing."""
        return self._header.metadata

    def get_tensor(self, name: str) -> Any:
        """Raises KeyError where there is no such tensor."""
        info = self._info(name)
        return self._framework.view(self._read(info.begin, info.end), info.dtype, info.shape)

    def get_tensors(self) -> dict[str, Any]:
        """All of them, in the order of their data: views of one piece of memory."""
        flat = self._read(0, self._header.data_bytes)
        view = self._framework.view
        return {
            name: view(flat[info.begin : info.end], info.dtype, info.shape)
            for name, info in self._header.tensors.items()
        }

    def get_slice(self, name: str) -> TensorSlice:
        """A tensor of which parts will be read. Raises KeyError where there is no such tensor."""
        return TensorSlice(self, self._info(name))

    def place_of(self, name: str) -> tuple[TensorInfo, int]:
        """What a tensor is of, and where its bytes begin in the file. KeyError as above."""
        info = self._info(name)
        return info, self._header.data_begin + info.begin

    def _info(self, name: str) -> TensorInfo:
        try:
            return self._header.tensors[name]
        except KeyError:
            raise KeyError(f"{self._file.name!r} has no tensor {name!r}") from None

    def _read(self, begin: int, end: int) -> Any:
        """The bytes of the data from `begin` to `end`, where they are wanted."""
        offset = self._header.data_begin + begin
        framework = self._framework
        flat = _allocate(framework, end - begin, offset)
        counts = self._volume.read_ranges([(self._file, offset, flat)], stream=framework.stream)
        if counts != [end - begin]:
            raise self._cut()
        return framework.place(flat)

    def _read_runs(self, runs: Iterable[Run], size: int) -> Any:
        """Runs of the data, one behind the other: `size` bytes in all, where they are wanted."""
        framework = self._framework
        flat = _allocate(framework, size, 0)
        begin = self._header.data_begin
        in_file = ((begin + offset, count) for offset, count in runs)
        if not read_runs(self._volume, self._file, in_file, flat, framework.stream):
            raise self._cut()
        return framework.place(flat)

    def _read_rows(self, info: TensorInfo, rows: Any) -> Any:
        """These rows of a tensor, one behind the other. `rows`: what row_numbers() gives."""
        size = tensor_bytes(info.dtype, info.shape[1:])
        count = info.shape[0]
        framework = self._framework
        if framework.is_on_gpu:
            numbers = rows_within(rows, count)
            runs = merged((info.begin + row * size, size) for row in numbers)
            return self._read_runs(runs, len(numbers) * size)
        offset = self._header.data_begin + info.begin
        flat = _allocate(framework, memoryview(rows).nbytes // 8 * size, 0)
        file = self._file._core_to_read(self._volume)
        memory = memory_to_fill(flat)
        if not self._volume._core.read_rows(file, offset, size, count, rows, memory):
            raise self._cut()
        return framework.place(flat)

    def _cut(self) -> SafetensorError:
        return SafetensorError(f"{self._file.name!r} was cut while it was read")


class TensorSlice:
    """A tensor that is still in the file: [...] reads parts of it."""

    def __init__(self, file: SafetensorsFile, info: TensorInfo) -> None:
        self._file = file
        self._info = info

    def get_shape(self) -> list[int]:
        return list(self._info.shape)

    def get_dtype(self) -> str:
        """As the format names it, such as "F32"."""
        return self._info.dtype

    def __getitem__(self, index: Any) -> Any:
        """As arrays are indexed: by numbers, slices, lists, arrays, None and an ellipsis.

        Of numbers and slices only what they name is read, if its bytes lie in the file in one piece
        or in pieces of 4 KiB or more. Else the rows are read that the first index names: a number,
        a slice, a list or an array of numbers, or an array of truth values; what the others name is
        chosen from these in memory. All that is read is read to where the result is, 65,536 pieces
        by one call.
        """
        given = index if isinstance(index, tuple) else (index,)
        shape = self._info.shape
        if not shape:
            return self._scalar()[given]
        box = box_of(given, shape)
        if box is not None and self._is_in_long_runs(box):
            return _without_numbers(self._box(box), given)
        if not given or given[0] is Ellipsis or given[0] is None:
            return self._rows(slice(None))[given]
        first, *others = given
        if isinstance(first, slice):
            index = (slice(None), *others)  # by a name: mypy takes it for what Python 3.11 has
            return self._rows(first)[index]
        if hasattr(first, "__iter__") and _dimensions(first) > 0:
            rows = self._rows(first)
            if not others:
                return rows
            # With lists behind it this names elements, one by one, and a slice would not.
            among = (list(range(len(rows))), *others)
            return rows[among]
        element = (0, *others)
        return self._rows(self._one(first))[element]

    def _scalar(self) -> Any:
        data = self._file._read(self._info.begin, self._info.end)
        return self._file._framework.view(data, self._info.dtype, ())

    def _one(self, given: Any) -> slice:
        count = self._info.shape[0]
        row = operator.index(given)
        if is_truth_value(given) or not -count <= row < count:
            raise IndexError(f"row {given!r} of a tensor that has {count}")
        return slice(row % count, row % count + 1)

    def _is_in_long_runs(self, box: list[range]) -> bool:
        if DTYPE_BITS[self._info.dtype] % 8 != 0:
            return False
        run, size = self._run_and_size(box)
        return run >= RUN_BYTES_MIN or run == size

    def _run_and_size(self, box: list[range]) -> tuple[int, int]:
        """In bytes."""
        info = self._info
        itemsize = DTYPE_BITS[info.dtype] // 8
        return run_bytes(info.shape, box, itemsize), itemsize * prod(map(len, box))

    def _box(self, box: list[range]) -> Any:
        info, file = self._info, self._file
        run, size = self._run_and_size(box)
        begins = run_begins(info.shape, box, DTYPE_BITS[info.dtype] // 8)
        if run == size:
            begin = info.begin + next(begins, 0)  # nothing, perhaps
            flat = file._read(begin, begin + size)
        else:
            flat = file._read_runs(((info.begin + begin, run) for begin in begins), size)
        return file._framework.view(flat, info.dtype, tuple(map(len, box)))

    def _rows(self, wanted: Any) -> Any:
        """`wanted` is a slice, or a list or an array of numbers."""
        info = self._info
        count, *inner = info.shape
        numbers = range(*wanted.indices(count)) if isinstance(wanted, slice) else None
        if numbers is not None and numbers.step == 1:
            size = tensor_bytes(info.dtype, inner)
            begin = info.begin + numbers.start * size
            flat = self._file._read(begin, begin + len(numbers) * size)
            return self._file._framework.view(flat, info.dtype, (len(numbers), *inner))
        rows = row_numbers(wanted if numbers is None else numbers, count)
        flat = self._file._read_rows(info, rows)
        return self._file._framework.view(flat, info.dtype, (memoryview(rows).nbytes // 8, *inner))


def _without_numbers(found: Any, given: tuple[Any, ...]) -> Any:
    """What a box has, without the dimensions of which `given` names one number."""
    places = tuple(
        each if each is Ellipsis else slice(None) if isinstance(each, slice) else 0
        for each in given
    )
    return found[places] if 0 in places else found


def _allocate(framework: Framework, count: int, like: int) -> Any:
    """Memory whose address has the remainder of `like` by the size of a block."""
    room = framework.empty(count + _BLOCK_BYTES)
    begin = (like - framework.address(room)) % _BLOCK_BYTES
    return room[begin : begin + count]


def _dimensions(given: Any) -> int:
    return len(given.shape) if hasattr(given, "shape") else 1


def _read_header(file: File) -> Header:
    text, size = read_header_text(file)
    try:
        return parse_header(text, size)
    except SafetensorError as error:
        raise SafetensorError(f"{os.fsdecode(file.name)}: {error}") from None


def read_header_text(file: File) -> tuple[bytes, int]:
    """The header of an open file, which may say anything, and how many bytes the file has. Raises
    SafetensorError where it has no header."""
    size = file.stat().st_size
    beginning = bytearray(min(size, _FIRST_BYTES))
    _fill(file, beginning, 0)
    try:
        count = header_bytes(bytes(beginning[:LENGTH_BYTES]), size)
    except SafetensorError as error:
        raise SafetensorError(f"{os.fsdecode(file.name)}: {error}") from None
    text = beginning[LENGTH_BYTES : LENGTH_BYTES + count]
    if len(text) < count:
        rest = bytearray(count - len(text))
        _fill(file, rest, LENGTH_BYTES + len(text))
        text += rest
    return bytes(text), size


def _fill(file: File, buffer: bytearray, offset: int) -> None:
    if file.pread(buffer, offset) != len(buffer):
        raise SafetensorError(f"{os.fsdecode(file.name)}: the file was cut while it was read")


def _text(name: Any) -> str:
    if not isinstance(name, str):
        raise TypeError(f"names of tensors are text: {name!r}")
    return name
