# SPDX-License-Identifier: Apache-2.0
"""The error that Python has no class of its own for, and how those with a number are raised."""

from __future__ import annotations

import errno
import os
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from typing import NoReturn

    from gofs import _core
    from gofs._typing import AnyPath


# Why a path is said to lead nowhere; other errors are the volume's trouble.
LEADS_NOWHERE = {errno.ENOENT, errno.ENOTDIR, errno.ELOOP, errno.EACCES, errno.ENAMETOOLONG}


class CorruptionError(OSError):
    """The volume contradicts itself: its errno is EUCLEAN, and its words say where.

    `Volume.warnings()` has the rest of what was found.
    """


def raise_error(code: int, path: AnyPath | None) -> NoReturn:
    """Raises what a call of `os` would, for what the volume was not asked for."""
    raise OSError(code, os.strerror(code), path)


def refuse_closed(core: _core.Volume) -> None:
    """Raises what the calls of a closed volume raise."""
    if core.closed:
        core.info()


def raise_first(
    core: _core.Volume, errors: Mapping[int, OSError | ValueError | int], names: Sequence[AnyPath]
) -> None:
    """Raises the first of what many calls have come to, if there is one. `errors` has them by the
    number of the call; of an errno the volume says why. The others are not asked about: damage that
    was told of is no warning any more."""
    if errors:
        number = min(errors)
        error = errors[number]
        raise core.error_of(error, names[number]) if isinstance(error, int) else error
