# SPDX-License-Identifier: Apache-2.0
"""Removing, moving and copying by gofs://, and which files names mean."""

from __future__ import annotations

import pathlib
import shutil
from typing import Any

import pytest

fsspec = pytest.importorskip("fsspec")

import gofs  # noqa: E402
import gofs.fsspec  # noqa: E402


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


def test_rm_takes_each_of_a_glob_or_a_list_once(fs: gofs.fsspec.GofsFileSystem) -> None:
    files = {"/d/x/y": b"1", "/d/x/z/w": b"2", "/d/v": b"3", "/kept/file": b"4"}
    fs.pipe(files)
    fs.volume.symlink("/kept", "/d/x/link")
    with pytest.raises(IsADirectoryError, match="recursive=True"):
        fs.rm(["/d/v", "/d/x", "/kept"])
    assert set(files) <= set(fs.find("/"))  # nothing was removed before that was said
    fs.rm("/d/**", recursive=True)
    assert fs.find("/", withdirs=True) == ["/", "/kept", "/kept/file"]
    fs.pipe(files)
    fs.rm(["/d", "/d/x/y", "/d/x", "/d", "gofs:///d/v"], recursive=True)
    assert fs.find("/") == ["/kept/file"]
    with pytest.raises(FileNotFoundError):
        fs.rm("/none")
    with pytest.raises(FileNotFoundError):
        fs.rm("/none*")
    fs.rm("/**", recursive=True)
    assert fs.ls("/") == []


def test_names_that_look_like_globs_are_names_first(
    fs: gofs.fsspec.GofsFileSystem, tmp_path: pathlib.Path
) -> None:
    fs.pipe({"/a[1].txt": b"literal", "/a1.txt": b"matched", "/d[1]/f?": b"below"})
    assert fs.cat("/a[1].txt") == b"literal"
    assert fs.cat(["/a[1].txt", "/a?.txt"]) == {"/a[1].txt": b"literal", "/a1.txt": b"matched"}
    assert fs.cat(["/a[1].txt", "/none*"]) == {"/a[1].txt": b"literal"}
    assert fs.expand_path("/d[1]", recursive=True) == ["/d[1]", "/d[1]/f?"]
    fs.cp("/a[1].txt", "/copy.txt")
    fs.get("/a[1].txt", str(tmp_path / "copy.txt"))
    assert (fs.cat("/copy.txt"), (tmp_path / "copy.txt").read_bytes()) == (b"literal",) * 2
    fs.mkdir("/into")
    fs.cp("/a[1].txt", "/into")
    fs.get("/a[1].txt", str(tmp_path))
    assert (fs.ls("/into", detail=False), (tmp_path / "a[1].txt").exists()) == (
        ["/into/a[1].txt"],
        True,
    )
    fs.mv("/copy.txt", "/b*")
    fs.mv("/b*", "/moved")
    assert fs.cat("/moved") == b"literal"
    fs.rm("/a[1].txt")
    assert fs.cat("/a[1].txt") == {"/a1.txt": b"matched"}  # there is no such name any more
    fs.rm("/d[1]", recursive=True)
    assert not fs.exists("/d[1]")


@pytest.mark.parametrize("other", ["/file", "gofs:///file", "/linked", "/to_file", "/d/../file"])
def test_a_file_is_not_copied_to_itself(fs: gofs.fsspec.GofsFileSystem, other: str) -> None:
    fs.pipe({"/file": b"contents", "/d/file": b"1"})
    fs.volume.link("/file", "/linked")
    fs.volume.symlink("file", "/to_file")
    for source, target in (("/file", other), (other, "/file")):
        for copy in (fs.cp_file, fs.copy):
            with pytest.raises(shutil.SameFileError, match="are one file"):
                copy(source, target)
    assert fs.cat("/file") == b"contents"


class Place:
    """Where fsspec moves: gofs:// or a folder of the host."""

    def __init__(self, fs: Any, root: str) -> None:
        self.fs = fs
        self.root = root

    def mv(self, source: str, target: str) -> dict[str, bytes]:
        """All there is after a move."""
        for name, data in {"m": b"m", "n": b"n", "dir/x": b"x", "e/f/g": b"g"}.items():
            self.fs.makedirs(self.fs._parent(f"{self.root}/{name}"), exist_ok=True)
            self.fs.pipe_file(f"{self.root}/{name}", data)
        self.fs.mv(self.root + source, self.root + target)
        found = {
            path.removeprefix(self.root): self.fs.cat_file(path) for path in self.fs.find(self.root)
        }
        return found


@pytest.mark.parametrize(
    ("source", "target"),
    [
        ("/m", "/new"),
        ("/m", "/n"),
        ("/m", "/dir"),
        ("/m", "/dir/"),
        ("/m", "/dir/x"),
        ("/m", "/m"),
        ("/e", "/dir"),
        ("/e/", "/dir/"),
        ("/e", "/new"),
        ("/e", "/e"),
        ("/e", "/e/"),
        ("/e/f", "/dir"),
    ],
)
def test_mv_does_what_it_does_on_the_host(
    fs: gofs.fsspec.GofsFileSystem, tmp_path: pathlib.Path, source: str, target: str
) -> None:
    host = Place(fsspec.filesystem("file"), str(tmp_path / "top"))
    assert Place(fs, "/top").mv(source, target) == host.mv(source, target)


def test_mv_takes_globs_and_lists(fs: gofs.fsspec.GofsFileSystem) -> None:
    fs.pipe({"/g/1.txt": b"1", "/g/2.txt": b"2", "/g/h/3": b"3", "/g/4": b"4", "/g/5": b"5"})
    fs.mkdir("/dir")
    fs.mv("/g/*.txt", "/dir/")
    assert fs.find("/dir") == ["/dir/1.txt", "/dir/2.txt"]
    fs.mv(["/g/h", "gofs:///g/4"], "/new/")
    assert fs.find("/new") == ["/new/4", "/new/h/3"]
    fs.mv("/g/*", "/new")
    assert fs.find("/new") == ["/new/4", "/new/5", "/new/h/3"]
    fs.mv(["/new/4", "/new/5"], ["/four", "/fives/5"])
    assert (fs.cat("/four"), fs.cat("/fives/5")) == (b"4", b"5")
    fs.mv("/new/*", "/deep/")
    assert fs.find("/", withdirs=True) == [
        "/",
        "/deep",
        "/deep/h",
        "/deep/h/3",
        "/dir",
        "/dir/1.txt",
        "/dir/2.txt",
        "/fives",
        "/fives/5",
        "/four",
        "/g",
        "/new",
    ]


def test_mv_moves_nothing_where_it_cannot_move_all(fs: gofs.fsspec.GofsFileSystem) -> None:
    files = ["/a/x", "/b/x", "/dir/y"]
    fs.pipe({path: path.encode() for path in files})
    with pytest.raises(ValueError, match="several files would get one name"):
        fs.mv(["/a/x", "/b/x"], "/dir")
    with pytest.raises(OSError, match="cannot be moved into itself"):
        fs.mv("/*", "/dir/")
    with pytest.raises(FileNotFoundError):
        fs.mv(["/a/x", "/none"], "/dir")
    with pytest.raises(FileNotFoundError):
        fs.mv("/none*", "/dir")
    with pytest.raises(ValueError, match="3 paths, and 1 new"):
        fs.mv(files, ["/new"])
    with pytest.raises(ValueError, match="for a list of paths alone"):
        fs.mv("/a/x", ["/new"])
    assert fs.find("/") == files
