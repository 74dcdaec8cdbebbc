# SPDX-License-Identifier: Apache-2.0
"""Kernels of gofs.cuda, compiled and linked but not run: test_kernels_on_gpu.py does that."""

from __future__ import annotations

import importlib
import pathlib
import subprocess
from typing import TYPE_CHECKING, Any

import pytest

import gofs
import gofs.cuda
from device_code import ROOT, device_code
from gofs import _installed
from gofs.cuda import _cache

if TYPE_CHECKING:
    from collections.abc import Callable

__all__ = ["device_code"]
ARCH = "sm_90"
SOURCE = r"""
#include <gofs/gofs_device.h>
extern "C" __global__ void size_of(const void* volume, const char* path, long long* size) {
  *size = gofs_size_thread(volume, path) + EXTRA;
}
"""


def link(extra: str = "0") -> gofs.cuda.Module:
    return gofs.cuda.link(SOURCE, options=[f"-DEXTRA={extra}"], arch=ARCH)


@pytest.fixture
def link_alone(device_code: None, monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """What is compiled and linked, without the time that takes."""
    done: list[str] = []

    def compile_source(source: str, options: list[str]) -> bytes:
        done.append("compiled")
        return b"object"

    def link_with_archive(code: bytes, archive: pathlib.Path, arch: str) -> bytes:
        assert code == b"object"
        done.append("linked")
        return f"cubin {len(done)}".encode()

    monkeypatch.setattr("gofs.cuda._compiler.compile_source", compile_source)
    monkeypatch.setattr("gofs.cuda._linker.link_with_archive", link_with_archive)
    return done


def kept() -> list[pathlib.Path]:
    return sorted(_cache.folder().iterdir())


def test_a_kernel_is_linked_with_the_file_system(
    device_code: None, tmp_path: pathlib.Path
) -> None:
    module = link()
    assert module.arch == ARCH
    assert not module.cached
    assert module.timings.compile_seconds > 0
    assert module.timings.link_seconds > 0
    path = tmp_path / "kernel.cubin"
    path.write_bytes(module.cubin)
    symbols = subprocess.run(
        ["readelf", "-sW", path], check=True, capture_output=True, text=True, timeout=60
    ).stdout
    functions = [line.split() for line in symbols.splitlines() if " FUNC " in line]
    assert any(words[-1] == "size_of" for words in functions)
    assert any(words[-1] == "gofs_size_thread" for words in functions)
    undefined = [line for line in symbols.splitlines() if " UND " in line and "gofs" in line]
    assert undefined == []

    again = link()
    assert again.cached
    assert again.cubin == module.cubin
    assert again.timings == (0, 0)


def test_errors_have_the_words_of_the_compiler_and_the_linker(device_code: None) -> None:
    with pytest.raises(gofs.cuda.CompileError, match=r'kernel\.cu\(4\): error.*"UNKNOWN"'):
        link("UNKNOWN")
    with pytest.raises(gofs.cuda.CompileError, match="--gpu-architecture"):
        gofs.cuda.link(SOURCE, options=["-DEXTRA=0"], arch="sm_1")
    with pytest.raises(gofs.cuda.CompileError, match="--unknown"):
        gofs.cuda.link(SOURCE, options=["--unknown"], arch=ARCH)
    declared = 'extern "C" __device__ int none();\n'
    with pytest.raises(gofs.cuda.LinkError, match=r"reference to 'none' in 'kernel\.cu'"):
        gofs.cuda.link(declared + "__global__ void k(int* r) { *r = none(); }", arch=ARCH)
    with pytest.raises(TypeError, match="not one string"):
        gofs.cuda.link(SOURCE, options="-DEXTRA=0", arch=ARCH)


def test_an_architecture_that_the_device_code_is_not_for_is_named(device_code: None) -> None:
    built_for = _installed.device_architectures().split()
    other = next(arch for arch in ("100", "120", "80") if arch not in built_for)
    with pytest.raises(gofs.cuda.LinkError, match=f"for sm_{other}; the device code of"):
        gofs.cuda.link(SOURCE, options=["-DEXTRA=0"], arch=f"sm_{other}")


def test_what_was_linked_is_kept_for_the_same_source_and_options(link_alone: list[str]) -> None:
    first = link("1")
    assert link("1").cubin == first.cubin
    assert link("2").cubin != first.cubin
    assert gofs.cuda.link(SOURCE, options=["-DEXTRA=1"], arch="sm_80").cubin != first.cubin
    assert gofs.cuda.link(SOURCE + " ", options=["-DEXTRA=1"], arch=ARCH).cubin != first.cubin
    assert link_alone == ["compiled", "linked"] * 4
    assert len(kept()) == 4


def test_headers_of_the_program_may_change_so_nothing_is_kept(link_alone: list[str]) -> None:
    for _ in range(2):
        gofs.cuda.link(SOURCE, options=["-I/usr/include"], arch=ARCH)
        gofs.cuda.link('#include "/usr/include/mine.h"' + SOURCE, arch=ARCH)
    assert link_alone == ["compiled", "linked"] * 4
    assert not _cache.folder().exists()


@pytest.mark.parametrize(
    "damage",
    [
        lambda data: data[:-1],
        lambda data: b"",
        lambda data: data[:-1] + bytes([data[-1] ^ 1]),
        lambda data: bytes([data[0] ^ 1]) + data[1:],
    ],
)
def test_a_damaged_file_is_replaced(
    link_alone: list[str], damage: Callable[[bytes], bytes]
) -> None:
    link()
    [path] = kept()
    path.write_bytes(damage(path.read_bytes()))
    assert not link().cached
    assert link().cached
    assert kept() == [path]


def test_a_folder_that_cannot_be_written_is_no_error(
    link_alone: list[str], tmp_path: pathlib.Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "file").write_text("")
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "file"))
    for _ in range(2):
        assert not link().cached
    assert link_alone == ["compiled", "linked"] * 2


def test_what_was_used_last_is_kept(
    link_alone: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(_cache, "_FILES_MAX", 3)
    for number in range(10):
        link(str(number))
        assert link("0").cached
        assert len(kept()) == min(number + 1, 3)
    assert link("9").cached
    assert not link("5").cached


def test_cupy_loads_it_from_a_file(
    link_alone: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    class RawModule:
        def __init__(self, *, path: str, enable_cooperative_groups: bool) -> None:
            self.given = (pathlib.Path(path).read_bytes(), enable_cooperative_groups, path)

        def get_function(self, name: str) -> Any:
            return name, *self.given

    module = link()
    monkeypatch.setitem(__import__("sys").modules, "cupy", None)
    with pytest.raises(ImportError, match="pip install cupy"):
        module.get_function("size_of")
    fake = type("cupy", (), {"RawModule": RawModule})
    monkeypatch.setitem(__import__("sys").modules, "cupy", fake)
    name, cubin, cooperative, path = module.get_function("size_of")
    assert (name, cubin, cooperative) == ("size_of", module.cubin, False)
    assert module.get_function("x", cooperative=True) == ("x", cubin, True, path)
    assert link("1").get_function("x")[3] != path


def test_what_is_missing_is_named(device_code: None, monkeypatch: pytest.MonkeyPatch) -> None:
    with monkeypatch.context() as patched:
        patched.setattr(_installed, "LIB", pathlib.Path("/none"))
        with pytest.raises(ImportError, match="without device code.*GOFS_CUDA=1 pip install"):
            link()
    for module in ("cuda.core", "cuda.bindings.nvrtc", "cuda.pathfinder"):
        with monkeypatch.context() as patched:
            patched.setitem(__import__("sys").modules, module, None)
            with pytest.raises(ImportError, match=r"pip install 'cuda-core\[cu13\]'"):
                link()


def test_the_example_for_cupy_is_linked(
    device_code: None, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.syspath_prepend(str(ROOT / "examples"))
    example = importlib.import_module("word_count_cupy")
    module = gofs.cuda.link(example.SOURCE, options=example.OPTIONS, arch=ARCH)
    assert b"count_words" in module.cubin


def test_without_a_gpu_the_architecture_has_to_be_said(device_code: None) -> None:
    core = __import__("cuda.core").core
    try:
        core.Device().compute_capability  # noqa: B018
    except Exception:
        with pytest.raises(RuntimeError, match="arch='sm_90'"):
            gofs.cuda.link(SOURCE, options=["-DEXTRA=0"])
    else:
        pytest.skip("there is a GPU")


def test_kernels_get_no_handle_of_a_volume_that_no_gpu_has_mounted(volume: gofs.Volume) -> None:
    assert volume.device_handle == 0
    volume.close()
    with pytest.raises(ValueError, match="closed"):
        volume.device_handle  # noqa: B018
