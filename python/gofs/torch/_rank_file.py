# SPDX-License-Identifier: Apache-2.0
# mypy: disable-error-code="import-not-found"
"""The file that one rank writes of a checkpoint: safetensors, and where in it is what.

A place is a dict, which any program can unpickle: `file` (a name in the folder), `offset` and
`bytes` of it, and of tensors `dtype` (torch's name) and `shape`.
"""

from __future__ import annotations

import contextlib
import json
import posixpath
from typing import TYPE_CHECKING, Any, NamedTuple

from torch.distributed.checkpoint.planner import WriteItemType
from torch.distributed.checkpoint.storage import WriteResult

from gofs._arrays import dtype_of
from gofs._gathered_writes import GatheredWrites
from gofs._safetensors_header import DTYPE_BITS, TensorInfo, encoded_header

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from gofs._volume import Volume

SUFFIX = ".safetensors"

_SHARDS = "gofs.shards"  # in the file's metadata: which parts of what its tensors are
_WIDEST = max(DTYPE_BITS, key=len)
_FARTHEST = (1 << 64) - 1


class Written(NamedTuple):
    """An item that is in the file."""

    info: TensorInfo
    dtype: str | None  # torch's name; None of what is no tensor
    shape: tuple[int, ...]


def write_rank_file(
    volume: Volume, folder: str, name: str, items: Sequence[Any], planner: Any, *, sync: bool
) -> list[Any]:
    """Writes all items to a new file, by one call for as much as memory is to hold; WriteResults.

    An item is resolved only when it is its turn. Where it raises, the file is gone.
    """
    # Tensors of wide types first, so that they are aligned; bytes, which are of any length, last.
    ordered = sorted(items, key=_alignment, reverse=True)
    keys = _keys(ordered)
    metadata = {"format": "pt", **_shards(ordered, keys)}
    data_begin = _room_for_header(ordered, keys, metadata)
    path = posixpath.join(folder, name)
    try:
        with volume.open(path, "xb", buffering=0) as file:
            writes = GatheredWrites(volume, file)
            written = _add_items(writes, data_begin, ordered, planner)
            infos = {key: each.info for key, each in zip(keys, written)}
            writes.add(0, encoded_header(infos, metadata, data_begin))
            writes.perform()
            if sync:
                file.fsync()
    except BaseException:
        with contextlib.suppress(OSError, ValueError):
            volume.unlink(path)
        raise
    return [
        WriteResult(
            index=item.index,
            size_in_bytes=each.info.end - each.info.begin,
            storage_data={
                "file": name,
                "offset": data_begin + each.info.begin,
                "bytes": each.info.end - each.info.begin,
                "dtype": each.dtype,
                "shape": each.shape,
            },
        )
        for item, each in zip(ordered, written)
    ]


def _alignment(item: Any) -> int:
    if item.tensor_data is None:
        return 0
    return int(getattr(item.tensor_data.properties.dtype, "itemsize", 1))


def _keys(items: Sequence[Any]) -> list[str]:
    """What the items are called in the file: their names, those of shards with their offsets."""
    keys: dict[str, None] = {}
    for item in items:
        key = item.index.fqn
        if item.type == WriteItemType.SHARD:
            key += "@" + ",".join(map(str, item.tensor_data.chunk.offsets))
        while key in keys or key == "__metadata__":
            key += "_"
        keys[key] = None
    return list(keys)


def _shards(items: Sequence[Any], keys: Sequence[str]) -> dict[str, str]:
    shards = {
        key: {
            "name": item.index.fqn,
            "offsets": list(item.tensor_data.chunk.offsets),
            "size": list(item.tensor_data.size),
        }
        for key, item in zip(keys, items)
        if item.type == WriteItemType.SHARD
    }
    return {_SHARDS: json.dumps(shards)} if shards else {}


def _room_for_header(items: Sequence[Any], keys: Sequence[str], metadata: Mapping[str, str]) -> int:
    """Where data may begin, whatever the items turn out to be when they are resolved."""
    longest = {
        key: TensorInfo(_WIDEST, _longest_shape(item), _FARTHEST, _FARTHEST)
        for key, item in zip(keys, items)
    }
    return len(encoded_header(longest, metadata))


def _longest_shape(item: Any) -> tuple[int, ...]:
    dimensions = len(item.tensor_data.chunk.sizes) if item.tensor_data else 1
    return (_FARTHEST,) * max(dimensions, 1)  # a scalar may become a row of bytes


def _add_items(
    writes: GatheredWrites, data_begin: int, items: Sequence[Any], planner: Any
) -> list[Written]:
    written = []
    end = 0
    for item in items:
        data = planner.resolve_data(item)
        kind: str | None = "U8"
        dtype: str | None = None
        if item.type == WriteItemType.BYTE_IO:
            size = writes.add(data_begin + end, data.getvalue())
            shape: tuple[int, ...] = (size,)
        else:
            given = data.detach()
            tensor = _plain(given)
            kind = dtype_of(tensor)
            dtype, shape = str(tensor.dtype).removeprefix("torch."), tuple(tensor.shape)
            size = writes.add(data_begin + end, tensor, is_copy=tensor is not given)
        begin, end = end, end + size
        # What safetensors has no type for is bytes there.
        stored = (kind, shape) if kind is not None else ("U8", (size,))
        written.append(Written(TensorInfo(*stored, begin, end), dtype, shape))
    return written


def _plain(tensor: Any) -> Any:
    """A tensor whose bytes are those of its values, in order: itself if it is one."""
    for resolved in ("resolve_conj", "resolve_neg"):
        tensor = getattr(tensor, resolved)()
    return tensor.contiguous()
