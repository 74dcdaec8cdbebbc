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


@pytest.mark.parametrize(
    ("name", "call"),
    [
        ("writable", lambda fs: type(fs)(fs.volume, writable="no", skip_instance_cache=True)),
        ("auto_mkdir", lambda fs: type(fs)(fs.volume, auto_mkdir="no", skip_instance_cache=True)),
        ("detail", lambda fs: fs.ls("/", detail="no")),
        ("detail", lambda fs: list(fs.walk("/", detail="no"))),
        ("topdown", lambda fs: list(fs.walk("/", topdown="no"))),
        ("recursive", lambda fs: fs.rm("/file", recursive="no")),
        ("recursive", lambda fs: fs.cat("/file", recursive="no")),
        ("assume_literal", lambda fs: fs.expand_path("/file", assume_literal="no")),
        ("total", lambda fs: fs.du("/", total="no")),
        ("withdirs", lambda fs: fs.du("/", withdirs="no")),
        ("create_parents", lambda fs: fs.mkdir("/new", create_parents="no")),
        ("exist_ok", lambda fs: fs.makedirs("/new", exist_ok="no")),
        ("truncate", lambda fs: fs.touch("/file", truncate="no")),
    ],
)
def test_texts_are_no_truth_values(
    fs: gofs.fsspec.GofsFileSystem, name: str, call: Callable[[Any], object]
) -> None:
    fs.pipe("/file", b"1")
    with pytest.raises(TypeError, match=f"^{name}: True or False is wanted, not 'no'$"):
        call(fs)
    assert fs.find("/") == ["/file"]
    assert fs.cat("/file") == b"1"
