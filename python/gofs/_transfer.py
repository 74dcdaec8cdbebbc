# SPDX-License-Identifier: Apache-2.0
"""What is moved while the program goes on."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING

from gofs._moving import counts_of

if TYPE_CHECKING:
    from collections.abc import Callable, Generator

    from gofs import _core
    from gofs._typing import AnyPath

# How often an awaited transfer is looked at.
_LOOK_SECONDS = 0.0002


class Transfer:
    """Bytes that are on their way to the memory of a GPU, in the order of a stream.

    What the program puts into that stream finds them there; who uses them otherwise asks
    `result()` before, or awaits this.
    """

    def __init__(
        self,
        begun: _core.Transfer | int,
        path: AnyPath,
        owner: object,
        end: Callable[[], None] | None = None,
    ) -> None:
        """For read_into_async(). `begun`: or how many bytes were read at once."""
        self._begun = begun
        self._path = path
        self._owner = owner  # whose memory it is: it stays
        self._end = end

    def done(self) -> bool:
        """Whether result() returns at once."""
        return isinstance(self._begun, int) or self._begun.done()

    def result(self) -> int:
        """How many bytes were read: fewer than there is room for only where the file ends.

        Waits. Raises OSError where they could not be read.
        """
        if not isinstance(self._begun, int):
            counts = self._begun.wait()
            self._release()
            self._begun = counts_of(counts, [self._path])[0]
        return self._begun

    def __await__(self) -> Generator[object, None, int]:
        while not self.done():
            yield from asyncio.sleep(_LOOK_SECONDS).__await__()
        return self.result()

    def _release(self) -> None:
        if self._end is not None:
            self._end()
        self._end = self._owner = None
