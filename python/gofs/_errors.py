# SPDX-License-Identifier: Apache-2.0
"""The error that Python has no class of its own for, and how those with a number are raised."""

from __future__ import annotations

import errno
import os
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from typing import NoReturn

    from gofs._typing import AnyPath


class CorruptionError(OSError):
    """The volume contradicts itself: its errno is EUCLEAN, and its words say where.

    `Volume.warnings()` has the rest of what was found.
    """


def raise_error(code: int, path: AnyPath | None) -> NoReturn:
    """Raises what a call of `os` would."""
    raise error_of(code, path)


def error_of(code: int, path: AnyPath | None) -> OSError:
    """The same as a value."""
    kind = CorruptionError if code == errno.EUCLEAN else OSError
    return kind(code, os.strerror(code), path)
