# SPDX-License-Identifier: Apache-2.0
"""Checkpoints, files of safetensors and graphs whose tensors are on the volume's GPU: they go
straight there and from there, by few calls. What stands for its memory is the host's."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from typing import Any

import numpy
import pytest

import fake_checkpoint as dcp
import fake_cupy
import gofs
from fake_torch import FakeTorch, Tensor
from gofs.safetensors import SafetensorError, load_file, safe_open, save_file
from gofs.torch import BatchLoader
from watched import Watched


@pytest.fixture
def torch() -> Iterator[FakeTorch]:
    torch = FakeTorch()
    with torch.installed():
        yield torch


class Calls:
    """How many ranges each call had that moved memory of the GPU, and of which bytes; and of which
    memory it was asked whether the GPU reaches it."""

    def __init__(self, volume: gofs.Volume, monkeypatch: pytest.MonkeyPatch) -> None:
        self.reads: list[list[int]] = []
        self.writes: list[list[int]] = []
        self.asked: list[int] = []
        core = volume._core

        def move_ranges(ranges: list[Any], writes: bool, stream: int) -> list[int]:
            (self.writes if writes else self.reads).append([size for *_, size in ranges])
            return core.move_ranges(ranges, writes, stream)

        def reaches(address: int, size: int) -> bool:
            self.asked.append(size)
            return True

        def check_memory(memory: list[tuple[int, int]], stream: int) -> None:
            self.asked.extend(size for _, size in memory)
            core.check_memory(memory, stream)

        monkeypatch.setattr(volume, "_reaches_gpu", True)
        watched = Watched(
            volume, move_ranges=move_ranges, reaches=reaches, check_memory=check_memory
        )
        monkeypatch.setattr(volume, "_core", watched)

    def clear(self) -> None:
        self.asked.clear()
        self.reads.clear()
        self.writes.clear()


@pytest.fixture
def calls(volume: gofs.Volume, monkeypatch: pytest.MonkeyPatch) -> Calls:
    return Calls(volume, monkeypatch)


def on_gpu(array: Any, device: str = "cuda:0") -> Tensor:
    tensor = FakeTorch.tensor(array)
    return Tensor(tensor.array, tensor.dtype, device)


def test_batches_are_where_the_volume_is(
    volume: gofs.Volume, torch: FakeTorch, calls: Calls
) -> None:
    volume.write_many("/", {"a": b"first", "b": b"second"})
    for device in (None, "cuda:0", "cpu", "fake:0"):
        [batch] = BatchLoader(volume, ["/a", "/b"], 2, device=device)
        assert batch.data.device == (device or "cuda:0")
        assert batch.data.array.tobytes() == b"firstsecond"
    [batch] = BatchLoader(volume, ["/a", "/b"], 2, framework="np")
    assert batch.data.tobytes() == b"firstsecond"


# --- Checkpoints ---------------------------------------------------------------------------------


def saved(volume: gofs.Volume, state: dict[str, Any]) -> None:
    from gofs.torch.checkpoint import GofsWriter

    dcp.save([state], [GofsWriter(volume, "/checkpoint")])


def loaded(volume: gofs.Volume, state: dict[str, Any]) -> None:
    from gofs.torch.checkpoint import GofsReader

    dcp.load(state, GofsReader(volume, "/checkpoint"))


def test_a_checkpoint_is_written_and_read_by_one_call_each(
    volume: gofs.Volume, torch: FakeTorch, calls: Calls
) -> None:
    draw = numpy.random.default_rng(5)
    arrays = {f"w{number}": draw.random((number + 1, 37)) for number in range(20)}
    saved(volume, {**{name: on_gpu(array) for name, array in arrays.items()}, "step": 3})
    sizes = sorted(array.nbytes for array in arrays.values())
    assert [sorted(each) for each in calls.writes] == [sizes]
    assert sorted(calls.asked) == sizes
    calls.clear()
    found: dict[str, Any] = {
        name: on_gpu(numpy.zeros_like(array)) for name, array in arrays.items()
    }
    found["step"] = None
    loaded(volume, found)
    assert len(calls.reads) == 1
    assert sorted(calls.asked) == sizes
    assert found.pop("step") == 3
    assert all(numpy.array_equal(found[name].array, arrays[name]) for name in arrays)
    assert torch.moves == 0


def test_copies_are_written_before_they_fill_the_memory(
    volume: gofs.Volume, torch: FakeTorch, calls: Calls, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("gofs._gathered_writes._HELD_BYTES_MAX", 10_000)
    wide = numpy.arange(1000.0).reshape(20, 50)
    state = {
        **{f"mine{number}": on_gpu(wide) for number in range(4)},
        **{f"transposed{number}": on_gpu(wide.T) for number in range(4)},
        **{f"elsewhere{number}": on_gpu(wide, "fake:1") for number in range(4)},
        **{f"host{number}": torch.tensor(wide) for number in range(4)},
    }
    saved(volume, state)
    # Of 8000 bytes each: two copies are more than may be held, and the program's own memory counts
    # for nothing.
    assert [len(sizes) for sizes in calls.writes] == [6, 2]
    found = {name: on_gpu(numpy.zeros_like(tensor.array)) for name, tensor in state.items()}
    loaded(volume, found)
    for name, tensor in state.items():
        assert numpy.array_equal(found[name].array, tensor.array), name


def test_small_parts_of_the_hosts_memory_are_written_together(
    volume: gofs.Volume, torch: FakeTorch, monkeypatch: pytest.MonkeyPatch
) -> None:
    state: dict[str, Any] = {
        **{f"small{number}": torch.tensor(numpy.full(10, number)) for number in range(500)},
        **{f"object{number}": {"number": number} for number in range(500)},
        "large": torch.tensor(numpy.arange(300_000)),
    }
    written: list[int] = []

    def write_ranges(ranges: Any, **more: Any) -> None:
        written.extend(len(bytes(memory)) for _, _, memory in ranges)
        write(ranges, **more)

    write = volume.write_ranges
    monkeypatch.setattr(volume, "write_ranges", write_ranges)
    saved(volume, state)
    # The header, and what is before and behind the large one.
    assert len(written) <= 4
    found = {
        name: torch.empty(value.shape, value.dtype) if isinstance(value, Tensor) else None
        for name, value in state.items()
    }
    loaded(volume, found)
    for name, value in state.items():
        same = value == found[name] if isinstance(value, dict) else None
        assert same or numpy.array_equal(value.array, found[name].array), name


# --- Files of safetensors ------------------------------------------------------------------------

INDICES = [
    3,
    slice(2, 9),
    slice(None, None, 3),
    slice(None, None, -1),
    [5, 0, 5, -1],
    [],
    numpy.array([10, 11, 12, 4]),
    numpy.arange(13) % 3 == 0,
    (slice(None), slice(100, 1124)),
    (slice(1, 9, 2), slice(100, 1200)),
    (slice(None), slice(7, 9)),
    ([1, 2], slice(7, 9)),
    (4, slice(3, 5)),
    (slice(5, 5), slice(3, 5)),
    Ellipsis,
]


@pytest.mark.parametrize("index", INDICES, ids=str)
def test_parts_are_read_straight_to_the_gpu(
    volume: gofs.Volume,
    torch: FakeTorch,
    calls: Calls,
    monkeypatch: pytest.MonkeyPatch,
    index: Any,
) -> None:
    array = numpy.arange(13 * 1500, dtype="i4").reshape(13, 1500)
    save_file(volume, {"before": numpy.zeros(3, "u1"), "a": array}, "/file")
    with safe_open(volume, "/file", "pt", "cuda:0") as file:
        part = file.get_slice("a")
        calls.clear()
        empty = FakeTorch.empty

        def made(shape: Any, dtype: Any, device: str = "cpu") -> Tensor:
            assert device == "cuda:0", "memory of the host"
            return empty(shape, dtype, device)

        monkeypatch.setattr(FakeTorch, "empty", staticmethod(made))
        found = part[index]
    assert found.device == "cuda:0"
    assert numpy.array_equal(found.array, array[index])
    assert torch.moves == 0
    assert len(calls.reads) <= 1


def test_what_is_read_to_the_gpu_is_what_is_asked_for(
    volume: gofs.Volume, torch: FakeTorch, calls: Calls, monkeypatch: pytest.MonkeyPatch
) -> None:
    array = numpy.arange(64 * 2048, dtype="f4").reshape(64, 2048)
    save_file(volume, {"a": array}, "/file")
    with safe_open(volume, "/file", "pt", "cuda:0") as file:
        part = file.get_slice("a")
        for index, sizes in (
            ((slice(None), slice(0, 1024)), [4096] * 64),
            ([7, 8, 9, 3, 4, 60], [3 * 8192, 2 * 8192, 8192]),  # rows that follow each other
            ([-1, 0], [8192, 8192]),
            (slice(10, 14), [4 * 8192]),
        ):
            calls.clear()
            assert numpy.array_equal(part[index].array, array[index])
            assert calls.reads == [sizes]
        for rows in ([64], [0, -65]):
            with pytest.raises(IndexError, match="of a tensor that has 64"):
                part[rows]
        calls.clear()
        monkeypatch.setattr("gofs._runs._CALL_RUNS_MAX", 10)
        assert numpy.array_equal(part[::2].array, array[::2])
        assert [len(sizes) for sizes in calls.reads] == [10, 10, 10, 2]
        volume.truncate("/file", 4096 + 40 * 8192)
        for index in ([0, 41], (slice(30, 42), slice(0, 1024)), slice(30, 42)):
            with pytest.raises(SafetensorError, match="was cut while it was read"):
                part[index]


def test_parts_are_arrays_of_cupy(
    volume: gofs.Volume, calls: Calls, monkeypatch: pytest.MonkeyPatch
) -> None:
    cupy = fake_cupy.FakeCupy()
    monkeypatch.setitem(sys.modules, "cupy", cupy)
    array = numpy.arange(13 * 1500, dtype="i4").reshape(13, 1500)
    save_file(volume, {"a": array}, "/file")
    with safe_open(volume, "/file", "cp") as file:
        for index in INDICES:
            found = file.get_slice("a")[index]
            assert isinstance(found, fake_cupy.ndarray)
            assert numpy.array_equal(found, array[index]), index
    assert cupy.copies == 0


def test_a_file_is_saved_by_one_call(
    volume: gofs.Volume, torch: FakeTorch, calls: Calls
) -> None:
    arrays = {f"a{number}": numpy.arange(number * 100) for number in range(1, 30)}
    save_file(volume, {name: on_gpu(array) for name, array in arrays.items()}, "/file")
    assert [sorted(sizes) for sizes in calls.writes] == [
        [array.nbytes for array in arrays.values()]
    ]
    found = load_file(volume, "/file")
    assert all(numpy.array_equal(found[name], array) for name, array in arrays.items())
    assert torch.moves == 0


# --- Graphs --------------------------------------------------------------------------------------


def test_features_are_had_and_replaced_on_the_gpu(
    volume: gofs.Volume, torch: FakeTorch, calls: Calls
) -> None:
    from gofs.torch.pyg import GofsFeatureStore, GofsGraphStore

    values = numpy.arange(120, dtype="f4").reshape(20, 6)
    store = GofsFeatureStore(volume, "/graph", device="cuda:0")
    store.put_tensor(on_gpu(values), "paper", "x", None)
    calls.clear()
    for index, runs in ((numpy.array([4, 5, 6, 1, 19]), 3), (slice(2, 9), 1), (None, 1)):
        calls.clear()
        found = store.get_tensor("paper", "x", index)
        assert found.device == "cuda:0"
        assert numpy.array_equal(found.array, values if index is None else values[index])
        assert [len(sizes) for sizes in calls.reads] == [runs]
    rows = -numpy.arange(24, dtype="f4").reshape(4, 6)
    store.put_tensor(on_gpu(rows), "paper", "x", numpy.array([8, 9, 2, -1]))
    values[[8, 9, 2, 19]] = rows
    assert [len(sizes) for sizes in calls.writes] == [3]
    found = store.get_tensor("paper", "x", None)
    assert numpy.array_equal(found.array, values)
    edges = GofsGraphStore(volume, "/graph", device="cuda:0")
    edges.put_edge_index((on_gpu(values[0]), on_gpu(values[1])), "e", "coo")
    assert [each.device for each in edges.get_edge_index("e", "coo")] == ["cuda:0"] * 2
    assert torch.moves == 0


@pytest.mark.parametrize("device", ["cpu", "cuda:0"])
def test_of_a_row_that_is_named_twice_the_later_values_are_put(
    volume: gofs.Volume, torch: FakeTorch, calls: Calls, device: str
) -> None:
    from gofs.torch.pyg import GofsFeatureStore

    values = numpy.zeros((20, 6), dtype="f4")
    store = GofsFeatureStore(volume, "/graph", framework="np")
    store.put_tensor(values, "paper", "x", None)
    calls.clear()
    rows = numpy.arange(36, dtype="f4").reshape(6, 6)
    index = numpy.array([3, 4, 3, 9, 4, 3])
    store.put_tensor(on_gpu(rows, device), "paper", "x", index)
    for row, new in zip(index, rows):
        values[row] = new
    assert numpy.array_equal(store.get_tensor("paper", "x", None), values)
    assert len(calls.writes) == (0 if device == "cpu" else 3)


@pytest.mark.parametrize("mounted_by", ["GPU", "CPU"])
def test_it_is_asked_once_whether_the_gpu_reaches_a_memory(
    volume: gofs.Volume,
    torch: FakeTorch,
    calls: Calls,
    monkeypatch: pytest.MonkeyPatch,
    mounted_by: str,
) -> None:
    from gofs.torch.pyg import GofsFeatureStore

    monkeypatch.setattr(volume, "_reaches_gpu", mounted_by == "GPU")
    values = numpy.arange(120, dtype="f4").reshape(20, 6)
    save_file(volume, {"x": on_gpu(values), "y": on_gpu(values[:7])}, "/file")
    assert calls.asked == [values.nbytes, values[:7].nbytes]
    store = GofsFeatureStore(volume, "/graph")
    store.put_tensor(values, "paper", "x", None)
    calls.clear()
    store.put_tensor(on_gpu(values[:5]), "paper", "x", [3, 4, 3, 9, 4])
    assert calls.asked == [values[:5].nbytes]
    calls.clear()
    store = GofsFeatureStore(volume, "/graph", device="cuda:0")
    assert store.get_tensor_size("paper", "x", [3, 4]) == (2, 6)
    assert calls.asked == []
    volume.write_ranges([("/file", 0, on_gpu(values)), ("/file", 900, b"end")])
    assert calls.asked[-1] == values.nbytes
