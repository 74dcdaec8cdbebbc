# SPDX-License-Identifier: Apache-2.0
"""Volumes in other processes: forked, spawned, pickled."""

from __future__ import annotations

import gc
import multiprocessing
import pathlib
import pickle
from collections.abc import Callable
from typing import Any

import pytest

import gofs
from forked import in_child

pytestmark = pytest.mark.filterwarnings("ignore:This process.*is multi-threaded:DeprecationWarning")


def test_each_call_in_a_forked_child_says_what_to_do(volume: gofs.Volume) -> None:
    volume.write("/file", b"contents")
    file = volume.open("/file", "r+b")
    calls: list[Callable[[], Any]] = [
        lambda: volume.read("/file"),
        lambda: volume.write("/file", b"child"),
        lambda: volume.stat("/file"),
        lambda: volume.listdir("/"),
        lambda: volume.info,
        lambda: volume.sync(),
        lambda: volume.warnings(),
        lambda: file.read(),
        lambda: file.write(b"child"),
        lambda: file.tell(),
    ]

    def child() -> str:
        for call in calls:
            with pytest.raises(RuntimeError, match="mounted before fork.*mount it again.*spawn"):
                call()
        return "all refused"

    assert in_child(child) == "all refused"
    assert file.read() == b"contents"
    file.close()


def test_a_child_may_let_go_of_all_without_a_word(volume: gofs.Volume) -> None:
    file = volume.open("/file", "wb")

    def child() -> str:
        nonlocal file
        file.close()
        volume.close()
        with volume:
            pass
        del file
        gc.collect()
        return "quiet"

    assert in_child(child) == "quiet"
    file.write(b"1")
    file.close()
    assert volume.read("/file") == b"1"


def test_a_child_reads_what_it_has_mounted_itself(image: pathlib.Path) -> None:
    with gofs.mount(image, writable=True) as volume:
        volume.write("/file", b"contents")
    with gofs.mount(image) as volume:

        def child() -> str:
            with gofs.mount(image) as own:
                return own.read("/file").decode()

        assert in_child(child) == "contents"
        assert volume.read("/file") == b"contents"


def test_a_volume_for_reading_is_mounted_again_where_it_is_unpickled(image: pathlib.Path) -> None:
    with gofs.mount(image, writable=True) as volume:
        volume.write("/file", b"contents")
    with gofs.mount(image, queues=3, backend="cpu") as volume:
        with pickle.loads(pickle.dumps(volume)) as other:
            assert other is not volume
            assert other.read("/file") == b"contents"
            assert other.info.queues == 3
        assert not volume.closed


def test_a_volume_for_writing_is_not_pickled(volume: gofs.Volume) -> None:
    with pytest.raises(TypeError, match="without writable=True, or attach to a server"):
        pickle.dumps(volume)


def read_in_worker(arguments: tuple[gofs.Volume, str]) -> bytes:
    volume, path = arguments
    with volume:
        return volume.read(path)


@pytest.mark.parametrize("method", ["spawn", "forkserver"])
def test_workers_that_are_not_forked_take_a_volume(image: pathlib.Path, method: str) -> None:
    with gofs.mount(image, writable=True) as volume:
        for number in range(4):
            volume.write(f"/{number}", bytes([number]) * 1000)
    with gofs.mount(image) as volume, multiprocessing.get_context(method).Pool(2) as pool:
        read = pool.map(read_in_worker, [(volume, f"/{number}") for number in range(4)])
        pool.close()
        pool.join()
    assert read == [bytes([number]) * 1000 for number in range(4)]
