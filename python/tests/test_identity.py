# SPDX-License-Identifier: Apache-2.0
"""Files by identity, of volumes that are mounted here and that a server has mounted."""

from __future__ import annotations

import errno
import os
import pathlib
import pickle
from collections.abc import Callable
from typing import Any

import pytest

import gofs


def test_a_file_is_opened_by_its_identity_whatever_its_name_is(image: pathlib.Path) -> None:
    with gofs.mount(image, writable=True) as volume:
        volume.write("/file", b"contents")
        identity = volume.identity("/file")
        assert identity == (volume.info.uuid, volume.stat("/file").st_ino, identity.generation)
        with volume.open("/file") as file:
            assert file.identity() == volume.identity(file) == identity
        volume.rename("/file", "/renamed")
        volume.chmod("/renamed", 0)
        with volume.open_inode(identity, "r+b") as file:
            assert file.read() == b"contents"
            assert (file.name, file.mode) == (f"inode {identity.ino}", "rb+")
        with volume.open_inode(identity, "ab") as file:
            file.write(b" and more")
    kept = pickle.loads(pickle.dumps(identity))
    with gofs.mount(image) as volume:
        with volume.open_inode(kept) as file:
            assert file.read() == b"contents and more"
        with pytest.raises(OSError, match=f"'inode {identity.ino}'") as raised:
            volume.open_inode(identity, "r+b")
        assert raised.value.errno == errno.EROFS
    with gofs.mount(image, uid=7) as volume:
        assert volume.identity("/renamed") == identity
        with pytest.raises(PermissionError) as denied:
            volume.open_inode(identity)
        assert denied.value.errno == errno.EPERM


def test_links_and_directories_have_identities_and_are_no_files(volume: gofs.Volume) -> None:
    volume.mkdir("/folder")
    volume.symlink("folder", "/link")
    folder = volume.identity("/folder")
    link = volume.identity(b"/link", follow_symlinks=False)
    assert volume.identity(pathlib.PurePosixPath("/link")) == folder != link
    with pytest.raises(IsADirectoryError):
        volume.open_inode(folder)
    with pytest.raises(OSError, match=os.strerror(errno.ELOOP)):
        volume.open_inode(link)
    with pytest.raises(FileNotFoundError):
        volume.identity("/none")


def test_what_was_removed_is_stale(volume: gofs.Volume) -> None:
    volume.write("/file", b"contents")
    identity = volume.identity("/file")
    with volume.open("/file") as file:
        volume.unlink("/file")
        with volume.open_inode(file.identity()) as again:  # as long as it is open
            assert again.read() == b"contents"
    others = "00112233-4455-6677-8899-aabbccddeeff"
    root = volume.identity("/")
    for stale in (
        identity,
        identity._replace(ino=0),
        identity._replace(ino=2**64 - 1),
        root._replace(generation=root.generation ^ 1),
        root._replace(uuid=others),
    ):
        with pytest.raises(OSError, match="the file has been removed, or is another volume's") as e:
            volume.open_inode(stale)
        assert e.value.errno == errno.ESTALE
    with pytest.raises(ValueError, match="UUID"):
        volume.open_inode(root._replace(uuid="none"))
    assert volume.warnings() == []


def test_of_a_server_root_opens_by_identity(
    image: pathlib.Path, served: Callable[..., Any]
) -> None:
    with gofs.mount(image, writable=True) as volume:
        volume.chmod("/", 0o777)
    with served(image) as socket, gofs.attach(socket) as volume:
        volume.write("/file", b"contents")
        identity = volume.identity("/file")
        if os.geteuid() != 0:
            with pytest.raises(PermissionError):
                volume.open_inode(identity)
            return
        with gofs.attach(socket) as other, other.open_inode(identity) as file:
            assert file.read() == b"contents"
        volume.unlink("/file")
        with pytest.raises(OSError, match="the file has been removed") as raised:
            volume.open_inode(identity)
        assert raised.value.errno == errno.ESTALE
