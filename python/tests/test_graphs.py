# SPDX-License-Identifier: Apache-2.0
"""Stores of PyTorch Geometric, by stand-ins; test_with_real_torch.py has PyG itself."""

from __future__ import annotations

import pathlib
import pickle
import subprocess
import sys
from collections.abc import Iterator
from typing import Any

import numpy
import pytest

import gofs
from fake_torch import FakeTorch, Tensor
from gofs.torch._names import file_name, key_of
from watched import Watched

EDGE = ("paper", "cites", "paper")


@pytest.fixture
def torch() -> Iterator[FakeTorch]:
    torch = FakeTorch()
    with torch.installed():
        yield torch


def features(volume: gofs.Volume, **options: Any) -> Any:
    from gofs.torch.pyg import GofsFeatureStore

    return GofsFeatureStore(volume, "/graph", **options)


def edges(volume: gofs.Volume, **options: Any) -> Any:
    from gofs.torch.pyg import GofsGraphStore

    return GofsGraphStore(volume, "/graph", **options)


def test_tensors_are_put_and_had_and_removed(volume: gofs.Volume, torch: FakeTorch) -> None:
    store = features(volume)
    assert store.get_all_tensor_attrs() == []
    with pytest.raises(KeyError, match="no tensor 'x' of 'paper' has been put"):
        store.get_tensor("paper", "x", None)
    assert store.get_tensor_size("paper", "x", None) is None
    assert store.get_tensor_size("paper", "x", None) is None
    values = numpy.arange(120, dtype="f4").reshape(20, 6)
    groups = ["paper", EDGE, None, "../.", ""]
    for number, group in enumerate(groups):
        assert store.put_tensor(torch.tensor(values + number), group, "x", None)
    assert store.put_tensor(torch.tensor(numpy.arange(20)), "paper", "y/z", None)
    for number, group in enumerate(groups):
        found = store.get_tensor(group, "x", None)
        assert isinstance(found, Tensor)
        assert numpy.array_equal(found.array, values + number)
        assert store.get_tensor_size(group, "x", None) == (20, 6)
    found = {(attr.group_name, attr.attr_name) for attr in features(volume).get_all_tensor_attrs()}
    assert found == {*((group, "x") for group in groups), ("paper", "y/z")}
    assert store.remove_tensor("paper", "x", None)
    assert not store.remove_tensor("paper", "x", None)
    with pytest.raises(KeyError, match="no tensor 'x' of 'paper' has been put"):
        store.get_tensor("paper", "x", None)
    assert store.get_tensor_size("paper", "x", None) is None
    assert len(store.get_all_tensor_attrs()) == 5


@pytest.mark.parametrize("framework", ["pt", "np"])
@pytest.mark.parametrize(
    "index",
    [
        0,
        slice(2, 9),
        slice(None, None, 5),
        numpy.array([3, 1, 19, 3]),
        numpy.arange(20) % 2 == 0,
        [4, -1],
    ],
    ids=str,
)
def test_rows_are_had_and_replaced_by_index(
    volume: gofs.Volume, torch: FakeTorch, framework: str, index: Any
) -> None:
    def array_of(found: Any) -> Any:
        assert isinstance(found, Tensor) == (framework == "pt")
        return numpy.asarray(found.array if framework == "pt" else found)

    values = numpy.arange(120, dtype="f4").reshape(20, 6)
    store = features(volume, framework=framework)
    store.put_tensor(values, "paper", "x", None)
    assert numpy.array_equal(array_of(store.get_tensor("paper", "x", index)), values[index])
    assert store.get_tensor_size("paper", "x", index) == values[index].shape
    changed = values.copy()
    changed[index] = -5
    inode = volume.stat("/graph/features/paper/x.safetensors").st_ino
    assert store.update_tensor(numpy.ascontiguousarray(changed[index]), "paper", "x", index)
    assert volume.stat("/graph/features/paper/x.safetensors").st_ino == inode
    assert numpy.array_equal(array_of(store.get_tensor("paper", "x", None)), changed)


@pytest.mark.parametrize(
    "index",
    [
        None,
        7,
        numpy.int64(-1),
        slice(2, 9),
        slice(None, None, -3),
        [4, -1, 4],
        [],
        numpy.array([3, 1, 19, 3]),
        numpy.arange(20) % 3 == 0,
        ...,
        (3, slice(1, 4)),
        (slice(2, 9), [0, 5]),
    ],
    ids=str,
)
def test_sizes_are_had_without_data(
    volume: gofs.Volume, torch: FakeTorch, monkeypatch: pytest.MonkeyPatch, index: Any
) -> None:
    values = numpy.arange(120, dtype="f4").reshape(20, 6)
    store = features(volume, framework="np")
    store.put_tensor(values, "paper", "x", None)
    wanted = store.get_tensor("paper", "x", index).shape

    def read(*_: Any) -> None:
        pytest.fail("data was read")

    monkeypatch.setattr(volume, "_core", Watched(volume, read_ranges=read, read_rows=read))
    assert store.get_tensor_size("paper", "x", index) == wanted
    assert wanted == (values.shape if index is None else values[index].shape)


def test_sizes_of_rows_that_are_not_there_are_refused(
    volume: gofs.Volume, torch: FakeTorch
) -> None:
    store = features(volume)
    store.put_tensor(numpy.zeros((20, 6)), "paper", "x", None)
    for index in (20, [0, -21], numpy.zeros(19, dtype=bool), True):
        with pytest.raises(IndexError):
            store.get_tensor("paper", "x", index)
        with pytest.raises(IndexError):
            store.get_tensor_size("paper", "x", index)


def test_rows_that_do_not_fit_are_refused(volume: gofs.Volume, torch: FakeTorch) -> None:
    store = features(volume, framework="np")
    values = numpy.zeros((20, 6), dtype="f4")
    store.put_tensor(values, "paper", "x", None)
    for tensor, index in (
        (numpy.zeros((2, 6), dtype="f8"), [1, 2]),
        (numpy.zeros((3, 6), dtype="f4"), [1, 2]),
        (numpy.zeros((2, 5), dtype="f4"), [1, 2]),
        (numpy.zeros(6, dtype="f4"), [1, 2]),
    ):
        with pytest.raises(ValueError, match=r"the rows are F32 of shape \(2, 6\)"):
            store.put_tensor(tensor, "paper", "x", index)
    for index in (20, [0, -21]):
        rows = numpy.zeros((numpy.size(index), 6), dtype="f4")
        with pytest.raises(IndexError, match="of a tensor that has 20"):
            store.put_tensor(rows, "paper", "x", index)
        with pytest.raises(IndexError, match="of a tensor that has 20"):
            store.get_tensor("paper", "x", index)
    for index in ([1], [0, 1, 3], [0, 1, 1], [0, 1, -4]):
        with pytest.raises(FileNotFoundError, match="put all of it first"):
            store.put_tensor(values[: len(index)], "paper", "none", index)
    with pytest.raises(TypeError, match="names are text, tuples of text, or None"):
        store.put_tensor(values, 5, "x", None)
    assert not store.get_tensor("paper", "x", None).any()


@pytest.mark.parametrize(
    "index",
    [[3, 1, 0, 2], [0, 1, 2, -1], slice(None), numpy.arange(4), slice(None, None, -1)],
    ids=str,
)
def test_all_rows_make_a_tensor(volume: gofs.Volume, torch: FakeTorch, index: Any) -> None:
    store = features(volume, framework="np")
    rows = numpy.arange(12, dtype="f4").reshape(4, 3)
    store.put_tensor(rows, "paper", "x", index)
    wanted = numpy.zeros_like(rows)
    wanted[index] = rows
    assert numpy.array_equal(store.get_tensor("paper", "x", None), wanted)


def test_edges_are_put_and_had_and_removed(volume: gofs.Volume, torch: FakeTorch) -> None:
    store = edges(volume)
    assert store.get_all_edge_attrs() == []
    row, col = torch.tensor(numpy.array([0, 1, 2])), torch.tensor(numpy.array([2, 0, 1]))
    pointers = torch.tensor(numpy.array([0, 1, 2, 3]))
    store.put_edge_index((row, col), EDGE, "coo", False, (3, 3))
    store.put_edge_index((col, row), EDGE, "coo", True)
    store.put_edge_index((row, pointers), EDGE, "csc", size=(3, 3))
    store.put_edge_index((pointers, col), ("author", "writes", "paper"), "csr")
    store.put_edge_index((row, row), None, "coo")
    found = {
        (attr.edge_type, attr.layout.value, attr.is_sorted, attr.size)
        for attr in edges(volume).get_all_edge_attrs()
    }
    assert found == {
        (EDGE, "coo", False, (3, 3)),
        (EDGE, "coo", True, None),
        (EDGE, "csc", True, (3, 3)),
        (("author", "writes", "paper"), "csr", False, None),
        (None, "coo", False, None),
    }
    for attr in store.get_all_edge_attrs():
        assert store.get_edge_index(attr.edge_type, attr.layout, attr.is_sorted)
    got = store.get_edge_index(EDGE, "csc")
    assert [each.tolist() for each in got] == [[0, 1, 2], [0, 1, 2, 3]]
    assert [each.tolist() for each in store.get_edge_index(EDGE, "coo", True)] == [
        [2, 0, 1],
        [0, 1, 2],
    ]
    assert store.remove_edge_index(EDGE, "coo", True)
    assert not store.remove_edge_index(EDGE, "coo", True)
    with pytest.raises(KeyError):
        store.get_edge_index(EDGE, "coo", True)
    assert len(store.get_all_edge_attrs()) == 4


def test_both_stores_may_have_one_folder(volume: gofs.Volume, torch: FakeTorch) -> None:
    features(volume).put_tensor(torch.tensor(numpy.zeros(3)), EDGE, "coo", None)
    edges(volume).put_edge_index((torch.tensor(numpy.ones(3)),) * 2, EDGE, "coo")
    assert len(features(volume).get_all_tensor_attrs()) == 1
    assert len(edges(volume).get_all_edge_attrs()) == 1
    volume.rename("/graph", "/moved")
    assert features(volume).get_all_tensor_attrs() == []


def test_a_store_goes_to_other_processes_as_its_volume(
    image: pathlib.Path, torch: FakeTorch
) -> None:
    with gofs.mount(image, writable=True, backend="cpu") as volume:
        store = features(volume)
        store.put_tensor(torch.tensor(numpy.arange(5)), "paper", "x", None)
        with pytest.raises(TypeError, match="one process alone may write"):
            pickle.dumps(store)
    with gofs.mount(image, backend="cpu") as volume:
        other = pickle.loads(pickle.dumps(features(volume)))
        with other._files.volume:
            assert other.get_tensor("paper", "x", None).tolist() == [0, 1, 2, 3, 4]


def test_what_no_store_has_made_is_passed_over(volume: gofs.Volume, torch: FakeTorch) -> None:
    row = torch.tensor(numpy.array([0, 1]))
    for store, folder in ((features(volume), "features"), (edges(volume), "edges")):
        if folder == "features":
            store.put_tensor(row, "paper", "x", None)
        else:
            store.put_edge_index((row, row), "paper", "coo")
        volume.write(f"/graph/{folder}/README.txt", b"notes")
        volume.write(f"/graph/{folder}/stray.safetensors", b"notes")
        volume.write(f"/graph/{folder}/paper/notes", b"notes")
        volume.makedirs(f"/graph/{folder}/paper/folder.safetensors")
        volume.makedirs(f"/graph/{folder}/.hidden")
        volume.write(f"/graph/{folder}/.hidden/y.safetensors", b"notes")
    assert [attr.attr_name for attr in features(volume).get_all_tensor_attrs()] == ["x"]
    assert [attr.edge_type for attr in edges(volume).get_all_edge_attrs()] == ["paper"]


@pytest.mark.parametrize(
    "key",
    [
        None,
        "",
        "a",
        ".",
        "..",
        ".a",
        "a/b",
        "a,b",
        "%none",
        "%2C",
        "ü €",
        ("a", "b"),
        ("", ""),
        ("a,b", "c/d", "."),
    ],
)
def test_names_of_files_are_told_apart(key: Any) -> None:
    name = file_name(key)
    assert key_of(name) == key
    assert "/" not in name
    assert not name.startswith(".")


def test_where_pyg_is_missing_stores_say_so() -> None:
    program = "import sys; sys.modules['torch_geometric'] = None; import gofs.torch.pyg"
    said = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, timeout=60, check=False
    )
    assert "ImportError: gofs.torch.pyg needs torch_geometric 2.3 or later" in said.stderr
