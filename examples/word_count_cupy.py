#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Counts the words of files in a CUDA kernel that is launched by CuPy: each block opens a file by
its name, reads it piece by piece and counts. Then the host reads the same files through the same
volume and checks.

    word_count_cupy.py VOLUME FILE...
"""
import sys

import gofs
import gofs.cuda
from word_count_host import MAX_PATH_BYTES, PIECE_BYTES, check, paths_for_kernels

SOURCE = r"""
#include <gofs/gofs_device.h>

__device__ bool starts_word(char before, char c) {
  return (before == ' ' || before == '\n') && c != ' ' && c != '\n';
}

extern "C" __global__ void count_words(const void* volume, const char* paths, char* pieces,
                                       long long* results) {
  const char* const path = paths + blockIdx.x * PATH_BYTES;
  char* const piece = pieces + blockIdx.x * PIECE_BYTES;
  const int fd = gofs_open_block(volume, path, 0, 0);
  long long got = fd;
  unsigned long long words = 0;
  char last = ' ';
  for (unsigned long long at = 0; fd >= 0; at += PIECE_BYTES) {
    got = gofs_pread_block(volume, fd, piece, PIECE_BYTES, at);
    if (got <= 0) break;
    for (long long i = threadIdx.x; i < got; i += blockDim.x) {
      words += starts_word(i == 0 ? last : piece[i - 1], piece[i]);
    }
    last = piece[got - 1];
  }
  if (fd >= 0) gofs_close_block(volume, fd);
  atomicAdd(reinterpret_cast<unsigned long long*>(&results[blockIdx.x]), words);
  if (got < 0 && threadIdx.x == 0) results[blockIdx.x] = got;  // words are 0 then
}
"""
OPTIONS = (f"-DPATH_BYTES={MAX_PATH_BYTES}", f"-DPIECE_BYTES={PIECE_BYTES}")


def main() -> int:
    if len(sys.argv) < 3:
        sys.exit(__doc__)
    import cupy

    spec, *files = sys.argv[1:]
    kernel = gofs.cuda.link(SOURCE, options=OPTIONS).get_function("count_words")
    with gofs.mount(spec, backend="cuda") as volume:
        paths = cupy.frombuffer(paths_for_kernels(files), dtype=cupy.uint8).copy()
        pieces = cupy.empty(len(files) * PIECE_BYTES, dtype=cupy.uint8)
        results = cupy.zeros(len(files), dtype=cupy.int64)
        kernel((len(files),), (1024,), (volume.device_handle, paths, pieces, results))
        return check(volume, files, results.get().tolist())


if __name__ == "__main__":
    sys.exit(main())
