# SPDX-License-Identifier: Apache-2.0
"""Checkpoints of torch.distributed.checkpoint, by stand-ins for torch: plans are saved and loaded
by any number of ranks. test_with_real_torch.py has torch's own planners."""

from __future__ import annotations

import json
import os
import pathlib
import pickle
import random
import subprocess
import sys
from collections.abc import Iterator
from typing import Any

import numpy
import pytest

import fake_checkpoint as dcp
import gofs
from fake_torch import FakeTorch, Tensor
from gofs.safetensors import load_file, safe_open

HERE = pathlib.Path(__file__).parent


@pytest.fixture
def torch() -> Iterator[FakeTorch]:
    torch = FakeTorch()
    with torch.installed():
        yield torch


def writer(volume: gofs.Volume, path: str = "/checkpoint", **options: Any) -> Any:
    from gofs.torch.checkpoint import GofsWriter

    return GofsWriter(volume, path, **options)


def reader(volume: gofs.Volume, path: str = "/checkpoint") -> Any:
    from gofs.torch.checkpoint import GofsReader

    return GofsReader(volume, path)


def some_state(torch: FakeTorch) -> dict[str, Any]:
    draw = numpy.random.default_rng(3)
    return {
        "model.weight": torch.tensor(draw.random((64, 33)).astype("f4")),
        "model.bias": torch.tensor(draw.random(33).astype("f2")),
        "model.brain": torch.tensor(draw.integers(0, 99, (5, 3)).astype("u2"), torch.bfloat16),
        "model.wide": torch.tensor(draw.random((4, 4)).astype("c16")),
        "step": torch.tensor(numpy.array(17)),
        "nothing": torch.tensor(numpy.zeros((0, 4), dtype="f4")),
        "optimizer": {"lr": 0.1, "betas": [0.9, 0.99]},
        "__metadata__": "a name that files have another use for",
    }


def emptied(torch: FakeTorch, state: dict[str, Any]) -> dict[str, Any]:
    return {
        name: torch.empty(value.shape, value.dtype) if isinstance(value, Tensor) else None
        for name, value in state.items()
    }


def assert_same(found: dict[str, Any], wanted: dict[str, Any]) -> None:
    assert found.keys() == wanted.keys()
    for name, value in wanted.items():
        if isinstance(value, Tensor):
            assert found[name].dtype is value.dtype, name
            assert found[name].array.tobytes() == value.array.tobytes(), name
        else:
            assert found[name] == value, name


def test_what_is_saved_is_loaded(volume: gofs.Volume, torch: FakeTorch) -> None:
    state = some_state(torch)
    [planner] = dcp.save([state], [writer(volume)])
    assert sorted(planner.resolved) == sorted(state)  # each once
    found = emptied(torch, state)
    loading = dcp.load(found, reader(volume))
    assert_same(found, state)
    tensors = [name for name, value in state.items() if isinstance(value, Tensor)]
    assert sorted(loading.committed) == sorted(set(tensors) - {"nothing"})
    assert sorted(name.startswith("__0_") for name in volume.listdir("/checkpoint")) == [
        False,
        True,
    ]


def test_files_of_ranks_are_safetensors_for_others(volume: gofs.Volume, torch: FakeTorch) -> None:
    judge = pytest.importorskip("safetensors")
    state = some_state(torch)
    state["part"] = dcp.Shard(torch.tensor(numpy.ones((2, 3), "f4")), (4, 0), (8, 3))
    dcp.save([state], [writer(volume)])
    [name] = [name for name in volume.listdir("/checkpoint") if name != ".metadata"]
    found = dict(judge.deserialize(volume.read(f"/checkpoint/{name}")))
    assert found["model.weight"]["dtype"] == "F32"
    assert found["model.weight"]["data"] == state["model.weight"].array.tobytes()
    assert found["model.wide"]["dtype"] == "U8"  # the format has no complex128
    assert found["part@4,0"]["shape"] == [2, 3]
    assert pickle.loads(found["optimizer"]["data"]) == state["optimizer"]
    with safe_open(volume, f"/checkpoint/{name}") as file:
        metadata = file.metadata() or {}
        assert file._header.data_begin % 4096 == 0
    assert metadata["format"] == "pt"
    assert json.loads(metadata["gofs.shards"]) == {
        "part@4,0": {"name": "part", "offsets": [4, 0], "size": [8, 3]}
    }
    shapes = load_file(volume, f"/checkpoint/{name}", framework="pt")["model.brain"].shape
    assert shapes == (5, 3)


def random_cuts(draw: random.Random, size: int) -> list[int]:
    """Where a dimension is cut, with its ends."""
    return [0, *sorted(draw.sample(range(1, size), draw.randrange(min(size, 4)))), size]


@pytest.mark.parametrize("seed", range(8))
def test_shards_are_loaded_by_other_shards(
    volume: gofs.Volume, torch: FakeTorch, seed: int
) -> None:
    """A tensor in a grid of pieces, which lie with ranks at random, is loaded in another grid."""
    draw = random.Random(seed)
    shape = tuple(draw.choice([1, 2, 7, 30, 300]) for _ in range(draw.randrange(1, 4)))
    whole = numpy.random.default_rng(seed).random(shape).astype(draw.choice(["f4", "f8", "f2"]))

    def pieces() -> list[tuple[tuple[int, ...], numpy.ndarray[Any, Any]]]:
        boxes: list[list[tuple[int, int]]] = [[]]
        for size in shape:
            cuts = random_cuts(draw, size)
            boxes = [[*box, pair] for box in boxes for pair in zip(cuts, cuts[1:])]
        return [
            (tuple(begin for begin, _ in box), whole[tuple(slice(*pair) for pair in box)])
            for box in boxes
        ]

    ranks = draw.randrange(1, 4)
    states: list[dict[str, Any]] = [{} for _ in range(ranks)]
    saved = pieces()
    # A rank has one piece of a tensor, so there are as many ranks as pieces.
    states = [{"w": dcp.Shard(torch.tensor(array), offsets, shape)} for offsets, array in saved]
    dcp.save(states, [writer(volume) for _ in states])
    for offsets, array in pieces():
        target = dcp.Shard(torch.empty(array.shape, torch.tensor(whole).dtype), offsets, shape)
        dcp.load({"w": target}, reader(volume))
        assert numpy.array_equal(target.tensor.array, array), (seed, shape, offsets)


def test_pieces_go_straight_into_tensors_that_have_them_in_one(
    volume: gofs.Volume, torch: FakeTorch, monkeypatch: pytest.MonkeyPatch
) -> None:
    whole = numpy.arange(64 * 2048, dtype="f4").reshape(64, 2048)
    dcp.save([{"w": torch.tensor(whole)}], [writer(volume)])
    made: list[Any] = []
    empty = FakeTorch.empty
    monkeypatch.setattr(
        FakeTorch,
        "empty",
        staticmethod(lambda *given, **more: made.append(1) or empty(*given, **more)),
    )
    for part, staged in (
        ((slice(0, 64), slice(0, 2048)), 0),
        ((slice(10, 20), slice(0, 2048)), 0),
        ((slice(3, 4), slice(5, 9)), 0),
        ((slice(0, 64), slice(100, 1124)), 0),  # runs of 4 KiB
        ((slice(0, 64), slice(100, 200)), 1),  # shorter ones
    ):
        wanted = whole[part]
        offsets = tuple(each.start for each in part)
        memory = torch.tensor(numpy.zeros_like(wanted))
        made.clear()
        dcp.load({"w": dcp.Shard(memory, offsets, whole.shape)}, reader(volume))
        assert numpy.array_equal(memory.array, wanted)
        assert len(made) == staged, part


def test_tensors_of_all_kinds_are_saved_and_loaded_as_their_values(
    volume: gofs.Volume, torch: FakeTorch
) -> None:
    numbers = numpy.arange(24, dtype="f4").reshape(4, 6)
    conjugated = torch.tensor(numpy.array([1 + 2j, 3 - 4j], dtype="c8"))
    conjugated.is_conjugated = True
    dcp.save(
        [
            {
                "elsewhere": torch.tensor(numbers).to("fake:0"),
                "transposed": torch.tensor(numbers.T),
                "conjugated": conjugated,
            }
        ],
        [writer(volume)],
    )
    elsewhere = torch.empty((4, 6)).to("fake:0")
    transposed = torch.tensor(numpy.zeros((4, 6), "f4").T)
    plain = torch.empty(2, torch.complex64)
    dcp.load(
        {"elsewhere": elsewhere, "transposed": transposed, "conjugated": plain}, reader(volume)
    )
    assert numpy.array_equal(elsewhere.array, numbers)
    assert numpy.array_equal(transposed.array, numbers.T)
    assert numpy.array_equal(plain.array, [1 - 2j, 3 + 4j])
    wider = torch.empty((4, 6), torch.float64)
    dcp.load({"elsewhere": wider}, reader(volume))  # converted, as torch's own readers do
    assert numpy.array_equal(wider.array, numbers)


def test_a_planner_may_decide_at_the_last_moment(volume: gofs.Volume, torch: FakeTorch) -> None:
    """What is resolved may have another dtype than the plan says."""
    begin = dcp.SavePlanner.resolve_data

    class Halving(dcp.SavePlanner):
        def resolve_data(self, item: Any) -> Any:
            return torch.tensor(begin(self, item).array.astype("f2"))

    planner = Halving(
        {"a": torch.tensor(numpy.arange(10, dtype="f8")), "b": some_state(torch)["model.weight"]}
    )
    to = writer(volume)
    plan = to.prepare_local_plan(planner.create_local_plan())
    [final] = to.prepare_global_plan([plan])
    to.finish(dcp.metadata_of([plan]), [to.write_data(final, planner).wait()])
    state = {"a": torch.empty(10, torch.float16)}
    dcp.load(state, reader(volume))
    assert numpy.array_equal(state["a"].array, numpy.arange(10))


def test_the_header_has_room_for_whatever_comes(volume: gofs.Volume, torch: FakeTorch) -> None:
    for count in range(1, 200, 7):  # so that some headers just fill a block
        state = {f"{n}" * 9: torch.tensor(numpy.array(n, dtype="c16")) for n in range(count)}
        dcp.save([state], [writer(volume)])
        found = emptied(torch, state)
        dcp.load(found, reader(volume))
        assert_same(found, state)
        [name] = [name for name in volume.listdir("/checkpoint") if name != ".metadata"]
        with safe_open(volume, f"/checkpoint/{name}") as file:
            assert len(file.keys()) == count

    class Growing(dcp.SavePlanner):
        def resolve_data(self, item: Any) -> Any:
            return torch.tensor(numpy.zeros((1,) * 60))

    names = sorted(volume.listdir("/checkpoint"))
    planner = Growing({f"{n}": torch.tensor(numpy.zeros(1)) for n in range(100)})
    to = writer(volume)
    [plan] = to.prepare_global_plan([planner.create_local_plan()])
    with pytest.raises(ValueError, match="of more dimensions than was said"):
        to.write_data(plan, planner)
    assert sorted(volume.listdir("/checkpoint")) == names


def test_the_checkpoint_of_before_is_there_until_the_end(
    volume: gofs.Volume, torch: FakeTorch
) -> None:
    old = {"w": torch.tensor(numpy.ones(1000, "f4")), "name": "old"}
    new = {"w": torch.tensor(numpy.zeros(1000, "f4")), "name": "new"}

    def loaded() -> dict[str, Any]:
        found = emptied(torch, old)
        dcp.load(found, reader(volume))
        return found

    to = writer(volume)
    dcp.save([old], [to])
    results, _, metadata = dcp.begin_save([new], [to])
    assert_same(loaded(), old)
    of_user = ["notes.txt", "__mine.safetensors", "__0_model.safetensors"]
    for name in of_user:
        volume.write(f"/checkpoint/{name}", b"of the user")
    to.finish(metadata, results)
    assert_same(loaded(), new)
    names = volume.listdir("/checkpoint")
    assert len(names) == 2 + len(of_user)
    assert set(of_user) < set(names)


def test_a_save_that_fails_leaves_the_checkpoint_of_before(
    volume: gofs.Volume, torch: FakeTorch
) -> None:
    old = {"w": torch.tensor(numpy.ones(1000, "f4"))}
    dcp.save([old], [writer(volume)])
    names = sorted(volume.listdir("/checkpoint"))
    with pytest.raises(OSError, match="No space"):
        dcp.save([{"w": torch.tensor(numpy.zeros(160 << 18, "f4"))}], [writer(volume)])
    assert sorted(volume.listdir("/checkpoint")) == names
    found = emptied(torch, old)
    dcp.load(found, reader(volume))
    assert_same(found, old)


KILLED = """
import os, sys
import numpy
import fake_checkpoint as dcp, gofs
from fake_torch import FakeTorch

torch = FakeTorch()
with torch.installed():
    from gofs.torch.checkpoint import GofsWriter

    volume = gofs.mount(sys.argv[1], writable=True, backend="cpu")
    writer = GofsWriter(volume, "/checkpoint")
    dcp.save([{"w": torch.tensor(numpy.ones(1000, "f4"))}], [writer])
    results, _, metadata = dcp.begin_save([{"w": torch.tensor(numpy.zeros(1000, "f4"))}], [writer])
    if sys.argv[2] == "after":
        writer.finish(metadata, results)
os._exit(0)
"""


@pytest.mark.parametrize("moment", ["before", "after"])
def test_a_process_that_dies_leaves_a_checkpoint(
    image: pathlib.Path, torch: FakeTorch, moment: str
) -> None:
    subprocess.run(
        [sys.executable, "-c", KILLED, str(image), moment],
        env={**os.environ, "PYTHONPATH": str(HERE)},
        timeout=60,
        check=True,
    )
    with gofs.mount(image, writable=True, backend="cpu") as volume:
        found = {"w": torch.empty(1000)}
        dcp.load(found, reader(volume))
        assert found["w"].array.sum() == (1000 if moment == "before" else 0)
        volume.write("/checkpoint/..metadata.0123456789abcdef", b"half of it")
        dcp.save([{"w": torch.empty(10)}], [writer(volume)])
        assert len(volume.listdir("/checkpoint")) == 2  # what was left over is gone
        volume.warnings()


def test_several_ranks_save_what_each_has(volume: gofs.Volume, torch: FakeTorch) -> None:
    states = [{f"w{rank}": torch.tensor(numpy.full(100, rank))} for rank in range(3)]
    dcp.save(states, [writer(volume) for _ in range(3)])
    assert len(volume.listdir("/checkpoint")) == 4
    found = {f"w{rank}": torch.empty(100, torch.int64) for rank in range(3)}
    dcp.load(found, reader(volume))
    assert [int(found[f"w{rank}"].array.max()) for rank in range(3)] == [0, 1, 2]


def test_what_cannot_be_saved_or_loaded_says_why(volume: gofs.Volume, torch: FakeTorch) -> None:
    with pytest.raises(FileNotFoundError, match=".metadata"):
        dcp.load({}, reader(volume))
    dcp.save([{"w": torch.tensor(numpy.ones((4, 4))), "text": "t"}], [writer(volume)])
    with pytest.raises(FileExistsError, match="another folder, or say overwrite=True"):
        dcp.save([{}], [writer(volume, overwrite=False)])
    metadata = reader(volume).read_metadata()
    index = dcp.MetadataIndex("w", (0, 0))
    for item, words in (
        (
            dcp.ReadItem(dcp.LoadItemType.TENSOR, index, (0, 0), index, (2, 0), (4, 4)),
            "the plan wants",
        ),
        (
            dcp.ReadItem(
                dcp.LoadItemType.TENSOR, index, (0, 0), dcp.MetadataIndex("v"), (0,), (4,)
            ),
            "the checkpoint has no MetadataIndex",
        ),
        (
            dcp.ReadItem(
                dcp.LoadItemType.TENSOR, index, (0, 0), dcp.MetadataIndex("text"), (0, 0), (4, 4)
            ),
            "was saved as bytes",
        ),
    ):
        of = reader(volume)
        of.set_up_storage_reader(metadata, True)
        planner = dcp.LoadPlanner({"w": torch.empty((4, 4), torch.float64)}, metadata)
        with pytest.raises(ValueError, match=words):
            of.read_data(dcp.LoadPlan([item]), planner)
    [name] = [name for name in volume.listdir("/checkpoint") if name != ".metadata"]
    volume.truncate(f"/checkpoint/{name}", 4200)
    with pytest.raises(ValueError, match="the checkpoint is incomplete"):
        dcp.load({"w": torch.empty((4, 4), torch.float64)}, reader(volume))
    volume.unlink(f"/checkpoint/{name}")
    with pytest.raises(FileNotFoundError, match=name):
        dcp.load({"w": torch.empty((4, 4), torch.float64)}, reader(volume))


def test_a_writer_and_a_reader_are_used_for_many_checkpoints(
    volume: gofs.Volume, torch: FakeTorch
) -> None:
    to, of = writer(volume, "/first", sync=False), reader(volume, "/first")
    for number, path in enumerate(["/first", "/a/second"]):
        if number:
            to.reset(path)
            of.reset(path)
        assert to.checkpoint_id == of.checkpoint_id == path
        dcp.save([{"w": torch.tensor(numpy.full(3, number))}], [to])
        found = {"w": torch.empty(3, torch.int64)}
        dcp.load(found, of)
        assert found["w"].array.tolist() == [number] * 3
        meta = of.read_metadata().storage_meta
        assert (meta.checkpoint_id, meta.save_id) == (path, to.storage_meta().save_id)
        assert meta.load_id
    assert type(to).validate_checkpoint_id("/a/b")
    assert type(of).validate_checkpoint_id(pathlib.PurePosixPath("/a"))
    assert not type(of).validate_checkpoint_id("s3://bucket/a")
    assert not type(of).validate_checkpoint_id(5)  # type: ignore[arg-type]


def test_where_torch_is_missing_checkpoints_say_so() -> None:
    program = "import gofs.torch.checkpoint"
    said = subprocess.run(
        [sys.executable, "-c", f"import sys; sys.modules['torch'] = None; {program}"],
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )
    assert "ImportError: gofs.torch.checkpoint needs torch 2.3 or later" in said.stderr
