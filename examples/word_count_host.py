# SPDX-License-Identifier: Apache-2.0
"""What word_count_cupy.py and word_count_numba.py have in common: names of files as kernels read
them, and words counted on the host."""
from __future__ import annotations

import os
from collections.abc import Sequence

import gofs

MAX_PATH_BYTES = 256
PIECE_BYTES = 64 << 10


def paths_for_kernels(files: Sequence[str]) -> bytes:
    """The names one after the other, each in MAX_PATH_BYTES bytes and with zeros at its end."""
    return b"".join(os.fsencode(name).ljust(MAX_PATH_BYTES, b"\0") for name in files)


def check(volume: gofs.Volume, files: Sequence[str], counted: Sequence[int]) -> int:
    """Prints what the GPU has counted; an exit status: 0 if the host counts as much."""
    status = 0
    for name, words in zip(files, counted):
        wanted = sum(1 for word in volume.read(name).replace(b"\n", b" ").split(b" ") if word)
        print(f"{words} {name}")
        if words != wanted:
            print(f"{name}: the GPU says {words}, the host {wanted}")
            status = 1
    return status
