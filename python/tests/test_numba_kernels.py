# SPDX-License-Identifier: Apache-2.0
"""Kernels of gofs.numba, compiled and linked but not run: test_kernels_on_gpu.py does that."""

from __future__ import annotations

import importlib
import re
import sys
from typing import TYPE_CHECKING, Any

import numpy
import pytest

from device_code import ROOT, device_code
from gofs import _installed

if TYPE_CHECKING:
    import pathlib
    from collections.abc import Iterator

__all__ = ["device_code"]
HEADER = (ROOT / "include/gofs/gofs_device.h").read_text()
PATH = numpy.frombuffer(b"/data\0", numpy.uint8)


@pytest.fixture
def calls(device_code: None) -> Iterator[Any]:
    pytest.importorskip("numba.cuda")
    yield importlib.import_module("gofs.numba")
    forget()


def forget() -> None:
    """The module is made for the device code that there is when it is imported."""
    sys.modules.pop("gofs.numba", None)


def ptx_of(kernel: Any, signature: str) -> str:
    cuda = importlib.import_module("numba.cuda")
    ptx, _ = cuda.compile(kernel, signature, device=False, abi="numba", cc=(9, 0))
    return str(ptx)


def test_each_call_of_the_header_is_there_for_each_group(calls: Any) -> None:
    names = re.findall(r"^GOFS_DEVICE_CALL\([^,]*, gofs_(\w+),", HEADER, re.MULTILINE)
    assert len(names) == HEADER.count("GOFS_DEVICE_CALL(") - 1 > 20
    groups = ("thread", "warp", "block", "grid")
    assert calls.__all__ == [f"{name}_{group}" for name in names for group in groups]
    for name in calls.__all__:
        assert getattr(calls, name).name == f"gofs_{name}"


def test_each_says_who_calls_it_and_what_it_gives(calls: Any) -> None:
    groups = {"thread": "by itself", "warp": "32 threads", "block": "block", "grid": "cooperative"}
    for name in calls.__all__:
        first, _, rest = getattr(calls, name).__doc__.partition("\n\n")
        assert re.fullmatch(rf"{name}\((\w+: u?int(32|64)(, )?)+\) -> int(32|64)", first), first
        says, _, group = rest.partition("\n\n")
        assert re.match(r"[A-Z0].*\.$", says), name
        assert groups[name.rpartition("_")[2]] in group
        assert "negative errno" in group
    assert calls.pread_block.__doc__.startswith(
        "pread_block(volume: uint64, fd: int32, buffer: uint64, bytes: uint64, offset: uint64)"
        " -> int64\n\nBytes read: fewer than `bytes` at the end of the file.\n\nAll threads of the "
        "block call it together,"
    )


def test_arrays_have_addresses_in_kernels(calls: Any) -> None:
    cuda = importlib.import_module("numba.cuda")
    uint8 = importlib.import_module("numba").uint8

    def kernel(volume: Any, buffer: Any, got: Any) -> None:
        path = cuda.const.array_like(PATH)
        shared = cuda.shared.array(64, uint8)
        fd = calls.open_block(volume, path.ctypes.data, 0, 0)
        got[0] = calls.pread_block(volume, fd, buffer.ctypes.data, buffer.nbytes, 0)
        got[1] = calls.pread_block(volume, fd, buffer[64:].ctypes.data, 64, 64)
        got[2] = calls.pread_block(volume, fd, shared.ctypes.data, 64, 0)
        calls.close_block(volume, fd)

    ptx = ptx_of(kernel, "void(uint64, float32[::1], int64[::1])")
    assert len(re.findall(r"^\s*gofs_pread_block,", ptx, re.MULTILINE)) == 3
    for name in ("open", "pread", "close"):
        assert re.search(rf"\.extern \.func +\(.*\) gofs_{name}_block", ptx)


def test_the_example_for_numba_is_compiled(
    calls: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.syspath_prepend(str(ROOT / "examples"))
    example = importlib.import_module("word_count_numba")
    kernel = example.count_words.py_func
    ptx = ptx_of(kernel, "void(int64, uint8[:, ::1], uint8[:, ::1], int64[::1])")
    assert set(re.findall(r"^\s*gofs_(\w+),", ptx, re.MULTILINE)) == {
        "open_block",
        "pread_block",
        "close_block",
    }


def test_they_are_linked_with_the_file_system(calls: Any, tmp_path: pathlib.Path) -> None:
    core = importlib.import_module("cuda.core")

    def kernel(volume: Any, fd: Any, size: Any) -> None:
        size[0] = calls.fsize_thread(volume, fd)

    ptx = ptx_of(kernel, "void(uint64, int32, int64[::1])")
    linked = core.Linker(
        core.ObjectCode.from_ptx(ptx.encode()),
        core.ObjectCode.from_library(str(_installed.device_library())),
        options=core.LinkerOptions(arch="sm_90"),
    ).link("cubin")
    assert b"gofs_fsize_thread" in linked.code


def test_what_is_missing_is_named(device_code: None, monkeypatch: pytest.MonkeyPatch) -> None:
    forget()
    with monkeypatch.context() as patched:
        patched.setitem(sys.modules, "numba.cuda", None)
        with pytest.raises(ImportError, match=r"pip install 'numba-cuda\[cu13\]'"):
            importlib.import_module("gofs.numba")
    monkeypatch.setattr(_installed, "LIB", ROOT / "none")
    with pytest.raises(ImportError, match="without device code"):
        importlib.import_module("gofs.numba")
