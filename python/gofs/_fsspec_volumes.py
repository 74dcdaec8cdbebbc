# SPDX-License-Identifier: Apache-2.0
"""The volumes that file systems of fsspec use in this process: each is mounted once."""

from __future__ import annotations

import errno
import os
import pickle
import threading
import weakref
from typing import TYPE_CHECKING, Any

from gofs._fsspec_storage import storage_of
from gofs._given_volume import given_volume
from gofs._mount_or_attach import is_socket, mount_or_attach
from gofs._numbers import text
from gofs._volume import Volume

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping

    from gofs._fsspec_storage import Member

VARIABLE = "GOFS_VOLUMES"

# What ends the host of a URL, or means something in it. Upper case stays as it is.
_NO_HOST = frozenset("/:?#@[]\\ ")


class Volumes:
    """By name, by what a spec leads to, and by what they were pickled as."""

    def __init__(self) -> None:
        self._named: dict[str, Volume] = {}
        self._mounted: dict[tuple[Member, ...], Volume] = {}
        self._pickled: weakref.WeakValueDictionary[bytes, Volume] = weakref.WeakValueDictionary()
        self._unpickled: dict[bytes, Volume] = {}
        self.renew_lock()

    def renew_lock(self) -> None:
        """For a child of fork(): another thread may have had the lock, and is not there."""
        self._lock = threading.Lock()

    def register(self, name: str, volume: Volume) -> None:
        given_volume(volume)
        if not text("name", name) or not name.isprintable() or _NO_HOST & set(name):
            raise ValueError(
                f"name: {name!r} cannot be the host of a URL: no empty one, and none of "
                f"{' '.join(sorted(_NO_HOST - {' '}))} or spaces"
            )
        with self._lock:
            self._named[name] = volume

    def find(self, name: str, writable: bool) -> Volume:
        """The volume that was registered by a name, or is mounted by a spec."""
        with self._lock:
            named = self._named.get(name)
            if named is not None and not named.closed:
                return named
            spec = _specs_of_environment().get(name, name)
            storage = storage_of(spec)
            volume = self._mounted.get(storage.found)
            if volume is None or not _is_usable(volume):
                volume = _mounted(spec, writable)
                self._mounted.update(dict.fromkeys(storage, volume))
                self._close_at_exit(volume)
            elif writable and not volume.writable and not is_socket(spec):
                raise OSError(
                    errno.EBUSY,
                    "this process has mounted it for reading: say writable=True where it is "
                    "used first, or close the file system's .volume",
                    spec,
                )
            return volume

    def name_of(self, given: Volume | str) -> str:
        """What gofs://NAME/ has as NAME for a volume or its spec; empty where it has none."""
        if isinstance(given, str):
            specs = _specs_of_environment()
            return next((name for name in [given, *specs] if _may_mean(name, given, specs)), "")
        with self._lock:
            return next((name for name, volume in self._named.items() if volume is given), "")

    def pickled(self, volume: Volume) -> bytes:
        """What unpickled() takes. Raises TypeError for a volume that is mounted for writing."""
        data = pickle.dumps(volume)
        with self._lock:
            self._pickled[data] = volume
        return data

    def unpickled(self, data: bytes) -> Volume:
        """The volume that was pickled, where this process has it; else it is mounted once."""
        with self._lock:
            for volume in (self._pickled.get(data), self._unpickled.get(data)):
                if volume is not None and _is_usable(volume):
                    return volume
            volume = pickle.loads(data)
            assert isinstance(volume, Volume)
            self._unpickled[data] = volume
            self._close_at_exit(volume)
            return volume

    def _close_at_exit(self, volume: Volume) -> None:
        # Before the volume's own, which says that somebody has forgotten to close it.
        weakref.finalize(self, volume.close)


volumes = Volumes()
os.register_at_fork(after_in_child=volumes.renew_lock)


class SentVolume:
    """A volume that is pickled with what uses it, and mounted once where that is unpickled."""

    def __init__(self, volume: Volume) -> None:
        self.volume = volume

    def __reduce__(self) -> tuple[Callable[[bytes], SentVolume], tuple[bytes]]:
        return _received, (volumes.pickled(self.volume),)


def _received(data: bytes) -> SentVolume:
    return SentVolume(volumes.unpickled(data))


def sent(
    kind: type[Any], args: Iterable[Any], options: Mapping[str, Any]
) -> tuple[type[Any], list[Any], dict[str, Any]]:
    """How made_again() makes an object elsewhere, whose arguments may be volumes."""
    sent_options = {name: _as_sent(each) for name, each in options.items()}
    return kind, [_as_sent(each) for each in args], sent_options


def made_again(kind: type[Any], args: list[Any], options: dict[str, Any]) -> Any:
    given_options = {name: _as_given(each) for name, each in options.items()}
    return kind(*[_as_given(each) for each in args], **given_options)


def _as_sent(option: Any) -> Any:
    return SentVolume(option) if isinstance(option, Volume) else option


def _as_given(option: Any) -> Any:
    return option.volume if isinstance(option, SentVolume) else option


def _mounted(spec: str, writable: bool) -> Volume:
    try:
        return mount_or_attach(spec, writable=writable)
    except FileNotFoundError as error:
        if "/" in spec:
            raise
        words = (
            f"no volume of this name was given to register() or is in {VARIABLE}, and there is no "
            "such image"
        )
        raise FileNotFoundError(error.errno, words, spec) from None


def _specs_of_environment() -> dict[str, str]:
    """GOFS_VOLUMES: NAME=SPEC, and more of them behind semicolons."""
    entries = [entry for entry in os.environ.get(VARIABLE, "").split(";") if entry]
    for entry in entries:
        if "=" not in entry:
            raise ValueError(f"{VARIABLE}: {entry!r} is not NAME=SPEC")
    return dict(entry.split("=", 1) for entry in entries)


def _may_mean(name: str, spec: str, specs: dict[str, str]) -> bool:
    """Whether find() takes `name` for `spec`, and a URL can have it."""
    return "/" not in name and spec in (name, specs.get(name))


def _is_usable(volume: Volume) -> bool:
    return not volume.closed and volume._core.is_ours
