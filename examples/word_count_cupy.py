#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Counts the words of files in a CUDA kernel that CuPy compiles and links with libgofs_device.a:
each block opens a file by its name, reads it piece by piece and counts. Then the host reads the
same files through the same volume and checks.

    word_count_cupy.py PREFIX VOLUME FILE...

PREFIX is where GoFS is installed, with include/ and lib/. Exit status 77 where there is no CuPy.
"""
import sys

try:
    import cupy
except ImportError:
    print("word_count_cupy: CuPy is not installed")
    sys.exit(77)

from word_count_host import HostVolume, MAX_PATH_BYTES, PIECE_BYTES

SOURCE = r"""
#include "gofs/gofs_device.h"

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
""".replace("PATH_BYTES", str(MAX_PATH_BYTES)).replace("PIECE_BYTES", str(PIECE_BYTES))


def link(prefix):
    """The kernel, linked with GoFS's device code."""
    architecture = cupy.cuda.Device().compute_capability
    ptx, _ = cupy.cuda.compiler.compile_using_nvrtc(
        SOURCE, ("-rdc=true", f"-I{prefix}/include"), arch=architecture)
    linker = cupy.cuda.function.LinkState()
    linker.add_ptr_data(ptx.encode() if isinstance(ptx, str) else ptx, "word_count.ptx")
    linker.add_ptr_file(f"{prefix}/lib/libgofs_device.a")
    module = cupy.cuda.function.Module()
    module.load(linker.complete())
    return module.get_function("count_words")


def main():
    if len(sys.argv) < 4:
        sys.exit(__doc__)
    prefix, spec, *files = sys.argv[1:]
    kernel = link(prefix)
    with HostVolume(prefix, spec) as volume:
        names = b"".join(name.encode().ljust(MAX_PATH_BYTES, b"\0") for name in files)
        paths = cupy.frombuffer(names, dtype=cupy.uint8).copy()
        pieces = cupy.empty(len(files) * PIECE_BYTES, dtype=cupy.uint8)
        results = cupy.zeros(len(files), dtype=cupy.int64)
        kernel((len(files),), (1024,),
               (volume.device_pointer(), paths.data.ptr, pieces.data.ptr, results.data.ptr))
        return volume.check(files, results.get().tolist())


if __name__ == "__main__":
    sys.exit(main())
