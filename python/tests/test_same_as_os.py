# SPDX-License-Identifier: Apache-2.0
"""The same calls on a volume and on a directory of the host: results, errors and what is left."""

from __future__ import annotations

import errno
import itertools
import os
import pathlib
import random
import stat
import time
from collections.abc import Callable
from typing import Any

import pytest

import gofs
from outcomes import outcome

SEEDS = range(12)
CALLS = 250


class Pair:
    """A volume, and a directory that is to answer the same."""

    def __init__(self, volume: gofs.Volume, root: pathlib.Path) -> None:
        self.volume = volume
        self.root = str(root)

    def host(self, path: str) -> str:
        return self.root + path

    def both(
        self,
        name: str,
        *paths: str,
        rest: tuple[Any, ...] = (),
        shown: Callable[[Any], Any] = lambda value: value,
        **options: Any,
    ) -> tuple[Any, ...]:
        """Makes the call of this name with both, and returns what they agree on."""
        ours = getattr(self.volume, name)
        theirs = getattr(os, name, None) or getattr(os.path, name)
        expected = outcome(
            lambda: shown(theirs(*map(self.host, paths), *rest, **options)), self.root
        )
        found = outcome(lambda: shown(ours(*paths, *rest, **options)))
        if name == "utime":
            found = found[: len(expected)]  # of which `os` names no file in errors
        assert found == expected, f"{name}{paths}{rest}{options}"
        return found

    def write(self, path: str, data: bytes) -> None:
        def on_host() -> int:
            with open(self.host(path), "wb", buffering=0) as file:
                return file.write(data)

        # Of an open() that fails, `os` names the file as well.
        assert outcome(lambda: self.volume.write(path, data)) == outcome(on_host, self.root)

    def read(self, path: str) -> None:
        def on_host() -> bytes:
            descriptor = os.open(self.host(path), os.O_RDONLY)
            try:
                return os.pread(descriptor, 1 << 20, 0)
            except OSError as error:
                error.filename = self.host(path)  # a descriptor has no name there
                raise
            finally:
                os.close(descriptor)

        assert outcome(lambda: self.volume.read(path)) == outcome(on_host, self.root)

    def symlink(self, target: str, path: str) -> None:
        def on_host() -> None:
            os.symlink(target, self.host(path))

        assert outcome(lambda: self.volume.symlink(target, path)) == outcome(on_host, self.root)

    def compare_trees(self) -> None:
        """All that is below both roots, with what each file is."""
        ours = sorted(
            (here, sorted(folders), sorted(files)) for here, folders, files in self.volume.walk("/")
        )
        theirs = sorted(
            (here.removeprefix(self.root) or "/", sorted(folders), sorted(files))
            for here, folders, files in os.walk(self.root)
        )
        assert ours == theirs
        for here, folders, files in ours:
            for name in folders + files:
                path = here.rstrip("/") + "/" + name
                self.both("lstat", path, shown=what_it_is)
                self.both("stat", path, shown=what_it_is)
                self.both("readlink", path)
                if stat.S_ISREG(self.volume.lstat(path).st_mode):
                    self.read(path)


def what_it_is(found: os.stat_result) -> tuple[int, ...]:
    """What is the same on every file system."""
    kind = stat.S_IFMT(found.st_mode)
    size = found.st_size if kind != stat.S_IFDIR else -1
    links = found.st_nlink if kind != stat.S_IFDIR else -1
    return (found.st_mode, links, found.st_uid, found.st_gid, size)


@pytest.fixture
def pair(volume: gofs.Volume, tmp_path: pathlib.Path) -> Pair:
    root = tmp_path / "host"
    root.mkdir()
    root.chmod(0o755)
    return Pair(volume, root)


def random_call(pair: Pair, choice: random.Random) -> None:
    def path() -> str:
        names = choice.choices(("a", "b", "c", "lnk", "."), k=choice.choice((1, 1, 2, 2, 3)))
        return "/" + "/".join(names) + choice.choice(("", "", "", "", "/"))

    def data() -> bytes:
        return choice.randbytes(choice.choice((0, 1, 100, 4096, 5000, 70000)))

    calls: list[Callable[[], object]] = [
        lambda: pair.both("mkdir", path(), rest=(choice.choice((0o777, 0o750)),)),
        lambda: pair.both("mkdir", path()),
        lambda: pair.both("makedirs", path(), exist_ok=choice.random() < 0.5),
        lambda: pair.both("rmdir", path()),
        lambda: pair.both("unlink", path()),
        lambda: pair.both("remove", path()),
        lambda: pair.both("rename", path(), path()),
        lambda: pair.both("replace", path(), path()),
        lambda: pair.both("link", path(), path()),
        lambda: pair.symlink(choice.choice(("a", "b/c", "a/../b", "none", "lnk", ".")), path()),
        lambda: pair.both("readlink", path()),
        lambda: pair.both("listdir", path(), shown=sorted),
        lambda: pair.both("stat", path(), shown=what_it_is),
        lambda: pair.both("lstat", path(), shown=what_it_is),
        lambda: pair.both("exists", path()),
        lambda: pair.both("lexists", path()),
        lambda: pair.both("isdir", path()),
        lambda: pair.both("isfile", path()),
        lambda: pair.both("islink", path()),
        lambda: pair.both("access", path(), rest=(choice.randrange(8),)),
        lambda: pair.both("chmod", path(), rest=(choice.choice((0o644, 0o755, 0o600)),)),
        lambda: pair.both("truncate", path(), rest=(choice.choice((0, 1, 5000, 100000, -1)),)),
        lambda: pair.both("utime", path(), ns=(choice.randrange(2**60), choice.randrange(2**60))),
        lambda: pair.write(path(), data()),
        lambda: pair.write(path(), data()),
        lambda: pair.read(path()),
    ]
    choice.choice(calls)()


@pytest.mark.parametrize("seed", SEEDS)
def test_random_calls_do_the_same(pair: Pair, seed: int) -> None:
    choice = random.Random(seed)
    for _ in range(CALLS):
        random_call(pair, choice)
    pair.compare_trees()


@pytest.mark.parametrize("seed", SEEDS)
def test_parents_are_made_and_removed_as_by_os(pair: Pair, seed: int) -> None:
    choice = random.Random(seed)
    pair.write("/kept", b"1")  # or the host's root would go as well

    def path() -> str:
        names = choice.choices(("a", "b", "c"), k=choice.choice((1, 2, 3, 4)))
        return "/" + "/".join(names) + choice.choice(("", "", "", "/", "/."))

    for _ in range(60):
        pair.both("makedirs", path(), exist_ok=True)
        pair.both("removedirs", path())
        pair.both("renames", path(), path())
        if choice.random() < 0.2:
            pair.write(path(), b"1")
    pair.compare_trees()


REFUSING = ("stat", "lstat", "unlink", "rmdir", "readlink", "listdir")
REFUSED = ("/none", "/none/x", "/file/x", "/file", "/folder", "/dangling", "/loop", "/loop/x", "/")
# A root has no name that could be removed, and the host's has one.
REFUSALS = set(itertools.product(REFUSING, REFUSED)) - {("unlink", "/"), ("rmdir", "/")}


@pytest.mark.parametrize(("call", "path"), sorted(REFUSALS))
def test_each_refusal_is_that_of_os(pair: Pair, call: str, path: str) -> None:
    pair.write("/file", b"1")
    pair.both("mkdir", "/folder")
    pair.both("mkdir", "/folder/full")
    pair.symlink("nowhere", "/dangling")
    pair.symlink("loop", "/loop")
    shown = what_it_is if call.endswith("stat") and path != "/" else lambda value: type(value)
    pair.both(call, path, shown=shown)


@pytest.mark.parametrize("follow", [True, False])
def test_times_are_those_that_were_given(pair: Pair, follow: bool) -> None:
    pair.write("/file", b"1")
    pair.symlink("file", "/link")

    def times(found: os.stat_result) -> tuple[float, ...]:
        return (
            *(found.st_atime, found.st_mtime, found.st_atime_ns, found.st_mtime_ns),
            *found[7:9],
        )

    for seconds in [(0, 1.5), (1e9 + 0.123456789, 2**31 + 0.5), (-1.25, 5)]:
        pair.both("utime", "/link", rest=(seconds,), follow_symlinks=follow)
        pair.both("stat", "/file", shown=lambda found: times(found) if follow else None)
        pair.both("lstat", "/link", shown=lambda found: None if follow else times(found))
    pair.both("utime", "/none", rest=((0, 0),))
    pair.both("utime", "/file", rest=((0, 0),), ns=(1, 1))


def test_now_is_the_time_without_one(volume: gofs.Volume) -> None:
    volume.write("/file", b"1")
    volume.utime("/file", (1, 1))
    volume.utime("/file")
    assert abs(volume.stat("/file").st_mtime - time.time()) < 60


@pytest.mark.skipif(os.geteuid() != 0, reason="only root may give files away")
def test_owners_are_those_that_were_given(pair: Pair) -> None:
    pair.write("/file", b"1")
    pair.symlink("file", "/link")
    for call in ("chown", "lchown"):
        for ids in [(1000, 1001), (-1, 7), (8, -1), (-1, -1)]:
            pair.both(call, "/link", rest=ids)
            pair.both("stat", "/link", shown=what_it_is)
            pair.both("lstat", "/link", shown=what_it_is)


def test_devices_and_others_have_their_types_and_numbers(pair: Pair) -> None:
    kinds = [(stat.S_IFIFO, 0), (stat.S_IFSOCK, 0), (stat.S_IFREG, 0)]
    if os.geteuid() == 0:
        kinds += [(stat.S_IFCHR, os.makedev(1, 3)), (stat.S_IFBLK, os.makedev(250, 70000))]
    for kind, device in kinds:
        path = f"/{kind:o}"
        pair.both("mknod", path, rest=(kind | 0o640, device))
        pair.both("lstat", path, shown=lambda found: (found.st_mode, found.st_rdev))


def test_extended_attributes_are_those_of_linux(pair: Pair) -> None:
    pair.write("/file", b"1")
    supported = outcome(lambda: os.setxattr(pair.host("/file"), "user.probe", b""))
    if supported[0] == "error":
        pytest.skip("the host's directory has no extended attributes")
    pair.volume.setxattr("/file", "user.probe", b"")
    long = bytes(range(256)) * 8
    for name, value, flags in [
        ("user.colour", b"blue", os.XATTR_REPLACE),
        ("user.colour", b"blue", os.XATTR_CREATE),
        ("user.colour", b"red", os.XATTR_CREATE),
        ("user.colour", bytearray(b"green"), 0),
        ("user.long", long, 0),
        ("nothing", b"1", 0),
        (b"user.bytes", b"1", 0),
    ]:
        pair.both("setxattr", "/file", rest=(name, value, flags))
        pair.both("getxattr", "/file", rest=(name,))
    pair.both("listxattr", "/file", shown=sorted)
    pair.both("removexattr", "/file", rest=("user.colour",))
    pair.both("removexattr", "/file", rest=("user.colour",))
    pair.both("getxattr", "/file", rest=("user.colour",))
    pair.both("setxattr", "/none", rest=("user.colour", b""))
    pair.both("listxattr", "/file", shown=sorted)


ODD_NAMES = [
    b"\xff\xfe",
    "\N{SNOWMAN}".encode(),
    b"e\xcc\x81",
    b"new\nline",
    b" ",
    b"-rf",
    b"*?[",
    b"\x01",
    b"x" * 255,
    b"...",
    "\N{PILE OF POO}".encode() * 63,
]


@pytest.mark.parametrize("name", ODD_NAMES, ids=repr)
def test_odd_names_come_back_as_they_were(pair: Pair, name: bytes) -> None:
    text = os.fsdecode(name)
    pair.both("mkdir", "/d")
    pair.write("/d/" + text, b"odd")
    pair.both("listdir", "/d")
    assert pair.volume.listdir(b"/d") == [name]
    assert pair.volume.read(b"/d/" + name) == b"odd"
    assert pair.volume.read(pathlib.PurePosixPath("/d", text)) == b"odd"
    pair.both("rename", "/d/" + text, "/d/plain")
    pair.symlink(text, "/d/link")
    pair.both("readlink", "/d/link")
    assert pair.volume.readlink(b"/d/link") == name


@pytest.mark.parametrize("path", ["/" + "x" * 256, "/" + "y/" * 2500, "", "/nul\0", 5, None, 1.5])
def test_what_is_no_path_is_refused_as_by_os(pair: Pair, path: Any) -> None:
    def host(given: Any) -> Any:
        return pair.host(given) if isinstance(given, str) and given else given

    if isinstance(path, int) or path is None:
        pytest.raises(TypeError, pair.volume.stat, path)  # to `os` these are descriptors
        return
    ours = outcome(lambda: pair.volume.stat(path))
    assert ours == outcome(lambda: os.stat(host(path)), pair.root)
    assert ours[0] == "error"


@pytest.mark.parametrize("call", ["exists", "lexists", "isdir", "isfile", "islink"])
def test_what_no_file_can_be_called_is_not_there(pair: Pair, call: str) -> None:
    for path in ("/nul\0", "/" + "x" * 256, "/\ud800"):
        pair.both(call, path)
    assert not getattr(pair.volume, call)(b"/nul\0")
    pair.volume.close()
    for path in ("/", "/nul\0"):
        with pytest.raises(ValueError, match="the volume is closed|null byte"):
            getattr(pair.volume, call)(path)


@pytest.mark.parametrize("given", ["/none", b"/none", pathlib.PurePosixPath("/none")], ids=repr)
def test_errors_have_number_words_and_name(volume: gofs.Volume, given: Any) -> None:
    with pytest.raises(FileNotFoundError) as ours:
        volume.stat(given)
    with pytest.raises(FileNotFoundError) as theirs:
        os.stat(given)
    assert ours.value.args == theirs.value.args
    assert ours.value.filename == theirs.value.filename
    assert str(ours.value) == str(theirs.value)


def test_an_error_about_two_names_has_both(volume: gofs.Volume) -> None:
    with pytest.raises(FileNotFoundError) as ours:
        volume.rename("/none", b"/other")
    with pytest.raises(FileNotFoundError) as theirs:
        os.rename("/none", b"/other")
    assert str(ours.value) == str(theirs.value)
    assert (ours.value.filename, ours.value.filename2) == ("/none", b"/other")


def test_rename_has_the_flags_of_linux(volume: gofs.Volume) -> None:
    volume.write("/a", b"a")
    volume.write("/b", b"b")
    with pytest.raises(FileExistsError):
        volume.rename("/a", "/b", flags=gofs.RENAME_NOREPLACE)
    volume.rename("/a", "/b", flags=gofs.RENAME_EXCHANGE)
    assert (volume.read("/a"), volume.read("/b")) == (b"b", b"a")


def test_entries_are_those_of_scandir(pair: Pair) -> None:
    pair.write("/file", b"1")
    pair.both("mkdir", "/folder")
    pair.symlink("file", "/to_file")
    pair.symlink("folder", "/to_folder")
    pair.symlink("none", "/dangling")
    pair.both("mkfifo", "/fifo")

    def facts(entries: Any, root: str) -> list[tuple[Any, ...]]:
        with entries:
            return sorted(
                (
                    entry.name,
                    entry.path.removeprefix(root),
                    os.fspath(entry) == entry.path,
                    *(entry.is_dir(follow_symlinks=follow) for follow in (True, False)),
                    *(entry.is_file(follow_symlinks=follow) for follow in (True, False)),
                    entry.is_symlink(),
                    outcome(lambda entry=entry: what_it_is(entry.stat()), root),
                    what_it_is(entry.stat(follow_symlinks=False)),
                )
                for entry in entries
            )

    ours = facts(pair.volume.scandir("/"), "")
    assert ours == facts(os.scandir(pair.root), pair.root)
    assert len(ours) == 6
    for entry in pair.volume.scandir(b"/"):
        assert isinstance(entry.name, bytes)
        assert entry.inode() == pair.volume.lstat(entry).st_ino


def test_scandir_ends_where_it_is_closed(volume: gofs.Volume) -> None:
    for number in range(5):
        volume.write(f"/{number}", b"")
    with volume.scandir() as entries:
        next(entries)
    with pytest.raises(StopIteration):
        next(entries)
    assert len(list(volume.scandir())) == 5


@pytest.mark.parametrize("topdown", [True, False])
@pytest.mark.parametrize("followlinks", [True, False])
def test_walk_goes_the_way_of_os_walk(pair: Pair, topdown: bool, followlinks: bool) -> None:
    for path in ("/a", "/a/b", "/a/b/c", "/d"):
        pair.both("mkdir", path)
        pair.write(path + "/file", b"1")
    pair.symlink("../d", "/a/link")

    def visits(walk: Any, root: str) -> list[tuple[str, list[str], list[str]]]:
        found = []
        for here, folders, files in walk(root or "/", topdown, None, followlinks):
            folders.sort()
            if topdown and "b" in folders:
                folders.remove("b")  # it is not to go there
            found.append((here.removeprefix(root) or "/", sorted(folders), sorted(files)))
        return sorted(found) if not topdown else found

    ours = visits(pair.volume.walk, "")
    assert ours == visits(os.walk, pair.root)
    assert len(ours) > 2


def test_walk_reports_what_cannot_be_read(volume: gofs.Volume) -> None:
    errors: list[OSError] = []
    assert list(volume.walk("/none", onerror=errors.append)) == []
    assert [error.errno for error in errors] == [errno.ENOENT]
    assert list(volume.walk("/none")) == []


def test_a_directory_of_many_entries_is_listed_whole(volume: gofs.Volume) -> None:
    volume.mkdir("/many")
    names = [f"file{number:05}" for number in range(3000)]
    volume.write_many("/many", {name: b"" for name in names})
    assert sorted(volume.listdir("/many")) == names


def test_statvfs_has_the_numbers_of_the_volume(volume: gofs.Volume) -> None:
    before = volume.statvfs()
    volume.write("/file", bytes(10 << 20))
    after = volume.statvfs()
    assert before.f_bavail - after.f_bavail >= (10 << 20) // before.f_bsize
    assert after.f_ffree < before.f_ffree
    assert (after.f_namemax, after.f_flag & os.ST_RDONLY) == (255, 0)
