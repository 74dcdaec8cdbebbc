# SPDX-License-Identifier: Apache-2.0
"""Files that are replaced as a whole: what of the old one stays."""

from __future__ import annotations

import errno
import pathlib

import pytest

import gofs
from conftest import IMAGE_BYTES
from gofs._replacing import is_pending, pending_name, replacing


def replace(volume: gofs.Volume, path: str, data: bytes, **options: int) -> None:
    with replacing(volume, path, sync=True, **options) as file:
        file.write(data)


@pytest.mark.parametrize(
    "name", ["a" * 255, "ä" * 127, "漢" * 85, "a" + "漢" * 84, "😀" * 63, "\udcff" * 255]
)
def test_names_of_all_lengths_are_replaced(volume: gofs.Volume, name: str) -> None:
    for data in (b"1", b"2"):
        replace(volume, f"/{name}", data)
        assert volume.read(f"/{name}") == data
    assert volume.listdir("/") == [name]
    assert is_pending(pending_name(f"/{name}").removeprefix("/"), name)
    assert not is_pending(name, name)


def test_permissions_and_owner_stay(volume: gofs.Volume) -> None:
    replace(volume, "/file", b"1", permissions=0o640)
    assert volume.stat("/file").st_mode & 0o7777 == 0o640
    for mode in (0o600, 0o755, 0o000, 0o222):
        volume.chmod("/file", mode)
        volume.chown("/file", 7, 8)
        replace(volume, "/file", b"2")
        status = volume.stat("/file")
        assert (status.st_mode & 0o7777, status.st_uid, status.st_gid) == (mode, 7, 8)
    volume.chmod("/file", 0o4755)  # what is written to a file is not for its owner to answer for
    replace(volume, "/file", b"3")
    assert volume.stat("/file").st_mode & 0o7777 == 0o755
    replace(volume, "/file", b"4", permissions=0o600)
    assert volume.stat("/file").st_mode & 0o7777 == 0o600


def test_nobody_else_reads_the_new_file_before_it_is_complete(volume: gofs.Volume) -> None:
    volume.write("/file", b"secret", permissions=0o600)
    with replacing(volume, "/file", sync=False) as file:
        file.write(b"another one")
        modes = [volume.stat(f"/{name}").st_mode & 0o777 for name in volume.listdir("/")]
        assert modes == [0o600, 0o600]


def test_who_may_not_give_a_file_away_owns_it(image: pathlib.Path) -> None:
    with gofs.mount(image, writable=True, backend="cpu") as volume:
        volume.mkdir("/d")
        volume.chmod("/d", 0o777)
        volume.write("/d/file", b"1", permissions=0o640)
    with gofs.mount(image, writable=True, backend="cpu", uid=5, gid=6) as volume:
        replace(volume, "/d/file", b"2")
        status = volume.stat("/d/file")
        assert (status.st_mode & 0o777, status.st_uid, status.st_gid) == (0o640, 5, 6)


def test_links_are_followed(volume: gofs.Volume) -> None:
    volume.mkdir("/a")
    volume.mkdir("/a/b")
    volume.write("/a/file", b"1")
    links = {"/one": "a/file", "/a/b/two": "../../one", "/three": "/a/b/two", "/new": "a/b/made"}
    for path, target in links.items():
        volume.symlink(target, path)
    for number, path in enumerate(["/one", "/a/b/two", "/three"]):
        replace(volume, path, b"%d" % number)
        assert volume.read("/a/file") == b"%d" % number
    replace(volume, "/new", b"made")
    assert volume.read("/a/b/made") == b"made"
    assert {path: volume.readlink(path) for path in links} == links
    assert sorted(volume.listdir("/a/b")) == ["made", "two"]
    volume.symlink("loop", "/loop")
    with pytest.raises(OSError) as raised:
        replace(volume, "/loop", b"")
    assert (raised.value.errno, raised.value.filename) == (errno.ELOOP, "/loop")


def test_what_fails_leaves_nothing(volume: gofs.Volume) -> None:
    volume.write("/file", b"old")
    with pytest.raises(KeyError), replacing(volume, "/file", sync=False) as file:
        file.write(b"new")
        raise KeyError
    volume.mkdir("/folder")
    with pytest.raises(IsADirectoryError) as directory:
        replace(volume, "/folder", b"new")
    with pytest.raises(FileNotFoundError) as missing:
        replace(volume, "/none/file", b"new")
    with pytest.raises(OSError) as full, replacing(volume, "/full", sync=False) as file:
        file.write(bytes(IMAGE_BYTES))
    assert full.value.errno == errno.ENOSPC
    # By the names that the caller knows.
    for raised, path in ((directory, "/folder"), (missing, "/none/file"), (full, "/full")):
        assert (raised.value.filename, raised.value.filename2) == (path, None)
    assert sorted(volume.listdir("/")) == ["file", "folder"]
    assert volume.read("/file") == b"old"
