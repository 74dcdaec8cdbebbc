# SPDX-License-Identifier: Apache-2.0
"""GoFS's device code for the tests of kernels: the package's own, or that of a build beside it."""

from __future__ import annotations

import os
import pathlib

import pytest

from gofs import _installed

ROOT = pathlib.Path(__file__).parents[2]


@pytest.fixture
def device_code(tmp_path: pathlib.Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Kernels can be compiled and linked, without a GPU. They are kept in a folder of the test."""
    for module in ("cuda.core", "cuda.bindings.nvrtc"):
        pytest.importorskip(module)
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    if (_installed.LIB / "libgofs_device.a").exists():
        return
    build = pathlib.Path(os.environ.get("GOFS_DEVICE_BUILD_DIR", ROOT / "build/cuda"))
    archive = build / "src/device/libgofs_device.a"
    if not archive.exists():
        pytest.skip("no device code: the package has none, nor has GOFS_DEVICE_BUILD_DIR")
    lib = tmp_path / "lib"
    (lib / "pkgconfig").mkdir(parents=True)
    (lib / archive.name).symlink_to(archive)
    (lib / "pkgconfig/gofs-device.pc").symlink_to(build / "lib/gofs-device.pc")
    monkeypatch.setattr(_installed, "LIB", lib)
    monkeypatch.setattr(_installed, "INCLUDE", ROOT / "include")
