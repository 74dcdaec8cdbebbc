# SPDX-License-Identifier: Apache-2.0
"""Kernels in CUDA C++ that open, read and write files, for CuPy and cuda.core.

    module = gofs.cuda.link(r'''
        #include <gofs/gofs_device.h>
        extern "C" __global__ void load(const void* volume, char* buffer, long long* got) {
          const int fd = gofs_open_block(volume, "/data", 0, 0);
          *got = gofs_pread_block(volume, fd, buffer, 1 << 20, 0);
          gofs_close_block(volume, fd);
        }
    ''')
    load = module.get_function("load")                         # a kernel of CuPy
    load((1,), (256,), (volume.device_handle, buffer, got))
    load = module.get_kernel("load")                           # or one of cuda.core

gofs/gofs_device.h, which the package has, says what kernels may call. `gofs.numba` has the same for
kernels in Python.
"""

from gofs.cuda._errors import CompileError, LinkError
from gofs.cuda._link import link
from gofs.cuda._module import Module, Timings

__all__ = ["CompileError", "LinkError", "Module", "Timings", "link"]
