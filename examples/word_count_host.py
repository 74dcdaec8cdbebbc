# SPDX-License-Identifier: Apache-2.0
"""What word_count_cupy.py and word_count_numba.py have in common: a volume, mounted through the C
interface (gofs/gofs.h), whose pointer kernels take, and words counted on the host."""
import ctypes
import os

MAX_PATH_BYTES = 256
PIECE_BYTES = 64 << 10


class HostVolume:
    """A volume that is mounted for reading by a GPU, until the `with` block ends."""

    def __init__(self, prefix, spec):
        self._gofs = ctypes.CDLL(os.path.join(prefix, "lib", "libgofs.so"))
        self._gofs.gofs_last_error.restype = ctypes.c_char_p
        self._gofs.gofs_volume_device_pointer.restype = ctypes.c_void_p
        self._gofs.gofs_volume_device_pointer.argtypes = [ctypes.c_void_p]
        self._gofs.gofs_pread.restype = ctypes.c_int64
        self._gofs.gofs_pread.argtypes = [ctypes.c_void_p, ctypes.c_int, ctypes.c_char_p,
                                          ctypes.c_uint64, ctypes.c_uint64]
        self._gofs.gofs_open.argtypes = [ctypes.c_void_p, ctypes.c_char_p, ctypes.c_uint32,
                                         ctypes.c_uint32]
        self._gofs.gofs_close.argtypes = [ctypes.c_void_p, ctypes.c_int]
        self._gofs.gofs_volume_free.argtypes = [ctypes.c_void_p]
        self._volume = ctypes.c_void_p()
        self._must(self._gofs.gofs_mount(spec.encode(), None, ctypes.byref(self._volume)))

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self._gofs.gofs_volume_free(self._volume)

    def _must(self, result):
        if result < 0:
            raise OSError(-result, self._gofs.gofs_last_error().decode())
        return result

    def device_pointer(self):
        """What kernels take for `volume`."""
        pointer = self._gofs.gofs_volume_device_pointer(self._volume)
        if pointer is None:
            raise OSError(self._gofs.gofs_last_error().decode())
        return pointer

    def count_words(self, name):
        """The words of a file, or a negative errno."""
        fd = self._gofs.gofs_open(self._volume, name.encode(), 0, 0)
        if fd < 0:
            return fd
        text = b""
        piece = ctypes.create_string_buffer(PIECE_BYTES)
        while True:
            got = self._must(self._gofs.gofs_pread(self._volume, fd, piece, PIECE_BYTES,
                                                   len(text)))
            if got == 0:
                break
            text += piece.raw[:got]
        self._must(self._gofs.gofs_close(self._volume, fd))
        return sum(len(line.split(b" ")) - line.split(b" ").count(b"")
                   for line in text.split(b"\n"))

    def check(self, files, counted):
        """Prints what the GPU has counted; an exit status: 0 if the host counts as much."""
        status = 0
        for name, words in zip(files, counted):
            wanted = self.count_words(name)
            if wanted < 0:
                print(f"{name}: {os.strerror(-wanted)}")
            else:
                print(f"{words} {name}")
            if words != wanted:
                print(f"{name}: the GPU says {words}, the host {wanted}")
            if words != wanted or wanted < 0:
                status = 1
        return status
