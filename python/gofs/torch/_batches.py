# SPDX-License-Identifier: Apache-2.0
"""Batches of whole files, each in one piece of memory, read ahead of their use."""

from __future__ import annotations

import itertools
import random
from collections import deque
from concurrent.futures import ThreadPoolExecutor
from typing import TYPE_CHECKING, Any, NamedTuple

from gofs._arrays import default_framework, framework_beside, framework_named
from gofs._numbers import LONG_MAX, truth_value, whole_number
from gofs._packed import read_packed_array
from gofs.torch._paths import paths_of

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

    from gofs._arrays import Framework
    from gofs._typing import AnyPath
    from gofs._volume import Volume


class Batch(NamedTuple):
    """Files, one after the other in one tensor or array of bytes.

    File i has the bytes from `offsets[i]` to `offsets[i + 1]`; there is one offset more than files.
    """

    data: Any
    offsets: list[int]
    names: list[str]

    def rows(self) -> Any:
        """The files as rows of a matrix, where all have the same size; else ValueError."""
        count = len(self.names)
        size = self.offsets[-1] // count
        if self.offsets != [number * size for number in range(count + 1)]:
            raise ValueError("the files of the batch differ in size: use data and offsets")
        return self.data.reshape((count, size))


class BatchLoader:
    """Reads files in batches, and `prefetch` batches ahead, by a thread of its own.

    `files` is a directory, or paths. Each pass over it has all files once: in their order, with
    `shuffle` in one that `seed` and the number of the pass decide, or in that of `sampler`, which
    gives indices, such as a DistributedSampler. The last batch may be smaller, and is left out with
    `drop_last`.

    Batches are tensors of torch where torch is installed, else arrays of numpy; `framework` ("pt",
    "np" or "cp") chooses. They are on the GPU that has mounted the volume, where one has and the
    framework uses it, else on the host; `device` chooses. There they are filled where they lie, on
    the GPU on a stream of the loader's own; to another device they go through memory of the host.

    A file that cannot be read raises when it is its batch's turn. Leaving a pass early waits for
    the read that is under way, and no more.
    """

    def __init__(
        self,
        volume: Volume,
        files: AnyPath | Sequence[AnyPath],
        batch_size: int,
        *,
        shuffle: bool = False,
        seed: int = 0,
        sampler: Iterable[int] | None = None,
        drop_last: bool = False,
        prefetch: int = 2,
        recursive: bool = False,
        framework: str | None = None,
        device: Any = None,
    ) -> None:
        """Raises OSError where the directory cannot be read, and ValueError where it is empty."""
        truth_value("shuffle", shuffle)
        truth_value("drop_last", drop_last)
        for name, number in (("batch_size", batch_size), ("prefetch", prefetch)):
            if whole_number(name, number, least=-LONG_MAX) < 1:
                raise ValueError(f"{name}={number}: at least 1")
        if shuffle and sampler is not None:
            raise ValueError("shuffle and sampler both say the order: give one of them")
        self.paths = paths_of(volume, files, recursive=recursive)
        self._volume = volume
        self._batch_size = batch_size
        self._shuffle = shuffle
        self._seed = seed
        self._sampler = sampler
        self._drop_last = drop_last
        self._prefetch = prefetch
        self._made_by = framework, device
        self._framework = self._find_framework()
        self._epoch = 0

    def __getstate__(self) -> dict[str, Any]:
        """For a process that takes the volume as well, which has a framework of its own."""
        return {name: each for name, each in self.__dict__.items() if name != "_framework"}

    def __setstate__(self, state: dict[str, Any]) -> None:
        self.__dict__.update(state)
        self._framework = self._find_framework()

    def _find_framework(self) -> Framework:
        name, device = self._made_by
        if device is None:
            return framework_beside(self._volume, name or default_framework())
        return framework_named(name or default_framework(device), device, self._volume)

    def __len__(self) -> int:
        """How many batches a pass has; TypeError where the sampler does not know how many items."""
        order: Any = self.paths if self._sampler is None else self._sampler
        count = len(order)
        return (count + (0 if self._drop_last else self._batch_size - 1)) // self._batch_size

    def set_epoch(self, epoch: int) -> None:
        """The number of the next pass, which counts from 0: a program that goes on after a
        checkpoint has the order that it would have had."""
        self._epoch = epoch

    def __iter__(self) -> Iterator[Batch]:
        order = self._order()
        self._epoch += 1
        batches = iter(lambda: list(itertools.islice(order, self._batch_size)), [])
        if self._drop_last:
            batches = itertools.takewhile(lambda one: len(one) == self._batch_size, batches)
        return self._read_ahead(batches)

    def _order(self) -> Iterator[int]:
        if self._sampler is not None:
            return iter(self._sampler)
        order = list(range(len(self.paths)))
        if self._shuffle:
            random.Random(f"{self._seed} {self._epoch}").shuffle(order)
        return iter(order)

    def _read_ahead(self, batches: Iterator[list[int]]) -> Iterator[Batch]:
        with ThreadPoolExecutor(1, thread_name_prefix="gofs-batches") as reader:
            pending = deque(
                reader.submit(self._read, one) for one in itertools.islice(batches, self._prefetch)
            )
            try:
                while pending:
                    batch = pending.popleft().result()
                    pending.extend(
                        reader.submit(self._read, one) for one in itertools.islice(batches, 1)
                    )
                    yield batch._replace(data=self._framework.place(batch.data))
            finally:
                for future in pending:
                    future.cancel()

    def _read(self, indices: list[int]) -> Batch:
        names = [self.paths[index] for index in indices]
        return Batch(*read_packed_array(self._volume, names, self._framework))
