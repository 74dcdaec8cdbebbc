# SPDX-License-Identifier: Apache-2.0
"""What files are known by, whatever their names are."""

from __future__ import annotations

import uuid
from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    from gofs import _core


class Identity(NamedTuple):
    """What a file is known by as long as there is one, in another mount and another process too.

    `Volume.identity()` gives it, and `Volume.open_inode()` takes it. No two files of any volumes
    have the same, unless one volume is a copy of the other.
    """

    uuid: str  # of the volume, as `volume.info.uuid`
    ino: int  # number of the inode: st_ino
    generation: int  # tells the file from those that had the number before


def identity_of(core: _core.OpenFile) -> Identity:
    of_volume, ino, generation = core.identity()
    return Identity(str(uuid.UUID(bytes=of_volume)), ino, generation)
