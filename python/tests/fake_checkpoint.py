# SPDX-License-Identifier: Apache-2.0
"""A stand-in for torch.distributed.checkpoint: its interfaces for storage, with their signatures,
and what drives them: plans of dictionaries of tensors, whole or in shards."""

from __future__ import annotations

import abc
import dataclasses
import enum
import io
import os
import pickle
import types
from collections.abc import Mapping, Sequence
from typing import Any


class Future:
    """As torch.futures.Future."""

    def __init__(self) -> None:
        self._value: Any = None
        self._is_done = False

    def set_result(self, value: Any) -> None:
        assert not self._is_done
        self._value, self._is_done = value, True

    def wait(self) -> Any:
        assert self._is_done, "it would wait for ever"
        return self._value


@dataclasses.dataclass
class StorageMeta:
    checkpoint_id: str | os.PathLike[str] | None = None
    save_id: str | None = None
    load_id: str | None = None
    modules: list[str] = dataclasses.field(default_factory=list)


@dataclasses.dataclass
class ChunkStorageMetadata:
    offsets: Sequence[int]
    sizes: Sequence[int]


@dataclasses.dataclass
class TensorProperties:
    dtype: Any


@dataclasses.dataclass
class TensorStorageMetadata:
    properties: TensorProperties
    size: Sequence[int]
    chunks: list[ChunkStorageMetadata]


@dataclasses.dataclass
class BytesStorageMetadata:
    pass


@dataclasses.dataclass(frozen=True)
class MetadataIndex:
    fqn: str
    offset: Sequence[int] | None = None
    index: int | None = dataclasses.field(hash=False, compare=False, default=None)


@dataclasses.dataclass
class Metadata:
    state_dict_metadata: dict[str, Any]
    planner_data: Any = None
    storage_data: Any = None
    storage_meta: StorageMeta | None = None


class WriteItemType(enum.Enum):
    TENSOR = enum.auto()
    SHARD = enum.auto()
    BYTE_IO = enum.auto()


class LoadItemType(enum.Enum):
    TENSOR = enum.auto()
    BYTE_IO = enum.auto()


@dataclasses.dataclass(frozen=True)
class TensorWriteData:
    chunk: ChunkStorageMetadata
    properties: TensorProperties
    size: Sequence[int]


@dataclasses.dataclass(frozen=True)
class WriteItem:
    index: MetadataIndex
    type: WriteItemType
    tensor_data: TensorWriteData | None = None


@dataclasses.dataclass(frozen=True)
class ReadItem:
    type: LoadItemType
    dest_index: MetadataIndex
    dest_offsets: Sequence[int]
    storage_index: MetadataIndex
    storage_offsets: Sequence[int]
    lengths: Sequence[int]


@dataclasses.dataclass(frozen=True)
class SavePlan:
    items: list[WriteItem]
    storage_data: Any = None
    planner_data: Any = None
    usable: bool = True


@dataclasses.dataclass
class LoadPlan:
    items: list[ReadItem]
    storage_data: Any = None
    planner_data: Any = None


@dataclasses.dataclass(frozen=True)
class WriteResult:
    index: MetadataIndex
    size_in_bytes: int
    storage_data: Any


class StorageWriter(abc.ABC):
    @abc.abstractmethod
    def reset(self, checkpoint_id: str | os.PathLike[str] | None = None) -> None: ...

    @abc.abstractmethod
    def set_up_storage_writer(self, is_coordinator: bool, *args: Any, **kwargs: Any) -> None: ...

    @abc.abstractmethod
    def prepare_local_plan(self, plan: SavePlan) -> SavePlan: ...

    @abc.abstractmethod
    def prepare_global_plan(self, plans: list[SavePlan]) -> list[SavePlan]: ...

    @abc.abstractmethod
    def write_data(self, plan: SavePlan, planner: Any) -> Future: ...

    @abc.abstractmethod
    def finish(self, metadata: Metadata, results: list[list[WriteResult]]) -> None: ...

    @classmethod
    @abc.abstractmethod
    def validate_checkpoint_id(cls, checkpoint_id: str | os.PathLike[str]) -> bool: ...

    def storage_meta(self) -> StorageMeta | None:
        return None


class StorageReader(abc.ABC):
    @abc.abstractmethod
    def reset(self, checkpoint_id: str | os.PathLike[str] | None = None) -> None: ...

    @abc.abstractmethod
    def read_metadata(self, *args: Any, **kwargs: Any) -> Metadata: ...

    @abc.abstractmethod
    def set_up_storage_reader(
        self, metadata: Metadata, is_coordinator: bool, *args: Any, **kwargs: Any
    ) -> None: ...

    @abc.abstractmethod
    def prepare_local_plan(self, plan: LoadPlan) -> LoadPlan: ...

    @abc.abstractmethod
    def prepare_global_plan(self, plans: list[LoadPlan]) -> list[LoadPlan]: ...

    @abc.abstractmethod
    def read_data(self, plan: LoadPlan, planner: Any) -> Future: ...

    @classmethod
    @abc.abstractmethod
    def validate_checkpoint_id(cls, checkpoint_id: str | os.PathLike[str]) -> bool: ...


def modules() -> dict[str, types.ModuleType]:
    """The modules that torch has them in."""
    names = [name for name in globals() if name[0].isupper() and name not in ("Any",)]
    everything = {name: globals()[name] for name in names}
    found = {}
    for name in (
        "torch.futures",
        "torch.distributed",
        "torch.distributed.checkpoint",
        "torch.distributed.checkpoint.metadata",
        "torch.distributed.checkpoint.planner",
        "torch.distributed.checkpoint.storage",
    ):
        module = types.ModuleType(name)
        module.__path__ = []  # it may have modules below
        module.__dict__.update(everything)
        found[name] = module
    return found


# --- What drives them ----------------------------------------------------------------------------


@dataclasses.dataclass(frozen=True)
class Shard:
    """A part of a tensor of `size`, which begins at `offsets`."""

    tensor: Any
    offsets: Sequence[int]
    size: Sequence[int]


class SavePlanner:
    """Plans to save a dictionary of tensors, of Shards, and of what pickle takes."""

    def __init__(self, state: Mapping[str, Any]) -> None:
        self.state = state
        self.resolved: list[str] = []

    def create_local_plan(self) -> SavePlan:
        return SavePlan(
            [item for name, value in self.state.items() for item in _items(name, value)]
        )

    def resolve_data(self, item: WriteItem) -> Any:
        self.resolved.append(item.index.fqn)
        value = self.state[item.index.fqn]
        if item.type is WriteItemType.BYTE_IO:
            stream = io.BytesIO()
            pickle.dump(value, stream)
            return stream
        return value.tensor if isinstance(value, Shard) else value


def _items(name: str, value: Any) -> list[WriteItem]:
    if isinstance(value, Shard):
        chunk = ChunkStorageMetadata(tuple(value.offsets), tuple(value.tensor.shape))
        data = TensorWriteData(chunk, TensorProperties(value.tensor.dtype), tuple(value.size))
        return [WriteItem(MetadataIndex(name, tuple(value.offsets)), WriteItemType.SHARD, data)]
    if hasattr(value, "data_ptr"):
        origin = (0,) * len(value.shape)
        chunk = ChunkStorageMetadata(origin, tuple(value.shape))
        data = TensorWriteData(chunk, TensorProperties(value.dtype), tuple(value.shape))
        return [WriteItem(MetadataIndex(name, origin), WriteItemType.TENSOR, data)]
    return [WriteItem(MetadataIndex(name), WriteItemType.BYTE_IO)]


def metadata_of(plans: Sequence[SavePlan]) -> Metadata:
    found: dict[str, Any] = {}
    for plan in plans:
        for item in plan.items:
            data = item.tensor_data
            if data is None:
                found[item.index.fqn] = BytesStorageMetadata()
                continue
            entry = TensorStorageMetadata(data.properties, data.size, [])
            found.setdefault(item.index.fqn, entry).chunks.append(data.chunk)
    return Metadata(found)


def save(states: Sequence[Mapping[str, Any]], writers: Sequence[Any]) -> list[SavePlanner]:
    """Saves what each rank has by its writer; the first rank coordinates."""
    results, planners, metadata = begin_save(states, writers)
    writers[0].finish(metadata, results)
    return planners


def begin_save(
    states: Sequence[Mapping[str, Any]], writers: Sequence[Any]
) -> tuple[list[list[WriteResult]], list[SavePlanner], Metadata]:
    """All of save() but the end."""
    planners = [SavePlanner(state) for state in states]
    plans = []
    for rank, (planner, writer) in enumerate(zip(planners, writers)):
        writer.reset()
        writer.set_up_storage_writer(rank == 0)
        plans.append(writer.prepare_local_plan(planner.create_local_plan()))
    metadata = metadata_of(plans)
    plans = writers[0].prepare_global_plan(plans)
    results = [
        writer.write_data(plan, planner).wait()
        for writer, plan, planner in zip(writers, plans, planners)
    ]
    return results, planners, metadata


class LoadPlanner:
    """Plans to fill a dictionary's tensors and Shards from whatever chunks were saved."""

    def __init__(self, state: dict[str, Any], metadata: Metadata) -> None:
        self.state = state
        self.metadata = metadata
        self.committed: list[str] = []

    def create_local_plan(self) -> LoadPlan:
        items: list[ReadItem] = []
        for name, value in self.state.items():
            saved = self.metadata.state_dict_metadata[name]
            if isinstance(saved, BytesStorageMetadata):
                index = MetadataIndex(name)
                items.append(ReadItem(LoadItemType.BYTE_IO, index, (0,), index, (0,), (0,)))
                continue
            tensor = value.tensor if isinstance(value, Shard) else value
            offsets = value.offsets if isinstance(value, Shard) else (0,) * len(tensor.shape)
            for chunk in saved.chunks:
                items += _overlap(name, offsets, tensor.shape, chunk)
        return LoadPlan(items)

    def load_bytes(self, item: ReadItem, value: io.BytesIO) -> None:
        self.state[item.dest_index.fqn] = pickle.load(value)

    def resolve_tensor(self, item: ReadItem) -> Any:
        value = self.state[item.dest_index.fqn]
        tensor = value.tensor if isinstance(value, Shard) else value
        for dim, (begin, length) in enumerate(zip(item.dest_offsets, item.lengths)):
            tensor = tensor.narrow(dim, begin, length)
        return tensor

    def commit_tensor(self, item: ReadItem, tensor: Any) -> None:
        self.committed.append(item.dest_index.fqn)


def _overlap(
    name: str, offsets: Sequence[int], sizes: Sequence[int], chunk: ChunkStorageMetadata
) -> list[ReadItem]:
    begins = [max(pair) for pair in zip(offsets, chunk.offsets)]
    ends = [
        min(mine + my_size, theirs + their_size)
        for mine, my_size, theirs, their_size in zip(offsets, sizes, chunk.offsets, chunk.sizes)
    ]
    lengths = tuple(end - begin for begin, end in zip(begins, ends))
    if any(length <= 0 for length in lengths):
        return []
    return [
        ReadItem(
            LoadItemType.TENSOR,
            MetadataIndex(name, tuple(offsets)),
            tuple(begin - mine for begin, mine in zip(begins, offsets)),
            MetadataIndex(name, tuple(chunk.offsets)),
            tuple(begin - theirs for begin, theirs in zip(begins, chunk.offsets)),
            lengths,
        )
    ]


def load(state: dict[str, Any], reader: Any) -> LoadPlanner:
    """Fills `state` from a checkpoint, as one rank does."""
    metadata = reader.read_metadata()
    planner = LoadPlanner(state, metadata)
    reader.set_up_storage_reader(metadata, True)
    plan = reader.prepare_local_plan(planner.create_local_plan())
    [plan] = reader.prepare_global_plan([plan])
    reader.read_data(plan, planner).wait()
    return planner
