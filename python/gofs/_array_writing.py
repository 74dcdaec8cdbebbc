# SPDX-License-Identifier: Apache-2.0
"""Arrays and tensors as parts of a file that is written through a buffer."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from gofs._arrays import is_on_host, on_host
from gofs._buffers import bytes_to_read

if TYPE_CHECKING:
    from gofs._volume import Volume


def write_array(volume: Volume, file: Any, place: int, data: Any) -> int:
    """Writes it where the file is, at `place`; how many bytes. What is in the memory of the
    volume's GPU does not go through the host's. ValueError where its bytes have gaps."""
    if is_on_host(data) or not volume._reaches(data):
        contents = bytes_to_read(on_host(data))
        file.write(contents)
        return contents.nbytes
    file.flush()
    size = int(file.raw.pwrite(data, place))
    file.seek(place + size)
    return size
