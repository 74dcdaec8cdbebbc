# SPDX-License-Identifier: Apache-2.0
"""A disk with two partitions that two programs may have: a loop device with a file.

Without udev, as in containers, the partitions' device nodes are made here. Where Linux knows no
partition tables it is told of each partition (addpart); where it cannot have partitions on loop
devices at all, two loop devices each have a part of the file.
"""

import contextlib
import os
import pathlib
import stat
import struct
import subprocess

SECTOR = 512


class NoLoopDevices(Exception):
    """There are none here, or none for us."""


def run(*command):
    result = subprocess.run([str(word) for word in command], stdin=subprocess.DEVNULL,
                            stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True,
                            timeout=60, check=False)
    return result.returncode, result.stdout.strip()


def partition_table(parts):
    """An MBR; `parts` are pairs of a first byte and a size."""
    table = bytearray(SECTOR)
    for number, (first, size) in enumerate(parts):
        struct.pack_into("<B3sB3sII", table, 446 + 16 * number, 0, b"\xfe\xff\xff", 0x83,
                         b"\xfe\xff\xff", first // SECTOR, size // SECTOR)
    table[510:] = b"\x55\xaa"
    return bytes(table)


def attach(*options):
    code, said = run("losetup", "--find", "--show", *options)
    if code != 0:
        raise NoLoopDevices(said)
    return said


def let_go(image):
    """Of what a run that was killed has left."""
    if not image.exists():
        return
    _, said = run("losetup", "--associated", image)
    for line in said.splitlines():
        run("losetup", "--detach", line.split(":")[0])


def node_of(name):
    """/dev/NAME; made, if there is none."""
    node = pathlib.Path("/dev") / name
    major, minor = pathlib.Path(f"/sys/class/block/{name}/dev").read_text().split(":")
    number = os.makedev(int(major), int(minor))
    if node.exists() and os.stat(node).st_rdev != number:
        node.unlink()  # of a device that was there before
    if not node.exists():
        os.mknod(node, stat.S_IFBLK | 0o600, number)
    return str(node)


def partitions(loop, parts):
    """The nodes of the partitions, or None where there can be none."""
    name = pathlib.Path(loop).name
    for number, (first, size) in enumerate(parts, 1):
        if not pathlib.Path(f"/sys/block/{name}/{name}p{number}").exists():
            run("addpart", loop, number, first // SECTOR, size // SECTOR)
        if not pathlib.Path(f"/sys/block/{name}/{name}p{number}").exists():
            return None
    return [node_of(f"{name}p{number}") for number in range(1, len(parts) + 1)]


@contextlib.contextmanager
def with_partitions(image, parts):
    """Yields the device of each part of the file, and in words how it is one."""
    with open(image, "r+b") as file:
        file.write(partition_table(parts))
    loops = [attach("--partscan", image)]
    try:
        devices = partitions(loops[0], parts)
        words = f"partitions of {loops[0]}"
        if devices is None:
            run("losetup", "--detach", loops.pop())
            for first, size in parts:
                loops.append(attach("--offset", first, "--sizelimit", size, image))
            devices, words = list(loops), "two loop devices, since they have no partitions here"
        yield devices, words
    finally:
        for loop in loops:
            run("losetup", "--detach", loop)
