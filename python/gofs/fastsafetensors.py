# SPDX-License-Identifier: Apache-2.0
# mypy: disable-error-code="import-not-found,import-untyped,misc,no-any-return,untyped-decorator"
"""Volumes for programs that load with fastsafetensors: its loader, and a copier of its kind.

    from gofs.fastsafetensors import GofsFileLoader

    loader = GofsFileLoader(volume, device="cuda:0")
    loader.add_filenames({0: ["/model-00001.safetensors", "/model-00002.safetensors"]})
    tensors = loader.copy_files_to_device()
    weight = tensors.get_tensor("weight")

The names are paths on the volume. The GPU that has mounted it reads straight to its memory; a
volume that a CPU has mounted, or a server serves, is read to a GPU through memory of the host.
Importing this registers the copier type "gofs", whose option is `volume`.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

try:
    from fastsafetensors.common import SafeTensorsMetadata
    from fastsafetensors.copier.base import CopierInterface, validated_byte_ranges
    from fastsafetensors.copier.registry import register_copier_constructor
    from fastsafetensors.frameworks import get_framework_op
    from fastsafetensors.loader import BaseSafeTensorsFileLoader
    from fastsafetensors.st_types import DeviceType, DType
except ImportError as error:
    raise ImportError(
        "gofs.fastsafetensors needs fastsafetensors 0.5 or later: pip install fastsafetensors"
    ) from error

from gofs._given_volume import given_volume
from gofs._safetensors_header import LENGTH_BYTES
from gofs.safetensors import SafetensorError, read_header_text

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from gofs._volume import Volume

__all__ = ["GofsFileCopier", "GofsFileLoader"]


class GofsFileCopier(CopierInterface):
    """Reads a file's tensors, or those that are asked for, by one call; fastsafetensors makes it.

    Has the file read when submit_io() returns. Raises OSError as Volume.read_ranges(), and
    ValueError where the file ends too early, or the volume's GPU does not reach the device.
    """

    def __init__(self, metadata: Any, device: Any, volume: Volume, framework: Any) -> None:
        self.metadata = metadata
        self._device = device
        self._volume = volume
        self._framework = framework
        self._wanted: Sequence[tuple[int, int]] | None = None

    def set_byte_ranges(self, byte_ranges: list[tuple[int, int]] | None) -> None:
        """Only these bytes of the file are read; None: all tensors."""
        self._wanted = validated_byte_ranges(self.metadata, byte_ranges)

    def submit_io(self, use_buf_register: bool, max_copy_block_size: int) -> Any:
        """The arguments are for copiers that register memory, and read in blocks."""
        begin, end = self.metadata.header_length, self.metadata.size_bytes
        memory = self._framework.alloc_tensor_memory(end - begin, self._device)
        try:
            wanted = [(begin, end)] if self._wanted is None else self._wanted
            self._read(wanted, memory.get_base_address() - begin)
        except BaseException:
            self._framework.free_tensor_memory(memory, self._device)
            raise
        return memory

    def wait_io(
        self, gbuf: Any, dtype: Any = DType.AUTO, noalign: bool = False, owner: Any = None
    ) -> dict[str, Any]:
        begin = self.metadata.header_length
        return self.metadata.get_tensors(gbuf, self._device, begin, dtype, owner=owner)

    def _read(self, wanted: Sequence[tuple[int, int]], origin: int) -> None:
        """`origin`: where byte 0 of the file would be in memory."""
        on_cpu = self._device.type == DeviceType.CPU
        device = "cpu" if on_cpu else f"cuda:{self._device.index or 0}"
        with self._volume.open(self.metadata.src, buffering=0) as file:
            counts = self._volume.read_ranges(
                (file, begin, _Bytes(origin + begin, end - begin, device)) for begin, end in wanted
            )
        if counts != [end - begin for begin, end in wanted]:
            raise SafetensorError(f"{self.metadata.src!r} was cut while it was read")


class GofsFileLoader(BaseSafeTensorsFileLoader):
    """Loads files of a volume, as SafeTensorsFileLoader those of the host.

    `device` is one that fastsafetensors names, such as "cuda:0" or "cpu"; `pg` a process group or
    None, `framework` "pytorch" or "paddle".
    """

    def __init__(
        self,
        volume: Volume,
        pg: Any = None,
        device: str = "cpu",
        *,
        framework: str = "pytorch",
        **options: Any,
    ) -> None:
        self._volume = given_volume(volume)
        maker = get_framework_op(framework)
        place = maker.get_device(device, maker.get_process_group(pg))
        super().__init__(
            pg, place, copier_type="gofs", framework=framework, volume=volume, **options
        )

    def add_filenames(self, filenames: Mapping[int, Sequence[str]]) -> None:
        """Paths of the volume, for each rank. Raises OSError as Volume.open(), SafetensorError
        where one has no header, and what fastsafetensors raises for one that it does not take."""
        found = {
            path: (self._metadata_of(path), rank)
            for rank, paths in filenames.items()
            for path in paths
        }
        for path, (metadata, rank) in found.items():
            self.meta[path] = (metadata, rank)
            self.frames.update(metadata.tensors)

    def _metadata_of(self, path: str) -> Any:
        with self._volume.open(path, buffering=0) as file:
            text, size = read_header_text(file)
        try:
            header = text.decode()
        except UnicodeDecodeError as error:
            raise SafetensorError(f"{path}: the header is no text: {error}") from None
        begin = LENGTH_BYTES + len(text)
        return SafeTensorsMetadata(header, begin, size, self.framework, path)


class _Bytes:
    """Memory that is named by its address, as a tensor of bytes: it belongs to who made it."""

    def __init__(self, address: int, size: int, device: str) -> None:
        self.device = device
        self._address = address
        self._size = size

    def data_ptr(self) -> int:
        return self._address

    def numel(self) -> int:
        return self._size

    def element_size(self) -> int:
        return 1

    def is_contiguous(self) -> bool:
        return True


@register_copier_constructor("gofs", copier_class=GofsFileCopier)
def _new_copiers(device: Any, volume: Volume, **options: Any) -> Callable[..., GofsFileCopier]:
    def construct(metadata: Any, device: Any, framework: Any) -> GofsFileCopier:
        return GofsFileCopier(metadata, device, volume, framework)

    return construct
