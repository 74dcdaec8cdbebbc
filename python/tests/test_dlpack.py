# SPDX-License-Identifier: Apache-2.0
"""Arrays that show their memory by DLPack alone."""

from __future__ import annotations

import gc
import weakref

import numpy
import pytest

import gofs
from fake_dlpack import CPU, CUDA, OPENCL, PINNED, FakeDLPack, FrozenDLPack
from gofs._buffers import memory_to_read

DATA = bytes(range(240))


def array() -> numpy.ndarray[tuple[int, ...], numpy.dtype[numpy.float32]]:
    return numpy.frombuffer(bytearray(DATA), dtype="f4").reshape(3, 4, 5)


@pytest.mark.parametrize("device", [CPU, PINNED])
def test_those_on_the_host_are_read_and_written(volume: gofs.Volume, device: int) -> None:
    for shown in (
        FakeDLPack(array(), device),
        FakeDLPack(array(), device, with_strides=False),
        FakeDLPack(array(), device, byte_offset=16),
    ):
        assert volume.write("/file", shown) == 240  # type: ignore[arg-type]
        assert volume.read("/file") == DATA
        volume.write("/other", DATA[::-1])
        assert volume.read_into("/other", shown) == 240  # type: ignore[arg-type]
        assert shown.array.tobytes() == DATA[::-1]
    empty = FakeDLPack(numpy.zeros((3, 0)), device)
    assert volume.write("/file", empty) == 0  # type: ignore[arg-type]


def test_those_on_the_gpu_are_moved_there(
    volume: gofs.Volume, monkeypatch: pytest.MonkeyPatch
) -> None:
    shown = FakeDLPack(array(), CUDA)
    with pytest.raises(ValueError, match="which this call does not reach"):
        volume.write("/file", shown)  # type: ignore[arg-type]
    monkeypatch.setattr(volume, "_reaches_gpu", True)
    shown.streams.clear()
    assert volume.write("/file", shown) == 240  # type: ignore[arg-type]
    assert volume.read("/file") == DATA
    assert shown.streams == [1]
    with volume.open("/file", "ab") as file:
        file.write(FakeDLPack(array(), PINNED))  # type: ignore[arg-type]
        with pytest.raises(ValueError, match="not appended"):
            file.write(shown)  # type: ignore[arg-type]
    assert volume.read("/file") == DATA * 2


def test_those_of_jax_are_waited_for_and_never_changed(
    volume: gofs.Volume, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(volume, "_reaches_gpu", True)
    for device in (CPU, CUDA):
        frozen = FrozenDLPack(numpy.zeros(4, dtype="u1"), device)
        volume.write("/file", frozen)  # type: ignore[arg-type]
        assert volume.read("/file") == bytes([7] * 4)
        with pytest.raises(BufferError, match="FrozenDLPack is read-only"):
            volume.read_into("/file", frozen)  # type: ignore[arg-type]


def test_those_of_numpy_are_taken_by_their_buffer(
    volume: gofs.Volume, monkeypatch: pytest.MonkeyPatch
) -> None:
    for reaches in (False, True):
        monkeypatch.setattr(volume, "_reaches_gpu", reaches)
        for given in (
            numpy.frombuffer(b"12345678", dtype="u1"),  # read-only
            numpy.frombuffer(b"12345678", dtype="M8[s]"),
        ):
            volume.write("/file", given)
            assert volume.read("/file") == b"12345678"


def test_what_has_gaps_or_is_elsewhere_is_refused(
    volume: gofs.Volume, monkeypatch: pytest.MonkeyPatch
) -> None:
    for reaches in (False, True):
        monkeypatch.setattr(volume, "_reaches_gpu", reaches)
        for device in (CPU, CUDA, PINNED):
            strided = FakeDLPack(array()[:, :, ::2], device)
            with pytest.raises(ValueError, match="contiguous|does not reach"):
                volume.write("/file", strided)  # type: ignore[arg-type]
        with pytest.raises(ValueError, match="does not reach"):
            volume.write("/file", FakeDLPack(array(), OPENCL))  # type: ignore[arg-type]
    assert not volume.exists("/file")


def test_memory_keeps_the_array() -> None:
    shown = FakeDLPack(array())
    stays = weakref.ref(shown)
    memory = memoryview(memory_to_read(shown))  # type: ignore[arg-type]
    del shown
    gc.collect()
    assert bytes(memory) == DATA
    assert stays() is not None
    del memory
    gc.collect()
    assert stays() is None
