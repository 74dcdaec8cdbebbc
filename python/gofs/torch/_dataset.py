# SPDX-License-Identifier: Apache-2.0
"""Files as a data set of torch."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from gofs.torch._paths import paths_of

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from gofs._typing import AnyPath
    from gofs._volume import Volume


class FileDataset:
    """Files, each one item, for torch.utils.data.DataLoader (map style).

    `files` is a directory, or paths in the order of the items. An item is what `transform` makes of
    the file's bytes, or these; with `labels`, one for each file in the order of `paths`, the pair
    of that and the label. DataLoader asks for a batch at once, which one call reads.

    With num_workers=0 no other processes are needed. Workers are to be started by spawn or
    forkserver (`multiprocessing_context="spawn"`), and the volume is to be mounted for reading, or
    attached: each worker mounts it again, or attaches.
    """

    def __init__(
        self,
        volume: Volume,
        files: AnyPath | Sequence[AnyPath],
        *,
        transform: Callable[[bytes], Any] | None = None,
        labels: Sequence[Any] | None = None,
        recursive: bool = False,
    ) -> None:
        """Raises OSError where the directory cannot be read, and ValueError where it is empty, or
        `labels` are not as many as the files."""
        self.paths = paths_of(volume, files, recursive=recursive)
        if labels is not None and len(labels) != len(self.paths):
            raise ValueError(f"{len(labels)} labels for {len(self.paths)} files: one for each")
        self._volume = volume
        self._transform = transform
        self._labels = labels

    def __len__(self) -> int:
        return len(self.paths)

    def __getitem__(self, index: int) -> Any:
        """Raises IndexError for what is no item, and OSError where the file cannot be read."""
        return self._item(index, self._volume.read(self.paths[index]))

    def __getitems__(self, indices: Sequence[int]) -> list[Any]:
        """Several items, whose files one call reads."""
        packed = self._volume.read_many([self.paths[index] for index in indices], packed=True)
        bounds = zip(packed.offsets, packed.offsets[1:])
        return [
            self._item(index, bytes(packed.data[begin:end]))
            for index, (begin, end) in zip(indices, bounds)
        ]

    def _item(self, index: int, data: bytes) -> Any:
        item = data if self._transform is None else self._transform(data)
        return item if self._labels is None else (item, self._labels[index])
