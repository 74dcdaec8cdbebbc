# SPDX-License-Identifier: Apache-2.0
"""gofs.torch: files as a data set, and in batches; with arrays of numpy, and by a stand-in for
torch. test_with_real_torch.py has torch's DataLoader."""

from __future__ import annotations

import multiprocessing
import pathlib
import random
import subprocess
import sys
import threading
from typing import Any

import numpy
import pytest

import gofs
from conftest import BACKEND
from fake_torch import FakeTorch, Tensor
from gofs.torch import Batch, BatchLoader, FileDataset

COUNT = 50


@pytest.fixture
def files(volume: gofs.Volume) -> dict[str, bytes]:
    """Of sizes from nothing on."""
    contents = {f"/d/{number:03}": bytes([number]) * (number * 41) for number in range(COUNT)}
    volume.mkdir("/d")
    volume.mkdir("/d/below")
    volume.write_many("/d", {path[3:]: data for path, data in contents.items()})
    return contents


def contents_of(batch: Batch) -> dict[str, bytes]:
    data = bytes(batch.data)
    return {
        name: data[begin:end]
        for name, begin, end in zip(batch.names, batch.offsets, batch.offsets[1:])
    }


def test_a_dataset_has_the_files_of_a_directory(
    volume: gofs.Volume, files: dict[str, bytes], monkeypatch: pytest.MonkeyPatch
) -> None:
    dataset = FileDataset(volume, "/d")
    assert dataset.paths == list(files)
    assert len(dataset) == COUNT
    assert dataset[7] == files["/d/007"]
    assert dataset[-1] == files["/d/049"]
    with pytest.raises(IndexError):
        dataset[COUNT]
    calls = []
    read = volume.read_many_into
    monkeypatch.setattr(volume, "read_many_into", lambda *given: calls.append(1) or read(*given))
    assert dataset.__getitems__([3, 1, 3]) == [files[f"/d/{n:03}"] for n in (3, 1, 3)]
    assert calls == [1]


def test_items_are_transformed_and_labelled(volume: gofs.Volume, files: dict[str, bytes]) -> None:
    names = ["/d/005", pathlib.PurePosixPath("/d/002")]
    dataset = FileDataset(volume, names, transform=len, labels=["five", "two"])
    assert [dataset[0], dataset[1]] == [(5 * 41, "five"), (2 * 41, "two")]
    assert dataset.__getitems__([1, 0]) == [(2 * 41, "two"), (5 * 41, "five")]
    with pytest.raises(ValueError, match="3 labels for 2 files: one for each"):
        FileDataset(volume, names, labels=[1, 2, 3])


def test_files_below_are_taken_where_that_is_asked_for(volume: gofs.Volume) -> None:
    volume.makedirs("/d/a/b")
    for path in ("/d/z", "/d/a/y", "/d/a/b/x"):
        volume.write(path, path.encode())
    volume.symlink("a/y", "/d/link")
    assert FileDataset(volume, "/d").paths == ["/d/link", "/d/z"]
    everything = ["/d/a/b/x", "/d/a/y", "/d/link", "/d/z"]
    assert FileDataset(volume, "/d", recursive=True).paths == everything
    assert BatchLoader(volume, "/d", 2, recursive=True, framework="np").paths == everything
    volume.mkdir("/empty")
    for make in (FileDataset, lambda *given: BatchLoader(*given, 4)):
        with pytest.raises(ValueError, match="no files: give a directory that has some"):
            make(volume, "/empty")
        with pytest.raises(FileNotFoundError):
            make(volume, "/none")


def sum_in_worker(arguments: tuple[FileDataset, list[int]]) -> list[int]:
    dataset, indices = arguments
    with dataset._volume:
        return [sum(item) for item in dataset.__getitems__(indices)]


def test_workers_that_are_spawned_take_a_dataset(image: pathlib.Path) -> None:
    with gofs.mount(image, writable=True) as volume:
        for number in range(4):
            volume.write(f"/{number}", bytes([number]) * 1000)
    with gofs.mount(image) as volume, multiprocessing.get_context("spawn").Pool(2) as pool:
        dataset = FileDataset(volume, "/")
        found = pool.map_async(sum_in_worker, [(dataset, [0, 3]), (dataset, [2])]).get(timeout=120)
        pool.close()
        pool.join()
    assert found == [[0, 3000], [2000]]


def load_in_worker(loader: BatchLoader) -> list[list[str]]:
    with loader._volume:
        return [batch.names for batch in loader]


def test_workers_that_are_spawned_take_a_loader(image: pathlib.Path) -> None:
    with gofs.mount(image, writable=True, backend="cpu") as volume:
        volume.write_many("/", {f"{number}": bytes([number]) for number in range(5)})
    with gofs.mount(image, backend="cpu") as volume:
        loader = BatchLoader(volume, "/", 2, shuffle=True, seed=3, framework="np")
        loader.set_epoch(4)
        expected = [[batch.names for batch in pass_] for pass_ in (loader, loader)]
        loader.set_epoch(4)
        with multiprocessing.get_context("spawn").Pool(1) as pool:
            assert pool.map(load_in_worker, [loader]) == expected[:1]
            pool.close()
            pool.join()


@pytest.mark.parametrize("prefetch", [1, 2, 100])
@pytest.mark.parametrize("batch_size", [1, 7, 10, 1000])
def test_a_pass_has_all_files_in_batches(
    volume: gofs.Volume, files: dict[str, bytes], batch_size: int, prefetch: int
) -> None:
    loader = BatchLoader(volume, "/d", batch_size, prefetch=prefetch, framework="np")
    batches = list(loader)
    assert len(batches) == len(loader) == -(-COUNT // batch_size)
    assert {name: data for batch in batches for name, data in contents_of(batch).items()} == files
    assert [name for batch in batches for name in batch.names] == list(files)
    assert all(batch.data.dtype == numpy.uint8 and batch.data.flags.writeable for batch in batches)
    loader = BatchLoader(volume, "/d", batch_size, drop_last=True, framework="np")
    assert [len(batch.names) for batch in loader] == [batch_size] * (COUNT // batch_size)
    assert len(loader) == COUNT // batch_size


def test_passes_are_shuffled_and_can_be_repeated(
    volume: gofs.Volume, files: dict[str, bytes]
) -> None:
    def orders(loader: BatchLoader, passes: int) -> list[list[str]]:
        return [[name for batch in loader for name in batch.names] for _ in range(passes)]

    def loader(seed: int = 0) -> BatchLoader:
        return BatchLoader(volume, "/d", 8, shuffle=True, seed=seed, framework="np")

    first = orders(loader(), 3)
    assert all(sorted(order) == list(files) for order in first)
    assert len({tuple(order) for order in [*first, *orders(loader(1), 3), list(files)]}) == 7
    assert orders(loader(), 3) == first
    later = loader()
    later.set_epoch(1)
    assert orders(later, 2) == first[1:]


def test_a_sampler_says_which_files_and_in_which_order(
    volume: gofs.Volume, files: dict[str, bytes]
) -> None:
    loader = BatchLoader(volume, "/d", 3, sampler=range(40, 2, -5), framework="np")
    names = [batch.names for batch in loader]
    assert names[0] == ["/d/040", "/d/035", "/d/030"]
    assert sum(map(len, names)) == 8
    assert len(loader) == 3
    endless = BatchLoader(volume, "/d", 3, sampler=iter([1, 2]), framework="np")
    with pytest.raises(TypeError):
        len(endless)


def test_rows_are_of_files_of_one_size(volume: gofs.Volume, files: dict[str, bytes]) -> None:
    for number in range(6):
        volume.write(f"/{number}", bytes([number]) * 100)
    [batch] = BatchLoader(volume, [f"/{number}" for number in range(6)], 6, framework="np")
    assert batch.rows().shape == (6, 100)
    assert batch.rows()[:, 99].tolist() == list(range(6))
    [batch] = BatchLoader(volume, "/d", COUNT, framework="np")
    with pytest.raises(ValueError, match="differ in size: use data and offsets"):
        batch.rows()


def test_batches_are_tensors_where_torch_is_installed(
    volume: gofs.Volume, files: dict[str, bytes]
) -> None:
    torch = FakeTorch()
    with torch.installed():
        loader = BatchLoader(volume, "/d", 20)
        on_device = BatchLoader(volume, "/d", 20, device="fake:0")
    found: dict[str, bytes] = {}
    for batch, other in zip(loader, on_device):
        assert isinstance(batch.data, Tensor)
        assert batch.data.device == ("cuda:0" if BACKEND == "cuda" else "cpu")  # as the volume's
        assert other.data.device == "fake:0"
        assert other.data.array.tobytes() == batch.data.array.tobytes()
        found.update(contents_of(batch._replace(data=batch.data.array)))
    assert found == files
    assert torch.moves == 3


def test_importing_it_imports_neither_torch_nor_numpy() -> None:
    program = "import sys, gofs.torch; print({'numpy', 'torch'} & set(sys.modules))"
    said = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, timeout=60, check=True
    )
    assert said.stdout == "set()\n"


def test_a_file_that_cannot_be_read_raises_in_its_turn(
    volume: gofs.Volume, files: dict[str, bytes]
) -> None:
    loader = BatchLoader(volume, "/d", 10, framework="np")
    volume.unlink("/d/025")
    batches = iter(loader)
    assert len([next(batches), next(batches)]) == 2
    with pytest.raises(FileNotFoundError) as raised:
        next(batches)
    assert raised.value.filename == "/d/025"
    assert reading_threads() == []


def test_a_file_that_becomes_shorter_is_no_batch(
    volume: gofs.Volume, files: dict[str, bytes], monkeypatch: pytest.MonkeyPatch
) -> None:
    read_many_into = volume.read_many_into

    def cut_first(*given: Any, **more: Any) -> list[int]:
        volume.truncate("/d/030", 5)
        return read_many_into(*given, **more)

    monkeypatch.setattr(volume, "read_many_into", cut_first)
    with pytest.raises(OSError, match="shorter while it was read: '/d/030'"):
        list(BatchLoader(volume, "/d", 50, framework="np"))


def reading_threads() -> list[threading.Thread]:
    return [one for one in threading.enumerate() if one.name.startswith("gofs-batches")]


def test_a_pass_that_is_left_early_ends_its_thread(
    volume: gofs.Volume, files: dict[str, bytes]
) -> None:
    loader = BatchLoader(volume, "/d", 2, prefetch=3, framework="np")
    for number, _batch in enumerate(loader):
        assert len(reading_threads()) == 1
        if number == 3:
            break
    del _batch
    assert reading_threads() == []
    assert len(list(loader)) == 25


def test_no_more_is_read_ahead_than_was_said(
    volume: gofs.Volume, files: dict[str, bytes], monkeypatch: pytest.MonkeyPatch
) -> None:
    begun = 0
    most = 0
    read_many_into = volume.read_many_into

    def counted(*given: Any, **more: Any) -> list[int]:
        nonlocal begun, most
        begun += 1
        most = max(most, begun - taken)
        return read_many_into(*given, **more)

    monkeypatch.setattr(volume, "read_many_into", counted)
    taken = 0
    for _ in BatchLoader(volume, "/d", 1, prefetch=4, framework="np"):
        taken += 1
    assert begun == COUNT
    # Those that are read ahead, and the one that is being handed over.
    assert most <= 5


def test_several_passes_go_on_side_by_side(volume: gofs.Volume, files: dict[str, bytes]) -> None:
    loader = BatchLoader(volume, "/d", 5, shuffle=True, framework="np")
    passes = [iter(loader) for _ in range(3)]
    found: list[dict[str, bytes]] = [{}, {}, {}]
    draw = random.Random(2)
    turns = [number for number in range(3) for _ in range(10)]
    draw.shuffle(turns)
    for number in turns:
        found[number].update(contents_of(next(passes[number])))
    assert found == [files] * 3
    assert [next(one, None) for one in passes] == [None] * 3


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"batch_size": 0}, "batch_size=0: at least 1"),
        ({"prefetch": 0}, "prefetch=0: at least 1"),
        ({"shuffle": True, "sampler": [1]}, "give one of them"),
        ({"framework": "jax"}, "'torch' or 'pt'"),
        ({"framework": "np", "device": "cuda"}, "use framework='pt'"),
    ],
)
def test_options_that_make_no_sense_are_refused(
    volume: gofs.Volume, files: dict[str, bytes], options: dict[str, Any], words: str
) -> None:
    with pytest.raises(ValueError, match=words):
        BatchLoader(volume, "/d", **{"batch_size": 4, **options})


@pytest.mark.parametrize("options", [{"batch_size": None}, {"batch_size": 2.5}, {"prefetch": "2"}])
def test_numbers_are_whole(
    volume: gofs.Volume, files: dict[str, bytes], options: dict[str, Any]
) -> None:
    with pytest.raises(TypeError, match="a whole number is wanted"):
        BatchLoader(volume, "/d", **{"batch_size": 4, **options})
