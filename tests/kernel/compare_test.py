#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Judges the judge: compare.py must find every single alteration, and nothing where there is none.

The manifest is made up; a stand-in for gofs answers from it, truthfully or with one lie. No image
is needed.
"""

import copy
import hashlib
import json
import os
import pathlib
import subprocess
import sys
import tempfile
import unittest

import compare


def content(path, size):
    return hashlib.shake_128(path).digest(size)


def entry(path, kind, **fields):
    base = {"path_hex": path.hex(), "ino": 100 + len(path), "type": kind, "mode": 0o644, "uid": 1,
            "gid": 2, "nlink": 1, "size": 10, "blocks": 8, "atime": [5, 6], "mtime": [-7, 8],
            "ctime": [9, 10], "rdev": [0, 0], "xattrs": []}
    return {**base, **fields}


def regular(path, size, **fields):
    digest = hashlib.sha256(content(path, size)).hexdigest()
    return entry(path, "regular", size=size, sha256=digest, **fields)


def probed(path, size):
    data = content(path, size)
    probes = [[at, length, hashlib.sha256(data[at:at + length]).hexdigest()]
              for at, length in ((0, 100), (50, 4000), (size - 10, 500))]
    return entry(path, "regular", size=size, probes=probes)


HEADER = {"kernel": "none",
          "statfs": {"blocks": 1000, "bfree": 300, "files": 400, "ffree": 200, "bavail": 250}}
OBJECTS = [
    entry(b"/", "directory", nlink=3),
    entry(b"/dir", "directory", nlink=2),
    regular(b"/dir/plain", 1000, xattrs=[["757365722e61", "00ff"]]),
    regular(b"/dir/new\nline\\and\rback", 77),
    regular(b"/dir/\xff\xfe", 0),
    entry(b"/dir/link", "symlink", target_hex="2e2e2f78"),
    entry(b"/dir/device", "character", rdev=[1, 3]),
    regular(b"/top", 5000, btime=[11, 12]),
    probed(b"/dir/probed", 9000),
    entry(b"/no", "directory"),
    regular(b"/no/refused", 300),
]


# ---- the stand-in for gofs -----------------------------------------------------------------------


class StandIn(compare.Gofs):
    """Answers as gofs would for OBJECTS, with one lie."""

    def __init__(self, lie):
        super().__init__("gofs")
        self.lie, _, self.value = lie.partition(":")

    def run(self, verb, *words):
        self.calls += 1
        if self.lie == "exit" and verb == self.value:
            return compare.Result(1, b"", b"gofs: image: no\n")
        if self.lie == "crash" and verb == self.value:
            raise compare.ProtocolError("killed")
        return compare.Result(*getattr(self, verb)(*words[1:]))

    def info(self, *_):
        space = {"blocks": 1000, "blocks_free": 300, "files": 400, "files_free": 200}
        if self.lie == "space":
            space[self.value] += 1
        return 0, json.dumps({"clean": self.lie == "clean", "space": space}).encode(), b""

    def ls(self, *_):
        objects = {bytes.fromhex(o["path_hex"]): copy.deepcopy(o) for o in OBJECTS}
        lines = []
        if self.lie == "hide":
            del objects[self.value.encode()]
        if self.lie == "invent":
            objects[b"/dir/ghost"] = regular(b"/dir/ghost", 3)
        if self.lie == "field":
            path, name, text = self.value.split(",", 2)
            objects[path.encode()][name] = json.loads(text)
        if self.lie == "drop":
            path, name = self.value.split(",")
            del objects[path.encode()][name]
        for what in objects.values():
            lines.append(json.dumps({k: v for k, v in what.items() if k != "sha256"}))
        if self.lie == "twice":
            lines.append(lines[-1])
        if self.lie == "garbage":
            lines.append("hello")
        return 0, "\n".join(lines).encode() + b"\n", b""

    def sum(self, root, *_):
        out = b""
        for what in OBJECTS:
            path = bytes.fromhex(what["path_hex"])
            if what["type"] != "regular" or not compare.below(path, [root.rstrip(b"/")]):
                continue
            if self.lie == "skip" and path == self.value.encode():
                continue
            data = content(path, what["size"])
            if self.lie == "content" and path == self.value.encode():
                data = data[:-1] + bytes([data[-1] ^ 1])
            escaped = path.replace(b"\\", b"\\\\").replace(b"\n", b"\\n").replace(b"\r", b"\\r")
            mark = b"\\" if escaped != path else b""
            out += mark + hashlib.sha256(data).hexdigest().encode() + b"  " + escaped + b"\n"
        return 0, out, b""

    def cat(self, path, *words):
        size = next(o["size"] for o in OBJECTS if o["path_hex"] == path.hex())
        data = content(path, size)
        if path == b"/no/refused":
            if self.lie == "supported":
                return 0, data, b""
            if self.lie == "wrong":
                return 0, data[1:], b""
            return 1, b"", b"" if self.lie == "silent" else b"gofs: /no/refused: compressed\n"
        at, length = int(words[1]), int(words[3])
        piece = bytearray(data[at:at + length])
        if self.lie == "probe":
            piece[int(self.value) - at] ^= 0x80
        return 0, bytes(piece[:-1] if self.lie == "short" else piece), b""


class CompareTest(unittest.TestCase):
    def compare(self, lie="", objects=None):
        """(passed, failed) of comparing the manifest `objects` with the stand-in."""
        with tempfile.TemporaryDirectory() as folder:
            manifest = pathlib.Path(folder) / "manifest"
            lines = [HEADER] + (OBJECTS if objects is None else objects)
            manifest.write_text("".join(json.dumps(line) + "\n" for line in lines))
            comparison = compare.Comparison(StandIn(lie), "image", manifest, ["/no"], True,
                                            say=lambda text: None)
            comparison.run()
            return comparison.passed, comparison.failed

    def test_truth_passes_and_every_object_is_counted(self):
        # 9 objects, 4 whole contents, 1 probed content, 1 refusal, 2 for the volume.
        self.assertEqual(self.compare(), (17, 0))
        self.assertEqual(self.compare("supported"), (17, 0))

    def test_each_lie_is_found(self):
        for lie in ("exit:sum", "exit:info", "exit:cat", "crash:ls", "crash:sum", "crash:cat",
                    "clean", "space:blocks", "space:files_free", "hide:/dir", "hide:/top",
                    "invent", "twice", "garbage",
                    "skip:/top", "skip:/dir/new\nline\\and\rback", "content:/top",
                    "content:/dir/plain", "silent", "wrong", "probe:60", "probe:8995", "short",
                    'field:/dir/plain,xattrs,[["757365722e61","00fe"]]',
                    'field:/dir/plain,xattrs,[]', 'field:/top,xattrs,[["61",""]]',
                    "drop:/top,xattrs", "drop:/dir/plain,xattrs", "drop:/top,btime",
                    "field:/top,btime,[11,13]", "field:/dir/plain,btime,[0,0]"):
            with self.subTest(lie=lie):
                passed, failed = self.compare(lie)
                self.assertGreater(failed, 0)
                self.assertGreater(passed, 0)

    def test_each_altered_field_of_the_manifest_is_found(self):
        for path, fields in {b"/": compare.COMPARED, b"/dir/plain": (*compare.COMPARED, "sha256"),
                             b"/dir/link": compare.COMPARED, b"/dir/device": compare.COMPARED,
                             b"/dir/\xff\xfe": compare.COMPARED}.items():
            for field in fields:
                objects = copy.deepcopy(OBJECTS)
                what = next(o for o in objects if o["path_hex"] == path.hex())
                if field not in what:
                    continue
                old = what[field]
                if isinstance(old, int):
                    what[field] = old + 1
                elif isinstance(old, list):
                    what[field] = [old[0], old[1] + 1]
                else:
                    what[field] = {"type": "fifo"}.get(field, "00" * 32)
                with self.subTest(path=path, field=field):
                    self.assertGreater(self.compare(objects=objects)[1], 0)

    def test_an_object_more_or_less_in_the_manifest_is_found(self):
        self.assertGreater(self.compare(objects=OBJECTS[:-4] + OBJECTS[-3:])[1], 0)
        self.assertGreater(self.compare(objects=[*OBJECTS, regular(b"/more", 1)])[1], 0)

    def test_a_command_that_ends_badly_is_told_from_one_that_says_no(self):
        def shell(script):
            return compare.Gofs("sh -c").run(script)

        self.assertEqual(shell("printf x; exit 0"), compare.Result(0, b"x", b""))
        self.assertEqual(shell("exit 1").code, 1)
        for script in ("exit 2", "kill -SEGV $$", "exit 99"):
            with self.assertRaises(compare.ProtocolError):
                shell(script)
        with self.assertRaises(compare.ProtocolError):
            compare.Gofs("sh -c").must("exit 1")

    def test_sums_are_parsed_as_sha256sum_prints_them(self):
        with tempfile.TemporaryDirectory() as folder:
            names = [b"plain", b"new\nline", b"back\\slash", b"\\n", b"car\rriage", b"two  spaces"]
            paths = [os.fsencode(folder) + b"/" + name for name in names]
            for path in paths:
                pathlib.Path(os.fsdecode(path)).write_bytes(path)
            said = subprocess.run(["sha256sum", *paths], stdout=subprocess.PIPE, check=True).stdout
            self.assertEqual(compare.parse_sums(said),
                             {path: hashlib.sha256(path).hexdigest() for path in paths})


if __name__ == "__main__":
    unittest.main()
