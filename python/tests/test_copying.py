# SPDX-License-Identifier: Apache-2.0
"""gofs.copy() in all directions, beside shutil; and copying within a volume."""

from __future__ import annotations

import errno
import io
import os
import pathlib
import random
import shutil
import stat
import subprocess
import sys
from collections.abc import Callable
from typing import Any

import pytest

import gofs
from watched import Watched

Sides = dict[str, Any]


@pytest.fixture(params=["to volume", "from volume", "within", "between", "by server"])
def sides(
    request: pytest.FixtureRequest,
    tmp_path: pathlib.Path,
    volume: gofs.Volume,
    served: Callable[..., Any],
) -> Any:
    """Where a copy comes from and goes to: {"from": (names, place), "to": (names, place)}."""
    host = tmp_path / "host"
    host.mkdir()

    def on_host(path: str) -> str:
        return str(host) + path

    def on(which: gofs.Volume) -> Callable[[str], tuple[gofs.Volume, str]]:
        return lambda path: (which, path)

    kind = request.param
    if kind == "to volume":
        yield {"from": on_host, "to": on(volume)}
    elif kind == "from volume":
        yield {"from": on(volume), "to": on_host}
    elif kind == "within":
        yield {"from": on(volume), "to": on(volume)}
    elif kind == "between":
        gofs.mkfs(tmp_path / "other.img", 128 << 20)
        with gofs.mount(tmp_path / "other.img", writable=True, backend="cpu") as other:
            yield {"from": on(volume), "to": on(other)}
    else:  # two programs' views of one volume
        gofs.mkfs(tmp_path / "other.img", 128 << 20)
        with (
            served(tmp_path / "other.img") as socket,
            gofs.attach(socket) as first,
            gofs.attach(socket) as second,
        ):
            yield {"from": on(first), "to": on(second)}


def names_of(place: Any) -> tuple[Any, str]:
    return place if isinstance(place, tuple) else (os, place)


def write(place: Any, data: bytes, mode: int = 0o644) -> None:
    names, path = names_of(place)
    if names is os:
        pathlib.Path(path).write_bytes(data)
    else:
        names.write(path, data)
    names.chmod(path, mode)
    names.utime(path, ns=(10**18 + 123456789, 11 * 10**17 + 987654321))


def tree_of(place: Any, attributes: bool = True) -> dict[str, Any]:
    """All that is below a place, as what can be compared."""
    names, top = names_of(place)
    found: dict[str, Any] = {}
    left = [""]
    while left:
        path = left.pop()
        here = top + path
        status = names.lstat(here)
        kept = (stat.S_IMODE(status.st_mode), status.st_mtime_ns) if attributes else ()
        if stat.S_ISLNK(status.st_mode):
            found[path] = names.readlink(here)
        elif stat.S_ISDIR(status.st_mode):
            found[path] = ("directory", *kept)
            left += [f"{path}/{name}" for name in names.listdir(here)]
        else:
            data = pathlib.Path(here).read_bytes() if names is os else names.read(here)
            found[path] = (data, *kept)
    return found


def make_tree(place: Callable[[str], Any]) -> None:
    draw = random.Random(4)
    names, top = names_of(place("/tree"))
    for path in ("", "/a", "/a/b", "/empty"):
        names.mkdir(top + path)
    for number in range(40):
        folder = draw.choice(["", "/a", "/a/b"])
        size = draw.choice([0, 1, 5000, 100_000])
        write(place(f"/tree{folder}/{number}"), draw.randbytes(size), draw.choice([0o600, 0o751]))
    write(place("/tree/large"), draw.randbytes((9 << 20) + 77))
    write(place("/tree/über \udcff"), b"a name that is no UTF-8")
    names.symlink("a/b", top + "/link")
    names.symlink("nowhere", top + "/a/dangling")
    for path in ("/empty", "/a/b", "/a", ""):
        names.utime(top + path, ns=(10**18, 10**18 + 5))
    names.chmod(top + "/empty", 0o555)


def test_a_tree_is_copied_whole(sides: Sides) -> None:
    make_tree(sides["from"])
    wanted = tree_of(sides["from"]("/tree"))
    done = gofs.copy(sides["from"]("/tree"), sides["to"]("/copy"), recursive=True)
    assert tree_of(sides["to"]("/copy")) == wanted
    sizes = [len(each[0]) for each in wanted.values() if isinstance(each[0], bytes)]
    assert done == (len(sizes), 4, 2, sum(sizes))
    # Once more, over what is there.
    assert gofs.copy(sides["from"]("/tree"), sides["to"]("/copy"), recursive=True) == done
    assert tree_of(sides["to"]("/copy")) == wanted


def test_a_file_is_copied_to_a_name_or_into_a_directory(sides: Sides) -> None:
    source, target = sides["from"], sides["to"]
    write(source("/file"), b"contents", 0o640)
    assert gofs.copy(source("/file"), target("/copy")) == (1, 0, 0, 8)
    assert tree_of(target("/copy")) == tree_of(source("/file"))
    names, path = names_of(target("/d"))
    names.mkdir(path)
    gofs.copy(source("/file"), target("/d"))
    assert tree_of(target("/d/file")) == tree_of(source("/file"))
    names_of(source("/"))[0].symlink("file", names_of(source("/link"))[1])
    gofs.copy(source("/link"), target("/of_link"))
    assert tree_of(target("/of_link"))[""][0] == b"contents"


@pytest.mark.parametrize("size", [10, 9 << 20])
def test_what_is_there_is_replaced_or_kept(sides: Sides, size: int) -> None:
    source, target = sides["from"], sides["to"]
    write(source("/file"), bytes(size))
    write(target("/copy"), b"\xaa" * (10 << 20))
    with pytest.raises(FileExistsError):
        gofs.copy(source("/file"), target("/copy"), overwrite=False)
    assert tree_of(target("/copy"))[""][0] == b"\xaa" * (10 << 20)
    gofs.copy(source("/file"), target("/new"), overwrite=False)
    gofs.copy(source("/file"), target("/copy"))
    assert tree_of(target("/copy"))[""] == tree_of(target("/new"))[""]
    assert tree_of(target("/copy"))[""][0] == bytes(size)


def test_links_are_replaced_by_links_alone(sides: Sides) -> None:
    source, target = sides["from"], sides["to"]
    names, path = names_of(source("/d"))
    names.mkdir(path)
    names.symlink("new", path + "/link")
    names, path = names_of(target("/copy"))
    names.mkdir(path)
    names.symlink("old", path + "/link")
    with pytest.raises(FileExistsError):
        gofs.copy(source("/d"), target("/copy"), recursive=True, overwrite=False)
    assert names.readlink(path + "/link") == "old"
    gofs.copy(source("/d"), target("/copy"), recursive=True)
    assert names.readlink(path + "/link") == "new"
    names.unlink(path + "/link")
    write(target("/copy/link"), b"a file")
    with pytest.raises(FileExistsError):
        gofs.copy(source("/d"), target("/copy"), recursive=True)


def test_attributes_are_kept_only_where_that_is_wanted(sides: Sides) -> None:
    write(sides["from"]("/file"), b"1", 0o400)
    gofs.copy(sides["from"]("/file"), sides["to"]("/copy"), preserve=False)
    [(_, mode, modified)] = tree_of(sides["to"]("/copy")).values()
    assert mode == 0o666
    assert modified > 10**18 * 1.5


class Told:
    """A Callback as fsspec has it: it has all attributes there are."""

    def __init__(self) -> None:
        self.size: int | None = None
        self.values: list[int] = []

    def set_size(self, size: int) -> None:
        self.size = size

    def relative_update(self, inc: int = 1) -> None:
        self.values.append(inc)

    def __getattr__(self, name: str) -> Any:
        return lambda *_, **__: pytest.fail(name)


class Bar:
    """As tqdm.tqdm."""

    def __init__(self) -> None:
        self.total: int | None = None
        self.n = 0
        self.refreshed = 0

    def refresh(self) -> None:
        self.refreshed += 1

    def update(self, n: int = 1) -> None:
        self.n += n


def test_progress_is_told_in_bytes(sides: Sides) -> None:
    make_tree(sides["from"])
    told, bar = Told(), Bar()
    done = gofs.copy(sides["from"]("/tree"), sides["to"]("/copy"), recursive=True, callback=told)
    assert told.size == sum(told.values) == done.bytes
    assert max(told.values) <= 8 << 20
    gofs.copy(sides["from"]("/tree"), sides["to"]("/copy"), recursive=True, callback=bar)
    assert (bar.total, bar.n, bar.refreshed) == (done.bytes, done.bytes, 1)
    with pytest.raises(TypeError, match="a list is neither a Callback of fsspec nor a tqdm bar"):
        gofs.copy(sides["from"]("/tree/large"), sides["to"]("/other"), callback=[])


def test_callbacks_of_fsspec_and_bars_of_tqdm_are_told(
    volume: gofs.Volume, tmp_path: pathlib.Path
) -> None:
    callbacks = pytest.importorskip("fsspec.callbacks")
    (tmp_path / "file").write_bytes(bytes(20 << 20))
    callback = callbacks.Callback()
    gofs.copy(tmp_path / "file", (volume, "/file"), callback=callback)
    assert callback.size == callback.value == 20 << 20
    tqdm = pytest.importorskip("tqdm")
    shown = io.StringIO()
    with tqdm.tqdm(file=shown, unit="B", unit_scale=True) as bar:
        gofs.copy((volume, "/file"), tmp_path / "back", callback=bar)
        assert bar.n == bar.total == 20 << 20
    with callbacks.TqdmCallback(tqdm_kwargs={"file": shown}) as callback:
        gofs.copy((volume, "/file"), tmp_path / "back", callback=callback)
        assert callback.tqdm.n == callback.tqdm.total == 20 << 20


def test_a_copy_is_durable_where_that_is_wanted(
    image: pathlib.Path, tmp_path: pathlib.Path
) -> None:
    (tmp_path / "file").write_bytes(b"contents")
    program = f"""
import os, gofs
volume = gofs.mount({str(image)!r}, writable=True, backend="cpu")
gofs.copy({str(tmp_path / "file")!r}, (volume, "/kept"), sync=True)
gofs.copy({str(tmp_path / "file")!r}, (volume, "/lost"))
os._exit(0)
"""
    subprocess.run([sys.executable, "-c", program], timeout=60, check=True)
    with gofs.mount(image, writable=True, backend="cpu") as volume:
        assert volume.listdir("/") == ["kept"]
        assert volume.read("/kept") == b"contents"
        volume.warnings()
        gofs.copy((volume, "/kept"), tmp_path / "back", sync=True)
    assert (tmp_path / "back").read_bytes() == b"contents"


def test_a_tree_is_not_copied_into_itself_nor_a_file_to_itself(volume: gofs.Volume) -> None:
    make_tree(lambda path: (volume, path))
    before = tree_of((volume, "/tree"))
    for inside in ("/tree", "/tree/a/new", "/link/new"):
        if not volume.lexists("/link"):
            volume.symlink("tree/a", "/link")
        with pytest.raises(ValueError, match="copied into itself"):
            gofs.copy((volume, "/tree"), (volume, inside), recursive=True)
    volume.link("/tree/large", "/same")
    for other in ("/tree/large", "/tree", "/same"):
        with pytest.raises(shutil.SameFileError):
            gofs.copy((volume, "/tree/large"), (volume, other))
    assert tree_of((volume, "/tree")) == before


def test_a_volume_in_trouble_is_not_asked_for_parents_without_end(
    volume: gofs.Volume, monkeypatch: pytest.MonkeyPatch
) -> None:
    volume.mkdir("/tree")
    volume.write("/file", b"1")
    core = volume._core

    def stat(path: str) -> Any:
        if path not in ("/tree", "/file"):
            raise OSError(errno.ENOTCONN, "no server", path)
        return core.stat(path)

    monkeypatch.setattr(volume, "_core", Watched(volume, stat=stat))
    for call in (
        lambda: volume.makedirs("/new/er", exist_ok=True),
        lambda: gofs.copy((volume, "/tree"), (volume, "/new/er"), recursive=True),
        lambda: gofs.copy((volume, "/tree"), (volume, "/file"), recursive=True),
    ):
        with pytest.raises(OSError, match="no server"):
            call()
    monkeypatch.undo()
    assert sorted(volume.listdir("/")) == ["file", "tree"]
    with pytest.raises(FileExistsError):
        gofs.copy((volume, "/tree"), (volume, "/file"), recursive=True)


def test_what_cannot_be_copied_says_why(volume: gofs.Volume, tmp_path: pathlib.Path) -> None:
    volume.makedirs("/d/e")
    volume.write("/d/a", b"1")
    with pytest.raises(IsADirectoryError, match="recursive=True") as raised:
        gofs.copy((volume, "/d"), tmp_path / "copy")
    assert raised.value.filename == "/d"
    volume.mkfifo("/d/e/fifo")
    with pytest.raises(shutil.SpecialFileError, match="/d/e/fifo: neither"):
        gofs.copy((volume, "/d"), tmp_path / "copy", recursive=True)
    assert not (tmp_path / "copy").exists()
    with pytest.raises(FileNotFoundError):
        gofs.copy((volume, "/none"), tmp_path / "copy")
    with pytest.raises(FileNotFoundError):
        gofs.copy((volume, "/d/a"), tmp_path / "none" / "copy")
    with pytest.raises(ValueError, match=r"give \(volume, path\) for one of them, or use shutil"):
        gofs.copy(tmp_path / "a", tmp_path / "b")
    for wrong in ((volume,), ("/a", "/b"), ()):
        with pytest.raises(TypeError, match=r"a path of the host, or the pair \(volume, path\)"):
            gofs.copy(wrong, tmp_path / "b")  # type: ignore[arg-type]
    large = tmp_path / "large"
    with large.open("wb") as file:
        file.truncate(200 << 20)
    with pytest.raises(OSError, match="No space"):
        gofs.copy(large, (volume, "/large"))


@pytest.mark.parametrize("size", [0, 10, 9 << 20])
def test_a_volume_that_is_read_only_says_what_could_not_be_written(
    image: pathlib.Path, tmp_path: pathlib.Path, size: int
) -> None:
    with gofs.mount(image, writable=True, backend="cpu") as volume:
        volume.makedirs("/d/tree")
    (tmp_path / "tree").mkdir()
    (tmp_path / "tree" / "file").write_bytes(bytes(size))
    with gofs.mount(image, backend="cpu") as volume:
        for source, target, named in (
            ("tree/file", "/copy", "/copy"),
            ("tree/file", "/d", "/d/file"),
            ("tree", "/d/tree", "/d/tree/file"),
            ("tree", "/new", "/new"),
        ):
            with pytest.raises(OSError, match="Read-only|read-only") as raised:
                gofs.copy(tmp_path / source, (volume, target), recursive=True)
            assert (raised.value.errno, raised.value.filename) == (errno.EROFS, named)
        with pytest.raises(OSError, match="Read-only|read-only") as raised:
            volume.write_many("/d", {"b": b"1", "a": b"2"})
        assert (raised.value.errno, raised.value.filename) == (errno.EROFS, "/d/b")


def test_a_range_is_copied_within_the_volume(volume: gofs.Volume) -> None:
    data = bytes(range(256)) * 1000
    volume.write("/a", data)
    with volume.open("/a") as source, volume.open("/b", "w+b") as target:
        assert volume.copy_file_range(source, target, 1000, 5, 100) == 1000
        assert (source.tell(), target.tell()) == (0, 0)
        assert target.read() == bytes(100) + data[5:1005]
        target.truncate(0)
        target.seek(0)
        assert volume.copy_file_range(source, target, 200_000) == 200_000
        assert volume.copy_file_range(source, target, 200_000) == 56_000
        assert volume.copy_file_range(source, target, 200_000) == 0
        assert source.tell() == target.tell() == 256_000
        assert volume.read("/b") == data
        assert volume.copy_file_range(target, target, 10, 0, 256_000) == 10
        assert volume.read("/b") == data + data[:10]
        with pytest.raises(OSError, match="Invalid argument"):
            volume.copy_file_range(target, target, 10, 0, 5)
        with pytest.raises(io.UnsupportedOperation):
            volume.copy_file_range(source, source, 10)
    with pytest.raises(ValueError, match="closed file"):
        volume.copy_file_range(source, target, 10)


def test_a_range_is_not_copied_to_another_volume(
    volume: gofs.Volume, tmp_path: pathlib.Path
) -> None:
    gofs.mkfs(tmp_path / "other.img", 64 << 20)
    volume.write("/a", b"1")
    with gofs.mount(tmp_path / "other.img", writable=True, backend="cpu") as other:
        with volume.open("/a") as source, other.open("/b", "wb") as target:
            with pytest.raises(ValueError, match="of another volume"):
                volume.copy_file_range(source, target, 10)
