# SPDX-License-Identifier: Apache-2.0
"""Memory of a GPU, where no GPU of the program has mounted the volume (fake_gpu.py)."""

from __future__ import annotations

import contextlib
import os
import pathlib
import shutil
import subprocess
import sys
from collections.abc import Callable

import numpy
import pytest

import gofs
from fake_tensors import FakeTensor
from test_device import GpuTensor

HERE = pathlib.Path(__file__).parent
SOURCES = HERE.parents[1] / "src"
COMPILER = os.environ.get("CXX", "c++")


@pytest.fixture(scope="module")
def driver(tmp_path_factory: pytest.TempPathFactory) -> pathlib.Path:
    source = SOURCES / "testing/fake_cuda.cpp"
    if shutil.which(COMPILER) is None or not source.exists():
        pytest.skip("no compiler for the driver without a GPU, or no source of it")
    library = tmp_path_factory.mktemp("driver") / "libcuda.so.1"
    options = ["-std=c++20", "-shared", "-fPIC", f"-Wl,-soname,{library.name}", f"-I{SOURCES}"]
    subprocess.run([COMPILER, *options, source, "-o", library], check=True)
    return library


def run(driver: pathlib.Path, how: str, name: pathlib.Path) -> None:
    # A driver stays loaded.
    program = [sys.executable, HERE / "fake_gpu.py", driver, how, name]
    ran = subprocess.run(program, capture_output=True, text=True, timeout=300)
    assert ran.returncode == 0, ran.stdout + ran.stderr


def test_on_a_volume_that_the_cpu_has_mounted(driver: pathlib.Path, image: pathlib.Path) -> None:
    run(driver, "mount", image)


def test_on_an_attached_volume(
    driver: pathlib.Path,
    image: pathlib.Path,
    served: Callable[..., contextlib.AbstractContextManager[pathlib.Path]],
) -> None:
    with served(image, "--backend", "cpu") as socket:
        run(driver, "attach", socket)


def test_without_a_driver_it_is_refused(volume: gofs.Volume) -> None:
    for tensor in (GpuTensor(numpy.zeros(10, "u1")), FakeTensor(numpy.zeros(10), device="cuda:0")):
        with pytest.raises(ValueError, match="does not reach.*CUDA"):
            volume.write("/file", tensor)
    assert not volume.exists("/file")
