#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Counts the words of files in a kernel written in Python, which numba-cuda compiles and links with
libgofs_device.a: each block opens a file by its name, reads it piece by piece and counts. Then the
host reads the same files through the same volume and checks.

    word_count_numba.py PREFIX VOLUME FILE...

PREFIX is where GoFS is installed, with lib/. Exit status 77 where there is no numba-cuda.
"""
import sys

try:
    import numpy
    if not hasattr(numpy, "row_stack"):
        numpy.row_stack = numpy.vstack  # numba 0.68 wants it, and numpy 2.5 has it no longer
    from numba import cuda
except ImportError:
    print("word_count_numba: numba-cuda is not installed")
    sys.exit(77)

from word_count_host import HostVolume, MAX_PATH_BYTES, PIECE_BYTES

SPACE, NEWLINE = 32, 10


def make_kernel(prefix):
    """The kernel; its calls of GoFS by C's names and types, pointers as integers."""
    def call(name, signature):
        return cuda.declare_device(name, signature, link=f"{prefix}/lib/libgofs_device.a", abi="c")

    gofs_open = call("gofs_open_block", "int32(uint64, uint64, uint32, uint32)")
    gofs_pread = call("gofs_pread_block", "int64(uint64, int32, uint64, uint64, uint64)")
    gofs_close = call("gofs_close_block", "int32(uint64, int32)")

    @cuda.jit
    def count_words(volume, paths, pieces, pieces_at, results):
        block = cuda.blockIdx.x
        first = block * PIECE_BYTES
        fd = gofs_open(volume, paths + block * MAX_PATH_BYTES, 0, 0)
        got = numpy.int64(fd)
        words = 0
        last = SPACE
        at = 0
        while fd >= 0:
            got = gofs_pread(volume, fd, pieces_at + first, PIECE_BYTES, at)
            if got <= 0:
                break
            for i in range(cuda.threadIdx.x, got, cuda.blockDim.x):
                before = last if i == 0 else pieces[first + i - 1]
                here = pieces[first + i]
                if (before == SPACE or before == NEWLINE) and here != SPACE and here != NEWLINE:
                    words += 1
            last = pieces[first + got - 1]
            at += PIECE_BYTES
        if fd >= 0:
            gofs_close(volume, fd)
        cuda.atomic.add(results, block, words)
        if got < 0 and cuda.threadIdx.x == 0:
            results[block] = got  # words are 0 then

    return count_words


def main():
    if len(sys.argv) < 4:
        sys.exit(__doc__)
    prefix, spec, *files = sys.argv[1:]
    kernel = make_kernel(prefix)
    with HostVolume(prefix, spec) as volume:
        names = b"".join(name.encode().ljust(MAX_PATH_BYTES, b"\0") for name in files)
        paths = cuda.to_device(numpy.frombuffer(names, dtype=numpy.uint8))
        pieces = cuda.device_array(len(files) * PIECE_BYTES, dtype=numpy.uint8)
        results = cuda.to_device(numpy.zeros(len(files), dtype=numpy.int64))
        address = lambda array: numpy.uint64(array.device_ctypes_pointer.value)
        kernel[len(files), 256](numpy.uint64(volume.device_pointer()), address(paths), pieces,
                                address(pieces), results)
        return volume.check(files, results.copy_to_host().tolist())


if __name__ == "__main__":
    sys.exit(main())
