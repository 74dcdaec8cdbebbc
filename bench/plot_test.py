#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""What plot.py draws of which rows. The pictures themselves are for people."""

import json
import pathlib
import struct
import subprocess
import sys
import tempfile
import unittest

PROGRAM = pathlib.Path(__file__).with_name("plot.py")


def rate(median):
    return {"median": median, "least": 0.9 * median, "most": 1.1 * median}


def micro(sweep, outstanding, **changed):
    row = {"bench": "micro", "sweep": sweep, "model": "none", "work": "read", "pattern": "random",
           "ssds": 1, "outstanding": outstanding, "lanes_per_warp": 0, "bytes": 4096,
           "raw_bytes_per_s": rate(2e9), "file_bytes_per_s": rate(1e9)}
    return {**row, **changed}


def baseline(name, outstanding, **changed):
    row = {"bench": "baseline", "name": name, "model": "p5800x", "work": "write",
           "pattern": "random", "outstanding": outstanding, "lanes_per_warp": 0,
           "ops_per_s": rate(1e5 * outstanding), "cores": 0.5}
    return {**row, **changed}


class PlotTest(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.out = pathlib.Path(folder.name)

    def draw(self, *files):
        """The exit status, and how large which pictures are."""
        paths = []
        for number, rows in enumerate(files):
            paths.append(self.out / f"{number}.jsonl")
            paths[-1].write_text("\n".join(json.dumps(row) for row in rows), encoding="utf-8")
        done = subprocess.run([sys.executable, PROGRAM, *paths, self.out / "new"], check=False,
                              stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
        self.said = done.stdout + done.stderr
        sizes = {}
        for path in self.out.glob("new/*.png"):
            header = path.read_bytes()[:24]
            self.assertTrue(header.startswith(b"\x89PNG"), path)
            sizes[path.name] = struct.unpack(">II", header[16:24])
        return done.returncode, sizes

    def test_each_kind_of_rows_has_its_picture(self):
        status, sizes = self.draw(
            [micro("outstanding", 1), micro("outstanding", 32), micro("unknown", 1)],
            [micro("ablations", 1, ablation="inode-lock", ablated=ablated)
             for ablated in (False, True)],
            [baseline("gofs", 1), baseline("gofs", 4), baseline("somebody", 1),
             {"bench": "baseline", "name": "cufile", "note": "not available"},
             {"bench": "write", "model": "none"}])
        self.assertEqual(status, 0, self.said)
        self.assertEqual(set(sizes), {"micro.png", "ablations.png", "baselines.png"})

    def test_each_axis_has_a_diagram(self):
        status, one = self.draw([micro("outstanding", 1)])
        self.assertEqual((status, set(one)), (0, {"micro.png"}), self.said)
        status, five = self.draw([micro("outstanding", 1), micro("size", 1), micro("ssds", 1),
                                  micro("files", 1), micro("outstanding", 1, work="write")])
        self.assertEqual(status, 0, self.said)
        self.assertGreater(five["micro.png"][0], 3.5 * one["micro.png"][0])
        self.assertGreater(five["micro.png"][1], 1.5 * one["micro.png"][1])

    def test_without_rows_nothing_is_drawn(self):
        self.assertEqual(self.draw([]), (0, {}), self.said)

    def test_strange_rows_are_refused(self):
        status, sizes = self.draw([{"bench": "micro", "sweep": "outstanding"}])
        self.assertEqual((status, sizes), (1, {}), self.said)
        self.assertIn("not what it should be", self.said)


if __name__ == "__main__":
    unittest.main()
