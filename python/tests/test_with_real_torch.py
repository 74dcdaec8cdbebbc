# SPDX-License-Identifier: Apache-2.0
"""What the stand-ins cannot show, where torch is installed: its tensors, its planners and process
groups, its DataLoader. Without torch all of this is skipped; it is too large for most machines."""

from __future__ import annotations

import io
import pathlib
import subprocess
import sys
from collections.abc import Callable
from typing import Any

import pytest

torch = pytest.importorskip("torch")
import torch.distributed.checkpoint as dcp  # noqa: E402
from torch.utils.data import DataLoader  # noqa: E402

import gofs  # noqa: E402
from gofs.safetensors import load_file, safe_open, save_file  # noqa: E402
from gofs.torch import BatchLoader, FileDataset  # noqa: E402
from gofs.torch.checkpoint import GofsReader, GofsWriter  # noqa: E402

# Of torch itself, on machines without a GPU and in single processes.
pytestmark = [
    pytest.mark.filterwarnings("ignore::UserWarning"),
    pytest.mark.filterwarnings("ignore::FutureWarning"),
    pytest.mark.filterwarnings("ignore::DeprecationWarning"),
]


def some_state() -> dict[str, Any]:
    torch.manual_seed(1)
    return {
        "model": {
            "weight": torch.randn(64, 33),
            "brain": torch.randn(5, 3).bfloat16(),
            "eight": torch.randn(8).to(torch.float8_e4m3fn),
            "wide": torch.randn(4, 4, dtype=torch.complex128),
            "parameter": torch.nn.Parameter(torch.randn(7)),
            "transposed": torch.randn(30, 20).T,
            "nothing": torch.zeros(0, 4),
            "scalar": torch.tensor(5),
        },
        "step": 17,
        "optimizer": {"lr": 0.1, "betas": [0.9, 0.99]},
    }


def emptied(state: dict[str, Any]) -> dict[str, Any]:
    def empty(value: Any) -> Any:
        if isinstance(value, dict):
            return {name: empty(each) for name, each in value.items()}
        return torch.zeros_like(value) if isinstance(value, torch.Tensor) else value

    return {name: empty(value) for name, value in state.items()}


def assert_same(found: Any, wanted: Any) -> None:
    if isinstance(wanted, dict):
        assert found.keys() == wanted.keys()
        for name in wanted:
            assert_same(found[name], wanted[name])
    elif isinstance(wanted, torch.Tensor):
        assert found.dtype == wanted.dtype
        # Comparing 8-bit floats is not implemented.
        assert torch.equal(found.double().real, wanted.double().real) or (
            found.is_complex() and torch.equal(found, wanted)
        )
    else:
        assert found == wanted


def test_a_state_is_saved_and_loaded(volume: gofs.Volume) -> None:
    state = some_state()
    for _ in range(2):  # over what is there, too
        dcp.save(state, storage_writer=GofsWriter(volume, "/checkpoint"))
    assert len(volume.listdir("/checkpoint")) == 2
    found = emptied(state)
    found["step"] = 0
    dcp.load(found, storage_reader=GofsReader(volume, "/checkpoint"))
    assert_same(found, state)


def test_a_checkpoint_is_named_by_its_folder(volume: gofs.Volume) -> None:
    state = {"w": torch.arange(10)}
    dcp.save(state, storage_writer=GofsWriter(volume, "/a"), checkpoint_id="/b")
    assert volume.listdir("/") == ["b"]
    found = {"w": torch.zeros(10, dtype=torch.int64)}
    dcp.load(found, storage_reader=GofsReader(volume, "/a"), checkpoint_id="/b")
    assert torch.equal(found["w"], state["w"])


def test_a_checkpoint_is_saved_in_the_background(volume: gofs.Volume) -> None:
    torch.distributed.init_process_group(
        "gloo", store=torch.distributed.HashStore(), rank=0, world_size=1
    )
    try:
        state = some_state()
        dcp.async_save(state, storage_writer=GofsWriter(volume, "/checkpoint")).result(timeout=60)
        found = emptied(state)
        dcp.load(found, storage_reader=GofsReader(volume, "/checkpoint"))
    finally:
        torch.distributed.destroy_process_group()
    assert_same(found, state)


RANKS = """
import sys
import torch
import torch.distributed as dist
import torch.distributed.checkpoint as dcp
from torch.distributed.device_mesh import init_device_mesh
from torch.distributed.tensor import DTensor, Replicate, Shard
import gofs
from gofs.torch.checkpoint import GofsReader, GofsWriter

what, device, socket, store, rank, count = *sys.argv[1:5], *map(int, sys.argv[5:])
dist.init_process_group("gloo", store=dist.FileStore(store, count), rank=rank, world_size=count)
whole = torch.arange(48 * 40, dtype=torch.float32, device=device).reshape(48, 40)
mesh = init_device_mesh(device, (count,))

def part(placement):
    if isinstance(placement, Replicate):
        return whole.clone()
    return whole.chunk(count, placement.dim)[rank].clone(memory_format=torch.contiguous_format)

def share(placement, local):
    return DTensor.from_local(
        local, mesh, [placement], run_check=False, shape=whole.shape, stride=whole.stride()
    )

with gofs.attach(socket) as volume:
    if what == "save":
        state = {"rows": Shard(0), "columns": Shard(1), "all": Replicate()}
        state = {name: share(each, part(each)) for name, each in state.items()}
        dcp.save(state, storage_writer=GofsWriter(volume, "/checkpoint"))
    else:
        for name in ("rows", "columns", "all"):
            for placement in (Shard(1), Shard(0), Replicate()):
                mine = part(placement)
                state = {name: share(placement, torch.zeros_like(mine))}
                dcp.load(state, storage_reader=GofsReader(volume, "/checkpoint"))
                assert torch.equal(state[name].to_local(), mine), (name, placement)
dist.destroy_process_group()
print("fine")
"""


def run_ranks(what: str, device: str, socket: pathlib.Path, count: int) -> None:
    """All of them say that they are fine."""
    store = socket.with_name(f"{what} {count}")
    ranks = [
        subprocess.Popen(
            [sys.executable, "-c", RANKS, what, device, str(socket), str(store)]
            + [str(rank), str(count)],
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
        )
        for rank in range(count)
    ]
    said = [rank.communicate(timeout=240)[0] for rank in ranks]
    assert all(text.endswith("fine\n") for text in said), said


@pytest.mark.parametrize(("saving", "loading"), [(2, 3), (3, 1)])
def test_ranks_that_are_processes_save_and_reshard(
    image: pathlib.Path, served: Callable[..., Any], saving: int, loading: int
) -> None:
    with served(image, "--backend", "cpu") as socket:
        run_ranks("save", "cpu", socket, saving)
        run_ranks("load", "cpu", socket, loading)


@pytest.mark.skipif(not torch.cuda.is_available(), reason="no GPU")
def test_ranks_with_tensors_of_a_gpu_save_and_reshard(
    image: pathlib.Path, served: Callable[..., Any]
) -> None:
    with served(image, "--backend", "cpu") as socket:
        run_ranks("save", "cuda", socket, 2)
        run_ranks("load", "cuda", socket, 2)
        run_ranks("load", "cpu", socket, 1)


KILLED = """
import os, sys
import torch
import torch.distributed.checkpoint as dcp
import gofs
from gofs.torch.checkpoint import GofsWriter

class Dying(GofsWriter):
    def finish(self, metadata, results):
        os._exit(7)

volume = gofs.mount(sys.argv[1], writable=True, backend="cpu")
dcp.save({"w": torch.ones(1000)}, storage_writer=GofsWriter(volume, "/checkpoint"))
dcp.save({"w": torch.zeros(1000)}, storage_writer=Dying(volume, "/checkpoint"))
"""


def test_a_save_that_is_killed_before_its_end_leaves_the_old_checkpoint(
    image: pathlib.Path,
) -> None:
    done = subprocess.run([sys.executable, "-c", KILLED, str(image)], timeout=240, check=False)
    assert done.returncode == 7
    with gofs.mount(image, writable=True, backend="cpu") as volume:
        found = {"w": torch.full((1000,), 5.0)}
        dcp.load(found, storage_reader=GofsReader(volume, "/checkpoint"))
        assert found["w"].sum() == 1000
        volume.warnings()


def test_safetensors_are_those_of_torch(volume: gofs.Volume, tmp_path: pathlib.Path) -> None:
    judge = pytest.importorskip("safetensors.torch")
    tensors = {
        str(dtype): torch.arange(24).to(dtype).reshape(2, 3, 4)
        for dtype in (torch.float32, torch.bfloat16, torch.float8_e5m2, torch.bool, torch.int64)
    }
    tensors["nothing"] = torch.zeros(0, 3)
    tensors["scalar"] = torch.tensor(1.5)
    save_file(volume, tensors, "/ours")
    assert_same(judge.load(volume.read("/ours")), tensors)
    volume.write("/theirs", judge.save(tensors))
    assert_same(load_file(volume, "/theirs", framework="pt"), tensors)
    with safe_open(volume, "/theirs", framework="pt") as file:
        part = file.get_slice("torch.float32")
        assert torch.equal(part[1], tensors["torch.float32"][1])
        assert torch.equal(part[torch.tensor([1, 0])], tensors["torch.float32"][[1, 0]])
        assert torch.equal(part[:1, 1:], tensors["torch.float32"][:1, 1:])


def test_torch_saves_to_and_loads_from_files(volume: gofs.Volume) -> None:
    state = some_state()
    with volume.open("/file.pt", "wb", buffering=-1) as file:
        torch.save(state, file)
    with volume.open("/file.pt", buffering=-1) as file:
        assert_same(torch.load(file), state)
    assert_same(torch.load(io.BytesIO(volume.read("/file.pt"))), state)


def decode(data: bytes) -> Any:
    return torch.frombuffer(bytearray(data), dtype=torch.uint8).sum()


@pytest.mark.parametrize("workers", [0, 2])
def test_a_data_loader_has_all_files(image: pathlib.Path, workers: int) -> None:
    with gofs.mount(image, writable=True, backend="cpu") as volume:
        volume.mkdir("/d")
        volume.write_many("/d", {f"{number:03}": bytes([number]) * 100 for number in range(50)})
    with gofs.mount(image, backend="cpu") as volume:
        dataset = FileDataset(volume, "/d", transform=decode, labels=list(range(50)))
        loader = DataLoader(
            dataset,
            batch_size=8,
            shuffle=True,
            num_workers=workers,
            multiprocessing_context="spawn" if workers else None,
            timeout=120 if workers else 0,
        )
        found = {}
        for sums, labels in loader:
            found.update(zip(labels.tolist(), sums.tolist()))
    assert found == {number: number * 100 for number in range(50)}


def test_batches_are_tensors(volume: gofs.Volume) -> None:
    volume.mkdir("/d")
    volume.write_many("/d", {f"{number:03}": bytes([number]) * 100 for number in range(50)})
    sampler = torch.utils.data.DistributedSampler(range(50), num_replicas=2, rank=1, shuffle=False)
    seen = []
    for batch in BatchLoader(volume, "/d", 8, sampler=sampler):
        assert batch.data.dtype == torch.uint8
        assert torch.equal(
            batch.rows().sum(1).cpu(), torch.tensor([int(name[-3:]) * 100 for name in batch.names])
        )
        seen += batch.names
    assert seen == [f"/d/{number:03}" for number in range(1, 50, 2)]


def test_a_tensor_of_torch_is_read_and_written_in_place(volume: gofs.Volume) -> None:
    tensor = torch.arange(1000, dtype=torch.float32)
    volume.write("/file", tensor)
    back = torch.empty(1000)
    assert volume.read_into("/file", back) == 4000
    assert torch.equal(back, tensor)
    parts = [torch.empty(10), torch.empty(5)]
    assert volume.read_ranges([("/file", 40, parts[0]), ("/file", 0, parts[1])]) == [40, 20]
    assert torch.equal(torch.cat(parts), torch.cat([tensor[10:20], tensor[:5]]))
    with pytest.raises(ValueError, match=r"\.contiguous\(\)"):
        volume.write("/file", torch.zeros(4, 4)[:, 1])


@pytest.mark.parametrize("dtype", [torch.int64, torch.int32])
def test_rows_begin_where_a_tensor_says(volume: gofs.Volume, dtype: torch.dtype) -> None:
    tokens = torch.arange(100_000, dtype=torch.int16)
    volume.write("/tokens", tokens)
    begins = torch.randperm(1000)
    rows = torch.zeros((1000, 64), dtype=torch.int16)
    assert volume.read_rows("/tokens", (begins * 200).to(dtype), rows) == [128] * 1000
    assert torch.equal(rows, begins.to(torch.int16)[:, None] * 100 + torch.arange(64).short())


def test_stores_of_pyg_are_those_in_memory(volume: gofs.Volume) -> None:
    data_module = pytest.importorskip("torch_geometric.data")
    from gofs.torch.pyg import GofsFeatureStore, GofsGraphStore

    torch.manual_seed(2)
    edge = ("paper", "cites", "paper")
    index = torch.randint(0, 100, (2, 500))
    memory = data_module.HeteroData()
    memory["paper"].x = torch.randn(100, 16)
    memory["paper"].y = torch.arange(100)
    memory[edge].edge_index = index
    features, edges = GofsFeatureStore(volume, "/graph"), GofsGraphStore(volume, "/graph")
    for attr in memory.get_all_tensor_attrs():
        features.put_tensor(
            memory.get_tensor(attr.group_name, attr.attr_name, None),
            attr.group_name,
            attr.attr_name,
            None,
        )
    edges.put_edge_index((index[0], index[1]), edge, "coo", size=(100, 100))
    assert {(attr.group_name, attr.attr_name) for attr in features.get_all_tensor_attrs()} == {
        ("paper", "x"),
        ("paper", "y"),
    }
    rows = torch.tensor([5, 99, 0, 5])
    attrs = [data_module.TensorAttr("paper", name, rows) for name in ("x", "y")]
    for ours, theirs in zip(features.multi_get_tensor(attrs), memory.multi_get_tensor(attrs)):
        assert torch.equal(ours, theirs)
    assert torch.equal(features["paper", "x", rows], memory["paper"].x[rows])
    assert torch.equal(features["paper"].x[rows], memory["paper"].x[rows])
    assert torch.equal(features["paper", "x"](), memory["paper"].x)
    assert features.get_tensor_size("paper", "x") == (100, 16)
    features["paper", "y", torch.tensor([3, 4])] = torch.tensor([-3, -4])
    assert features["paper", "y", slice(2, 6)].tolist() == [2, -3, -4, 5]
    assert features.update_tensor(torch.tensor([7]), "paper", "y", torch.tensor([0]))
    assert features["paper", "y", 0] == 7
    for ours, theirs in zip(edges.csc(), memory.csc()):
        assert torch.equal(ours[edge], theirs[edge])
    edges.csr(store=True)
    assert {attr.layout.value for attr in edges.get_all_edge_attrs()} == {"coo", "csr"}
    del features["paper", "y"]
    assert len(features.get_all_tensor_attrs()) == 1
