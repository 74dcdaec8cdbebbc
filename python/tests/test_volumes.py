# SPDX-License-Identifier: Apache-2.0
"""Mounting, unmounting and what a volume says of itself."""

from __future__ import annotations

import contextlib
import errno
import gc
import os
import pathlib
import shutil
import stat
import subprocess
import sys
import threading
import time
from collections.abc import Callable
from typing import Any

import numpy
import pytest

import gofs
from gofs.safetensors import save_file
from gofs.torch import FileDataset

NAME_IN_INODE = 92  # bytes into the block: i_name
NODE_FOOTER = 4096 - 24


def test_what_was_written_is_there_after_a_mount(image: pathlib.Path) -> None:
    with gofs.mount(image, writable=True) as volume:
        volume.write("/file", b"contents")
    for spec in (image, str(image), os.fsencode(image)):
        with gofs.mount(spec) as volume:
            assert volume.read("/file") == b"contents"


def test_the_newest_version_is_that_of_the_header() -> None:
    header = pathlib.Path(__file__).parents[2] / "include/gofs/version.h"
    parts = [
        line.split()[-1]
        for line in header.read_text().splitlines()
        if line.startswith("#define GOFS_VERSION_") and line.split()[-1].isdigit()
    ]
    assert gofs.__version__ == ".".join(parts)


def test_a_volume_for_reading_refuses_all_changes(image: pathlib.Path) -> None:
    with gofs.mount(image, writable=True) as volume:
        volume.write("/file", b"contents")
    with gofs.mount(image) as volume:
        assert not volume.writable
        changes: list[Callable[[], Any]] = [
            lambda: volume.write("/new", b""),
            lambda: volume.open("/file", "r+b"),
            lambda: volume.mkdir("/d"),
            lambda: volume.unlink("/file"),
            lambda: volume.rename("/file", "/other"),
            lambda: volume.symlink("file", "/link"),
            lambda: volume.truncate("/file", 0),
            lambda: volume.chmod("/file", 0o600),
            lambda: volume.utime("/file"),
            lambda: volume.setxattr("/file", "user.a", b""),
            lambda: volume.write_many("/", {"new": b""}),
        ]
        for change in changes:
            with pytest.raises(OSError) as raised:
                change()
            assert raised.value.errno == errno.EROFS
        assert volume.statvfs().f_flag & os.ST_RDONLY
        assert volume.read("/file") == b"contents"
        assert "read-only" in repr(volume)


def test_a_closed_volume_says_so_of_each_call(image: pathlib.Path) -> None:
    volume = gofs.mount(image, writable=True)
    file = volume.open("/file", "wb")
    volume.write_many("/", {"a": b"", "b": b""})
    entries, begun = volume.scandir("/"), volume.scandir("/")
    next(begun)
    volume.close()
    volume.close()  # nothing, the second time
    assert volume.closed
    assert "closed" in repr(volume)
    calls: list[Callable[[], Any]] = [
        lambda: volume.stat("/file"),
        lambda: volume.read("/file"),
        lambda: volume.write("/file", b""),
        lambda: volume.listdir("/"),
        lambda: volume.open("/file"),
        lambda: volume.info,
        lambda: volume.memory(),
        lambda: volume.warnings(),
        lambda: volume.statvfs(),
        lambda: volume.sync(),
        lambda: volume.device_handle,
        lambda: file.write(b"1"),
        lambda: next(entries),
        lambda: next(begun),
        lambda: volume.__enter__(),
    ]
    for call in calls:
        with pytest.raises(ValueError, match="the volume is closed: mount it again"):
            call()
    file.close()
    entries.close()
    begun.close()


def test_a_block_that_fails_closes_the_volume_as_well(image: pathlib.Path) -> None:
    with pytest.raises(KeyError), gofs.mount(image, writable=True) as volume:
        volume.write("/file", b"1")
        raise KeyError
    assert volume.closed
    with gofs.mount(image) as volume:
        assert volume.read("/file") == b"1"


def test_a_forgotten_volume_is_closed_with_a_warning(image: pathlib.Path) -> None:
    volume = gofs.mount(image, writable=True)
    volume.write("/file", b"1")
    with pytest.warns(ResourceWarning, match="unclosed volume"):
        del volume
        gc.collect()
    with gofs.mount(image, writable=True) as volume:
        assert volume.read("/file") == b"1"
        assert volume.info.clean


def test_a_program_that_ends_unmounts_its_volumes(image: pathlib.Path) -> None:
    program = (
        "import ctypes, gofs, sys\n"
        "volume = gofs.mount(sys.argv[1], writable=True)\n"
        "volume.write('/file', b'1')\n"
        "keeps = volume.open('/other', 'wb')\n"
        # As by a library's cache that nothing clears.
        "ctypes.pythonapi.Py_IncRef(ctypes.py_object(volume))\n"
    )
    said = subprocess.run(
        [sys.executable, "-W", "ignore", "-c", program, image],
        capture_output=True,
        timeout=60,
        check=True,
    )
    assert (said.stdout, said.stderr) == (b"", b"")
    with gofs.mount(image) as volume:
        assert volume.read("/file") == b"1"
        assert volume.info.clean


@pytest.mark.parametrize("closes", [True, False])
def test_a_program_ends_while_a_thread_is_in_a_call(image: pathlib.Path, closes: bool) -> None:
    program = (
        "import gofs, sys, threading, time\n"
        "volume = gofs.mount(sys.argv[1], writable=True)\n"
        "block = bytes(500_000)\n"
        "begun = threading.Barrier(4)\n"
        "def write(number):\n"
        "    volume.write(f'/{number}', block)\n"
        "    begun.wait()\n"
        "    while True:\n"
        "        try:\n"
        "            volume.write(f'/{number}', block)\n"
        "        except ValueError:\n"
        "            pass\n"
        "for number in range(3):\n"
        "    threading.Thread(target=write, args=(number,), daemon=True).start()\n"
        "begun.wait()\n"
        "time.sleep(0.05)\n"
    )
    if closes:
        program += "volume.close()\n"
    for _ in range(3):
        said = subprocess.run(
            [sys.executable, "-W", "ignore", "-c", program, image],
            capture_output=True,
            timeout=60,
            check=False,
        )
        assert (said.returncode, said.stdout, said.stderr) == (0, b"", b"")
        with gofs.mount(image, writable=True) as volume:
            assert volume.info.clean
            assert [len(volume.read(f"/{number}")) for number in range(3)] == [500_000] * 3


def test_closing_a_volume_waits_for_the_calls_under_way(image: pathlib.Path) -> None:
    volume = gofs.mount(image, writable=True)
    volume.write("/read", bytes(100_000))
    file = volume.open("/rewritten", "wb", buffering=0)
    written = [0, 0]
    errors: list[BaseException] = []

    def work(number: int) -> None:
        try:
            while True:
                if number == 0:
                    volume.write("/written", str(written[0] + 1).encode())
                    written[0] += 1
                elif number == 1:
                    file.pwrite(str(written[1] + 1).encode(), 0)
                    written[1] += 1
                else:
                    volume.read_many(["/read"] * 3)
        except (OSError, ValueError) as error:
            errors.append(error)

    def close() -> None:
        volume.close()
        assert volume.closed

    threads = [threading.Thread(target=work, args=(number,)) for number in range(4)]
    for thread in threads:
        thread.start()
    while min(written) < 3:
        time.sleep(0.001)
    closing = [threading.Thread(target=close) for _ in range(2)]
    for thread in closing:
        thread.start()
    for thread in closing + threads:
        thread.join(30)
    assert [type(error) for error in errors] == [ValueError] * 4
    assert all("the volume is closed: mount it again" in str(error) for error in errors)
    file.close()
    with gofs.mount(image) as volume:
        assert volume.info.clean
        assert volume.read("/written") == str(written[0]).encode()
        assert volume.read("/rewritten") == str(written[1]).encode()


def test_an_open_file_keeps_its_volume(image: pathlib.Path) -> None:
    file = gofs.mount(image, writable=True).open("/file", "wb")
    gc.collect()
    file.write(b"1")
    file.close()
    with pytest.warns(ResourceWarning, match="unclosed volume"):
        del file
        gc.collect()
    with gofs.mount(image) as volume:
        assert volume.read("/file") == b"1"


def sync_by_file(volume: gofs.Volume) -> None:
    with volume.open("/file", "wb") as file:
        file.write(b"contents")
        file.fsync()


def sync_by_path(volume: gofs.Volume) -> None:
    volume.write("/file", b"contents")
    volume.fsync("/file")


SYNCS: dict[str, Callable[[gofs.Volume], object]] = {
    "nothing": lambda volume: volume.write("/file", b"contents"),
    "write": lambda volume: volume.write("/file", b"contents", sync=True),
    "write_many": lambda volume: volume.write_many("/", {"file": b"contents"}, sync=True),
    "fsync of a file": sync_by_file,
    "fsync of a path": sync_by_path,
    "sync": lambda volume: (volume.write("/file", b"contents"), volume.sync()),
}


@pytest.mark.parametrize("way", SYNCS)
def test_what_was_synced_is_in_the_image_before_it_is_released(
    image: pathlib.Path, tmp_path: pathlib.Path, way: str
) -> None:
    with gofs.mount(image, writable=True) as volume:
        SYNCS[way](volume)
        copy = shutil.copyfile(image, tmp_path / "copy.img")
    with gofs.mount(copy, writable=True) as volume:
        found = volume.read("/file") if volume.exists("/file") else None
        volume.warnings()
    assert found == (None if way == "nothing" else b"contents")


def test_mount_says_what_is_wrong(tmp_path: pathlib.Path, image: pathlib.Path) -> None:
    with pytest.raises(FileNotFoundError) as missing:
        gofs.mount(tmp_path / "none.img")
    assert missing.value.filename == str(tmp_path / "none.img")
    junk = tmp_path / "junk.img"
    junk.write_bytes(bytes(1 << 20))
    with pytest.raises(OSError, match="not an F2FS volume"):
        gofs.mount(junk)
    with pytest.raises(OSError, match="queues"):
        gofs.mount(f"{image}?queues=none")
    for wrong in ({"queues": 129}, {"queue_depth": 1}, {"queue_depth": 65536}):
        with pytest.raises(OSError, match="more than 128 queues|2 to 65535 entries"):
            gofs.mount(image, **wrong)
    with pytest.raises(OSError, match="backend"):
        gofs.mount(image, backend="abacus")
    with gofs.mount(image, writable=True), pytest.raises(OSError) as busy:
        gofs.mount(image, writable=True)
    assert busy.value.errno == errno.EBUSY


def test_options_reach_the_mount(image: pathlib.Path) -> None:
    with gofs.mount(image, writable=True, queues=3, queue_depth=64, log_structured=True) as volume:
        assert (volume.info.queues, volume.info.queue_depth) == (3, 64)
        assert volume.info.mode == "lfs"
    with gofs.mount(f"{image}?queues=2", queues=3, descriptors=2) as volume:
        assert volume.info.queues == 2
        files = [volume.scandir("/"), volume.scandir("/")]
        with pytest.raises(OSError) as raised:
            volume.listdir("/")
        assert raised.value.errno in (errno.ENFILE, errno.EMFILE)
        del files


def test_calls_have_the_permissions_of_the_mount(image: pathlib.Path) -> None:
    with gofs.mount(image, writable=True) as volume:
        volume.write("/secret", b"1", permissions=0o640)
        volume.chown("/secret", 1, 50)
    for groups, may in (([], False), ([7, 50], True)):
        with gofs.mount(image, uid=1000, gid=1000, groups=groups) as volume:
            assert volume.access("/secret", os.R_OK) is may
            if may:
                assert volume.read("/secret") == b"1"
                continue
            with pytest.raises(PermissionError):
                volume.read("/secret")


def test_info_and_memory_are_of_this_volume(tmp_path: pathlib.Path) -> None:
    image = tmp_path / "labelled.img"
    gofs.mkfs(image, 256 << 20, label="Tür", features=["extra_attr", "inode_crtime"])
    with gofs.mount(image, writable=True) as volume:
        info = volume.info
        assert (info.spec, info.backend, info.label) == (str(image), "cpu", "Tür")
        assert repr(info).startswith(f"VolumeInfo(spec={str(image)!r}, backend='cpu', ")
        assert f", label='Tür', uuid='{info.uuid}', " in repr(info)
        assert "MemoryPart(name='page_cache', of_ssd=False, device_bytes=" in repr(volume.memory())
        assert "inode_crtime" in info.features
        assert info.block_count == (256 << 20) // 4096
        assert len(info.uuid) == 36
        memory = volume.memory()
        assert (
            sum(part.bytes for part in memory.parts if not part.of_ssd) == memory.filesystem_bytes
        )
        cache = next(part for part in memory.parts if part.name == "page_cache")
        assert cache.in_use is not None and cache.bytes >= cache.in_use > 0
        assert {pages.kind for pages in memory.cached} >= {"nodes", "directories"}
        before = time.time()
        volume.write("/file", b"1")
        assert before - 60 < volume.created("/file") < before + 60
        assert volume.device_handle == 0  # kernels must not use what is the host's
        assert volume.stat("/").st_dev == volume.stat("/file").st_dev != 0


def test_mkfs_refuses_what_holds_something(image: pathlib.Path, tmp_path: pathlib.Path) -> None:
    with pytest.raises(FileExistsError):
        gofs.mkfs(image)
    gofs.mkfs(image, overwrite=True)
    with pytest.raises(OSError) as small:
        gofs.mkfs(tmp_path / "small.img", 1 << 20)
    assert small.value.errno == errno.ENOSPC
    with pytest.raises(OSError) as negative:
        gofs.mkfs(tmp_path / "negative.img", -1)
    assert negative.value.errno == errno.EINVAL
    assert "size_bytes is -1" in str(negative.value)
    size: Any = "1G"
    with pytest.raises(TypeError, match="^size_bytes: a whole number is wanted, not '1G'$"):
        gofs.mkfs(tmp_path / "text.img", size)
    with pytest.raises(OSError, match="flying"):
        gofs.mkfs(tmp_path / "odd.img", 128 << 20, features=["flying"])
    assert not (tmp_path / "odd.img").exists()


def test_a_striped_volume_is_mounted_by_all_its_parts(tmp_path: pathlib.Path) -> None:
    parts = [tmp_path / "a.img", tmp_path / "b.img"]
    for part in parts:
        part.touch()
        os.truncate(part, 128 << 20)
    spec = "+".join(map(str, parts))
    gofs.mkfs(spec)
    with gofs.mount(spec, writable=True) as volume:
        volume.write("/file", os.urandom(5 << 20))
    with gofs.mount(spec) as volume:
        assert volume.stat("/file").st_size == 5 << 20


def corrupt_inode(image: pathlib.Path, name: bytes) -> None:
    """Has the node blocks of a file say that they are others'."""
    data = bytearray(image.read_bytes())
    found = 0
    at = data.find(name)
    while at >= 0:
        if at % 4096 == NAME_IN_INODE:
            footer = at - NAME_IN_INODE + NODE_FOOTER
            data[footer : footer + 8] = b"\x77\x77\0\0\x77\x77\0\0"
            found += 1
        at = data.find(name, at + 1)
    assert found
    image.write_bytes(data)


def test_damage_is_an_error_of_its_own(image: pathlib.Path) -> None:
    with gofs.mount(image, writable=True) as volume:
        volume.write("/damaged-one", b"x" * 10000)
        volume.write("/sound", b"1")
    corrupt_inode(image, b"damaged-one")
    with gofs.mount(image) as volume:
        with pytest.raises(gofs.CorruptionError, match="footer of node") as raised:
            volume.read("/damaged-one")
        assert raised.value.errno == errno.EUCLEAN
        assert raised.value.filename == "/damaged-one"
        assert isinstance(raised.value, OSError)
        assert volume.read("/sound") == b"1"
        assert isinstance(volume.warnings(), list)


def test_cleaning_reports_what_it_did(volume: gofs.Volume) -> None:
    for number in range(64):
        volume.write(f"/{number}", os.urandom(300000))
    volume.sync()
    for number in range(0, 64, 2):
        volume.unlink(f"/{number}")
    volume.sync()
    report = volume.collect_garbage(segments_max=2, emptiest_first=True)
    assert 0 < report.segments <= 2
    assert report.data_blocks > 0
    assert report.free_segments >= report.free_segments_before


def test_an_attached_volume_has_the_same_calls(
    image: pathlib.Path, tmp_path: pathlib.Path, served: Callable[..., Any]
) -> None:
    with pytest.raises(FileNotFoundError):
        gofs.attach(tmp_path / "nobody", timeout=0.1)
    with served(image) as socket, gofs.attach(socket) as first, gofs.attach(str(socket)) as second:
        first.mkdir("/d")
        first.write_many("/d", {"a": b"1", "b": b"2"})
        assert second.read_dir("/d") == {"a": b"1", "b": b"2"}
        assert first.device_handle == 0
        assert " attached at 0x" in repr(first)
        assert first.statvfs().f_flag & os.ST_RDONLY == 0
        with second.open("/d/a", "r+b") as file:
            file.write(b"9")
            buffers = [bytearray(1), bytearray(2)]
            assert second.read_ranges([(file, 0, buffers[0]), ("/d/b", 0, buffers[1])]) == [1, 1]
        assert buffers == [b"9", b"2\0"]
        assert first.read("/d/a") == b"9"
        assert stat.S_ISDIR(second.stat("/d").st_mode)
        with pytest.raises(FileNotFoundError) as raised:
            first.read("/none")
        assert raised.value.filename == "/none"
        first.sync()


def test_paths_may_be_bytes(volume: gofs.Volume) -> None:
    volume.makedirs(b"/a/b/c")
    volume.makedirs(b"/a/b", exist_ok=True)
    with pytest.raises(FileExistsError):
        volume.makedirs(b"/a/b")
    volume.write(b"/a/\xff", b"1")
    assert list(volume.walk(b"/a")) == [
        (b"/a", [b"b"], [b"\xff"]),
        (b"/a/b", [b"c"], []),
        (b"/a/b/c", [], []),
    ]
    volume.write_many(b"/a/b", {"x": b"2"})
    volume.write_many(b"/a/b", {b"x": b"2"})  # type: ignore[dict-item]
    assert volume.read_dir(b"/a") == {"\udcff": b"1"}
    assert FileDataset(volume, b"/a").paths == ["/a/\udcff"]
    assert FileDataset(volume, [b"/a/b/x"])[0] == b"2"
    save_file(volume, {"a": numpy.zeros(3)}, b"/a/model")
    assert volume.exists("/a/model")


def test_eight_threads_at_once_keep_their_files_apart(volume: gofs.Volume) -> None:
    failures: list[BaseException] = []

    def work(number: int) -> None:
        try:
            mine = f"/t{number}"
            volume.mkdir(mine)
            for round_ in range(40):
                data = bytes([number, round_]) * (1 + 700 * round_)
                volume.write(f"{mine}/{round_}", data)
                assert volume.read(f"{mine}/{round_}") == data
                with volume.open("/shared", "r+b") as shared:
                    shared.pwrite(data[:1000].ljust(1000, b"."), number * 1000)
                volume.rename(f"{mine}/{round_}", f"{mine}/renamed{round_}")
                if round_ % 2:
                    volume.unlink(f"{mine}/renamed{round_}")
            assert len(volume.listdir(mine)) == 20
        except BaseException as failure:
            failures.append(failure)

    volume.write("/shared", bytes(8000))
    threads = [threading.Thread(target=work, args=(number,)) for number in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert failures == []
    shared = volume.read("/shared")
    for number in range(8):
        assert shared[number * 1000 : number * 1000 + 2] == bytes([number, 39])


def test_threads_append_to_one_file_without_losing_a_record(volume: gofs.Volume) -> None:
    with volume.open("/log", "ab") as log:
        threads = [
            threading.Thread(target=lambda: [log.write(b"%07d\n" % 1234567) for _ in range(200)])
            for _ in range(8)
        ]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
    assert volume.read("/log") == b"1234567\n" * 1600


def test_closing_a_file_waits_for_the_calls_under_way(volume: gofs.Volume) -> None:
    size = 128 << 20
    volume.write("/hole", b"")
    volume.truncate("/hole", size)
    buffer = bytearray(size)

    def share_of_the_read(delay: float) -> float:
        """How long close() took, of the time that a read took beside it which had begun."""
        file = volume.open("/hole")
        times: list[float] = []

        def read() -> None:
            begin = time.monotonic()
            with contextlib.suppress(ValueError):  # closed before it began
                assert file.pread(buffer, 0) == size
                times.append(time.monotonic() - begin)

        reader = threading.Thread(target=read)
        reader.start()
        time.sleep(delay)
        begin = time.monotonic()
        file.close()
        took = time.monotonic() - begin
        reader.join()
        with pytest.raises(ValueError, match="closed file"):
            file.pread(buffer, 0)
        return took / times[0] if times else 0

    # Now and then the read may have ended, or not begun, by the time of close().
    assert any(share_of_the_read(number / 1000) > 0.25 for number in range(30))


def test_other_threads_run_during_a_call(volume: gofs.Volume) -> None:
    size = 256 << 20
    volume.write("/hole", b"")
    volume.truncate("/hole", size)
    buffer = bytearray(size)

    def runs_beside_a_read() -> bool:
        times: list[float] = []
        call: list[float] = []

        def read() -> None:
            call.append(time.monotonic())
            volume.read_into("/hole", buffer)
            call.append(time.monotonic())

        reader = threading.Thread(target=read)
        reader.start()
        while reader.is_alive():
            times.append(time.monotonic())
        reader.join()
        begin, end = call
        quarter = (end - begin) / 4
        return any(begin + quarter < now < end - quarter for now in times)

    # Whose turn it is on a busy machine is Linux's choice. While a call keeps the lock of the
    # interpreter nothing runs in its middle, however often one looks.
    assert any(runs_beside_a_read() for _ in range(50))
