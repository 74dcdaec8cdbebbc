# SPDX-License-Identifier: Apache-2.0
"""What is closed at the end of a `with`."""

from __future__ import annotations

import contextlib
from typing import TYPE_CHECKING, Protocol

if TYPE_CHECKING:
    from collections.abc import Iterator
    from types import TracebackType

    from typing_extensions import Self


class Closing:
    """Its heirs have close()."""

    def close(self) -> None:
        raise NotImplementedError

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        self.close()


class _Closable(Protocol):
    def close(self) -> None: ...


@contextlib.contextmanager
def closed_on_error(opened: _Closable) -> Iterator[None]:
    """Closes what nobody gets where the block raises: who keeps the error would keep it open."""
    try:
        yield
    except BaseException:
        opened.close()
        raise
