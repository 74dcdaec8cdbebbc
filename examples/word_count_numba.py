#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Counts the words of files in a kernel written in Python: each block opens a file by its name,
reads it piece by piece and counts. Then the host reads the same files through the same volume and
checks.

    word_count_numba.py VOLUME FILE...
"""
import sys
from typing import Any

import numpy

if not hasattr(numpy, "row_stack"):
    vars(numpy)["row_stack"] = numpy.vstack  # numba 0.68 wants it, and numpy 2.5 has it no longer
from numba import cuda

import gofs
from gofs.numba import close_block, open_block, pread_block
from word_count_host import MAX_PATH_BYTES, PIECE_BYTES, check, paths_for_kernels

SPACE, NEWLINE = 32, 10


@cuda.jit
def count_words(volume: Any, paths: Any, pieces: Any, results: Any) -> None:
    block = cuda.blockIdx.x
    piece = pieces[block]
    fd = open_block(volume, paths[block].ctypes.data, 0, 0)
    got = numpy.int64(fd)
    words = 0
    last = SPACE
    at = 0
    while fd >= 0:
        got = pread_block(volume, fd, piece.ctypes.data, PIECE_BYTES, at)
        if got <= 0:
            break
        for i in range(cuda.threadIdx.x, got, cuda.blockDim.x):
            before = last if i == 0 else piece[i - 1]
            here = piece[i]
            if (before == SPACE or before == NEWLINE) and here != SPACE and here != NEWLINE:
                words += 1
        last = piece[got - 1]
        at += PIECE_BYTES
    if fd >= 0:
        close_block(volume, fd)
    cuda.atomic.add(results, block, words)
    if got < 0 and cuda.threadIdx.x == 0:
        results[block] = got  # words are 0 then


def main() -> int:
    if len(sys.argv) < 3:
        sys.exit(__doc__)
    spec, *files = sys.argv[1:]
    with gofs.mount(spec, backend="cuda") as volume:
        names = numpy.frombuffer(paths_for_kernels(files), dtype=numpy.uint8)
        paths = cuda.to_device(names.reshape(len(files), MAX_PATH_BYTES))
        pieces = cuda.device_array((len(files), PIECE_BYTES), dtype=numpy.uint8)
        results = cuda.to_device(numpy.zeros(len(files), dtype=numpy.int64))
        count_words[len(files), 256](volume.device_handle, paths, pieces, results)
        return check(volume, files, results.copy_to_host().tolist())


if __name__ == "__main__":
    sys.exit(main())
