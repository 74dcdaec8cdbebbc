# SPDX-License-Identifier: Apache-2.0
"""Memory of a GPU, where there is none: what stands for it is memory of the host, which the CPU
backend moves by the same calls. test_on_gpu.py has the real one."""

from __future__ import annotations

import asyncio
import concurrent.futures
import errno
import gc
import io
import itertools
import threading
import time
import types
import weakref
from typing import TYPE_CHECKING, Any

import numpy
import pytest

import gofs
from fake_tensors import FakeTensor
from forked import in_child
from gofs import _transfer
from gofs.safetensors import load_file, save_file
from watched import Watched

if TYPE_CHECKING:
    from collections.abc import Callable

DATA = bytes(i * 7 % 251 for i in range(300_000))


class GpuTensor(FakeTensor):
    """As torch's on a GPU."""

    def __init__(self, array: numpy.ndarray[Any, Any], stream: int = 0) -> None:
        super().__init__(array, device=f"cuda:{stream}")

    def data_ptr(self) -> int:
        return int(self.array.__array_interface__["data"][0])


class PinnedTensor(FakeTensor):
    """As torch's that is pinned: on the CPU, where a GPU reaches it."""

    def is_pinned(self) -> bool:
        return True


class LazyArray:
    """As jax's: computed on a stream that it does not name."""

    def __init__(self, array: numpy.ndarray[Any, Any], wanted: bytes) -> None:
        self.array = array
        self._wanted = wanted

    def block_until_ready(self) -> None:
        self.array[:] = numpy.frombuffer(self._wanted, numpy.uint8)

    @property
    def __cuda_array_interface__(self) -> dict[str, Any]:
        interface = self.array.__array_interface__
        return {**interface, "data": (interface["data"][0], False), "version": 2}


class GpuArray:
    """As CuPy's and Numba's."""

    def __init__(self, array: numpy.ndarray[Any, Any], **more: object) -> None:
        self.array = array
        interface = dict(array.__array_interface__)
        interface["data"] = (interface["data"][0], not array.flags.writeable)
        self.__cuda_array_interface__ = {**interface, "version": 3, **more}


class FullArray(GpuArray):
    """With what gofs uses of CuPy's to save them."""

    def __init__(self, array: numpy.ndarray[Any, Any]) -> None:
        super().__init__(array)
        self.dtype, self.shape, self.flags = array.dtype, array.shape, array.flags
        self.copies = 0

    def get(self) -> numpy.ndarray[Any, Any]:
        self.copies += 1
        return self.array.copy()


class FullTensor(GpuTensor):
    """With what gofs uses of torch's to save them."""

    def __init__(self, array: numpy.ndarray[Any, Any], stream: int = 0) -> None:
        super().__init__(array, stream)
        self.dtype, self.shape = array.dtype, array.shape
        self.copies = 0

    def detach(self) -> FullTensor:
        return self

    def cpu(self) -> FakeTensor:
        self.copies += 1
        return FakeTensor(self.array.copy())


@pytest.fixture
def on_gpu(volume: gofs.Volume, monkeypatch: pytest.MonkeyPatch) -> gofs.Volume:
    """A volume that takes itself for one of a GPU; the stream of cuda:N is the number N."""
    monkeypatch.setattr(volume, "_reaches_gpu", True)
    monkeypatch.setattr(volume, "_core", Watched(volume, reaches=lambda *_: True))

    def current_stream(device: str) -> object:
        return types.SimpleNamespace(cuda_stream=int(device.split(":")[1]))

    torch = types.SimpleNamespace(cuda=types.SimpleNamespace(current_stream=current_stream))
    monkeypatch.setitem(__import__("sys").modules, "torch", torch)
    volume.write("/file", DATA)
    return volume


def zeros(count: int) -> numpy.ndarray[Any, Any]:
    return numpy.zeros(count, numpy.uint8)


@pytest.mark.parametrize("kind", [GpuTensor, GpuArray])
def test_reads_and_writes(
    on_gpu: gofs.Volume, kind: Callable[[numpy.ndarray[Any, Any]], Any]
) -> None:
    array = zeros(400_000)
    assert on_gpu.read_into("/file", kind(array), offset=1000) == 299_000
    assert array.tobytes() == DATA[1000:] + bytes(101_000)
    assert on_gpu.write("/new", kind(array), sync=True) == 400_000
    assert on_gpu.read("/new") == array.tobytes()
    assert on_gpu.write("/new", kind(zeros(0))) == 0
    assert on_gpu.read("/new") == b""


def test_files_have_a_position_there_too(on_gpu: gofs.Volume) -> None:
    array = zeros(1000)
    with on_gpu.open("/file", "r+b", buffering=0) as file:
        assert file.readinto(GpuTensor(array)) == 1000
        assert file.readinto(GpuTensor(array)) == 1000
        assert array.tobytes() == DATA[1000:2000]
        assert file.tell() == 2000
        assert file.write(GpuTensor(array)) == 1000
        assert file.tell() == 3000
        assert file.pwrite(GpuTensor(array), 299_500) == 1000
        assert file.pread(GpuTensor(array), 299_500) == 1000
        assert file.tell() == 3000
        file.seek(0, 2)
        assert file.readinto(GpuTensor(array)) == 0
    assert on_gpu.read("/file", offset=2000, size=1000) == DATA[1000:2000]
    assert on_gpu.stat("/file").st_size == 300_500


def test_appending_is_refused(on_gpu: gofs.Volume) -> None:
    with on_gpu.open("/file", "ab", buffering=0) as file:
        with pytest.raises(ValueError, match=r"mode='r\+b'.*pwrite"):
            file.write(GpuTensor(zeros(10)))
        with pytest.raises(ValueError, match="not appended"):
            file.pwrite(GpuTensor(zeros(10)), 0)
    assert on_gpu.read("/file") == DATA


def test_pinned_memory_is_appended_as_the_hosts(on_gpu: gofs.Volume) -> None:
    with on_gpu.open("/file", "ab", buffering=0) as file:
        assert file.write(PinnedTensor(zeros(10))) == 10
        assert file.pwrite(PinnedTensor(zeros(10)), 5) == 10
    assert on_gpu.read("/file") == DATA + bytes(20)


def test_threads_share_a_position(on_gpu: gofs.Volume, monkeypatch: pytest.MonkeyPatch) -> None:
    real = on_gpu._core

    def slow(*arguments: Any) -> Any:
        time.sleep(0.002)
        return real.move_ranges(*arguments)

    monkeypatch.setattr(on_gpu, "_core", Watched(on_gpu, move_ranges=slow))
    parts = [zeros(1000) for _ in range(60)]
    with on_gpu.open("/file") as file, concurrent.futures.ThreadPoolExecutor(4) as pool:
        list(pool.map(lambda part: file.readinto(GpuTensor(part)), parts[:40]))
        mixed = [GpuTensor(part) if n % 2 else part for n, part in enumerate(parts[40:])]
        list(pool.map(file.readinto, mixed))
        assert file.tell() == 60_000
    assert sorted(part.tobytes() for part in parts) == sorted(
        DATA[begin : begin + 1000] for begin in range(0, 60_000, 1000)
    )
    with on_gpu.open("/new", "wb") as file, concurrent.futures.ThreadPoolExecutor(4) as pool:
        list(pool.map(lambda part: file.write(GpuTensor(part)), parts))
    written = on_gpu.read("/new")
    assert sorted(written[n : n + 1000] for n in range(0, 60_000, 1000)) == sorted(
        part.tobytes() for part in parts
    )


def test_ranges_may_be_on_both_sides(on_gpu: gofs.Volume) -> None:
    arrays = [zeros(size) for size in (100, 50_000, 7, 20)]
    with on_gpu.open("/file", buffering=0) as file:
        counts = on_gpu.read_ranges(
            [
                ("/file", 5, GpuTensor(arrays[0])),
                (file, 1000, arrays[1]),
                (file, 290_000, GpuArray(arrays[2])),
                (b"/file", 299_990, GpuTensor(arrays[3])),
            ]
        )
    assert counts == [100, 50_000, 7, 10]
    assert arrays[0].tobytes() == DATA[5:105]
    assert arrays[1].tobytes() == DATA[1000:51_000]
    assert arrays[2].tobytes() == DATA[290_000:290_007]
    assert arrays[3].tobytes() == DATA[-10:] + bytes(10)


def test_ranges_are_written_from_both_sides(on_gpu: gofs.Volume) -> None:
    on_gpu.write("/other", b"")
    big, small = zeros(50_000), zeros(7)
    big[:], small[:] = 1, 2
    with on_gpu.open("/file", "r+b") as file:
        on_gpu.write_ranges(
            [
                (file, 5, GpuTensor(small)),
                ("/other", 10, GpuArray(big)),
                (file, 100, b"abc"),
                (b"/other", 0, numpy.arange(2, dtype="i4")),
                (file, 299_999, PinnedTensor(small)),
            ]
        )
        assert file.tell() == 0
    expected = bytearray(DATA + bytes(6))
    expected[5:12] = expected[299_999:] = small.tobytes()
    expected[100:103] = b"abc"
    assert on_gpu.read("/file") == expected
    assert on_gpu.read("/other") == bytes([0] * 4 + [1] + [0] * 5) + big.tobytes()
    on_gpu.write_ranges([])


def test_what_cannot_be_written_is_refused_before_the_rest(on_gpu: gofs.Volume) -> None:
    on_gpu.mkdir("/directory")
    null = GpuArray(zeros(10), data=(0, False))
    for wrong in (null, GpuTensor(numpy.zeros((8, 8))[:, 1]), numpy.zeros((8, 8))[:, 1], "text"):
        with pytest.raises((ValueError, TypeError)):
            on_gpu.write_ranges([("/file", 0, b"new"), ("/file", 0, wrong)])
        with pytest.raises((ValueError, TypeError)):
            on_gpu.write_many("/directory", {"a": b"new", "b": GpuTensor(zeros(3)), "c": wrong})
    with on_gpu.open("/file", "ab") as file, pytest.raises(ValueError, match="not appended"):
        on_gpu.write_ranges([("/file", 0, b"new"), (file, 0, GpuTensor(zeros(3)))])
    with on_gpu.open("/file") as reader, pytest.raises(io.UnsupportedOperation):
        on_gpu.write_ranges([(reader, 0, b"new")])
    with pytest.raises(FileNotFoundError) as missing:
        on_gpu.write_ranges([("/file", 0, GpuTensor(zeros(3))), ("/missing", 0, b"new")])
    assert missing.value.filename == "/missing"
    assert on_gpu.read("/file") == DATA
    assert on_gpu.listdir("/directory") == []


def test_a_file_that_is_closed_meanwhile_does_not_keep_others_from_being_written(
    on_gpu: gofs.Volume, monkeypatch: pytest.MonkeyPatch
) -> None:
    on_gpu.write_many("/", {"a": b"...", "b": b"..."})
    file = on_gpu.open("/a", "r+b")
    core = on_gpu._core

    def open_many(paths: list[str | bytes], flags: int) -> Any:
        file.close()  # as another thread does it
        return core.open_many(paths, flags)

    monkeypatch.setattr(on_gpu, "_core", Watched(on_gpu, open_many=open_many))
    one = GpuTensor(numpy.full(1, ord("x"), dtype="u1"))
    with pytest.raises(ValueError, match="closed file"):
        on_gpu.write_ranges([(file, 0, one), ("/b", 0, one), (file, 1, one), ("/b", 2, one)])
    assert on_gpu.read_many(["/a", "/b"]) == [b"...", b"x.x"]


def test_short_writes_of_memory_go_on(
    on_gpu: gofs.Volume, monkeypatch: pytest.MonkeyPatch
) -> None:
    real = on_gpu._core
    room = 250

    def move_ranges(ranges: Any, writes: bool, stream: int) -> list[int]:
        nonlocal room
        results = []
        for file, offset, address, size in ranges:
            size = min(size, 100, room)
            room -= size
            results += real.move_ranges([(file, offset, address, size)], writes, stream)
        return results

    monkeypatch.setattr(on_gpu, "_core", Watched(on_gpu, move_ranges=move_ranges))
    array = numpy.arange(240, dtype=numpy.uint8)
    assert on_gpu.write("/new", GpuTensor(array)) == 240
    assert on_gpu.read("/new") == array.tobytes()
    for call in (
        lambda: on_gpu.write("/new", GpuTensor(array)),
        lambda: on_gpu.write_many("/", {"new": GpuTensor(array)}),
        lambda: on_gpu.write_ranges([("/new", 0, GpuTensor(array))]),
    ):
        room = 130
        with pytest.raises(OSError) as full:
            call()
        assert (full.value.errno, full.value.filename) == (errno.ENOSPC, "/new")


def test_many_files_are_made_of_both_kinds(on_gpu: gofs.Volume) -> None:
    on_gpu.mkdir("/many")
    on_gpu.write("/many/old", b"something longer")
    asked = []

    class OnDemand(dict[str, Any]):
        """Of values that nobody else keeps."""

        def __getitem__(self, name: str) -> Any:
            asked.append(name)
            return GpuTensor(numpy.full(100, int(name[1:]), numpy.uint8))

        def items(self) -> Any:
            return ((name, self[name]) for name in self)

    on_gpu.write_many("/many", OnDemand.fromkeys(f"x{n}" for n in range(50)), sync=True)
    assert asked == [f"x{n}" for n in range(50)]
    array = zeros(3)
    pinned, empty = PinnedTensor(array), GpuTensor(zeros(0))
    on_gpu.write_many("/many", {"old": GpuArray(array), "x7": b"7", "x8": pinned, "e": empty})
    contents = on_gpu.read_dir("/many")
    assert contents.pop("old") == contents.pop("x8") == bytes(3)
    assert (contents.pop("x7"), contents.pop("e")) == (b"7", b"")
    assert contents == {f"x{n}": bytes([n]) * 100 for n in range(50) if n not in (7, 8)}
    on_gpu.mkdir("/many/folder")
    names = ["a/b", "..", "folder", "good"]
    with pytest.raises(OSError) as first:
        on_gpu.write_many("/many", {name: GpuTensor(array) for name in names})
    assert (first.value.errno, first.value.filename) == (errno.EINVAL, "/many/a/b")
    assert on_gpu.read("/many/good") == bytes(3)
    with pytest.raises(FileNotFoundError):
        on_gpu.write_many("/none", {"a": GpuTensor(array)})


@pytest.mark.parametrize("reached", [True, False])
def test_safetensors_are_saved_from_where_they_are(
    on_gpu: gofs.Volume, monkeypatch: pytest.MonkeyPatch, reached: bool
) -> None:
    if not reached:
        other = refuse(errno.EFAULT, "the buffer is memory of GPU 1, and the volume is on GPU 0")
        calls = {"reaches": lambda *_: False, "move_ranges": other}
        monkeypatch.setattr(on_gpu, "_core", Watched(on_gpu, **calls))
    arrays = {
        "a": numpy.arange(6.0).reshape(2, 3),
        "b": numpy.arange(5, dtype="u1"),
        "c": numpy.arange(700_000, dtype="i4"),
        "d": numpy.zeros((0, 3), dtype="f4"),
        "e": numpy.array(7, dtype="i2"),
    }
    kinds = itertools.cycle([FullTensor, FullArray, lambda array: array])
    given = {name: next(kinds)(array) for name, array in arrays.items()}
    size = save_file(on_gpu, given, "/model.safetensors")
    assert on_gpu.stat("/model.safetensors").st_size == size
    loaded = load_file(on_gpu, "/model.safetensors")
    assert {name: loaded[name].tobytes() for name in arrays} == {
        name: array.tobytes() for name, array in arrays.items()
    }
    copies = [getattr(each, "copies", 0) for each in given.values()]
    assert copies == ([0] * 5 if reached else [1, 1, 0, 1, 1])
    with pytest.raises(ValueError, match="contiguous"):
        save_file(on_gpu, {"a": FullArray(numpy.zeros((4, 4))[:, 1])}, "/model.safetensors")


def test_what_is_not_moved_by_the_gpu_is_refused_with_right_words(on_gpu: gofs.Volume) -> None:
    on_gpu.setxattr("/file", "user.a", FakeTensor(numpy.arange(3, dtype="u1")))
    assert on_gpu.getxattr("/file", "user.a") == bytes([0, 1, 2])
    for value in (GpuTensor(zeros(3)), GpuArray(zeros(3))):
        with pytest.raises(ValueError, match="which this call does not reach") as refused:
            on_gpu.setxattr("/file", "user.a", value)
        assert "mount it" not in str(refused.value)


def test_errors_are_those_of_files(on_gpu: gofs.Volume) -> None:
    with pytest.raises(FileNotFoundError) as missing:
        on_gpu.read_into("/missing", GpuTensor(zeros(10)))
    assert missing.value.filename == "/missing"
    on_gpu.mkdir("/directory")
    with pytest.raises(IsADirectoryError) as directory:
        on_gpu.read_ranges(
            [("/file", 0, GpuTensor(zeros(10))), ("/directory", 0, GpuTensor(zeros(1)))]
        )
    assert directory.value.filename == "/directory"
    with pytest.raises(OSError) as negative:
        on_gpu.read_into("/file", GpuTensor(zeros(10)), offset=-1)
    assert negative.value.errno == errno.EINVAL
    file = on_gpu.open("/file", buffering=0)
    file.close()
    with pytest.raises(ValueError, match="closed"):
        file.pread(GpuTensor(zeros(10)), 0)


def test_what_is_not_as_it_lies_is_refused(on_gpu: gofs.Volume) -> None:
    square = numpy.zeros((8, 8))
    with pytest.raises(ValueError, match="contiguous"):
        on_gpu.read_into("/file", GpuTensor(square[:, 1]))
    with pytest.raises(ValueError, match="contiguous"):
        on_gpu.write("/file", GpuArray(square.T[1:3], strides=square.T[1:3].strides))
    fixed = zeros(10)
    fixed.flags.writeable = False
    with pytest.raises(BufferError, match="read-only"):
        on_gpu.read_into("/file", GpuArray(fixed))
    assert on_gpu.write("/other", GpuArray(fixed)) == 10
    assert on_gpu.read("/file") == DATA


def refuse(code: int, words: str) -> Callable[..., Any]:
    def call(*arguments: object) -> None:
        raise OSError(code, f"read_ranges: {words}", "volume.img")

    return call


def test_a_refused_write_leaves_the_file_as_it_was(
    on_gpu: gofs.Volume, monkeypatch: pytest.MonkeyPatch
) -> None:
    no_memory = GpuArray(zeros(10), data=(0, False))
    with pytest.raises(ValueError, match="is null: use memory of the GPU that has mounted"):
        on_gpu.write("/file", no_memory)
    with pytest.raises(TypeError, match="no stream"):
        on_gpu.write("/file", GpuTensor(zeros(10)), stream="x")
    captured = refuse(errno.EOPNOTSUPP, "the stream is captured for a graph")
    monkeypatch.setattr(on_gpu, "_core", Watched(on_gpu, check_memory=captured))
    with pytest.raises(OSError, match="captured") as raised:
        on_gpu.write("/file", GpuTensor(zeros(10)))
    assert raised.value.errno == errno.EOPNOTSUPP
    with pytest.raises(OSError, match="captured"):
        on_gpu.write("/new", GpuTensor(zeros(10)))
    assert on_gpu.read("/file") == DATA
    assert not on_gpu.exists("/new")


def test_memory_of_another_gpu_is_refused_with_what_to_do(
    on_gpu: gofs.Volume, monkeypatch: pytest.MonkeyPatch
) -> None:
    other = refuse(errno.EFAULT, "the buffer is memory of GPU 1, and the volume is on GPU 0")
    names = ("check_memory", "move_ranges", "begin_ranges", "read_files")
    monkeypatch.setattr(on_gpu, "_core", Watched(on_gpu, **dict.fromkeys(names, other)))
    tensor = GpuTensor(zeros(10))
    with on_gpu.open("/file", "r+b") as file:
        for call in (
            lambda: on_gpu.read_into("/file", tensor),
            lambda: on_gpu.read_into_async("/file", tensor),
            lambda: on_gpu.read_ranges([("/file", 0, tensor)]),
            lambda: on_gpu.read_many_into(["/file"], tensor, [0, 10]),
            lambda: on_gpu.write("/file", tensor),
            lambda: file.readinto(tensor),
            lambda: file.pread(tensor, 0),
            lambda: file.write(tensor),
            lambda: file.pwrite(tensor, 0),
        ):
            with pytest.raises(ValueError, match="^the buffer is memory of GPU 1.*: use memory of"):
                call()
    assert on_gpu.read("/file") == DATA


def test_the_stream_is_the_programs(on_gpu: gofs.Volume, monkeypatch: pytest.MonkeyPatch) -> None:
    streams = []
    real = on_gpu._core

    def move_ranges(ranges: Any, writes: bool, stream: int) -> Any:
        streams.append(stream)
        return real.move_ranges(ranges, writes, stream)

    monkeypatch.setattr(on_gpu, "_core", Watched(on_gpu, move_ranges=move_ranges))
    array = zeros(10)
    on_gpu.read_into("/file", GpuTensor(array, stream=3))
    on_gpu.read_into("/file", GpuTensor(array, stream=3), stream=4)
    on_gpu.read_into("/file", GpuArray(array, stream=2))
    on_gpu.read_into("/file", GpuArray(array))
    for stream in (
        types.SimpleNamespace(cuda_stream=5),
        types.SimpleNamespace(ptr=6),
        types.SimpleNamespace(__cuda_stream__=lambda: (0, 7)),
    ):
        on_gpu.write("/new", GpuTensor(array), stream=stream)
    assert streams == [3, 4, 2, 0, 5, 6, 7]
    with pytest.raises(TypeError, match="no stream"):
        on_gpu.write("/new", GpuTensor(array), stream="x")
    two = [("/file", 0, GpuTensor(array, stream=n)) for n in (1, 2)]
    with pytest.raises(ValueError, match="stream="):
        on_gpu.read_ranges(two)
    assert on_gpu.read_ranges(two, stream=1) == [10, 10]
    # Pinned memory is used by whatever stream comes.
    streams.clear()
    pinned = ("/file", 0, PinnedTensor(array))
    assert on_gpu.read_ranges([pinned, two[1]]) == on_gpu.read_ranges([two[1], pinned]) == [10, 10]
    on_gpu.read_ranges([pinned])
    assert streams == [2, 2, 0]


def test_what_is_not_computed_yet_is_waited_for(on_gpu: gofs.Volume) -> None:
    on_gpu.write("/new", LazyArray(zeros(4), b"abcd"))  # type: ignore[arg-type]
    assert on_gpu.read("/new") == b"abcd"


def test_a_transfer_may_be_awaited(on_gpu: gofs.Volume) -> None:
    array = zeros(1000)
    transfer = on_gpu.read_into_async("/file", GpuTensor(array), offset=299_500)
    assert transfer.result() == 500
    assert transfer.done()
    assert transfer.result() == 500
    assert array.tobytes() == DATA[-500:] + bytes(500)

    async def both() -> list[int]:
        return [
            await on_gpu.read_into_async("/file", GpuTensor(array)),
            await on_gpu.read_into_async("/file", bytearray(7)),
        ]

    assert asyncio.run(both()) == [1000, 7]
    with pytest.raises(FileNotFoundError):
        on_gpu.read_into_async("/missing", GpuTensor(array))
    on_gpu.mkdir("/directory")
    failed = on_gpu.read_into_async("/directory", GpuTensor(array))
    with pytest.raises(IsADirectoryError) as directory:
        failed.result()
    assert directory.value.errno == errno.EISDIR


def test_writes_may_be_awaited_too(on_gpu: gofs.Volume) -> None:
    array = numpy.arange(200, dtype=numpy.uint8)
    transfer = on_gpu.write_async("/new", GpuTensor(array), sync=True, permissions=0o600)
    assert transfer.result() == transfer.result() == 200
    assert transfer.done()
    assert on_gpu.stat("/new").st_mode & 0o777 == 0o600

    async def both() -> list[int]:
        return [
            await on_gpu.write_async("/new", GpuTensor(array[:150])),
            await on_gpu.write_async("/host", b"1234567"),
        ]

    assert asyncio.run(both()) == [150, 7]
    assert (on_gpu.read("/new"), on_gpu.read("/host")) == (array[:150].tobytes(), b"1234567")
    with pytest.raises(ValueError, match="null"):
        on_gpu.write_async("/new", GpuArray(zeros(10), data=(0, False)))
    on_gpu.mkdir("/directory")
    with pytest.raises(IsADirectoryError):
        on_gpu.write_async("/directory", GpuTensor(array))
    assert on_gpu.read("/new") == array[:150].tobytes()


class Begun:
    """A transfer of the binding, which takes a while."""

    def __init__(self, results: list[int]) -> None:
        self._results = results
        self.waits = 0

    def done(self) -> bool:
        return False

    def wait(self) -> list[int]:
        self.waits += 1
        time.sleep(0.02)
        return self._results


def begun_with(
    on_gpu: gofs.Volume, monkeypatch: pytest.MonkeyPatch, results: list[int]
) -> Begun:
    begun = Begun(results)
    calls = {"begin_ranges": lambda *_: begun}
    monkeypatch.setattr(on_gpu, "_core", Watched(on_gpu, **calls))
    return begun


def test_an_event_loop_goes_on_while_what_is_awaited_is_ended(
    on_gpu: gofs.Volume, monkeypatch: pytest.MonkeyPatch
) -> None:
    goes_on = threading.Event()
    begun = begun_with(on_gpu, monkeypatch, [10])
    monkeypatch.setattr(begun, "done", lambda: True)
    monkeypatch.setattr(begun, "wait", lambda: [10] if goes_on.wait(60) else [0])

    async def both() -> int:
        asyncio.get_running_loop().call_later(0.02, goes_on.set)
        return await on_gpu.read_into_async("/file", GpuTensor(zeros(10)))

    assert asyncio.run(both()) == 10


@pytest.mark.filterwarnings("ignore:This process.*is multi-threaded:DeprecationWarning")
def test_a_child_of_fork_does_not_wait_for_a_transfer(
    on_gpu: gofs.Volume, monkeypatch: pytest.MonkeyPatch
) -> None:
    waits, goes_on = threading.Event(), threading.Event()
    begun = begun_with(on_gpu, monkeypatch, [10])

    def wait() -> list[int]:
        waits.set()
        goes_on.wait(60)
        return [10]

    monkeypatch.setattr(begun, "wait", wait)
    transfer = on_gpu.read_into_async("/file", GpuTensor(zeros(10)))
    ended = _transfer.Transfer("/host", 7)

    async def awaited() -> int:
        return await transfer

    def child() -> str:
        with pytest.raises(RuntimeError, match="before fork.*only that process can wait"):
            transfer.result()
        assert transfer.done()
        with pytest.raises(RuntimeError, match="before fork.*only that process can wait"):
            asyncio.run(awaited())
        return str(ended.result())

    with concurrent.futures.ThreadPoolExecutor(1) as pool:
        result = pool.submit(transfer.result)  # which has the transfer's lock
        assert waits.wait(60)
        try:
            assert in_child(child) == "7"
        finally:
            goes_on.set()
        assert result.result() == 10


def test_a_durable_write_that_the_end_of_the_volume_meets_is_durable() -> None:
    closes = True
    core = types.SimpleNamespace(await_closing=lambda: closes)

    class File:
        def sync(self) -> None:
            raise ValueError("I/O operation on closed file")

    _transfer._sync(core, File())  # type: ignore[arg-type]
    closes = False
    with pytest.raises(ValueError, match="closed file"):
        _transfer._sync(core, File())  # type: ignore[arg-type]


def test_a_durable_write_is_made_so_where_the_volume_could_not_be_closed(
    on_gpu: gofs.Volume,
) -> None:
    syncs = []

    class File:
        def sync(self) -> None:
            syncs.append(on_gpu)
            if len(syncs) == 1:
                raise ValueError("the volume is closed: mount it again")

    assert on_gpu._core.await_closing() is False
    _transfer._sync(on_gpu._core, File())  # type: ignore[arg-type]
    assert len(syncs) == 2


def test_threads_wait_for_one_transfer(
    on_gpu: gofs.Volume, monkeypatch: pytest.MonkeyPatch
) -> None:
    tensor = GpuTensor(zeros(10))
    stays = weakref.ref(tensor)
    begun = begun_with(on_gpu, monkeypatch, [7])
    transfer = on_gpu.read_into_async("/file", tensor)
    del tensor
    assert stays() is not None
    with concurrent.futures.ThreadPoolExecutor(4) as pool:
        results = [pool.submit(transfer.result) for _ in range(4)]
        assert [result.result() for result in results] == [7] * 4
    assert begun.waits == 1
    assert stays() is None
    failing = begun_with(on_gpu, monkeypatch, [-errno.EIO])
    transfer = on_gpu.read_into_async("/file", GpuTensor(zeros(10)))
    for _ in range(2):
        with pytest.raises(OSError) as raised:
            transfer.result()
        assert (raised.value.errno, raised.value.filename) == (errno.EIO, "/file")
    assert failing.waits == 1


def test_a_write_that_found_no_room_says_so(
    on_gpu: gofs.Volume, monkeypatch: pytest.MonkeyPatch
) -> None:
    begun_with(on_gpu, monkeypatch, [7])
    with pytest.raises(OSError) as raised:
        on_gpu.write_async("/file", GpuTensor(zeros(10))).result()
    assert raised.value.errno == errno.ENOSPC


def test_a_forgotten_transfer_warns_of_what_failed(
    on_gpu: gofs.Volume, monkeypatch: pytest.MonkeyPatch
) -> None:
    begun = begun_with(on_gpu, monkeypatch, [10])
    on_gpu.read_into_async("/file", GpuTensor(zeros(10)))  # without a warning
    gc.collect()
    assert begun.waits == 1
    begun_with(on_gpu, monkeypatch, [-errno.EIO])
    with pytest.warns(ResourceWarning, match="'/file' that nobody waited for has failed: .*error"):
        on_gpu.read_into_async("/file", GpuTensor(zeros(10)))
        gc.collect()


def test_results_stay_when_the_volume_is_closed(on_gpu: gofs.Volume) -> None:
    transfer = on_gpu.read_into_async("/file", GpuTensor(zeros(1000)))
    written = on_gpu.write_async("/new", GpuTensor(zeros(500)), sync=True)
    on_gpu.close()
    assert (transfer.result(), written.result()) == (1000, 500)
    with pytest.raises(ValueError, match="closed"):
        on_gpu.read_into_async("/file", GpuTensor(zeros(10)))
