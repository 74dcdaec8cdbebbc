# SPDX-License-Identifier: Apache-2.0
"""What gofs:// says of files, and by how many calls."""

from __future__ import annotations

import datetime
from typing import Any

import pytest

pytest.importorskip("fsspec")

import gofs  # noqa: E402
import gofs.fsspec  # noqa: E402


class Counting:
    """What a volume calls, by name."""

    def __init__(self, volume: gofs.Volume) -> None:
        self._core = volume._core
        self.calls: list[str] = []

    def __getattr__(self, name: str) -> Any:
        if name != "closed":  # which asks the volume nothing
            self.calls.append(name)
        return getattr(self._core, name)


def test_info_is_that_of_the_inode(fs: gofs.fsspec.GofsFileSystem) -> None:
    fs.pipe("/d/file", b"12345")
    fs.volume.symlink("d", "/to_d")
    fs.volume.mkfifo("/fifo")
    found = fs.info("/d/file")
    status = fs.volume.stat("/d/file")
    assert (found["size"], found["type"], found["ino"]) == (5, "file", status.st_ino)
    assert found["mtime"] == status.st_mtime
    now = datetime.datetime.now(tz=datetime.timezone.utc)
    for moment in (fs.modified("/d/file"), fs.created("/d/file")):
        assert abs(now - moment) < datetime.timedelta(minutes=1)
    names = {entry["name"]: (entry["type"], entry["islink"]) for entry in fs.ls("/")}
    assert names == {
        "/d": ("directory", False),
        "/to_d": ("directory", True),
        "/fifo": ("other", False),
    }
    assert fs.info("/to_d")["destination"] == "d"
    assert fs.ls("/d/file") == [found]
    key = fs.ukey("/d/file")
    fs.pipe("/d/file", b"123456")
    assert fs.ukey("/d/file") != key
    assert fs.fsid == fs.volume.info.uuid


@pytest.mark.parametrize("leads_to", ["none", "/d/file/none", "loop"])
def test_links_that_lead_nowhere_are_listed(
    fs: gofs.fsspec.GofsFileSystem, leads_to: str
) -> None:
    fs.pipe("/d/file", b"1")
    fs.volume.symlink(leads_to, "/d/loop")
    assert fs.ls("/d", detail=False) == ["/d/file", "/d/loop"]
    info = fs.info("/d/loop")
    assert fs.ls("/d") == [fs.info("/d/file"), info]
    assert (info["type"], info["size"], info["islink"]) == ("link", 0, True)
    assert info["destination"] == leads_to
    assert info["ino"] == fs.volume.lstat("/d/loop").st_ino
    assert fs.find("/") == ["/d/file", "/d/loop"]
    assert fs.ls("/d/loop") == [info]
    assert fs.du("/") == 1
    assert not fs.exists("/d/loop")
    assert fs.lexists("/d/loop")
    fs.rm("/d/loop")
    assert fs.find("/") == ["/d/file"]


def test_what_is_not_there_is_not_listed(fs: gofs.fsspec.GofsFileSystem) -> None:
    for call in (fs.ls, fs.info):
        with pytest.raises(FileNotFoundError):
            call("/none")
    assert fs.find("/none") == []
    assert list(fs.walk("/none")) == []
    with pytest.raises(FileNotFoundError):
        list(fs.walk("/none", on_error="raise"))
    errors: list[OSError] = []
    assert list(fs.walk("/none", on_error=errors.append)) == []
    assert [error.filename for error in errors] == ["/none"]


def test_links_to_directories_are_not_gone_into(fs: gofs.fsspec.GofsFileSystem) -> None:
    fs.pipe({"/d/e/file": b"1", "/kept/file": b"2"})
    fs.volume.symlink(".", "/d/self")
    fs.volume.symlink("/d", "/d/e/up")
    fs.volume.symlink("/kept", "/d/to_kept")
    assert list(fs.walk("/d")) == [
        ("/d", ["e", "self", "to_kept"], []),
        ("/d/e", ["up"], ["file"]),
    ]
    assert fs.find("/d") == ["/d/e/file"]
    assert fs.find("/d/to_kept") == ["/d/to_kept/file"]
    assert fs.glob("/d/**") == ["/d", "/d/e", "/d/e/file", "/d/e/up", "/d/self", "/d/to_kept"]


def test_a_walk_is_that_of_fsspec(fs: gofs.fsspec.GofsFileSystem) -> None:
    fs.pipe({"/a/b/c/1": b"1", "/a/b/2": b"2", "/a/d/3": b"3", "/a/4": b"4"})
    base = super(gofs.fsspec.GofsFileSystem, fs)
    for top in ("/", "/a", "/a/4", "gofs:///a/b/"):
        for topdown in (True, False):
            for maxdepth in (None, 1, 2):
                for detail in (True, False):
                    options = {"topdown": topdown, "maxdepth": maxdepth, "detail": detail}
                    assert list(fs.walk(top, **options)) == list(base.walk(top, **options))
    seen = []
    for here, folders, _ in fs.walk("/a"):
        seen.append(here)
        folders[:] = [name for name in folders if name != "b"]
    assert seen == ["/a", "/a/d"]
    with pytest.raises(ValueError, match="at least 1"):
        list(fs.walk("/a", maxdepth=0))


def test_a_listing_is_one_batch(fs: gofs.fsspec.GofsFileSystem) -> None:
    fs.volume.mkdir("/d")
    fs.volume.write_many("/d", {f"{number:03}": b"1" for number in range(100)})
    fs.volume.mkdir("/d/below")
    fs.volume.write_many("/d/below", {f"{number:03}": b"1" for number in range(50)})
    core = fs.volume._core
    for call, folders, entries in (
        (lambda: fs.ls("/d"), 1, 101),
        (lambda: list(fs.walk("/d")), 2, 151),
        (lambda: fs.find("/d", detail=True), 2, 151),
        (lambda: fs.du("/d"), 2, 151),
    ):
        before = core.statistics().calls["stat"].succeeded
        fs.volume._core = counting = Counting(fs.volume)  # type: ignore[assignment]
        call()
        fs.volume._core = core
        assert core.statistics().calls["stat"].succeeded - before == entries
        assert counting.calls.count("stat_many") == folders
        assert set(counting.calls) == {"open", "stat_many"}
        assert len(counting.calls) == 2 * folders


def test_info_is_one_stat(fs: gofs.fsspec.GofsFileSystem) -> None:
    fs.pipe("/file", b"1")
    before = fs.volume.statistics().calls["stat"].succeeded
    fs.info("/file")
    assert fs.volume.statistics().calls["stat"].succeeded - before == 1


def test_du_is_that_of_fsspec(fs: gofs.fsspec.GofsFileSystem) -> None:
    fs.pipe({"/a/b/1": b"1", "/a/22": b"22", "/a/c/333": b"333"})
    base = super(gofs.fsspec.GofsFileSystem, fs)
    for top in ("/", "/a", "gofs:///a/22", "/none"):
        for total in (True, False):
            for withdirs in (True, False):
                options = {"total": total, "withdirs": withdirs, "maxdepth": 2}
                assert fs.du(top, **options) == base.du(top, **options)
    assert fs.du("/") == 6


def test_sizes_are_one_batch(fs: gofs.fsspec.GofsFileSystem) -> None:
    fs.pipe({"/a": b"1", "/b": b"22"})
    core = fs.volume._core
    fs.volume._core = counting = Counting(fs.volume)  # type: ignore[assignment]
    assert fs.sizes(["/a", "gofs:///b"]) == [1, 2]
    assert len(counting.calls) == 1
    fs.volume._core = core
    with pytest.raises(FileNotFoundError):
        fs.sizes(["/a", "/none"])
