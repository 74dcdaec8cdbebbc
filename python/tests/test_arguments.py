# SPDX-License-Identifier: Apache-2.0
"""Arguments of a wrong kind: one sentence says which it is, and what is wanted."""

from __future__ import annotations

import math
import pathlib
from collections.abc import Callable
from typing import Any

import pytest

import gofs
from gofs.safetensors import load_file, save_file
from gofs.torch import BatchLoader, FileDataset

UUID = "00112233-4455-6677-8899-aabbccddeeff"

# A method of a volume that has a file /file, its arguments, and what is said of them.
CALLS: list[tuple[str, tuple[Any, ...], dict[str, Any], type[Exception], str]] = [
    ("chmod", ("/file", "rw"), {}, TypeError, "mode: a whole number such as 0o644 is wanted"),
    ("chmod", ("/file", None), {}, TypeError, "mode: a whole number is wanted, not None"),
    ("chmod", ("/file", 1.5), {}, TypeError, "mode: a whole number is wanted, not 1.5"),
    ("chmod", ("/file", -1), {}, OverflowError, "mode: a number from 0 to 4294967295 is wanted"),
    ("chmod", ("/file", 1 << 40), {}, OverflowError, "mode: a number from 0 to 4294967295"),
    ("chown", ("/file", "root", 0), {}, TypeError, "uid: a whole number is wanted, not 'root'"),
    ("chown", ("/file", 0, -2), {}, OverflowError, "gid: a number from -1 to 4294967295"),
    ("chown", ("/file", 0, 0), {"follow_symlinks": "no"}, TypeError, "follow_symlinks: True or"),
    ("mkdir", ("/new", "rwx"), {}, TypeError, "mode: a whole number such as"),
    ("makedirs", ("/new/er", "rwx"), {}, TypeError, "mode: a whole number such as"),
    ("mknod", ("/new", "x"), {}, TypeError, "mode: a whole number such as"),
    ("mknod", ("/new", 0o600, "x"), {}, TypeError, "device: a whole number"),
    ("mkfifo", ("/new", "x"), {}, TypeError, "mode: a whole number such as"),
    ("open", ("/new", "wb"), {"permissions": "rw"}, TypeError, "permissions: a whole number"),
    ("open", ("/file",), {"buffering": "x"}, TypeError, "buffering: a whole number"),
    ("open", ("/file", 3), {}, TypeError, "mode: one such as 'rb' is wanted, not 3"),
    ("open_inode", ("/file",), {}, TypeError, "identity: what identity() gave is wanted, not '/f"),
    ("open_inode", ((1, 2, 3),), {}, TypeError, "uuid: text is wanted, not 1"),
    ("open_inode", (("a", 1, 2),), {}, ValueError, "uuid: a UUID is wanted, not 'a'"),
    ("open_inode", ((UUID, -1, 3),), {}, OverflowError, "ino: a number from 0 to"),
    ("open_inode", ((UUID, 4, "x"),), {}, TypeError, "generation: a whole number is wanted"),
    ("open_inode", ((UUID, 4, 5), "wb"), {}, ValueError, "invalid mode: 'wb': the file is there"),
    ("identity", ("/file",), {"follow_symlinks": 2}, TypeError, "follow_symlinks: True or"),
    ("write", ("/new", b""), {"permissions": "rw"}, TypeError, "permissions: a whole number"),
    ("write", ("/new", b""), {"sync": 2}, TypeError, "sync: True or False is wanted, not 2"),
    ("write_async", ("/new", b""), {"permissions": "rw"}, TypeError, "permissions: a whole"),
    ("write_many", ("/", {"new": b""}), {"permissions": "rw"}, TypeError, "permissions: a whole"),
    ("access", ("/file", "r"), {}, TypeError, "mode: a whole number"),
    ("rename", ("/file", "/new"), {"flags": "x"}, TypeError, "flags: a whole number"),
    ("setxattr", ("/file", "user.x", b"1", "x"), {}, TypeError, "flags: a whole number"),
    ("listxattr", ("/file",), {"follow_symlinks": 2}, TypeError, "follow_symlinks: True or"),
    ("utime", ("/file", ("x", 1)), {}, TypeError, "times: numbers of seconds are wanted"),
    ("utime", ("/file",), {"ns": (1.5, 2)}, TypeError, "ns: a whole number is wanted, not 1.5"),
    ("utime", ("/file",), {"ns": (1 << 100, 2)}, OverflowError, "ns: a number from"),
    ("utime", ("/file", 5), {}, TypeError, "times: several are wanted, not 5"),
    ("utime", ("/file",), {"ns": (1, 2, 3)}, TypeError, "ns: two are wanted, not (1, 2, 3)"),
    ("write_many", ("/", [b""]), {}, TypeError, "files: a dict of contents by name is wanted"),
    ("read_many", ("/file",), {}, TypeError, "paths: several are wanted, as in ['/file']"),
    ("read_many", (5,), {}, TypeError, "paths: several are wanted, not 5"),
    ("read_many", (b"/file",), {}, TypeError, "paths: several are wanted, as in [b'/file']"),
    ("read_many_into", (["/file"], bytearray(9), 9), {}, TypeError, "offsets: several are"),
    ("read_many_into", (["/file"], bytearray(9), [0, 8.0]), {}, TypeError, "offsets: a whole num"),
    ("read_many_into", (["/file"], bytearray(9), ["0", 8]), {}, TypeError, "offsets: a whole num"),
    ("utime", ("/file", (math.nan, 1)), {}, ValueError, "times: numbers of seconds are wanted"),
    ("utime", ("/file", (1, math.inf)), {}, OverflowError, "times: numbers of seconds are wanted"),
    ("read", ("/file",), {"dtype": "O"}, TypeError, "dtype: 'O' is of references"),
    ("copy_file_range", ("/file", "/file", 1), {}, TypeError, "src: a file that open() has given"),
    ("collect_garbage", (), {"segments_max": "all"}, TypeError, "segments_max: a whole number"),
    ("write_many", ("/", {"new": b""}), {"sync": "no"}, TypeError, "sync: True or False is"),
    ("read_many", (["/file"],), {"packed": "no"}, TypeError, "packed: True or False is"),
    ("read_dir", ("/",), {"packed": "no"}, TypeError, "packed: True or False is"),
    ("walk", ("/",), {"topdown": "no"}, TypeError, "topdown: True or False is"),
    ("walk", ("/",), {"followlinks": "no"}, TypeError, "followlinks: True or False is"),
    ("glob", ("*",), {"recursive": "no"}, TypeError, "recursive: True or False is"),
    ("glob", ("*",), {"include_hidden": "no"}, TypeError, "include_hidden: True or False is"),
    ("makedirs", ("/new/er",), {"exist_ok": "no"}, TypeError, "exist_ok: True or False is"),
    ("symlink", ("a", "/new", "no"), {}, TypeError, "target_is_directory: True or False is"),
    ("stat", ("/file",), {"follow_symlinks": "no"}, TypeError, "follow_symlinks: True or"),
    ("collect_garbage", (), {"emptiest_first": 2}, TypeError, "emptiest_first: True or False"),
]


@pytest.mark.parametrize(
    ("name", "arguments", "named", "kind", "words"), CALLS, ids=[repr(each[:3]) for each in CALLS]
)
def test_calls_of_a_volume_say_what_is_wanted(
    volume: gofs.Volume,
    name: str,
    arguments: tuple[Any, ...],
    named: dict[str, Any],
    kind: type[Exception],
    words: str,
) -> None:
    volume.write("/file", b"contents", permissions=0o640)
    with pytest.raises(kind) as raised:
        getattr(volume, name)(*arguments, **named)
    assert str(raised.value).startswith(words)
    assert "\n" not in str(raised.value)
    assert volume.listdir("/") == ["file"]
    assert volume.stat("/file").st_mode & 0o7777 == 0o640


def test_calls_of_a_file_say_what_is_wanted(volume: gofs.Volume) -> None:
    file: Any
    with volume.open("/file", "w+b") as file:
        for call, kind, words in (
            (lambda: file.seek("x"), TypeError, "offset: a whole number is wanted, not 'x'"),
            (lambda: file.seek(0, "end"), TypeError, "whence: a whole number is wanted"),
            (lambda: file.seek(1 << 70), OverflowError, "offset: a number from"),
            (lambda: file.read("x"), TypeError, "size: a whole number is wanted, not 'x'"),
            (lambda: file.read(1 << 70), OverflowError, "size: a number from"),
            (lambda: file.fallocate("x", 0, 1), TypeError, "mode: a whole number is wanted"),
        ):
            with pytest.raises(kind) as raised:
                call()
            assert str(raised.value).startswith(words)


def test_mounting_and_making_say_what_is_wanted(
    image: pathlib.Path, tmp_path: pathlib.Path
) -> None:
    mount: Any = gofs.mount
    for named, kind, words in (
        ({"backend": 5}, TypeError, "backend: text is wanted, not 5"),
        ({"uid": "root"}, TypeError, "uid: a whole number is wanted, not 'root'"),
        ({"groups": ["x"]}, TypeError, "groups: a whole number is wanted, not 'x'"),
        ({"groups": 5}, TypeError, "groups: several are wanted, not 5"),
        ({"queues": -1}, OverflowError, "queues: a number from 0 to"),
        ({"cache_bytes": "many"}, TypeError, "cache_bytes: a whole number is wanted, not 'many'"),
        ({"cache_bytes": 1.5}, TypeError, "cache_bytes: a whole number is wanted, not 1.5"),
        ({"command_timeout": "x"}, TypeError, "command_timeout: a number of seconds is wanted"),
        ({"lock_timeout": -1}, ValueError, "lock_timeout: seconds from 0 on are wanted"),
        ({"clock_period": math.nan}, ValueError, "clock_period: seconds from 0 on are wanted"),
        ({"writable": "no"}, TypeError, "writable: True or False is wanted, not 'no'"),
        ({"discard": "no"}, TypeError, "discard: True or False is wanted, not 'no'"),
    ):
        with pytest.raises(kind) as raised:
            mount(image, **named)
        assert str(raised.value).startswith(words)
    attach: Any = gofs.attach
    with pytest.raises(ValueError, match="^timeout: seconds from 0 on are wanted, not inf"):
        attach(tmp_path / "socket", timeout=math.inf)
    with pytest.raises(TypeError, match="^timeout: a number of seconds is wanted, not 'x'"):
        attach(tmp_path / "socket", timeout="x")
    with pytest.raises(FileNotFoundError, match="path: the socket of a server is wanted: ''"):
        attach("")
    mkfs: Any = gofs.mkfs
    with pytest.raises(ValueError, match=r"^label: '\\udc80' has what UTF-8 cannot have$"):
        mkfs(image, 64 << 20, label="\udc80")
    for named, words in (
        ({"features": "extra_attr"}, r"features: several are wanted, as in \['extra_attr'\]"),
        ({"label": 5}, "label: text is wanted, not 5"),
        ({"features": [5]}, "features: text is wanted, not 5"),
        ({"overwrite": "no"}, "overwrite: True or False is wanted, not 'no'"),
    ):
        with pytest.raises(TypeError, match=f"^{words}"):
            mkfs(image, 64 << 20, **named)
    with mount(image, backend="cpu") as volume:
        assert volume.listdir("/") == []


def test_texts_are_no_truth_values_beside_volumes(volume: gofs.Volume) -> None:
    volume.write("/file", b"contents")
    no: Any = "no"
    with volume.scandir("/") as entries:
        entry = next(entries)
    calls: list[tuple[str, Callable[[], object]]] = [
        ("follow_symlinks", lambda: entry.is_dir(follow_symlinks=no)),
        ("follow_symlinks", lambda: entry.is_file(follow_symlinks=no)),
        ("follow_symlinks", lambda: entry.stat(follow_symlinks=no)),
        *(
            (name, lambda name=name: gofs.copy((volume, "/file"), (volume, "/new"), **{name: no}))
            for name in ("recursive", "overwrite", "preserve", "sync")
        ),
        ("sync", lambda: save_file(volume, {}, "/new", sync=no)),
        ("recursive", lambda: FileDataset(volume, "/", recursive=no)),
        ("shuffle", lambda: BatchLoader(volume, "/", 1, shuffle=no, framework="np")),
        ("drop_last", lambda: BatchLoader(volume, "/", 1, drop_last=no, framework="np")),
    ]
    for name, call in calls:
        with pytest.raises(TypeError, match=f"^{name}: True or False is wanted, not 'no'$"):
            call()
    assert volume.listdir("/") == ["file"]


def test_what_is_no_volume_is_named(volume: gofs.Volume) -> None:
    tensors: Any = {}
    path: Any = "/new"
    calls: list[tuple[str, Callable[[], object]]] = [
        ("a dict", lambda: save_file(tensors, volume, path)),  # type: ignore[arg-type]
        ("a str", lambda: load_file(path, volume)),  # type: ignore[arg-type]
        ("a str", lambda: FileDataset(path, "/")),
        ("a str", lambda: BatchLoader(path, "/", 1)),
    ]
    for kind, call in calls:
        with pytest.raises(TypeError, match=f"^volume: a gofs.Volume is wanted, not {kind}$"):
            call()
    with pytest.raises(TypeError, match="^tensors: a dict .* is wanted, not a str$"):
        save_file(volume, path, tensors)
    with pytest.raises(TypeError, match="^callback: an int is neither"):
        gofs.copy((volume, "/"), "/none", recursive=True, callback=5)


def test_tensors_without_torch_say_what_is_missing(
    volume: gofs.Volume, monkeypatch: pytest.MonkeyPatch
) -> None:
    volume.write("/file", b"contents")
    monkeypatch.setattr("importlib.util.find_spec", lambda name: None)
    for call in (
        lambda: volume.read_many(["/file"], device="cuda"),
        lambda: BatchLoader(volume, "/", 1, device="cuda"),
    ):
        with pytest.raises(ImportError, match="^device='cuda' is for tensors of torch: pip"):
            call()
    assert volume.read_many(["/file"], device="cpu")[0].tobytes() == b"contents"
