# SPDX-License-Identifier: Apache-2.0
"""What is moved while the program goes on."""

from __future__ import annotations

import asyncio
import contextlib
import errno
import os
import threading
import warnings
from typing import TYPE_CHECKING

from gofs import _moving
from gofs._closing import closed_on_error
from gofs._modes import REPLACES

if TYPE_CHECKING:
    from collections.abc import Callable, Generator

    from gofs import _core
    from gofs._device import DeviceMemory
    from gofs._typing import AnyPath

# How often an awaited transfer is looked at.
_LOOK_SECONDS = 0.0002


class Transfer:
    """Bytes that are on their way to the memory of a GPU or from there, in the order of a stream.

    What the program puts into that stream finds them moved; who uses them otherwise asks
    `result()` before, or awaits this. One that is forgotten is waited for, and warns of what
    failed.
    """

    def __init__(
        self,
        path: AnyPath,
        begun: _core.Transfer | int,
        finish: Callable[[list[int]], int] | None = None,
        owner: object = None,
    ) -> None:
        """For read_into_async() and write_async(). `begun`: or how many bytes were moved at once.
        `finish` is given what the ranges have come to, and says what the result is; until then
        `owner` stays, whose memory it is."""
        self._path = path
        self._begun = begun
        self._finish = finish
        self._owner = owner
        self._failure: Exception | None = None
        self._lock = threading.Lock()
        self._process = os.getpid()

    def done(self) -> bool:
        """Whether result() returns, or raises, at once."""
        begun = self._begun  # which another thread's result() may replace
        return isinstance(begun, int) or self._is_of_another_process() or begun.done()

    def result(self) -> int:
        """How many bytes were moved: of a read fewer than there is room for only where the file
        ends.

        Waits; any number of threads may. Raises OSError where they could not be moved.
        """
        if self._finish is not None:
            # Nor is there another thread that may have had the lock.
            if self._is_of_another_process():
                raise RuntimeError(
                    f"{self._path!r}: the transfer was begun before fork(), and only that process "
                    "can wait for it"
                )
            self._end()
        if self._failure is not None:
            raise self._failure
        assert isinstance(self._begun, int)
        return self._begun

    def _is_of_another_process(self) -> bool:
        return self._process != os.getpid()

    def _end(self) -> None:
        with self._lock:
            if self._finish is None or isinstance(self._begun, int):
                return
            try:
                self._begun = self._finish(self._begun.wait())
            except Exception as error:
                self._failure = error
            self._finish = self._owner = None

    def __await__(self) -> Generator[object, None, int]:
        while not self.done():
            yield from asyncio.sleep(_LOOK_SECONDS).__await__()
        if self._finish is None or self._is_of_another_process():
            return self.result()
        # Closing the file is a call, and making it durable takes as long as the SSD.
        return (yield from asyncio.to_thread(self.result).__await__())

    def __del__(self) -> None:
        # In a child of fork() there is no GPU.
        if getattr(self, "_finish", None) is None or self._is_of_another_process():
            return
        try:
            self.result()
        except Exception as error:
            words = f"a transfer of {self._path!r} that nobody waited for has failed: {error}"
            warnings.warn(words, ResourceWarning, stacklevel=2, source=self)


def read_async(
    core: _core.Volume, path: AnyPath, memory: DeviceMemory, offset: int, stream: int
) -> Transfer:
    """Begins to fill the memory from byte `offset` of a file on."""
    file = core.open(path, os.O_RDONLY, 0)

    def finish(counts: list[int]) -> int:
        with contextlib.closing(file):
            return _moving.counts_of(core, counts, [path])[0]

    return _begun(core, path, file, offset, memory, stream, finish, writes=False)


def write_async(
    core: _core.Volume,
    path: AnyPath,
    memory: DeviceMemory,
    permissions: int,
    stream: int,
    *,
    sync: bool,
) -> Transfer:
    """Begins to make a file of the memory's bytes, or to give them to the file there is."""
    _moving.check(core, [memory], stream)  # before the file that is there is emptied
    file = core.open(path, REPLACES, permissions)

    def finish(counts: list[int]) -> int:
        with contextlib.closing(file):
            # What is left is not tried again: the program may have changed it since.
            if _moving.counts_of(core, counts, [path])[0] < memory.size:
                raise core.error_of(errno.ENOSPC, path)
            if sync:
                _sync(core, file)
        return memory.size

    return _begun(core, path, file, 0, memory, stream, finish, writes=True)


def _sync(core: _core.Volume, file: _core.OpenFile) -> None:
    try:
        file.sync()
    except ValueError:
        # Who closes the volume makes all durable, unless he fails.
        if not core.await_closing():
            file.sync()


def _begun(
    core: _core.Volume,
    path: AnyPath,
    file: _core.OpenFile,
    offset: int,
    memory: DeviceMemory,
    stream: int,
    finish: Callable[[list[int]], int],
    *,
    writes: bool,
) -> Transfer:
    with closed_on_error(file):
        begun = _moving.begin(core, [(file, offset, memory)], stream, writes=writes)
    return Transfer(path, begun, finish, memory.owner)
