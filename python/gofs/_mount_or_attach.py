# SPDX-License-Identifier: Apache-2.0
"""Volumes where a name may be that of a server's socket or of an image."""

from __future__ import annotations

import os
import stat

from gofs._mounting import attach, mount
from gofs._volume import Volume


def mount_or_attach(spec: str, *, writable: bool = False) -> Volume:
    """attach() for the socket of a server, which decides who may write; else mount()."""
    return attach(spec) if is_socket(spec) else mount(spec, writable=writable)


def is_socket(path: str) -> bool:
    try:
        return stat.S_ISSOCK(os.stat(path).st_mode)
    except (OSError, ValueError):
        return False
