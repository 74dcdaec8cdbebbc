# SPDX-License-Identifier: Apache-2.0
"""Many files of one directory, made or replaced together."""

from __future__ import annotations

import errno
import itertools
import os
import posixpath
from typing import TYPE_CHECKING

from gofs import _moving
from gofs._buffers import memory_to_read
from gofs._core import FILES_AT_ONCE
from gofs._device import common_stream
from gofs._errors import raise_first
from gofs._gpu_memory import gpu_memory
from gofs._modes import REPLACES
from gofs._numbers import by_name, permissions_number

if TYPE_CHECKING:
    from collections.abc import Mapping

    from typing_extensions import Buffer

    from gofs import _core
    from gofs._device import DeviceMemory
    from gofs._typing import Memory, Stream
    from gofs._volume import Volume


def write_many(
    volume: Volume,
    directory: str,
    files: Mapping[str, Memory],
    permissions: int,
    stream: Stream | None,
) -> None:
    """Volume.write_many(). A mapping is asked for each of its values once, which are kept."""
    permissions = permissions_number(permissions)
    host: dict[str, Buffer] = {}
    gpu: dict[str, DeviceMemory] = {}
    names = []
    for given, data in by_name("files", files):
        name = os.fsdecode(given)
        names.append(name)
        memory = gpu_memory(volume, data, fills=False)
        if memory is None:
            host[name] = memory_to_read(data)
        else:
            gpu[name] = memory
    order = common_stream(list(gpu.values()), stream)
    if gpu:
        _moving.check(volume._core, list(gpu.values()), order)
    if not names:
        volume._core.open(directory, os.O_PATH | os.O_DIRECTORY, 0).close()  # where it is missing
    failures: dict[str, OSError | int] = {}
    if host:
        failures.update(_from_host(volume, directory, host, permissions))
    for begin in range(0, len(gpu), FILES_AT_ONCE):
        some = dict(itertools.islice(gpu.items(), begin, begin + FILES_AT_ONCE))
        failures.update(_from_gpu(volume, directory, some, permissions, order))
    errors = {i: failures[name] for i, name in enumerate(names) if name in failures}
    raise_first(volume._core, errors, [posixpath.join(directory, name) for name in names])


def _from_host(
    volume: Volume, directory: str, files: Mapping[str, Buffer], permissions: int
) -> dict[str, OSError | int]:
    """New ones by one batch. Of those that have an error, that or its errno."""
    failures: dict[str, OSError | int] = {}
    try:
        codes = volume._core.batch_create(
            directory, list(files), list(files.values()), permissions
        )
    except OSError as error:  # of all of them: it names the directory
        first = posixpath.join(directory, next(iter(files)))
        raise type(error)(error.errno, error.strerror, first) from None
    for (name, data), code in zip(files.items(), codes):
        if code == errno.EEXIST:
            try:
                volume.write(posixpath.join(directory, name), data, permissions=permissions)
            except OSError as error:
                failures[name] = error
        elif code != 0:
            failures[name] = code
    return failures


def _from_gpu(
    volume: Volume,
    directory: str,
    files: Mapping[str, DeviceMemory],
    permissions: int,
    order: int,
) -> dict[str, OSError | int]:
    """By one launch, into files that are opened by another. Of those that have an error, that or
    its errno."""
    failures: dict[str, OSError | int] = {}
    opened: dict[str, _core.OpenFile] = {}
    wanted = []
    for name in files:
        if name in ("", ".", "..") or "/" in name:
            failures[name] = errno.EINVAL
        else:
            wanted.append(name)
    paths = [posixpath.join(directory, name) for name in wanted]
    try:
        answers = volume._core.open_many(paths, REPLACES, permissions)
        for name, answer in zip(wanted, answers):
            if isinstance(answer, OSError):
                failures[name] = answer
            else:
                opened[name] = answer
        names = list(opened)
        parts = [(opened[name], 0, files[name]) for name in names]
        errors = _moving.write_each(volume._core, parts, order)
        failures.update({names[number]: code for number, code in errors.items()})
    finally:
        volume._core.close_many(list(opened.values()))
    return failures
