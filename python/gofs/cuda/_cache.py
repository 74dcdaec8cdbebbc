# SPDX-License-Identifier: Apache-2.0
"""Kernels that were linked before: files in $XDG_CACHE_HOME/gofs/kernels, ~/.cache if not set.

A file has the SHA-256 of a cubin and the cubin. It appears as a whole, by a rename; one that is not
whole all the same counts as none. Where the folder cannot be used nothing is kept.
"""

from __future__ import annotations

import contextlib
import hashlib
import os
import pathlib
import tempfile

# What was used last stays; a cubin has 4 to 13 MB.
_FILES_MAX = 100
_DIGEST_BYTES = 32


def folder() -> pathlib.Path:
    base = os.environ.get("XDG_CACHE_HOME") or os.path.join(os.path.expanduser("~"), ".cache")
    return pathlib.Path(base, "gofs", "kernels")


def key_of(*parts: object) -> str:
    """A name for what is made of `parts`."""
    return hashlib.sha256(repr(parts).encode()).hexdigest()


def load(key: str) -> bytes | None:
    path = folder() / key
    try:
        data = path.read_bytes()
    except OSError:
        return None
    digest, cubin = data[:_DIGEST_BYTES], data[_DIGEST_BYTES:]
    if hashlib.sha256(cubin).digest() != digest:
        return None
    with contextlib.suppress(OSError):
        os.utime(path)
    return cubin


def store(key: str, cubin: bytes) -> None:
    with contextlib.suppress(OSError):
        folder().mkdir(parents=True, exist_ok=True)
        handle, temporary = tempfile.mkstemp(dir=folder(), prefix=".")
        try:
            with open(handle, "wb") as file:
                file.write(hashlib.sha256(cubin).digest())
                file.write(cubin)
            os.replace(temporary, folder() / key)
        except BaseException:
            os.unlink(temporary)
            raise
        _remove_oldest()


def _remove_oldest() -> None:
    with os.scandir(folder()) as entries:
        files = sorted((entry.stat().st_mtime_ns, entry.path) for entry in entries)
    for _, path in files[:-_FILES_MAX]:
        os.unlink(path)
