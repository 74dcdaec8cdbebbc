# SPDX-License-Identifier: Apache-2.0
"""What a typed program does with the package; mypy --strict has nothing to say to it."""

from __future__ import annotations

import array
import io
import os
import pathlib
from typing import BinaryIO


def copy_out(image: pathlib.Path, target: pathlib.Path) -> dict[str, int]:
    import gofs
    import gofs.cuda
    import gofs.safetensors
    import gofs.torch

    sizes: dict[str, int] = {}
    with gofs.mount(image, backend="cpu", groups=[1, 2]) as volume:
        label: str = volume.info.label
        for here, _folders, files in volume.walk("/"):
            for name in files:
                path = pathlib.PurePosixPath(here, name)
                data: bytes = volume.read(path)
                (target / name).write_bytes(data)
                status: os.stat_result = volume.stat(path)
                sizes[label + str(path)] = status.st_size
        for _, folders_as_bytes, _ in volume.walk(b"/"):
            sizes["folders"] = len(b"".join(folders_as_bytes))
        with volume.scandir(b"/") as entries:
            names: list[bytes] = [entry.name for entry in entries]
        sizes["names"] = len(names)
        with volume.open("/file") as file:
            raw: io.RawIOBase = file
            sizes["raw"] = len(raw.read() or b"")
        with volume.open("/file", buffering=0) as unbuffered:
            file_again: gofs.File = unbuffered
            sizes["unbuffered"] = file_again.pread(bytearray(4), 0)
        identity: gofs.Identity = volume.identity("/file")
        with volume.open_inode(identity, "r+b") as by_identity:
            same: bool = by_identity.identity() == identity
            sizes[identity.uuid] = identity.ino + identity.generation + same
        with volume.open("/file", buffering=len(label)) as buffered:
            sizes["buffered"] = len(buffered.read(1))
        with volume.open("/file", buffering=-1) as buffered:
            stream: BinaryIO = buffered
            sizes["line"] = len(stream.readline())
        numbers = array.array("f", [0.0] * 16)
        sizes["read"] = volume.read_into("/file", numbers)
        header = bytearray(16)
        counts: list[int] = volume.read_ranges([("/file", 0, numbers), (b"/file", 64, header)])
        sizes["ranges"] = sum(counts)
        volume.write_ranges([("/file", 0, numbers), (b"/file", 64, header)])
        transfer: gofs.Transfer = volume.write_async("/file", numbers)
        sizes["transfer"] = transfer.result()
        copied: gofs.Copied = gofs.copy((volume, "/file"), target / "copy", preserve=False)
        sizes["copied"] = copied.bytes
        bits: bytes = volume.read("/file", offset=3)
        array_of_any = volume.read("/file", dtype="float32", like="numpy")
        sizes["bits"] = len(bits) + array_of_any.nbytes + len(volume.glob("/*.txt"))
        packed = volume.read_dir("/", packed=True)
        sizes["packed"] = len(packed.data)
        contents: dict[str, bytes] = volume.read_dir("/")
        sizes["contents"] = len(contents)
        target_name: bytes = volume.readlink(b"/link")
        sizes["target"] = len(target_name)
        with gofs.safetensors.safe_open(volume, "/model.safetensors") as model:
            names_of_tensors: list[str] = model.keys()
            shape: list[int] = model.get_slice(names_of_tensors[0]).get_shape()
        sizes["rows"] = shape[0]
        for batch in gofs.torch.BatchLoader(volume, ["/file"], batch_size=1):
            offsets: list[int] = batch.offsets
            sizes["batch"] = offsets[-1]
        module: gofs.cuda.Module = gofs.cuda.link("source", options=["-lineinfo"], arch="sm_90")
        cubin: bytes = module.cubin
        sizes["cubin"] = len(cubin)
        sizes["milliseconds"] = round(module.timings.link_seconds * 1000)
        used = [part.in_use for part in volume.memory().parts]
        sizes["used"] = sum(bytes_ or 0 for bytes_ in used)
    return sizes
