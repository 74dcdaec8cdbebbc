# SPDX-License-Identifier: Apache-2.0
"""Which volume gofs:// means: names, specs, sockets, and how often they are mounted."""

from __future__ import annotations

import contextlib
import copy
import gzip
import os
import pathlib
import pickle
import signal
import subprocess
import sys
import threading
from collections.abc import Callable
from typing import Any

import pytest

fsspec = pytest.importorskip("fsspec")

import gofs  # noqa: E402
import gofs.fsspec  # noqa: E402
from gofs import _fsspec_volumes  # noqa: E402

Serve = Callable[..., contextlib.AbstractContextManager[pathlib.Path]]


def test_urls_alone_suffice_where_a_volume_is_registered(volume: gofs.Volume) -> None:
    gofs.fsspec.register("scratch", volume)
    with fsspec.open("gofs://scratch/d/file.gz", "wt", compression="gzip") as text:
        text.write("contents")
    assert gzip.decompress(volume.read("/d/file.gz")) == b"contents"
    with fsspec.open("gofs://scratch/d/file.gz", "rt", compression="infer") as text:
        assert text.read() == "contents"


def test_names_are_those_that_urls_can_have(volume: gofs.Volume) -> None:
    volume.write("/file", b"1")
    for name in ("Upper", "a-b.c_d~1", "\u00fc"):
        gofs.fsspec.register(name, volume)
        with fsspec.open(f"gofs://{name}/file") as file:
            assert file.read() == b"1"
    register: Any = gofs.fsspec.register
    for wrong in ("", "a/b", "a:b", "a::b", "a?b", "a#b", "a@b", "a b", "a\nb", "a[b]", "a\\b"):
        with pytest.raises(ValueError, match="cannot be the host of a URL"):
            register(wrong, volume)
    with pytest.raises(TypeError, match="^name: text is wanted, not 5$"):
        register(5, volume)
    for wrong in ("vol.img", None):
        with pytest.raises(TypeError, match="^volume: a gofs.Volume is wanted, not "):
            register("name", wrong)


def test_urls_of_files_can_be_opened_again(
    volume: gofs.Volume, image: pathlib.Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    volume.write_many("/", {"1.txt": b"1", "2.txt": b"2"})
    gofs.fsspec.register("named-again", volume)
    urls = ["gofs://named-again/1.txt", "gofs://named-again/2.txt"]
    assert [file.full_name for file in fsspec.open_files("gofs://named-again/*")] == urls
    fs = fsspec.filesystem("gofs", volume=volume)
    assert [fs.unstrip_protocol(path) for path in ("1.txt", urls[1])] == urls
    with fsspec.open(urls[0]) as file:
        assert file.read() == b"1"
    volume.close()
    # A spec that URLs cannot have, unless the environment has a name for it.
    fs = fsspec.filesystem("gofs", volume=str(image))
    assert fs.unstrip_protocol("/1.txt") == "gofs:///1.txt"
    monkeypatch.setenv("GOFS_VOLUMES", f"a/b={image};other=/none;data={image}")
    assert fs.unstrip_protocol("/1.txt") == "gofs://data/1.txt"
    # One that they can have.
    monkeypatch.setenv("GOFS_VOLUMES", "")
    monkeypatch.chdir(image.parent)
    for given in (image.name, pathlib.Path(image.name)):
        fs = fsspec.filesystem("gofs", volume=given)
        url = fs.unstrip_protocol("/2.txt")
        assert url == f"gofs://{image.name}/2.txt"
        with fsspec.open(url) as file:
            assert file.read() == b"2"
    fs.volume.close()


def test_a_volume_is_mounted_once_for_all_threads(image: pathlib.Path) -> None:
    failures = []

    def write(number: int) -> None:
        try:
            with fsspec.open(f"gofs:///{number}", "wb", volume=str(image), writable=True) as file:
                file.write(b"%d" % number)
        except BaseException as failure:
            failures.append(failure)

    threads = [threading.Thread(target=write, args=(number,)) for number in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert failures == []
    fs = fsspec.filesystem("gofs", volume=str(image))
    assert fs.cat("/*") == {f"/{number}": b"%d" % number for number in range(4)}
    fs.volume.close()
    assert fs.ls("/", detail=False) == ["/0", "/1", "/2", "/3"]  # it is mounted again
    fs.volume.close()


def test_a_volume_is_one_however_it_is_spelled(
    image: pathlib.Path, tmp_path: pathlib.Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "link").symlink_to(image.name)
    os.link(image, tmp_path / "plus+img?x=1")
    spellings = [image.name, f"./{image.name}", str(image), "link", "plus+img?x=1"]
    spellings.append(f"file:{tmp_path}/%76olume.img")
    found = [gofs.fsspec.GofsFileSystem(each, writable=True) for each in spellings]
    found[0].pipe("/file", b"1")
    assert [fs.cat("/file") for fs in found] == [b"1"] * len(spellings)
    assert {id(fs.volume) for fs in found} == {id(found[0].volume)}
    # Elsewhere the same name is another volume's.
    (tmp_path / "other").mkdir()
    gofs.mkfs(tmp_path / "other" / image.name, 64 << 20)
    monkeypatch.chdir(tmp_path / "other")
    with gofs.fsspec.GofsFileSystem(image.name).volume as other:
        assert other.listdir("/") == []
    assert gofs.fsspec.GofsFileSystem(f"../{image.name}").cat("/file") == b"1"
    # One that has lost its name is still what the name means.
    image.unlink()
    assert found[2].cat("/file") == b"1"
    found[2].volume.close()


def test_a_volume_is_another_one_with_other_options_or_members(tmp_path: pathlib.Path) -> None:
    names = [str(tmp_path / name) for name in ("a", "b")]
    gofs.mkfs("+".join(names), 128 << 20)
    specs = [f"{names[0]}+{names[1]}", f"{names[0]}?queues=2+{names[1]}?queues=2"]
    opened = [gofs.fsspec.GofsFileSystem(each).volume for each in specs]
    again = gofs.fsspec.GofsFileSystem(f"{tmp_path}/./a+{names[1]}")
    assert [volume.listdir("/") for volume in opened] == [[], []]
    assert again.volume is opened[0] is not opened[1]
    for volume in opened:
        volume.close()


def test_writing_where_one_has_only_read_says_what_to_do(image: pathlib.Path) -> None:
    reader = fsspec.filesystem("gofs", volume=str(image))
    assert reader.ls("/") == []
    writer = fsspec.filesystem("gofs", volume=str(image), writable=True)
    with pytest.raises(OSError, match="say writable=True where it is used first, or close"):
        writer.pipe("/file", b"1")
    reader.volume.close()
    writer.pipe("/file", b"1")
    assert reader.cat("/file") == b"1"  # by the same mount
    writer.volume.close()


def test_the_environment_names_volumes_for_other_programs(image: pathlib.Path) -> None:
    with gofs.mount(image, writable=True) as volume:
        volume.write("/file", b"contents")
    program = "import fsspec; print(fsspec.open('gofs://data/file').open().read())"
    said = subprocess.run(
        [sys.executable, "-W", "error", "-c", program],
        env={**os.environ, "GOFS_VOLUMES": f"other=/none;data={image}"},
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )
    assert (said.stdout, said.stderr) == ("b'contents'\n", "")


def test_a_url_without_a_volume_says_what_is_missing() -> None:
    with pytest.raises(ValueError, match="which volume.*GOFS_VOLUMES"):
        fsspec.open("gofs:///file").open()
    with pytest.raises(FileNotFoundError, match=r"register\(\) or is in GOFS_VOLUMES.*'nobody'"):
        fsspec.open("gofs://nobody/file").open()


def test_an_option_that_is_misspelt_is_refused(volume: gofs.Volume) -> None:
    for name in ("writeable", "auto_mkdirs", "path"):
        with pytest.raises(TypeError, match=f"^'{name}' is no option: volume, writable and auto"):
            fsspec.filesystem("gofs", volume=volume, **{name: True})
    options = {"asynchronous": False, "loop": None, "use_listings_cache": False, "max_paths": 5}
    fs = fsspec.filesystem("gofs", volume=volume, skip_instance_cache=True, **options)
    assert fs.ls("/") == []


def test_a_file_system_is_pickled_by_its_options(image: pathlib.Path) -> None:
    with gofs.mount(image, writable=True) as volume:
        volume.write("/file", b"contents")
    fs = fsspec.filesystem("gofs", volume=str(image), skip_instance_cache=True)
    assert pickle.loads(pickle.dumps(fs)).cat("/file") == b"contents"
    fs.volume.close()


def test_a_volume_that_is_mounted_again_is_another_one(image: pathlib.Path) -> None:
    first = gofs.mount(image, writable=True, backend="cpu")
    fsspec.filesystem("gofs", volume=first).pipe("/file", b"1")
    assert fsspec.filesystem("gofs", volume=first) is fsspec.filesystem("gofs", volume=first)
    first.close()
    with gofs.mount(image, writable=True, backend="cpu") as second:
        assert fsspec.filesystem("gofs", volume=second).cat("/file") == b"1"
        assert repr(first) != repr(second)


def test_unpickling_uses_the_volume_that_there_is(image: pathlib.Path) -> None:
    with gofs.mount(image, writable=True, backend="cpu") as volume:
        volume.write("/file", b"contents")
        fs = gofs.fsspec.GofsFileSystem(volume)
        assert copy.copy(fs) == fs
        with pytest.raises(TypeError, match="one process alone may write"):
            pickle.dumps(fs)
    with gofs.mount(image, backend="cpu") as volume:
        by_place, by_name = (
            gofs.fsspec.GofsFileSystem(volume, auto_mkdir=False),
            fsspec.filesystem("gofs", volume=volume, auto_mkdir=False),
        )
        for fs in (by_place, by_name):
            sent = pickle.dumps(fs)
            assert pickle.loads(sent).volume is volume
            assert pickle.loads(sent) == fs
            assert copy.deepcopy(fs).volume is volume
    # As in another process: it is mounted anew, and once.
    again = pickle.loads(sent)
    assert again.cat("/file") == b"contents"
    assert pickle.loads(sent).volume is again.volume
    assert not again.auto_mkdir
    again.volume.close()


def test_a_socket_is_attached_to(
    image: pathlib.Path, served: Serve, monkeypatch: pytest.MonkeyPatch
) -> None:
    with served(image) as socket:
        fs = fsspec.filesystem("gofs", volume=str(socket), writable=True)
        fs.pipe("/file", b"1")
        assert fs.cat("/file") == b"1"  # by the same one, although a server says who may write
        monkeypatch.setenv("GOFS_VOLUMES", f"served={socket}")
        with fsspec.open("gofs://served/file") as file:
            assert file.read() == b"1"
        fs.volume.close()


@pytest.mark.filterwarnings("ignore:This process.*is multi-threaded:DeprecationWarning")
def test_a_child_of_fork_does_not_wait_for_threads_it_lacks(image: pathlib.Path) -> None:
    with _fsspec_volumes.volumes._lock:  # as another thread has it while it mounts
        child = os.fork()
        if child == 0:
            signal.alarm(30)
            fs = gofs.fsspec.GofsFileSystem(str(image), skip_instance_cache=True)
            listed = fs.ls("/")
            fs.volume.close()
            os._exit(0 if listed == [] else 1)
    assert os.waitpid(child, 0)[1] == 0


@pytest.mark.filterwarnings("ignore:This process.*is multi-threaded:DeprecationWarning")
def test_a_name_in_a_child_of_fork_says_what_to_do(volume: gofs.Volume) -> None:
    gofs.fsspec.register("before-fork", volume)
    child = os.fork()
    if child == 0:
        with contextlib.suppress(BaseException):
            with pytest.raises(RuntimeError, match="mounted before fork"):
                fsspec.open("gofs://before-fork/file").open()
            os._exit(0)
        os._exit(1)
    assert os.waitpid(child, 0)[1] == 0
