# SPDX-License-Identifier: Apache-2.0
"""Kernels of gofs.cuda and gofs.numba that run: of CuPy, cuda.core and numba-cuda, each of which
is skipped where it is not installed. The package has to have device code."""

from __future__ import annotations

import errno
import importlib
import os
import pathlib
import shutil
import subprocess
import sys
from typing import TYPE_CHECKING, Any

import numpy
import pytest

import gofs
import gofs.cuda
from gofs import _installed
from gofs.cuda import _bindings

if TYPE_CHECKING:
    from collections.abc import Iterator

pytest.importorskip("cuda.core")
try:
    _bindings.current_architecture()
    _installed.device_library()
except (ImportError, RuntimeError) as error:
    pytest.skip(str(error), allow_module_level=True)

ROOT = pathlib.Path(__file__).parents[2]
SIZE = 1_000_003
DATA = os.urandom(SIZE)
PIECE = 64 << 10
BLOCKS = -(-SIZE // PIECE)
PATH = numpy.frombuffer(b"/file\0", numpy.uint8)
SOURCE = r"""
#include <gofs/gofs_device.h>

// Each block reads a piece of the file.
extern "C" __global__ void read_pieces(const void* volume, const char* path, char* buffer,
                                       unsigned long long size, long long* got) {
  const unsigned long long at = blockIdx.x * PIECE;
  const unsigned long long left = size - at;
  const int fd = gofs_open_block(volume, path, 0, 0);
  const long long result = fd < 0 ? fd : gofs_pread_block(volume, fd, buffer + at,
                                                          left < PIECE ? left : PIECE, at);
  if (fd >= 0) gofs_close_block(volume, fd);
  if (threadIdx.x == 0) got[blockIdx.x] = result;
}

extern "C" __global__ void read_by_all(const void* volume, const char* path, char* buffer,
                                       unsigned long long size, long long* got) {
  const int fd = gofs_open_grid(volume, path, 0, 0);
  const long long result = gofs_pread_grid(volume, fd, buffer, size, 0);
  gofs_close_grid(volume, fd);
  if (threadIdx.x == 0) got[blockIdx.x] = result;
}

extern "C" __global__ void write_file(const void* volume, const char* path, const char* buffer,
                                      unsigned long long size, long long* got) {
  const int fd = gofs_open_block(volume, path, 0102, 0644);  // O_RDWR | O_CREAT
  const long long result = gofs_pwrite_block(volume, fd, buffer, size, 0);
  gofs_fsync_block(volume, fd);
  gofs_close_block(volume, fd);
  if (threadIdx.x == 0) got[0] = result;
}
"""
PIECES = [min(PIECE, SIZE - at) for at in range(0, SIZE, PIECE)]


@pytest.fixture
def volume(tmp_path: pathlib.Path) -> Iterator[gofs.Volume]:
    gofs.mkfs(tmp_path / "volume.img", 256 << 20)
    spec = f"{tmp_path / 'volume.img'}?media=memory"
    with gofs.mount(spec, writable=True, backend="cuda") as mounted:
        mounted.write("/file", DATA)
        yield mounted


@pytest.fixture
def module(tmp_path: pathlib.Path, monkeypatch: pytest.MonkeyPatch) -> gofs.cuda.Module:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    return gofs.cuda.link(SOURCE, options=[f"-DPIECE={PIECE}"])


def test_the_time_that_linking_takes_is_printed(
    module: gofs.cuda.Module, capsys: pytest.CaptureFixture[str]
) -> None:
    again = gofs.cuda.link(SOURCE, options=[f"-DPIECE={PIECE}"])
    assert again.cached
    assert again.cubin == module.cubin
    with capsys.disabled():
        print(f"\n{module}: {module.timings}")


class Cupy:
    """Buffers and launches of CuPy."""

    def __init__(self, module: gofs.cuda.Module) -> None:
        self.cupy = pytest.importorskip("cupy")
        self.module = module

    def launch(self, name: str, blocks: int, *arguments: Any, cooperative: bool = False) -> Any:
        kernel = self.module.get_function(name, cooperative=cooperative)
        got = self.cupy.zeros(blocks, dtype=self.cupy.int64)
        kernel((blocks,), (256,), (*arguments, got))
        return got.get().tolist()


class CudaCore(Cupy):
    """Launches of cuda.core, on buffers of CuPy."""

    def launch(self, name: str, blocks: int, *arguments: Any, cooperative: bool = False) -> Any:
        core = importlib.import_module("cuda.core")
        device = core.Device()
        device.set_current()
        got = self.cupy.zeros(blocks, dtype=self.cupy.int64)
        self.cupy.cuda.Device().synchronize()
        config = core.LaunchConfig(grid=blocks, block=256, is_cooperative=cooperative)
        addresses = [getattr(one, "data", one) for one in (*arguments, got)]
        stream = device.create_stream()
        core.launch(
            stream,
            config,
            self.module.get_kernel(name),
            *[getattr(one, "ptr", one) for one in addresses],
        )
        stream.sync()
        return got.get().tolist()


@pytest.mark.parametrize("framework", [Cupy, CudaCore])
def test_kernels_read_and_write(
    volume: gofs.Volume, module: gofs.cuda.Module, framework: type[Cupy]
) -> None:
    on = framework(module)
    path = on.cupy.asarray(PATH)
    size = numpy.uint64(SIZE) if framework is Cupy else SIZE
    buffer = on.cupy.zeros(SIZE, dtype=on.cupy.uint8)
    assert on.launch("read_pieces", BLOCKS, volume.device_handle, path, buffer, size) == PIECES
    assert buffer.tobytes() == DATA

    buffer[:] = 0
    blocks = 8
    got = on.launch(
        "read_by_all", blocks, volume.device_handle, path, buffer, size, cooperative=True
    )
    assert got == [SIZE] * blocks
    assert buffer.tobytes() == DATA

    new = on.cupy.asarray(numpy.frombuffer(b"/new\0", numpy.uint8))
    assert on.launch("write_file", 1, volume.device_handle, new, buffer, size) == [SIZE]
    assert volume.read("/new") == DATA
    missing = on.cupy.asarray(numpy.frombuffer(b"/missing\0", numpy.uint8))
    got = on.launch("read_pieces", BLOCKS, volume.device_handle, missing, buffer, size)
    assert got == [-errno.ENOENT] * BLOCKS
    assert on.launch("read_pieces", 1, 0, path, buffer, size) == [-errno.EINVAL]


@pytest.mark.filterwarnings("ignore:.*Grid size")
def test_kernels_in_python_read_and_write(volume: gofs.Volume) -> None:
    cuda = pytest.importorskip("numba.cuda")
    calls = importlib.import_module("gofs.numba")

    @cuda.jit
    def copy(volume: Any, source: Any, target: Any, buffer: Any, got: Any) -> None:
        path = cuda.const.array_like(PATH)
        first = cuda.shared.array(16, numpy.uint8)
        fd = calls.open_block(volume, path.ctypes.data, 0, 0)
        got[0] = calls.pread_block(volume, fd, buffer.ctypes.data, buffer.nbytes, 0)
        got[1] = calls.pread_block(volume, fd, first.ctypes.data, first.nbytes, 0)
        calls.close_block(volume, fd)
        fd = calls.open_block(volume, target.ctypes.data, 0o102, 0o644)
        got[2] = calls.pwrite_block(volume, fd, buffer[16:].ctypes.data, buffer.nbytes - 16, 16)
        got[3] = calls.pwrite_block(volume, fd, first.ctypes.data, first.nbytes, 0)
        calls.close_block(volume, fd)
        got[4] = calls.open_block(volume, source.ctypes.data, 0, 0)

    @cuda.jit
    def size(volume: Any, path: Any, got: Any) -> None:
        got[cuda.blockIdx.x] = calls.size_grid(volume, path.ctypes.data)

    names = [cuda.to_device(numpy.frombuffer(name, numpy.uint8)) for name in (b"/no\0", b"/new\0")]
    buffer = cuda.device_array(SIZE, numpy.uint8)
    got = cuda.to_device(numpy.zeros(5, numpy.int64))
    copy[1, 256](volume.device_handle, *names, buffer, got)
    assert got.copy_to_host().tolist() == [SIZE, 16, SIZE - 16, 16, -errno.ENOENT]
    assert buffer.copy_to_host().tobytes() == DATA
    assert volume.read("/new") == DATA

    got = cuda.to_device(numpy.zeros(4, numpy.int64))
    size[4, 64](volume.device_handle, names[1], got)
    assert got.copy_to_host().tolist() == [SIZE] * 4


@pytest.mark.parametrize("framework", ["cupy", "numba.cuda"])
def test_the_examples_count_as_the_host_does(tmp_path: pathlib.Path, framework: str) -> None:
    pytest.importorskip(framework)
    image = tmp_path / "volume.img"
    gofs.mkfs(image, 256 << 20)
    names = ["architecture.md", "memory_model.md", "performance.md"]
    with gofs.mount(image, writable=True, backend="cpu") as volume:
        for name in names:
            volume.write(f"/{name}", (ROOT / "docs" / name).read_bytes())
    example = ROOT / f"examples/word_count_{framework.partition('.')[0]}.py"
    said = subprocess.run(
        [sys.executable, example, image, *[f"/{name}" for name in names]],
        check=False,
        capture_output=True,
        text=True,
        timeout=300,
    )
    assert said.returncode == 0, said.stdout + said.stderr
    for name in names:
        words = len((ROOT / "docs" / name).read_text().split())
        assert f"{words} /{name}" in said.stdout


@pytest.mark.skipif(shutil.which("nvcc") is None, reason="no nvcc")
def test_a_program_with_kernels_is_built_by_one_line(
    volume: gofs.Volume, tmp_path: pathlib.Path
) -> None:
    program = tmp_path / "word_count"
    flags = subprocess.run(
        [sys.executable, "-m", "gofs", "--cflags", "--libs"],
        check=True,
        capture_output=True,
        text=True,
        timeout=60,
    ).stdout.split()
    source = ROOT / "examples/word_count.cu"
    arch = _bindings.current_architecture()
    subprocess.run(
        ["nvcc", "-std=c++17", "-rdc=true", f"-arch={arch}", source, "-o", program]
        + ["-lgofs_device", *flags],
        check=True,
        timeout=300,
    )
    text = (ROOT / "docs/architecture.md").read_bytes()
    volume.write("/text", text)
    volume.close()
    image = tmp_path / "volume.img"
    said = subprocess.run(
        [program, image, "/text"], check=True, capture_output=True, text=True, timeout=120
    )
    assert f"{len(text.split())} /text" in said.stdout
