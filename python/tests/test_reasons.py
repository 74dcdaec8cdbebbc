# SPDX-License-Identifier: Apache-2.0
"""Why calls that are about many files or ranges fail: in the words that other calls have."""

from __future__ import annotations

import contextlib
import errno
import os
import pathlib
import resource
import types
from collections.abc import Callable, Iterator
from typing import Any

import numpy
import pytest

import gofs
from watched import Watched

FILE_BYTES = 60 << 20
SHORTER = "the image has become shorter than it was when it was mounted"


def as_gpu_memory(array: numpy.ndarray[Any, Any]) -> Any:
    """What stands for memory of a GPU is the host's, as in test_device.py."""
    described = {**array.__array_interface__, "version": 3}
    return types.SimpleNamespace(array=array, __cuda_array_interface__=described)


def take_for_a_gpus(volume: gofs.Volume, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(volume, "_reaches_gpu", True)
    monkeypatch.setattr(volume, "_core", Watched(volume, reaches=lambda *_: True))


@contextlib.contextmanager
def no_files_beyond(size: int) -> Iterator[None]:
    """The host refuses what is written behind that byte of any file."""
    before = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (size, before[1]))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, before)


def test_reads_say_what_the_ssd_said(image: pathlib.Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with gofs.mount(image, writable=True, backend="cpu") as volume:
        volume.write("/file", os.urandom(FILE_BYTES))
    with gofs.mount(f"{image}?media=hosted", backend="cpu") as volume:
        take_for_a_gpus(volume, monkeypatch)
        rows = numpy.zeros((2, 4096), numpy.uint8)
        flat = as_gpu_memory(rows.reshape(-1))
        whole = as_gpu_memory(numpy.zeros(FILE_BYTES, numpy.uint8))
        offsets = [FILE_BYTES - 4096, 1 << 20]
        calls: list[Callable[[], Any]] = [
            lambda: volume.read_into("/file", bytearray(FILE_BYTES)),
            lambda: volume.read_many(["/file"]),
            lambda: volume.read_ranges([("/file", offsets[0], rows)]),
            lambda: volume.read_rows("/file", offsets, rows),
            lambda: volume.read_rows("/file", offsets, flat),
            lambda: volume.read_ranges([("/file", offsets[0], flat)]),
            lambda: volume.read_many_into(["/file"], whole, [0, FILE_BYTES]),
            lambda: volume.read_into("/file", whole),
            lambda: volume.read_into_async("/file", whole).result(),
        ]
        os.truncate(image, 32 << 20)
        for call in calls:
            with pytest.raises(OSError, match=SHORTER) as raised:
                call()
            assert raised.value.errno == errno.EIO
            assert raised.value.filename == "/file"


def test_writes_say_what_the_host_said(
    image: pathlib.Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    data = numpy.full(1 << 20, 7, numpy.uint8)
    with gofs.mount(f"{image}?media=hosted", writable=True, backend="cpu") as volume:
        take_for_a_gpus(volume, monkeypatch)
        volume.write("/old", data)
        there = volume.open("/old", "r+b", buffering=0)
        calls: list[Callable[[], Any]] = [
            lambda: volume.write("/new", data),
            lambda: volume.write_many("/", {"new": data}),
            lambda: volume.write_many("/", {"new": as_gpu_memory(data)}),
            lambda: volume.write_many("/", {"new": data, "newer": as_gpu_memory(data)}),
            lambda: volume.write_ranges([(there, 0, data)]),
            lambda: volume.write_ranges([(there, 0, as_gpu_memory(data))]),
            lambda: volume.write_rows(there, [0, 1 << 19], data),
            lambda: volume.write_rows(there, [0, 1 << 19], as_gpu_memory(data)),
        ]
        with no_files_beyond(4096):
            for call in calls:
                with pytest.raises(OSError, match="Write Fault .* of a Write at LBA") as raised:
                    call()
                assert os.strerror(errno.EFBIG) in str(raised.value)
                assert raised.value.errno == errno.EIO
                assert raised.value.filename in ("/new", "/old")
        there.close()
        volume.write_many("/", {"new": data})
        assert volume.read("/new") == data.tobytes()


def test_what_ran_full_is_told_by_the_name_of_the_first_file(
    volume: gofs.Volume, monkeypatch: pytest.MonkeyPatch
) -> None:
    asked: list[tuple[int, Any]] = []

    def error_of(code: int, path: Any) -> OSError:
        asked.append((code, path))
        return OSError(code, f"{os.strerror(code)}: there is no more of it", path)

    def batch_create(directory: str, names: list[str], *more: object) -> list[int]:
        return [0 if name == "made" else errno.ENOSPC for name in names]

    watched = Watched(volume, batch_create=batch_create, error_of=error_of)
    monkeypatch.setattr(volume, "_core", watched)
    with pytest.raises(OSError, match="there is no more of it: '/two'"):
        volume.write_many("/", {"made": b"1", "two": b"2", "three": b"3"})
    assert asked == [(errno.ENOSPC, "/two")]


def test_a_closed_volume_has_the_systems_words(volume: gofs.Volume) -> None:
    core = volume._core
    assert str(core.error_of(errno.ENOENT, "/a")) == str(
        FileNotFoundError(errno.ENOENT, os.strerror(errno.ENOENT), "/a")
    )
    volume.close()
    full = core.error_of(errno.ENOSPC, b"/a")
    assert (full.errno, full.strerror) == (errno.ENOSPC, os.strerror(errno.ENOSPC))
    assert full.filename == b"/a"
    assert isinstance(core.error_of(errno.EUCLEAN, "/a"), gofs.CorruptionError)
