# SPDX-License-Identifier: Apache-2.0
"""What gofs:// reads of many files."""

from __future__ import annotations

from typing import Any

import pytest

pytest.importorskip("fsspec")

import gofs  # noqa: E402
import gofs.fsspec  # noqa: E402


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


@pytest.fixture
def batches(fs: gofs.fsspec.GofsFileSystem, monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """How many ranges each call of read_ranges() has got."""
    calls: list[int] = []
    read_ranges = fs.volume.read_ranges

    def counted(ranges: Any) -> list[int]:
        wanted = list(ranges)
        calls.append(len(wanted))
        return read_ranges(wanted)

    monkeypatch.setattr(fs.volume, "read_ranges", counted)
    return calls


def test_many_files_are_read_by_one_batch(
    fs: gofs.fsspec.GofsFileSystem, batches: list[int]
) -> None:
    files = {f"/d/{number}": b"%d" % number * 1000 for number in range(20)}
    fs.pipe(files)
    before = fs.volume.statistics().calls["stat"].succeeded
    assert fs.cat([*files, "gofs:///d/1"]) == files
    assert fs.volume.statistics().calls["stat"].succeeded - before == len(files)
    assert fs.cat("/d/*") == files
    assert batches == [20, 20]
    assert fs.cat(["/d/3"]) == {"/d/3": b"3" * 1000}
    assert fs.cat(["/d/3", "/d/4"], start=-2) == {"/d/3": b"33", "/d/4": b"44"}
    assert batches == [20, 20, 1, 2]
    assert fs.cat("/d/3", start=998) == b"33"
    assert len(batches) == 4
    mapper = fs.get_mapper("/d")
    assert mapper.getitems(["1", "2", "none"], on_error="omit") == {
        "1": b"1" * 1000,
        "2": b"2" * 1000,
    }
    assert batches[4:] == [2]


def test_errors_are_those_of_each_path(
    fs: gofs.fsspec.GofsFileSystem, batches: list[int]
) -> None:
    fs.pipe({"/d/a": b"1", "/d/b": b"2", "/d/e/file": b"3"})
    paths = ["/d/a", "/d/none", "/d/e", "/d/b"]
    found = fs.cat(paths, on_error="return")
    assert (found["/d/a"], found["/d/b"]) == (b"1", b"2")
    assert isinstance(found["/d/none"], FileNotFoundError)
    assert isinstance(found["/d/e"], IsADirectoryError)
    assert found["/d/none"].filename == "/d/none"
    assert fs.cat(paths, on_error="omit") == {"/d/a": b"1", "/d/b": b"2"}
    with pytest.raises(IsADirectoryError):
        fs.cat(paths)
    with pytest.raises(FileNotFoundError):
        fs.cat("/d/none", on_error="return")
    listed = fs.cat_ranges(paths, 0, 1)
    assert [type(each) for each in listed] == [bytes, FileNotFoundError, IsADirectoryError, bytes]
    with pytest.raises(FileNotFoundError):
        fs.cat_ranges(paths, 0, 1, on_error="raise")
    assert batches == [2] * 5


def test_files_that_fail_only_when_they_are_read_do_not_take_others_along(
    fs: gofs.fsspec.GofsFileSystem, monkeypatch: pytest.MonkeyPatch
) -> None:
    fs.pipe({"/a": b"1", "/b": b"2", "/c": b"3"})
    stat_many = fs.volume._core.stat_many

    class Late:
        """A core of which files are removed as soon as they have been looked at."""

        def __init__(self, core: Any) -> None:
            self._core = core

        def stat_many(self, paths: list[str]) -> list[Any]:
            stats = stat_many(paths)
            fs.volume.unlink("/b")
            return list(stats)

        def __getattr__(self, name: str) -> Any:
            return getattr(self._core, name)

    monkeypatch.setattr(fs.volume, "_core", Late(fs.volume._core))
    found = fs.cat(["/a", "/b", "/c"], on_error="return")
    assert (found["/a"], found["/c"]) == (b"1", b"3")
    assert isinstance(found["/b"], FileNotFoundError)
