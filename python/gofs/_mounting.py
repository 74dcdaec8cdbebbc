# SPDX-License-Identifier: Apache-2.0
"""mount(), attach() and mkfs()."""

from __future__ import annotations

import errno
import os
from functools import partial
from typing import TYPE_CHECKING

from gofs import _core
from gofs._numbers import (
    LONG_MAX,
    nanoseconds,
    not_negative,
    several,
    text,
    truth_value,
    whole_number,
)
from gofs._volume import Volume

if TYPE_CHECKING:
    from collections.abc import Sequence

    from gofs._typing import AnyPath


def mount(
    spec: AnyPath,
    *,
    writable: bool = False,
    backend: str = "auto",
    uid: int = 0,
    gid: int = 0,
    groups: Sequence[int] = (),
    cache_bytes: int = 0,
    queues: int = 0,
    queue_depth: int = 0,
    command_timeout: float = 0,
    lock_timeout: float = 0,
    descriptors: int = 0,
    clean_percent: int = 0,
    checkpoint_period: float = 0,
    idle_clean_percent: int = 0,
    clock_period: float = 0,
    discard: bool = True,
    log_structured: bool = False,
) -> Volume:
    """Mounts a volume. Of all numbers 0 means the default; times are in seconds.

    Args:
        spec: an image, a block device or vfio:ADDRESS, or several with a `+` between them for a
            volume that is striped over them. Options follow a `?`, as in
            "vol.img?model=990pro&queues=16" (`gofs --help`), and win over those below.
        writable: else changes raise EROFS. The image is then locked for all other mounts.
        backend: "cpu", "cuda", or "auto": a GPU if one answers, else the CPU.
        uid, gid, groups: whose permissions all calls have; those of root if not given.
        cache_bytes: memory for metadata; 64 MiB, and on a GPU up to 1 GiB.
        queues, queue_depth: NVMe queue pairs, and entries of each; 16 of 1,024.
        command_timeout: until a command of the SSD counts as lost; 5 s.
        lock_timeout: until the lock of a file or directory is given up; 30 s.
        descriptors: files open at once, about 1 KB each; 66,560.
        clean_percent: of the segments: a write cleans where fewer are free; 5.
        checkpoint_period: from one checkpoint to the next, if anything has changed; none.
        idle_clean_percent: of the segments: where fewer are free, an idle volume is cleaned; none.
        clock_period: how often the clock of time stamps is set by the host's; 10 minutes.
        discard: tell the SSD which segments are free.
        log_structured: all that is written goes to new blocks, as in Linux's mode=lfs.

    Raises OSError, whose words name what is missing, malformed or not supported.
    """
    again = partial(mount, **locals())  # with all that was given; nothing else has a name yet
    options = _core.MountOptions()
    options.backend = text("backend", backend)
    options.read_only = not truth_value("writable", writable)
    options.groups = [whole_number("groups", group) for group in several("groups", groups)]
    options.cache_bytes = whole_number("cache_bytes", cache_bytes, most=LONG_MAX)
    for name, number in (
        ("uid", uid),
        ("gid", gid),
        ("queues", queues),
        ("queue_depth", queue_depth),
        ("descriptors", descriptors),
        ("clean_percent", clean_percent),
        ("idle_clean_percent", idle_clean_percent),
    ):
        setattr(options, name, whole_number(name, number))
    for name, seconds in (
        ("command_timeout", command_timeout),
        ("lock_timeout", lock_timeout),
        ("checkpoint_period", checkpoint_period),
        ("clock_period", clock_period),
    ):
        setattr(options, f"{name}_ns", nanoseconds(name, seconds))
    options.discard = truth_value("discard", discard)
    options.log_structured = truth_value("log_structured", log_structured)
    return Volume(_core.mount(spec, options), again, writable=writable)


def attach(path: AnyPath, *, timeout: float = 10) -> Volume:
    """A volume that a server (gofsd) has mounted, at its socket.

    Calls are made as the user that this process is to Linux. Kernels can use the volume where the
    server is on the same GPU by CUDA's MPS, or on the CPU (`device_handle`). Where the server ends,
    a call waits up to `timeout` seconds for another, and then raises OSError with ENOTCONN; files
    that were open raise ESTALE. close() is sync(), and the server goes on.
    """
    again = partial(attach, path, timeout=timeout)
    socket = os.fspath(path)
    if not socket:
        raise FileNotFoundError(errno.ENOENT, "path: the socket of a server is wanted", socket)
    core = _core.attach(path, nanoseconds("timeout", timeout))
    return Volume(core, again, writable=False, attached=True)


def mkfs(
    spec: AnyPath,
    size_bytes: int = 0,
    *,
    label: str = "",
    features: Sequence[str] = (),
    overwrite: bool = False,
) -> None:
    """Makes an empty volume, as mkfs.f2fs does; it is durable when this returns.

    Args:
        spec: an image, which is made if it is missing, a block device, or several with a `+`
            between them (a stripe).
        size_bytes: at least 64 MiB; that of the file or device, if not given.
        label: at most 511 UTF-16 units.
        features: as mkfs.f2fs -O names them.
        overwrite: what the file or device holds; else FileExistsError.
    """
    names = [text("features", feature) for feature in several("features", features)]
    size = not_negative("size_bytes", size_bytes, spec)
    _core.mkfs(spec, size, text("label", label), names, truth_value("overwrite", overwrite))
