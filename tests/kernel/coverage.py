#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""What the images exercise, read from their checkpoints and manifests.

Judging a reader by images that never use a journal says nothing about journals. So this looks at
each image's superblock and current checkpoint pack, and at what kinds of objects the manifests
have, prints a table, and fails when the set as a whole misses something from WANTED.
"""

import collections
import dataclasses
import json
import pathlib
import struct
import sys
import zlib

BLOCK = 4096
MAGIC = 0xF2F52010
FLAGS = {0x1: "umount", 0x2: "orphan", 0x4: "compact", 0x40: "crc_recovery", 0x80: "nat_bits",
         0x100: "trimmed", 0x400: "large_nat"}
FEATURES = {0x1: "encrypt", 0x8: "extra_attr", 0x10: "project_quota", 0x20: "inode_checksum",
            0x40: "flexible_inline_xattr", 0x80: "quota", 0x100: "inode_crtime",
            0x200: "lost_found", 0x400: "verity", 0x800: "sb_checksum", 0x1000: "casefold",
            0x2000: "compression"}
LOGS = 6


def crc32(seed, data):
    """F2FS's checksum: CRC-32 with a given start and no inversion at the end."""
    return zlib.crc32(data, seed ^ 0xFFFFFFFF) ^ 0xFFFFFFFF


@dataclasses.dataclass
class Pack:
    number: int
    start: int
    last: int
    version: int
    flags: int
    head: bytes


def u32(data, at):
    return struct.unpack_from("<I", data, at)[0]


def head_is_sound(head):
    at = u32(head, 164)
    if not 192 <= at <= BLOCK - 4:
        return False
    value = crc32(MAGIC, head[:at])
    if at < BLOCK - 4:
        value = crc32(value, head[at + 4:])
    return value == u32(head, at)


def with_crc(head):
    """The checkpoint block with its checksum made right again."""
    at = u32(head, 164)
    value = crc32(MAGIC, head[:at])
    if at < BLOCK - 4:
        value = crc32(value, head[at + 4:])
    return head[:at] + struct.pack("<I", value) + head[at + 4:]


class Volume:
    """An image's superblock and checkpoint packs."""

    def __init__(self, path):
        self.path = path
        with open(path, "rb") as file:
            self.superblock = None
            for copy in range(2):
                file.seek(copy * BLOCK + 1024)
                data = file.read(3072)
                if u32(data, 0) == MAGIC:
                    self.superblock = data
                    break
            if self.superblock is None:
                raise ValueError(f"{path}: no superblock")
            self.packs = []
            first = u32(self.superblock, 76)
            for number in range(2):
                start = first + number * 512
                file.seek(start * BLOCK)
                head = file.read(BLOCK)
                if not head_is_sound(head) or not 3 <= u32(head, 136) <= 512:
                    continue
                last = start + u32(head, 136) - 1
                file.seek(last * BLOCK)
                tail = file.read(BLOCK)
                if head_is_sound(tail) and tail[:8] == head[:8]:
                    version = struct.unpack_from("<Q", head, 0)[0]
                    self.packs.append(Pack(number + 1, start, last, version, u32(head, 132), head))

    def current(self):
        return max(self.packs, key=lambda pack: (pack.version, -pack.number))

    def block(self, address, count=1):
        with open(self.path, "rb") as file:
            file.seek(address * BLOCK)
            return file.read(count * BLOCK)


def bits(data):
    return sum(byte.bit_count() for byte in data)


def describe(path):
    """Facts about an image, as a dictionary."""
    volume = Volume(path)
    pack = volume.current()
    head = pack.head
    sums = pack.start + u32(head, 140)
    if pack.flags & 0x4:
        block = volume.block(sums)
        nat_journal = struct.unpack_from("<H", block, 0)[0]
        sit_journal = struct.unpack_from("<H", block, 507)[0]
    else:
        blocks = volume.block(sums, 3)
        nat_journal = struct.unpack_from("<H", blocks, 3584)[0]
        sit_journal = struct.unpack_from("<H", blocks, 2 * BLOCK + 3584)[0]
    sit_bytes, nat_bytes = u32(head, 156), u32(head, 160)
    payload = u32(volume.superblock, 1664)
    if pack.flags & 0x400:
        maps = volume.block(pack.start, 1 + payload)[196:]
        nat_map, sit_map = maps[:nat_bytes], maps[nat_bytes:nat_bytes + sit_bytes]
    elif payload:
        nat_map = head[192:192 + nat_bytes]
        sit_map = volume.block(pack.start + 1, payload)[:sit_bytes]
    else:
        sit_map = head[192:192 + sit_bytes]
        nat_map = head[192 + sit_bytes:192 + sit_bytes + nat_bytes]
    feature = u32(volume.superblock, 2180)
    return {
        "pack": pack.number,
        "features": [name for bit, name in FEATURES.items() if feature & bit],
        "flags": [name for bit, name in FLAGS.items() if pack.flags & bit],
        "nat_journal": nat_journal,
        "sit_journal": sit_journal,
        "nat_version_bits": bits(nat_map),
        "sit_version_bits": bits(sit_map),
        "ssr_logs": sum(head[176 + log] for log in range(LOGS)),
        "payload": payload,
        "segments_per_section": u32(volume.superblock, 24),
    }


XATTR_PREFIXES = (b"user.", b"trusted.", b"security.", b"system.posix_acl_access",
                  b"system.posix_acl_default")


def count_xattrs(entry, kinds):
    """What is special about an object's extended attributes."""
    stored = 24
    for name, value in entry.get("xattrs", []):
        name, value = bytes.fromhex(name), bytes.fromhex(value)
        prefix = next((known for known in XATTR_PREFIXES if name.startswith(known)), b"other")
        kinds["xattr"] += 1
        kinds["xattr " + prefix.decode()] += 1
        kinds["xattr of a " + entry["type"]] += 1
        kinds["xattr name of 255 bytes"] += len(name) == 255
        kinds["xattr without a value"] += not value
        kinds["xattr value over 4000 bytes"] += len(value) > 4000
        stored += (4 + len(name) - len(prefix) + len(value) + 3) // 4 * 4
    if entry["type"] == "fifo" and stored > 24:
        # All blocks that it has are the node of its attributes, which has 4072 bytes.
        kinds["xattrs in the inode alone"] += entry["blocks"] == 0
        kinds["small xattrs in a node"] += entry["blocks"] == 8 and stored < 80
        kinds["xattr in inode and node"] += stored > 4072 and len(entry["xattrs"]) == 1


def count_objects(manifest):
    """How many objects of each kind a manifest has."""
    kinds = collections.Counter()
    with open(manifest, "rb") as file:
        for line in file:
            entry = json.loads(line)
            if "path_hex" not in entry:
                continue
            kinds[entry["type"]] += 1
            if len(bytes.fromhex(entry["path_hex"]).rpartition(b"/")[2]) == 255:
                kinds["name of 255 bytes"] += 1
            if entry["nlink"] > 1 and entry["type"] != "directory":
                kinds["hard link"] += 1
            if entry["size"] > 4 << 30:
                kinds["over 4 GiB"] += 1
            for stamp in ("atime", "mtime"):
                if entry[stamp][0] < 0:
                    kinds["before 1970"] += 1
            if entry["ctime"][0] >= 1 << 32:
                kinds["ctime after 2106"] += 1
            if entry.get("flags", 0) & 0x100000:
                kinds["verity"] += 1
            if "project" in entry:
                kinds["project id"] += 1
            count_xattrs(entry, kinds)
    return kinds


# Each must hold for at least one image of the set.
WANTED = {
    "checkpoint in pack 1": lambda d: d["pack"] == 1,
    "checkpoint in pack 2": lambda d: d["pack"] == 2,
    "compact summaries": lambda d: "compact" in d["flags"],
    "normal summaries, unmounted": lambda d: not {"compact"} & set(d["flags"])
                                             and "umount" in d["flags"],
    "not unmounted": lambda d: "umount" not in d["flags"],
    "orphans": lambda d: "orphan" in d["flags"],
    "NAT journal, unmounted": lambda d: d["nat_journal"] > 0 and "umount" in d["flags"],
    "NAT journal, not unmounted": lambda d: d["nat_journal"] > 0 and "umount" not in d["flags"],
    "SIT journal": lambda d: d["sit_journal"] > 0,
    "NAT version bits": lambda d: d["nat_version_bits"] > 0,
    "SIT version bits": lambda d: d["sit_version_bits"] > 0,
    "logs in used segments (SSR)": lambda d: d["ssr_logs"] > 0,
    "large NAT bitmap": lambda d: "large_nat" in d["flags"],
    "several segments a section": lambda d: d["segments_per_section"] > 1,
    "no features": lambda d: not d["features"],
    **{"feature " + name: (lambda d, name=name: name in d["features"])
       for name in FEATURES.values()},
}

WANTED_OBJECTS = ("regular", "directory", "symlink", "character", "block", "fifo", "socket",
                  "name of 255 bytes", "hard link", "over 4 GiB", "before 1970",
                  "ctime after 2106", "verity", "project id", "xattr",
                  *("xattr " + prefix.decode() for prefix in XATTR_PREFIXES),
                  *("xattr of a " + kind for kind in
                    ("regular", "directory", "symlink", "fifo", "character")),
                  "xattr name of 255 bytes", "xattr without a value",
                  "xattr value over 4000 bytes", "xattrs in the inode alone",
                  "small xattrs in a node", "xattr in inode and node")


def report(folder, index, say=print):
    """Prints the table; returns what is missing."""
    seen = set()
    kinds = collections.Counter()
    counted = set()
    say(f"{'image':26} pack journals(nat sit) version bits(nat sit) ssr  flags; features")
    for entry in index["images"]:
        facts = describe(pathlib.Path(folder) / entry["image"])
        seen |= {name for name, holds in WANTED.items() if holds(facts)}
        say(f"{entry['name']:26} {facts['pack']:4}"
            f" {facts['nat_journal']:8} {facts['sit_journal']:4}"
            f" {facts['nat_version_bits']:16} {facts['sit_version_bits']:4} {facts['ssr_logs']:9}"
            f"  {' '.join(facts['flags'])}; {' '.join(facts['features'])}")
        if entry["manifest"] not in counted:
            counted.add(entry["manifest"])
            kinds += count_objects(pathlib.Path(folder) / entry["manifest"])
    say("objects: " + ", ".join(f"{count} {kind}" for kind, count in sorted(kinds.items())
                                if count))
    return [name for name in WANTED if name not in seen] + \
           [kind for kind in WANTED_OBJECTS if not kinds[kind]]


def main():
    if len(sys.argv) != 2:
        print("usage: coverage.py FOLDER (of images.json)", file=sys.stderr)
        return 2
    folder = pathlib.Path(sys.argv[1])
    missing = report(folder, json.loads((folder / "images.json").read_text()))
    for name in missing:
        print(f"no image has: {name}")
    return 1 if missing else 0


if __name__ == "__main__":
    sys.exit(main())
