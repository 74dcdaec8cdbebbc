# SPDX-License-Identifier: Apache-2.0
"""gofs:// by fsspec: fsspec's own abstract suite, and what it does not ask."""

from __future__ import annotations

import pathlib
from collections.abc import Callable
from typing import Any

import pytest

pytest.importorskip("fsspec")
import fsspec.tests.abstract as abstract  # noqa: E402

import gofs  # noqa: E402
import gofs.fsspec  # noqa: E402


class GofsFixtures(abstract.AbstractFixtures):  # type: ignore[misc]
    @pytest.fixture
    def fs(self, volume: gofs.Volume) -> gofs.fsspec.GofsFileSystem:
        return gofs.fsspec.GofsFileSystem(volume, skip_instance_cache=True)

    @pytest.fixture
    def fs_path(self) -> str:
        return "/top"

    @pytest.fixture
    def fs_join(self) -> Callable[..., str]:
        return lambda *parts: "/".join(parts)


class TestCopy(abstract.AbstractCopyTests, GofsFixtures):  # type: ignore[misc]
    pass


class TestGet(abstract.AbstractGetTests, GofsFixtures):  # type: ignore[misc]
    pass


class TestPut(abstract.AbstractPutTests, GofsFixtures):  # type: ignore[misc]
    pass


class TestPipe(abstract.AbstractPipeTests, GofsFixtures):  # type: ignore[misc]
    pass


class TestOpen(abstract.AbstractOpenTests, GofsFixtures):  # type: ignore[misc]
    pass


@pytest.mark.parametrize(
    ("given", "path"),
    [
        ("gofs:///a/b", "/a/b"),
        ("gofs://name/a/b/", "/a/b"),
        ("gofs://name", "/"),
        ("gofs://", "/"),
        ("/a/b", "/a/b"),
        ("a/b", "/a/b"),
        ("/", "/"),
        ("", "/"),
        (["gofs:///a", "/b"], ["/a", "/b"]),
        (pathlib.PurePosixPath("/a"), "/a"),
    ],
)
def test_paths_are_what_urls_name(given: Any, path: Any) -> None:
    assert gofs.fsspec.GofsFileSystem._strip_protocol(given) == path


def test_a_transaction_shows_all_files_or_none(fs: gofs.fsspec.GofsFileSystem) -> None:
    fs.pipe("/d/old", b"old")
    with fs.transaction:
        for name in ("new", "old"):
            with fs.open(f"/d/{name}", "wb") as file:
                file.write(name.encode() * 2)
        fs.pipe_file("/d/piped", b"piped")
        assert fs.cat("/d/old") == b"old"
        assert not fs.exists("/d/new")
    assert fs.cat(["/d/new", "/d/old", "/d/piped"]) == {
        "/d/new": b"newnew",
        "/d/old": b"oldold",
        "/d/piped": b"piped",
    }
    with pytest.raises(KeyError), fs.transaction:
        with fs.open("/d/old", "wb") as file:
            file.write(b"lost")
        raise KeyError
    assert fs.cat("/d/old") == b"oldold"
    assert sorted(fs.ls("/d", detail=False)) == ["/d/new", "/d/old", "/d/piped"]
    with pytest.raises(FileExistsError), fs.transaction:
        fs.open("/d/old", "xb").close()
    with pytest.raises(ValueError, match="wb or xb"), fs.transaction:
        fs.open("/d/old", "ab")


@pytest.mark.parametrize("start", [None, 0, 3, -3, 20])
@pytest.mark.parametrize("end", [None, 0, 5, -1, 20])
def test_ranges_are_slices(
    fs: gofs.fsspec.GofsFileSystem, start: int | None, end: int | None
) -> None:
    fs.pipe("/file", b"0123456789")
    assert fs.cat_file("/file", start, end) == b"0123456789"[start:end]
    assert fs.cat_ranges(["/file"] * 2, [start, 1], [end, 2]) == [
        b"0123456789"[start:end],
        b"1",
    ]


def test_rm_takes_links_and_not_what_they_lead_to(fs: gofs.fsspec.GofsFileSystem) -> None:
    fs.pipe({"/kept/file": b"1", "/d/file": b"2", "/d/e/file": b"3"})
    fs.volume.symlink("/kept", "/d/link")
    fs.volume.symlink("/kept", "/link")
    with pytest.raises(IsADirectoryError, match="recursive=True"):
        fs.rm("/d")
    fs.rm("/link", recursive=True)
    fs.rm("/d", recursive=True)
    assert fs.find("/") == ["/kept/file"]
    assert fs.ls("/", detail=False) == ["/kept"]


def test_mv_renames(fs: gofs.fsspec.GofsFileSystem) -> None:
    fs.pipe({"/d/e/file": b"1"})
    inode = fs.info("/d/e/file")["ino"]
    fs.mv("/d/e", "/new/place")
    assert fs.info("/new/place/file")["ino"] == inode
    assert not fs.exists("/d/e")


def test_touch_makes_truncates_and_sets_times(fs: gofs.fsspec.GofsFileSystem) -> None:
    fs.touch("/d/file")
    assert fs.cat("/d/file") == b""
    fs.pipe("/d/file", b"1")
    fs.volume.utime("/d/file", (1, 1))
    fs.touch("/d/file", truncate=False)
    assert fs.cat("/d/file") == b"1"
    assert fs.modified("/d/file").year > 2000
    fs.touch("/d/file")
    assert fs.cat("/d/file") == b""


def test_ranges_of_many_files_are_read_by_one_call(
    fs: gofs.fsspec.GofsFileSystem, monkeypatch: pytest.MonkeyPatch
) -> None:
    fs.pipe({"/a": b"0123456789", "/b": b"abcdefghij"})
    calls = []
    read_ranges = fs.volume.read_ranges
    monkeypatch.setattr(
        fs.volume, "read_ranges", lambda ranges: calls.append(1) or read_ranges(ranges)
    )
    paths = ["/a", "gofs:///b", "/a", "/b"]
    assert fs.cat_ranges(paths, [0, 2, -3, 8], [4, 100, None, 3]) == [
        b"0123",
        b"cdefghij",
        b"789",
        b"",
    ]
    assert fs.cat_ranges(paths, 1, 3, max_gap=100) == [b"12", b"bc", b"12", b"bc"]
    assert calls == [1, 1]
    found = fs.cat_ranges(["/a", "/none"], 0, None)
    assert found[0] == b"0123456789"
    assert isinstance(found[1], FileNotFoundError)
    with pytest.raises(FileNotFoundError):
        fs.cat_ranges(["/none"], 0, None, on_error="raise")
    with pytest.raises(ValueError, match="as many starts"):
        fs.cat_ranges(["/a"], [0, 1], [2, 3])
    with pytest.raises(TypeError, match="a list is wanted, not str"):
        fs.cat_ranges("/a", 0, 1)
