# SPDX-License-Identifier: Apache-2.0
"""What kernels in Python call to open, read and write files, for numba-cuda.

    import gofs.numba
    import numpy
    from numba import cuda

    PATH = numpy.frombuffer(b"/data\\0", numpy.uint8)         # ends with a zero byte

    @cuda.jit
    def load(volume, buffer, got):
        path = cuda.const.array_like(PATH)
        fd = gofs.numba.open_block(volume, path.ctypes.data, 0, 0)
        got[0] = gofs.numba.pread_block(volume, fd, buffer.ctypes.data, buffer.nbytes, 0)
        gofs.numba.close_block(volume, fd)

    load[1, 256](volume.device_handle, buffer, got)

Each call of gofs/gofs_device.h is there for four groups that make it together: NAME_thread,
NAME_warp, NAME_block and NAME_grid, without the prefix gofs_. Pointers are addresses, which arrays
have in kernels as `array.ctypes.data`, slices of them and shared ones too. `help()` of a call has
its arguments. Results are what POSIX says, or a negative errno of Linux.

Numba links a kernel when it is compiled, and cannot keep it (`cache=True`).
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from gofs.numba._declared import declare_calls

_calls = declare_calls()
globals().update(_calls)
__all__ = list(_calls)  # noqa: PLE0605

if TYPE_CHECKING:

    def __getattr__(name: str) -> Any: ...
