# SPDX-License-Identifier: Apache-2.0
"""Open files of gofs://, and what fsspec and others ask of them."""

from __future__ import annotations

import errno
import io
import pathlib
import pickle
from typing import Any

import pytest

fsspec = pytest.importorskip("fsspec")

import gofs  # noqa: E402
import gofs.fsspec  # noqa: E402
from watched import Watched  # noqa: E402


@pytest.mark.parametrize("mode", ["rb", "wb", "xb", "ab", "r+b", "w+b"])
def test_files_have_what_fsspec_asks(fs: gofs.fsspec.GofsFileSystem, mode: str) -> None:
    path = "/new" if mode == "xb" else "/file"
    fs.pipe("/file", b"0123456789")
    with fs.open(path, mode) as file:
        assert file.fs is fs
        assert file.path == path
        assert file.size == (0 if mode in ("wb", "xb", "w+b") else 10)
        kinds = (io.BufferedReader, io.BufferedWriter, io.BufferedRandom)
        assert isinstance(file, kinds["+" in mode and 2 or mode != "rb"])
    with fs.transaction:
        assert fs.open("/later", "wb").path == "/later"


def test_blocks_are_read_as_fsspec_cuts_them(fs: gofs.fsspec.GofsFileSystem) -> None:
    fs.pipe("/file", b"one\ntwo\nthree\n")
    assert fs.read_block("/file", 0, 100) == b"one\ntwo\nthree\n"
    assert fs.read_block("/file", 2, 3, delimiter=b"\n") == b"two\n"
    assert fs.read_block("/file", 4, None) == b"two\nthree\n"


def test_progress_has_a_total(fs: gofs.fsspec.GofsFileSystem, tmp_path: pathlib.Path) -> None:
    fs.pipe("/file", b"x" * 1000)
    callback = fsspec.callbacks.Callback()
    fs.get_file("/file", str(tmp_path / "file"), callback=callback)
    assert (callback.size, callback.value) == (1000, 1000)


def test_a_file_is_pickled_at_its_position(image: pathlib.Path) -> None:
    with gofs.mount(image, writable=True, backend="cpu") as volume:
        volume.write("/file", b"0123456789")
        fs = gofs.fsspec.GofsFileSystem(volume)
        for mode in ("wb", "ab", "r+b"):
            with fs.open("/other", "wb"):
                pass
            with fs.open("/other", mode) as file:
                with pytest.raises(TypeError, match="/other: open for writing"):
                    pickle.dumps(file)
    fs = gofs.fsspec.GofsFileSystem(str(image))
    with fs.open("/file", block_size=4) as file:
        file.seek(3)
        with pickle.loads(pickle.dumps(file)) as again:
            assert again.read(2) == b"34"
            assert (again.path, again.size, again.blocksize) == ("/file", 10, 4)
        assert file.read() == b"3456789"
    fs.volume.close()


@pytest.mark.parametrize("block_size", [None, -1, 0, 1, 2, 1 << 20])
def test_any_size_of_blocks_will_do(fs: gofs.fsspec.GofsFileSystem, block_size: Any) -> None:
    with fs.open("/file", "wb", block_size=block_size) as file:
        file.write(b"0123456789")
    with fs.transaction, fs.open("/later", "wb", block_size=block_size) as file:
        file.write(b"0123456789")
    for path in ("/file", "/later"):
        with fs.open(path, block_size=block_size) as file:
            assert file.read() == b"0123456789"


def test_a_transaction_replaces_a_file_as_open_does(fs: gofs.fsspec.GofsFileSystem) -> None:
    fs.pipe("/file", b"old")
    volume = fs.volume
    volume.chmod("/file", 0o640)
    volume.chown("/file", 7, 8)
    volume.symlink("file", "/link")
    with fs.transaction, fs.open("/link", "wb") as file:
        file.write(b"new")
    assert fs.cat("/file") == b"new" and volume.readlink("/link") == "file"
    status = volume.stat("/file")
    assert (status.st_mode & 0o7777, status.st_uid, status.st_gid) == (0o640, 7, 8)
    with pytest.raises(FileExistsError), fs.transaction, fs.open("/link", "xb") as file:
        file.write(b"newer")
    assert fs.cat("/file") == b"new"


def test_a_file_that_cannot_be_written_is_discarded(
    fs: gofs.fsspec.GofsFileSystem, monkeypatch: pytest.MonkeyPatch
) -> None:
    def full(self: gofs.File, data: Any) -> int:
        raise OSError(errno.ENOSPC, "no room")

    file = fs.open("/file", "wb", autocommit=False)
    file.write(b"x")
    monkeypatch.setattr(gofs.File, "write", full)
    file.discard()
    assert fs.ls("/") == []


@pytest.mark.parametrize("trouble", ["directory", "taken", "twice", "no room"])
def test_none_of_the_files_is_there_where_one_cannot_be(
    fs: gofs.fsspec.GofsFileSystem, trouble: str
) -> None:
    fs.pipe("/d/old", b"old")
    with pytest.raises(OSError) as raised, fs.transaction:
        fs.pipe({"/d/old": b"new", "/d/new": b"new"})
        file = fs.open("/d/last", "wb" if trouble in ("directory", "no room") else "xb")
        if trouble == "directory":
            fs.volume.mkdir("/d/last")
        elif trouble == "taken":
            fs.volume.write("/d/last", b"")
        elif trouble == "twice":
            fs.open("/d/last", "xb")
        else:
            file.write(bytes(1 << 19))  # it is still in the buffer
            with pytest.raises(OSError):
                fs.volume.write("/full", bytes(fs.volume.statvfs().f_bfree * 4096))
    wanted = {"directory": errno.EISDIR, "taken": errno.EEXIST, "twice": errno.EEXIST}
    assert raised.value.errno == wanted.get(trouble, errno.ENOSPC)
    assert raised.value.filename == "/d/last"
    assert fs.cat("/d/old") == b"old"
    assert set(fs.volume.listdir("/d")) - {"last"} == {"old"}
    if trouble == "no room":
        fs.rm("/full")
    fs.pipe("/d/after", b"1")  # by no transaction
    assert fs.cat("/d/after") == b"1"


def test_a_transaction_that_fails_between_two_names_leaves_no_others(
    fs: gofs.fsspec.GofsFileSystem, monkeypatch: pytest.MonkeyPatch
) -> None:
    core = fs.volume._core

    def rename(old: str, new: str, flags: int) -> None:
        if new == "/d/b":
            raise OSError(errno.EIO, "the SSD is gone", old, None, new)
        core.rename(old, new, flags)

    monkeypatch.setattr(fs.volume, "_core", Watched(fs.volume, rename=rename))
    with pytest.raises(OSError, match="the SSD is gone: '/d/b'"), fs.transaction:
        fs.pipe({f"/d/{name}": b"1" for name in "abc"})
    assert fs.volume.listdir("/d") == ["a"]
