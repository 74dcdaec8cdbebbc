# SPDX-License-Identifier: Apache-2.0
"""Tensors and arrays in the memory of a GPU, in the order of their streams."""

from __future__ import annotations

import asyncio
import importlib.util
import multiprocessing
import os
import subprocess
import sys
from typing import TYPE_CHECKING, Any

import pytest

import gofs

if TYPE_CHECKING:
    import pathlib
    from collections.abc import Iterator

torch = pytest.importorskip("torch")
if not torch.cuda.is_available():
    pytest.skip("no GPU", allow_module_level=True)

SIZE = 24 << 20
DATA = os.urandom(1 << 20) * 24


@pytest.fixture
def volume(tmp_path: pathlib.Path) -> Iterator[gofs.Volume]:
    gofs.mkfs(tmp_path / "volume.img", 256 << 20)
    spec = f"{tmp_path / 'volume.img'}?media=memory"
    with gofs.mount(spec, writable=True, backend="cuda") as mounted:
        mounted.write("/file", DATA)
        yield mounted


def bytes_of(tensor: Any) -> bytes:
    return bytes(tensor.view(torch.uint8).cpu().numpy())


def test_a_read_comes_in_the_order_of_the_stream(volume: gofs.Volume) -> None:
    """Its kernel fills the tensor before, and another one uses it after; blocks of the allocator
    are freed and taken again meanwhile."""
    expected = torch.frombuffer(bytearray(DATA), dtype=torch.uint8).cuda()
    size = 300_000
    for turn in range(1000):
        tensor = torch.empty(size, dtype=torch.uint8, device="cuda")
        torch.cuda._sleep(50_000)
        tensor.fill_(turn % 256)
        begin = turn * 20_011
        transfer = volume.read_into_async("/file", tensor, offset=begin)
        same = torch.equal(tensor, expected[begin : begin + size])
        assert same, turn
        assert transfer.result() == size
        pressure = torch.empty(turn % 50 << 16, dtype=torch.uint8, device="cuda")
        del tensor, pressure


def test_a_stream_that_is_not_the_default(volume: gofs.Volume) -> None:
    stream = torch.cuda.Stream()
    tensor = torch.zeros(1 << 20, dtype=torch.uint8, device="cuda")
    torch.cuda.synchronize()
    with torch.cuda.stream(stream):
        torch.cuda._sleep(20_000_000)
        tensor.fill_(9)
        transfer = volume.read_into_async("/file", tensor)
        assert not transfer.done()
        copy = tensor.clone()
    stream.synchronize()
    assert transfer.done()
    assert bytes_of(copy) == DATA[: 1 << 20]


def test_a_write_takes_what_the_stream_has_made(volume: gofs.Volume) -> None:
    tensor = torch.zeros(3_000_001, dtype=torch.uint8, device="cuda")
    torch.cuda._sleep(5_000_000)
    tensor.fill_(7)
    assert volume.write("/new", tensor, sync=True) == 3_000_001
    tensor.fill_(8)
    assert volume.read("/new") == b"\x07" * 3_000_001


@pytest.mark.parametrize(
    "name", ["bfloat16", "float8_e4m3fn", "float64", "int16", "bool", "complex64"]
)
def test_all_types_go_there_and_back(volume: gofs.Volume, name: str) -> None:
    dtype = getattr(torch, name)
    source = torch.frombuffer(bytearray(DATA[:64_000]), dtype=torch.uint8).cuda()
    tensor = (source % 2).view(dtype) if name == "bool" else source.view(dtype)
    volume.write("/typed", tensor)
    again = torch.empty_like(tensor)
    assert volume.read_into("/typed", again) == 64_000
    assert torch.equal(again.view(torch.uint8), tensor.view(torch.uint8))


def test_parameters_are_tensors(volume: gofs.Volume) -> None:
    parameter = torch.nn.Parameter(torch.zeros(1000, device="cuda"))
    assert volume.read_into("/file", parameter) == 4000
    assert bytes_of(parameter.detach()) == DATA[:4000]


def test_pinned_memory_is_filled_by_kernels_too(volume: gofs.Volume) -> None:
    pinned = torch.zeros(1 << 20, dtype=torch.uint8).pin_memory()
    assert volume.read_into("/file", pinned, offset=77) == 1 << 20
    assert bytes(pinned.numpy()) == DATA[77 : (1 << 20) + 77]


def test_refusals(volume: gofs.Volume) -> None:
    square = torch.zeros(8, 8, device="cuda")
    with pytest.raises(ValueError, match="contiguous"):
        volume.read_into("/file", square.t())
    with pytest.raises(ValueError, match="resolve_conj"):
        volume.write("/new", torch.zeros(4, dtype=torch.complex64, device="cuda").conj())
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        with pytest.raises(OSError, match="captured"):
            volume.read_into_async("/file", square)
        square.add_(1)
    assert volume.read_into("/file", square) == 256


def test_files_and_ranges(volume: gofs.Volume) -> None:
    tensor = torch.zeros(100, 4096, dtype=torch.uint8, device="cuda")
    with volume.open("/file", buffering=0) as file:
        assert file.readinto(tensor) == 409_600
        assert bytes_of(tensor) == DATA[:409_600]
        counts = volume.read_ranges([(file, (99 - i) * 4096, tensor[i]) for i in range(100)])
    assert counts == [4096] * 100
    assert bytes_of(tensor) == b"".join(
        DATA[(99 - i) * 4096 : (100 - i) * 4096] for i in range(100)
    )


def test_a_transfer_is_awaited(volume: gofs.Volume) -> None:
    tensors = [torch.zeros(1 << 20, dtype=torch.uint8, device="cuda") for _ in range(4)]

    async def all_of_them() -> list[int]:
        transfers = [
            volume.read_into_async("/file", tensor, offset=i << 20)
            for i, tensor in enumerate(tensors)
        ]
        return [await transfer for transfer in transfers]

    assert asyncio.run(all_of_them()) == [1 << 20] * 4
    for i, tensor in enumerate(tensors):
        assert bytes_of(tensor) == DATA[i << 20 : (i + 1) << 20]


def test_a_transfer_that_nobody_waits_for(volume: gofs.Volume) -> None:
    tensor = torch.zeros(SIZE, dtype=torch.uint8, device="cuda")
    torch.cuda._sleep(20_000_000)
    volume.read_into_async("/file", tensor)
    assert bytes_of(tensor) == DATA


def test_arrays_of_cupy(volume: gofs.Volume) -> None:
    cupy = pytest.importorskip("cupy")
    with cupy.cuda.Stream(non_blocking=True) as stream:
        array = cupy.ones((1000, 1000), dtype=cupy.int32)
        assert volume.read_into("/file", array) == 4_000_000
        assert array.tobytes() == DATA[:4_000_000]
        assert volume.write("/new", array + 0, stream=stream) == 4_000_000
    assert volume.read("/new") == DATA[:4_000_000]
    with pytest.raises(ValueError, match="contiguous"):
        volume.read_into("/file", array[:, ::2])


def test_arrays_of_numba(volume: gofs.Volume) -> None:
    numba_cuda = pytest.importorskip("numba.cuda")
    array = numba_cuda.device_array(1000, dtype="int64")
    assert volume.read_into("/file", array) == 8000
    assert array.copy_to_host().tobytes() == DATA[:8000]


@pytest.mark.filterwarnings("ignore:.*jax.*", "ignore::DeprecationWarning")
def use_arrays_of_jax(path: str) -> bool:
    """False where jax has no GPU."""
    import jax
    import numpy

    if jax.default_backend() != "gpu":
        return False
    gofs.mkfs(path, 128 << 20)
    array = jax.numpy.arange(100_000, dtype="int32") * 3  # perhaps not computed yet
    with gofs.mount(f"{path}?media=memory", writable=True, backend="cuda") as volume:
        for made in (array, array.astype(jax.numpy.bfloat16), array.reshape(100, 1000).T[:, ::2]):
            assert volume.write("/jax", made) == made.nbytes
            assert volume.read("/jax") == numpy.asarray(made).tobytes()
            with pytest.raises(BufferError, match="read-only"):
                volume.read_into("/jax", made)
            read = jax.dlpack.from_dlpack(volume.read("/jax", like=torch))
            assert bytes(numpy.asarray(read)) == numpy.asarray(made).tobytes()
    return True


def test_arrays_of_jax(tmp_path: pathlib.Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """In a process of its own: jax takes a GPU's memory for good, and warns of every fork after."""
    if importlib.util.find_spec("jax") is None:
        pytest.skip("no jax")
    monkeypatch.setenv("XLA_PYTHON_CLIENT_PREALLOCATE", "false")  # else it takes most of the GPU
    with multiprocessing.get_context("spawn").Pool(1) as pool:
        had_gpu = pool.apply_async(use_arrays_of_jax, [str(tmp_path / "jax.img")]).get(timeout=120)
    if not had_gpu:
        pytest.skip("jax has no GPU")


def test_safetensors_are_read_to_the_gpu(volume: gofs.Volume) -> None:
    from gofs.safetensors import load_file, safe_open, save_file

    tensors = {
        "a": torch.randn(1000, 100, device="cuda"),
        "b": torch.randn(77, device="cuda").to(torch.bfloat16),
        "c": torch.zeros(0, 3, device="cuda"),
    }
    save_file(volume, tensors, "/model.safetensors")
    for device in ("cuda", torch.device("cuda:0")):
        loaded = load_file(volume, "/model.safetensors", device, framework="pt")
        assert loaded.keys() == tensors.keys()
        for name, tensor in tensors.items():
            assert loaded[name].device.type == "cuda"
            assert torch.equal(loaded[name], tensor)
    with safe_open(volume, "/model.safetensors", "pt", "cuda") as file:
        assert torch.equal(file.get_tensor("b"), tensors["b"])
        rows = file.get_slice("a")
        assert torch.equal(rows[[5, -1, 5]], tensors["a"][[5, -1, 5]])
        assert torch.equal(rows[10:20], tensors["a"][10:20])


def test_parts_of_a_matrix_are_read_to_the_gpu(volume: gofs.Volume) -> None:
    from gofs.safetensors import safe_open, save_file

    wide = torch.randn(500, 3000, device="cuda")
    narrow = torch.arange(100_000 * 7, dtype=torch.int16, device="cuda").reshape(100_000, 7)
    save_file(volume, {"wide": wide, "narrow": narrow}, "/model.safetensors")
    with safe_open(volume, "/model.safetensors", "pt", "cuda") as file:
        part = file.get_slice("wide")
        for index in (
            (slice(None), slice(1000, 2500)),
            (slice(3, 400, 7), slice(1000, 2500)),
            (slice(None, None, 2),),
            (slice(None), slice(5, 9)),
            (17, slice(5, 9)),
            ([4, 3, 499], slice(5, 9)),
        ):
            assert torch.equal(part[index], wide[index]), index
        # More runs than one call has.
        rows = torch.randperm(100_000, device="cuda")
        assert torch.equal(file.get_slice("narrow")[rows], narrow[rows])
        assert torch.equal(file.get_slice("narrow")[::-1], narrow.flip(0))


def test_fastsafetensors_loads_to_the_gpu(volume: gofs.Volume) -> None:
    loaders = pytest.importorskip("gofs.fastsafetensors", exc_type=ImportError)
    from gofs.safetensors import save_file

    tensors = {
        "a": torch.randn(1000, 1001, device="cuda"),
        "b": torch.randn(77, device="cuda").to(torch.bfloat16),
        "c": torch.arange(5, device="cuda"),
    }
    save_file(volume, tensors, "/model.safetensors")
    loader = loaders.GofsFileLoader(volume, device="cuda:0")
    loader.add_filenames({0: ["/model.safetensors"]})
    loaded = loader.copy_files_to_device()
    found = {name: loaded.get_tensor(name) for name in tensors}
    loaded.close()
    loader.close()
    for name, tensor in tensors.items():
        assert found[name].is_cuda
        assert torch.equal(found[name], tensor)


def test_features_of_a_graph_are_on_the_gpu(volume: gofs.Volume) -> None:
    pyg = pytest.importorskip("gofs.torch.pyg", exc_type=ImportError)
    values = torch.randn(10_000, 128, device="cuda")
    store = pyg.GofsFeatureStore(volume, "/graph", device="cuda")
    store.put_tensor(values, "paper", "x", None)
    rows = torch.randint(0, 10_000, (3000,))
    found = store.get_tensor("paper", "x", rows)
    assert found.is_cuda
    assert torch.equal(found, values[rows.cuda()])
    order = torch.randperm(10_000)[:500]
    values[order.cuda()] = torch.randn(500, 128, device="cuda")
    store.put_tensor(values[order.cuda()], "paper", "x", order)
    assert torch.equal(store.get_tensor("paper", "x", None), values)


def test_batches_are_loaded_to_the_gpu_beside_what_it_computes(volume: gofs.Volume) -> None:
    from gofs.torch import BatchLoader

    contents = {f"{i:04}": os.urandom(1000 + i % 7) for i in range(200)}
    volume.mkdir("/many")
    volume.write_many("/many", contents)
    work = torch.randn(512, 512, device="cuda")
    for _ in range(3):
        seen = {}
        for batch in BatchLoader(volume, "/many", 16, shuffle=True, prefetch=3):
            assert batch.data.device.type == "cuda"
            work = torch.tanh(work @ work)
            for name, begin, end in zip(batch.names, batch.offsets, batch.offsets[1:]):
                seen[name.rpartition("/")[2]] = bytes_of(batch.data[begin:end])
        assert seen == contents


def test_many_files_are_tensors(volume: gofs.Volume) -> None:
    sizes = [1000, 0, 16384, 3]
    volume.write_many("/", {f"t{n}": DATA[n : n + size] for n, size in enumerate(sizes)})
    names = [f"/t{number}" for number in range(len(sizes))]
    tensors = volume.read_many(names, device="cuda")
    assert [bytes_of(one) for one in tensors] == [DATA[n : n + s] for n, s in enumerate(sizes)]
    assert tensors[2].view(torch.float32).shape == (4096,)
    assert all(one.is_cuda for one in tensors)


def test_many_files_are_read_into_one_tensor(volume: gofs.Volume) -> None:
    sizes = [(number * 977) % 40_000 for number in range(500)]
    volume.write_many("/", {f"f{n}": DATA[n : n + size] for n, size in enumerate(sizes)})
    offsets = [0]
    for size in sizes:
        offsets.append(offsets[-1] + size)
    tensor = torch.zeros(offsets[-1] + 5, dtype=torch.uint8, device="cuda")
    names = [f"/f{number}" for number in range(len(sizes))]
    assert volume.read_many_into(names, tensor, offsets) == sizes
    expected = b"".join(DATA[n : n + size] for n, size in enumerate(sizes))
    assert bytes_of(tensor) == expected + bytes(5)
    with pytest.raises(FileNotFoundError, match="/none"):
        volume.read_many_into(["/none", "/f3"], tensor, [0, 10, 20])


@pytest.mark.filterwarnings("ignore:torch.distributed is")
def test_checkpoints_of_tensors_on_the_gpu(volume: gofs.Volume) -> None:
    checkpoint = pytest.importorskip("gofs.torch.checkpoint")
    dcp = torch.distributed.checkpoint
    state = {
        "plain": torch.arange(300_000, dtype=torch.float32, device="cuda").reshape(300, 1000),
        "strided": torch.arange(4000, device="cuda").reshape(40, 100).t(),
        "half": torch.randn(77_777, device="cuda").to(torch.bfloat16),
        "conjugated": torch.randn(33, dtype=torch.complex64, device="cuda").conj(),
        "empty": torch.empty((0, 3), device="cuda"),
        "scalar": torch.tensor(7.5, device="cuda"),
        "of the host": torch.arange(10),
        "step": 12,
    }
    wanted = {
        key: value.clone() if hasattr(value, "clone") else value for key, value in state.items()
    }
    dcp.save(
        state, storage_writer=checkpoint.GofsWriter(volume, "/checkpoint"), no_dist=True
    )
    for value in state.values():
        if hasattr(value, "zero_"):
            value.zero_()
    state["step"] = 0
    dcp.load(
        state, storage_reader=checkpoint.GofsReader(volume, "/checkpoint"), no_dist=True
    )
    for key, value in wanted.items():
        same = torch.equal(state[key], value) if hasattr(value, "clone") else state[key] == value
        assert same, key
    [name] = [one for one in volume.listdir("/checkpoint") if one.endswith(".safetensors")]
    load_file = pytest.importorskip("gofs.safetensors").load_file
    for device in ("cpu", "cuda"):
        tensors = load_file(volume, f"/checkpoint/{name}", device, framework="pt")
        assert torch.equal(tensors["plain"], wanted["plain"].to(device))


KILLED = """
import os, sys
import torch
import torch.distributed.checkpoint as dcp
import gofs
from gofs.torch.checkpoint import GofsWriter

class Dying(GofsWriter):
    def finish(self, metadata, results):
        os._exit(7)

volume = gofs.mount(sys.argv[1], writable=True, backend="cuda")
def save(value, writer):
    state = {"w": torch.full((5_000_000,), value, device="cuda")}
    dcp.save(state, storage_writer=writer(volume, "/checkpoint"), no_dist=True)
save(1.0, GofsWriter)
save(2.0, Dying)
"""


@pytest.mark.filterwarnings("ignore:torch.distributed is")
def test_a_save_that_is_killed_before_its_end_leaves_the_old_checkpoint(
    image: pathlib.Path,
) -> None:
    checkpoint = pytest.importorskip("gofs.torch.checkpoint")
    done = subprocess.run([sys.executable, "-c", KILLED, str(image)], timeout=240, check=False)
    assert done.returncode == 7
    with gofs.mount(image, writable=True, backend="cuda") as mounted:
        found = {"w": torch.full((5_000_000,), 5.0, device="cuda")}
        torch.distributed.checkpoint.load(
            found, storage_reader=checkpoint.GofsReader(mounted, "/checkpoint"), no_dist=True
        )
        assert bool((found["w"] == 1.0).all())
        mounted.warnings()


def test_many_files_and_ranges_are_written_from_the_gpu(volume: gofs.Volume) -> None:
    tensors = {
        f"t{n}": torch.full((n * 1000,), n, dtype=torch.int16, device="cuda") for n in range(50)
    }
    volume.mkdir("/out")
    volume.write_many("/out", {**tensors, "host": b"1"}, sync=True)
    contents = volume.read_dir("/out")
    assert contents.pop("host") == b"1"
    assert contents == {name: bytes_of(tensor) for name, tensor in tensors.items()}
    ones = torch.ones(4096, dtype=torch.uint8, device="cuda")
    with volume.open("/out/t9", "r+b") as file:
        volume.write_ranges([(file, 100, ones), ("/out/t8", 0, ones), ("/out/host", 1, b"2")])
    expected = bytearray(bytes_of(tensors["t9"]))
    expected[100:4196] = bytes_of(ones)
    assert volume.read("/out/t9") == expected
    assert volume.read("/out/host") == b"12"


def test_rows_of_a_file_are_read_and_written(volume: gofs.Volume) -> None:
    draw = torch.randperm(SIZE // 4096)[:5000]
    offsets = draw * 4096
    rows = torch.zeros((5000, 1024), dtype=torch.int32, device="cuda")
    assert volume.read_rows("/file", offsets, rows) == [4096] * 5000
    whole = torch.frombuffer(bytearray(DATA), dtype=torch.int32).reshape(-1, 1024)
    assert torch.equal(rows.cpu(), whole[draw])
    with torch.cuda.stream(torch.cuda.Stream()):
        rows.add_(1)
        volume.write_rows("/file", offsets.cuda(), rows)
        rows.zero_()
        volume.read_rows("/file", offsets.tolist(), rows)
        torch.cuda.current_stream().synchronize()
    assert torch.equal(rows.cpu(), whole[draw] + 1)
    assert volume.read_rows("/file", [SIZE - 4, SIZE], rows[:2]) == [4, 0]
    with pytest.raises(ValueError, match="contiguous"):
        volume.read_rows("/file", [0, 1], rows[:2].t())


def test_more_files_than_can_be_open_are_read(tmp_path: pathlib.Path) -> None:
    gofs.mkfs(tmp_path / "few.img", 64 << 20)
    spec = f"{tmp_path / 'few.img'}?media=memory"
    with gofs.mount(spec, writable=True, backend="cuda", descriptors=64) as few:
        files = {f"f{n}": bytes([n % 256]) * (n * 3) for n in range(500)}
        few.write_many("/", files)
        found = few.read_many([f"/{name}" for name in files], framework="pt", device="cuda")
        assert [bytes_of(each) for each in found] == list(files.values())


def test_a_write_that_is_not_waited_for(volume: gofs.Volume) -> None:
    tensor = torch.zeros(3_000_001, dtype=torch.uint8, device="cuda")
    torch.cuda._sleep(5_000_000)
    tensor.fill_(7)
    transfer = volume.write_async("/new", tensor, sync=True)
    tensor.fill_(8)
    assert transfer.result() == 3_000_001
    assert volume.read("/new") == b"\x07" * 3_000_001


def test_a_refused_write_leaves_the_file(volume: gofs.Volume) -> None:
    tensor = torch.zeros(10, device="cuda")
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        with pytest.raises(OSError, match="captured"):
            volume.write("/file", tensor)
        tensor.add_(1)
    assert volume.stat("/file").st_size == SIZE


def test_pinned_memory_is_moved_in_the_order_of_what_is_beside_it(volume: gofs.Volume) -> None:
    pinned = torch.zeros(4096, dtype=torch.uint8).pin_memory()
    tensor = torch.zeros(4096, dtype=torch.uint8, device="cuda")
    torch.cuda.synchronize()
    with torch.cuda.stream(torch.cuda.Stream()):
        assert volume.read_ranges([("/file", 0, pinned), ("/file", 9, tensor)]) == [4096, 4096]
    assert bytes(pinned.numpy()) == DATA[:4096]
    assert bytes_of(tensor) == DATA[9:4105]
    with volume.open("/file", "ab") as file:
        assert file.write(pinned) == 4096
    assert volume.read("/file", offset=SIZE) == DATA[:4096]


def test_a_new_tensor_is_on_the_gpu(volume: gofs.Volume) -> None:
    tensor = volume.read("/file", size=4000, dtype=torch.float32)
    assert tensor.is_cuda
    assert (tensor.dtype, bytes_of(tensor)) == (torch.float32, DATA[:4000])
    volume.mkdir("/many")
    volume.write_many("/many", {"a": b"1", "b": b"23"})
    packed = volume.read_dir("/many", packed=True, device="cuda")
    assert (bytes_of(packed.data), packed.offsets) == (b"123", [0, 1, 3])
