# SPDX-License-Identifier: Apache-2.0
"""Which files are meant."""

from __future__ import annotations

import os
import posixpath
from typing import TYPE_CHECKING

from gofs._given_volume import given_volume
from gofs._numbers import truth_value

if TYPE_CHECKING:
    from collections.abc import Sequence

    from gofs._typing import AnyPath
    from gofs._volume import Volume


def paths_of(
    volume: Volume, files: AnyPath | Sequence[AnyPath], *, recursive: bool = False
) -> list[str]:
    """The regular files of a directory, sorted, with `recursive` of those below as well; or the
    paths that are given, in their order.

    Raises OSError as Volume.scandir(), and ValueError where there are none.
    """
    volume = given_volume(volume)
    truth_value("recursive", recursive)
    if not isinstance(files, (str, bytes, os.PathLike)):
        paths = [os.fsdecode(path) for path in files]
    elif recursive:
        paths = sorted(_below(volume, os.fsdecode(files)))
    else:
        paths = sorted(_within(volume, os.fsdecode(files)))
    if not paths:
        raise ValueError(f"{files!r}: no files: give a directory that has some, or their paths")
    return paths


def _within(volume: Volume, directory: str) -> list[str]:
    with volume.scandir(directory) as entries:
        return [posixpath.join(directory, entry.name) for entry in entries if entry.is_file()]


def _below(volume: Volume, top: str) -> list[str]:
    def stop(error: OSError) -> None:
        raise error

    return [
        path
        for directory, _, _ in volume.walk(top, onerror=stop)
        for path in _within(volume, directory)
    ]
