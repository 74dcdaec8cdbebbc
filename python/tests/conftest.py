# SPDX-License-Identifier: Apache-2.0
"""Volumes for the tests: each has its own, empty or with what the test puts there."""

from __future__ import annotations

import contextlib
import os
import pathlib
import subprocess
import time
from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING

import numpy
import pytest

import gofs

if TYPE_CHECKING:
    from gofs.fsspec import GofsFileSystem

if not hasattr(numpy, "row_stack"):
    vars(numpy)["row_stack"] = numpy.vstack  # numba 0.68 wants it, and numpy 2.5 has it no longer

IMAGE_BYTES = 128 << 20  # a sparse file
# Of tests that do not choose one themselves: GOFS_TEST_BACKEND=cuda where there is a GPU.
BACKEND = os.environ.get("GOFS_TEST_BACKEND", "cpu")
SERVER = pathlib.Path(os.environ.get("GOFS_BUILD_DIR", "/none")) / "src/daemon/gofsd"


@pytest.fixture(autouse=True)
def no_umask() -> Iterator[None]:
    """Volumes have none, and the host's files are to be made as theirs."""
    before = os.umask(0)
    yield
    os.umask(before)


@pytest.fixture
def image(tmp_path: pathlib.Path) -> pathlib.Path:
    path = tmp_path / "volume.img"
    gofs.mkfs(path, IMAGE_BYTES)
    return path


@pytest.fixture
def volume(image: pathlib.Path) -> Iterator[gofs.Volume]:
    with gofs.mount(image, writable=True, backend=BACKEND) as mounted:
        yield mounted
        assert mounted.closed or mounted.warnings() == []


@pytest.fixture
def fs(volume: gofs.Volume) -> GofsFileSystem:
    """The volume's files, by fsspec."""
    pytest.importorskip("fsspec")
    from gofs.fsspec import GofsFileSystem

    return GofsFileSystem(volume, skip_instance_cache=True)


@pytest.fixture
def served(
    tmp_path: pathlib.Path,
) -> Callable[..., contextlib.AbstractContextManager[pathlib.Path]]:
    """`with served(image) as socket`: gofsd serves the image, to gofs.attach(socket).

    More arguments are options of gofsd.
    """
    if not SERVER.exists():
        pytest.skip("GOFS_BUILD_DIR names no build with gofsd")

    @contextlib.contextmanager
    def serve(image: pathlib.Path | str, *options: str) -> Iterator[pathlib.Path]:
        socket = tmp_path / "socket"
        server = subprocess.Popen(
            [SERVER, image, "--socket", socket, *options], stderr=subprocess.DEVNULL
        )
        try:
            deadline = time.monotonic() + 60
            while not socket.exists() and time.monotonic() < deadline:
                time.sleep(0.01)
            yield socket
        finally:
            server.terminate()
            server.wait(60)

    return serve


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> None:
    """The line that scripts/run_tests.py adds up."""

    def count(*kinds: str) -> int:
        return sum(len(terminalreporter.getreports(kind)) for kind in kinds)

    passed, failed, skipped = count("passed"), count("failed", "error"), count("skipped")
    terminalreporter.write_line(f"{passed} passed, {failed} failed, {skipped} skipped")
