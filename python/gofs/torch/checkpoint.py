# SPDX-License-Identifier: Apache-2.0
# mypy: disable-error-code="import-not-found,misc"
"""Checkpoints of torch.distributed.checkpoint on a volume.

    from gofs.torch.checkpoint import GofsReader, GofsWriter

    dcp.save(state, storage_writer=GofsWriter(volume, "/checkpoints/100"))
    dcp.load(state, storage_reader=GofsReader(volume, "/checkpoints/100"))

Each rank writes one safetensors file, which other programs can read; a shard's name there has its
place behind it. `.metadata` comes last, by renaming: until it is there, the checkpoint that was
there before is the one that loads. Ranks that are processes of their own attach to one server.
"""

from __future__ import annotations

import dataclasses
import os
import pickle
import posixpath
import re
import secrets
from typing import TYPE_CHECKING, Any

try:
    from torch.distributed.checkpoint.metadata import StorageMeta
    from torch.distributed.checkpoint.storage import StorageReader, StorageWriter
    from torch.futures import Future
except ImportError as error:
    raise ImportError(
        "gofs.torch.checkpoint needs torch 2.3 or later, with torch.distributed: pip install torch"
    ) from error

from gofs._given_volume import given_volume
from gofs._numbers import truth_value
from gofs._replacing import is_pending, replacing
from gofs.torch._rank_file import SUFFIX, write_rank_file
from gofs.torch._read_plan import read_items

if TYPE_CHECKING:
    from gofs._typing import AnyPath
    from gofs._volume import Volume

__all__ = ["GofsReader", "GofsWriter"]

_METADATA = ".metadata"
# What _file_of() gives; other files in the folder are the user's.
_OF_RANK = re.compile(r"__\d+_[0-9a-f]{16}" + re.escape(SUFFIX), re.ASCII)


def _file_of(rank: int, save_id: str) -> str:
    return f"__{rank}_{save_id}{SUFFIX}"


class _InFolder:
    """A checkpoint's folder on a volume."""

    def __init__(self, volume: Volume, path: AnyPath) -> None:
        self._volume = given_volume(volume)
        self._path = os.fsdecode(path)

    @classmethod
    def validate_checkpoint_id(cls, checkpoint_id: AnyPath) -> bool:
        """Whether it can be a folder of a volume: no URL of something else."""
        is_path = isinstance(checkpoint_id, (str, bytes, os.PathLike))
        return is_path and "://" not in os.fsdecode(checkpoint_id)

    @property
    def checkpoint_id(self) -> str:
        return self._path

    def _move(self, checkpoint_id: AnyPath | None) -> None:
        if checkpoint_id is not None:
            self._path = os.fsdecode(checkpoint_id)

    def _name(self, name: str) -> str:
        return posixpath.join(self._path, name)


class GofsWriter(_InFolder, StorageWriter):
    """Saves checkpoints to a folder of a volume, which is made where it is missing; one at a time
    to each.

    Everything is durable when finish() returns, unless `sync` is False. Raises FileExistsError
    where the folder has a checkpoint and `overwrite` is False, and OSError as Volume.open() does.
    """

    def __init__(
        self, volume: Volume, path: AnyPath, *, sync: bool = True, overwrite: bool = True
    ) -> None:
        super().__init__(volume, path)
        self._sync = truth_value("sync", sync)
        self._overwrite = truth_value("overwrite", overwrite)
        self._save_id = secrets.token_hex(8)

    def reset(self, checkpoint_id: AnyPath | None = None) -> None:
        """Begins another checkpoint, in the folder `checkpoint_id` if it is given."""
        self._move(checkpoint_id)
        self._save_id = secrets.token_hex(8)

    def storage_meta(self) -> Any:
        return StorageMeta(checkpoint_id=self._path, save_id=self._save_id)

    def set_up_storage_writer(self, is_coordinator: bool, *args: Any, **kwargs: Any) -> None:
        """All ranks do the same, but for what torch asks the coordinator alone to do."""

    def prepare_local_plan(self, plan: Any) -> Any:
        if not self._overwrite and self._volume.exists(self._name(_METADATA)):
            raise FileExistsError(
                f"{self._path}: has a checkpoint: save to another folder, or say overwrite=True"
            )
        self._volume.makedirs(self._path, exist_ok=True)
        return plan

    def prepare_global_plan(self, plans: list[Any]) -> list[Any]:
        # Names are new in each save, so that nothing of the checkpoint that is there is written to.
        return [
            dataclasses.replace(plan, storage_data=_file_of(rank, self._save_id))
            for rank, plan in enumerate(plans)
        ]

    def write_data(self, plan: Any, planner: Any) -> Any:
        future = Future()
        results = write_rank_file(
            self._volume, self._path, plan.storage_data, plan.items, planner, sync=self._sync
        )
        future.set_result(results)
        return future

    def finish(self, metadata: Any, results: list[list[Any]]) -> None:
        """From here on the checkpoint is there; the files of the one before are removed, and what
        saves left that never came to their end."""
        metadata.storage_data = {
            result.index: result.storage_data for of_rank in results for result in of_rank
        }
        metadata.storage_meta = self.storage_meta()
        with replacing(self._volume, self._name(_METADATA), sync=self._sync) as file:
            pickle.dump(metadata, file)
        kept = {place["file"] for place in metadata.storage_data.values()}
        for name in self._volume.listdir(self._path):
            is_old = _OF_RANK.fullmatch(name) is not None and name not in kept
            if is_old or is_pending(name, _METADATA):
                self._volume.unlink(self._name(name))


class GofsReader(_InFolder, StorageReader):
    """Loads checkpoints that a GofsWriter has saved, by any number of ranks.

    What a rank wants is read by one call, straight into tensors on the CPU and on the GPU that has
    mounted the volume; 256 MiB at a time where it has to be copied, since the tensor is elsewhere,
    or not in pieces of 4 KiB and more. `.metadata` is unpickled: load only checkpoints of those
    whom you trust.

    Raises FileNotFoundError where there is no checkpoint, and ValueError where it is not what the
    plan wants.
    """

    def __init__(self, volume: Volume, path: AnyPath) -> None:
        super().__init__(volume, path)
        self._load_id = secrets.token_hex(8)
        self._places: dict[Any, Any] = {}

    def reset(self, checkpoint_id: AnyPath | None = None) -> None:
        """Begins to load another checkpoint, of the folder `checkpoint_id` if it is given."""
        self._move(checkpoint_id)
        self._load_id = secrets.token_hex(8)
        self._places = {}

    def read_metadata(self, *args: Any, **kwargs: Any) -> Any:
        metadata = pickle.loads(self._volume.read(self._name(_METADATA)))
        if getattr(metadata, "storage_meta", None) is None:
            metadata.storage_meta = StorageMeta()
        metadata.storage_meta.load_id = self._load_id
        return metadata

    def set_up_storage_reader(
        self, metadata: Any, is_coordinator: bool, *args: Any, **kwargs: Any
    ) -> None:
        self._places = metadata.storage_data

    def prepare_local_plan(self, plan: Any) -> Any:
        return plan

    def prepare_global_plan(self, plans: list[Any]) -> list[Any]:
        return plans

    def read_data(self, plan: Any, planner: Any) -> Any:
        future = Future()
        read_items(self._volume, self._path, self._places, plan.items, planner)
        future.set_result(None)
        return future
