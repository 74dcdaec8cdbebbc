# SPDX-License-Identifier: Apache-2.0
"""Volumes for the tests: each has its own, empty or with what the test puts there."""

from __future__ import annotations

import os
import pathlib
from collections.abc import Iterator

import pytest

import gofs

IMAGE_BYTES = 128 << 20  # a sparse file


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
    with gofs.mount(image, writable=True, backend="cpu") as mounted:
        yield mounted
        assert mounted.closed or mounted.warnings() == []


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> None:
    """The line that scripts/run_tests.py adds up."""

    def count(*kinds: str) -> int:
        return sum(len(terminalreporter.getreports(kind)) for kind in kinds)

    passed, failed, skipped = count("passed"), count("failed", "error"), count("skipped")
    terminalreporter.write_line(f"{passed} passed, {failed} failed, {skipped} skipped")
