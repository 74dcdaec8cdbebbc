# SPDX-License-Identifier: Apache-2.0
# mypy: disable-error-code="import-not-found,misc"
"""Graphs of PyTorch Geometric on a volume: features and edges that need not fit into memory.

    from gofs.torch.pyg import GofsFeatureStore, GofsGraphStore

    features, edges = GofsFeatureStore(volume, "/graph"), GofsGraphStore(volume, "/graph")
    features["paper", "x", None] = x                       # made once
    edges[("paper", "cites", "paper"), "coo"] = (row, col)
    NeighborLoader((features, edges), ...)                 # reads the rows that a batch has

A tensor is a safetensors file, of which one call reads rows. Both stores may have one folder. With
device="cuda" they read straight to the GPU that has mounted the volume, and to another one through
memory of the host.
"""

from __future__ import annotations

import contextlib
import errno
import importlib
import json
import os
import posixpath
from typing import TYPE_CHECKING, Any

try:
    from torch_geometric.data import EdgeAttr, FeatureStore, GraphStore, TensorAttr
except ImportError as error:
    raise ImportError(
        "gofs.torch.pyg needs torch_geometric 2.3 or later: pip install torch_geometric"
    ) from error

from gofs._arrays import described, framework_named, on_host, row_numbers, rows_within
from gofs._buffers import bytes_to_read
from gofs._entries import DirEntry
from gofs._given_volume import given_volume
from gofs._gpu_memory import reached_memory
from gofs._numbers import truth_value
from gofs._runs import merged, write_runs
from gofs._safetensors_header import tensor_bytes
from gofs.safetensors import SafetensorsFile, safe_open, save_file
from gofs.torch._names import file_name, key_of

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    from gofs._typing import AnyPath
    from gofs._volume import Volume

__all__ = ["GofsFeatureStore", "GofsGraphStore"]

_SUFFIX = ".safetensors"
_VALUES = "values"


class _Files:
    """The files of a store: one for each name in each group."""

    def __init__(
        self, volume: Volume, folder: str, framework: str, device: Any, sync: bool
    ) -> None:
        self.volume = volume
        self.sync = sync
        self._folder = folder
        self._framework = framework
        self._device = device

    def path(self, group: Any, name: str) -> str:
        return posixpath.join(self._folder, file_name(group), name + _SUFFIX)

    def open(self, path: str, *, for_data: bool = True) -> SafetensorsFile | None:
        """None where there is none. Unless it is `for_data`, no GPU is asked about."""
        made_as = (self._framework, self._device) if for_data else ("np", "cpu")
        try:
            return safe_open(self.volume, path, *made_as)
        except FileNotFoundError:
            return None

    def save(self, path: str, tensors: dict[str, Any], metadata: Any = None) -> None:
        self.volume.makedirs(posixpath.dirname(path), exist_ok=True)
        save_file(self.volume, tensors, path, metadata, sync=self.sync)

    def remove(self, path: str) -> bool:
        try:
            self.volume.unlink(path)
        except FileNotFoundError:
            return False
        return True

    def all_of(self) -> Iterator[tuple[Any, str]]:
        """Each group and name, in order. What no store has made is passed over."""
        if not self.volume.exists(self._folder):
            return
        for group in self._names(self._folder, DirEntry.is_dir):
            for name in self._names(posixpath.join(self._folder, group), DirEntry.is_file):
                if name.endswith(_SUFFIX):
                    yield key_of(group), name.removesuffix(_SUFFIX)

    def _names(self, folder: str, is_wanted: Callable[[DirEntry[str]], bool]) -> list[str]:
        """Those that are not hidden, as files are while they are written."""
        with self.volume.scandir(folder) as entries:
            found = [entry.name for entry in entries if is_wanted(entry)]
        return sorted(name for name in found if not name.startswith("."))


class _Stored:
    """How both stores are made."""

    _FOLDER: str

    def __init__(
        self,
        volume: Volume,
        path: AnyPath,
        *,
        framework: str = "pt",
        device: Any = "cpu",
        sync: bool = True,
    ) -> None:
        super().__init__()
        truth_value("sync", sync)
        folder = posixpath.join(os.fsdecode(path), self._FOLDER)
        # FeatureStore has attributes of its own mean tensors in some of its heirs.
        self.__dict__["_files"] = _Files(given_volume(volume), folder, framework, device, sync)


class GofsFeatureStore(_Stored, FeatureStore):
    """Tensors of nodes and edges below `path`/features.

    A tensor that is put is replaced as a whole, and durably unless `sync` is False. With an index
    its rows are written where they lie: others may see some of them before the rest, and of a row
    that the index has twice the later values are written. One that is not there yet can be put with
    an index that has each row once, in any order. `framework` says what is returned:
    tensors of torch ("pt") on `device`, arrays of numpy ("np") or of CuPy ("cp").

    Raises KeyError for a tensor that is not there, ValueError for rows that it has no place for,
    IndexError for rows that it has not, and OSError as Volume.open() and its like. Workers take a
    store as they take a volume.
    """

    _FOLDER = "features"

    def _put_tensor(self, tensor: Any, attr: Any) -> bool:
        path = self._path(attr)
        if attr.index is None:
            self._files.save(path, {_VALUES: tensor})
            return True
        try:
            self._put_rows(path, tensor, attr.index)
        except FileNotFoundError:
            self._files.save(path, {_VALUES: self._in_order(path, tensor, attr.index)})
        return True

    def _get_tensor(self, attr: Any) -> Any:
        file = self._files.open(self._path(attr))
        if file is None:
            raise KeyError(f"no tensor {attr.attr_name!r} of {attr.group_name!r} has been put")
        with file:
            if attr.index is None:
                return file.get_tensor(_VALUES)
            return file.get_slice(_VALUES)[attr.index]

    def _remove_tensor(self, attr: Any) -> bool:
        return bool(self._files.remove(self._path(attr)))

    def update_tensor(self, tensor: Any, *args: Any, **kwargs: Any) -> bool:
        """put_tensor(): what is there is replaced, and with an index the other rows stay."""
        return bool(self.put_tensor(tensor, *args, **kwargs))

    def _get_tensor_size(self, attr: Any) -> tuple[int, ...] | None:
        file = self._files.open(self._path(attr), for_data=False)
        if file is None:
            return None
        with file:
            shape = tuple(file.get_slice(_VALUES).get_shape())
        return shape if attr.index is None else _shape_of(shape, attr.index)

    def get_all_tensor_attrs(self) -> list[Any]:
        return [TensorAttr(group, key_of(name)) for group, name in self._files.all_of()]

    def _path(self, attr: Any) -> str:
        return str(self._files.path(attr.group_name, file_name(attr.attr_name)))

    def _put_rows(self, path: str, tensor: Any, index: Any) -> None:
        given = described(_VALUES, tensor)
        volume = self._files.volume
        # One file for all of it, though another may get its name meanwhile.
        with volume.open(path, "r+b") as file:
            opened = SafetensorsFile(volume, file, framework_named("np"))
            info, offset = opened.place_of(_VALUES)
            rows = _rows(index, info.shape[0])
            wanted = (len(rows), *info.shape[1:])
            fits = given.shape == wanted or (len(rows) == 1 and given.shape == wanted[1:])
            if given.dtype != info.dtype or not fits:
                raise ValueError(
                    f"{path}: the rows are {info.dtype} of shape {wanted}, and {given.dtype} of "
                    f"shape {given.shape} was given"
                )
            on_gpu = reached_memory(volume, tensor)
            host = bytes_to_read(on_host(tensor)) if on_gpu is None else memoryview(b"")
            size = tensor_bytes(info.dtype, info.shape[1:])
            for begin, end in _without_repeats(rows):
                runs = merged((offset + row * size, size) for row in rows[begin:end])
                if on_gpu is None:
                    write_runs(volume, file, runs, host[begin * size : end * size])
                else:
                    part = on_gpu.part(begin * size, (end - begin) * size)
                    write_runs(volume, file, runs, part)
            if self._files.sync:
                file.fsync()

    def _in_order(self, path: str, tensor: Any, index: Any) -> Any:
        """A tensor of which nothing is there, its rows as the index numbers them."""
        shape = described(_VALUES, tensor).shape
        with contextlib.suppress(IndexError):
            rows, all_rows = list(_rows(index, shape[0])), list(range(shape[0]))
            if sorted(rows) == all_rows:
                order = sorted(all_rows, key=rows.__getitem__)
                return tensor if order == all_rows else tensor[order]
        raise FileNotFoundError(
            errno.ENOENT, "no tensor has these rows yet: put all of it first, with index=None", path
        )


class GofsGraphStore(_Stored, GraphStore):
    """Edges below `path`/edges, in each layout that was put.

    They are replaced as a whole, and durably unless `sync` is False. `framework` and `device` are
    those of GofsFeatureStore.
    """

    _FOLDER = "edges"

    def _put_edge_index(self, edge_index: Any, edge_attr: Any) -> bool:
        row, col = edge_index
        size = None if edge_attr.size is None else list(edge_attr.size)
        metadata = {"size": json.dumps(size)}
        self._files.save(self._path(edge_attr), {"row": row, "col": col}, metadata)
        return True

    def _get_edge_index(self, edge_attr: Any) -> Any:
        file = self._files.open(self._path(edge_attr))
        if file is None:
            return None
        with file:
            tensors = file.get_tensors()
        return tensors["row"], tensors["col"]

    def _remove_edge_index(self, edge_attr: Any) -> bool:
        return bool(self._files.remove(self._path(edge_attr)))

    def get_all_edge_attrs(self) -> list[Any]:
        found = []
        for edge_type, name in self._files.all_of():
            layout, _, order = name.partition(".")
            file = self._files.open(self._files.path(edge_type, name), for_data=False)
            if file is None:
                continue  # it was removed meanwhile
            with file:
                size = json.loads((file.metadata() or {}).get("size", "null"))
            found.append(
                EdgeAttr(
                    edge_type,
                    layout,
                    is_sorted=bool(order),
                    size=None if size is None else tuple(size),
                )
            )
        return found

    def _path(self, attr: Any) -> str:
        order = ".sorted" if attr.is_sorted else ""
        return str(self._files.path(attr.edge_type, attr.layout.value + order))


def _rows(index: Any, count: int) -> Sequence[int]:
    """The rows that an index means, of `count`."""
    if isinstance(index, slice):
        return range(*index.indices(count))
    return rows_within(row_numbers([index] if _is_number(index) else index, count), count)


def _is_number(index: Any) -> bool:
    return not hasattr(index, "__iter__") or (hasattr(index, "shape") and len(index.shape) == 0)


def _shape_of(shape: tuple[int, ...], index: Any) -> tuple[int, ...]:
    """That of what an index names of a tensor. No data is read for it."""
    if isinstance(index, tuple) or index is Ellipsis or not shape:
        # numpy is told of a tensor that has one byte for all of its elements.
        numpy = importlib.import_module("numpy")
        return tuple(numpy.broadcast_to(numpy.uint8(0), shape)[index].shape)
    rows = _rows(index, shape[0])
    is_one = _is_number(index) and not isinstance(index, slice)
    return shape[1:] if is_one else (len(rows), *shape[1:])


def _without_repeats(rows: Sequence[int]) -> Iterator[tuple[int, int]]:
    """Where they are cut, so that no part has a row twice: what is written later wins."""
    begin = 0
    seen: set[int] = set()
    for at, row in enumerate(rows):
        if row in seen:
            yield begin, at
            begin = at
            seen.clear()
        seen.add(row)
    if seen:
        yield begin, len(rows)
