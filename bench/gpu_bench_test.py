#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""What `make gpu-bench` leaves, in small and on the CPU backend. usage: gpu_bench_test.py BUILD"""

import json
import os
import pathlib
import subprocess
import sys
import tempfile
import unittest

ROOT = pathlib.Path(__file__).resolve().parent.parent
BUILD = "build/cpu"


class GpuBenchTest(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.out = pathlib.Path(folder.name)

    def run_bench(self, **knobs):
        """Its exit status, and the lines that it printed."""
        knobs = {"GOFS_BUILD": BUILD, "GOFS_SMALL": "1", "GOFS_RUNS": "1", "GOFS_SECONDS": "0.002",
                 # libcufile is in no build for the CPU; so root mounts nothing.
                 "GOFS_CUFILE_FOLDER": str(self.out), "OUT": str(self.out), **knobs}
        done = subprocess.run(["scripts/gpu_bench.sh"], check=False, cwd=ROOT, text=True,
                              env={**os.environ, **knobs}, stdout=subprocess.PIPE,
                              stderr=subprocess.STDOUT)
        return done.returncode, done.stdout.splitlines()

    def rows(self, name):
        return [json.loads(line) for line in (self.out / name).read_text().splitlines()]

    def test_every_part_leaves_rows_and_is_held_against_its_targets(self):
        status, lines = self.run_bench(GOFS_MODELS="p5800x")
        self.assertEqual((status, lines[-1]), (0, "9 passed, 0 failed"), "\n".join(lines))
        self.assertEqual({row["sweep"] for row in self.rows("micro.jsonl") if "sweep" in row},
                         {"outstanding", "ssds", "files"})
        self.assertEqual({row["actor"] for row in self.rows("stream.jsonl") if "actor" in row},
                         {"grid", "block", "warp", "thread"})
        self.assertLessEqual({1, 300}, {row["bytes"] for row in self.rows("records.jsonl")
                                        if row["bench"] == "records"})
        self.assertLessEqual({"write", "fsync", "pause", "names", "batch_create", "clean"},
                             {row["bench"] for row in self.rows("writes.jsonl")})
        self.assertEqual({row["name"] for row in self.rows("baselines.jsonl")
                          if "ops_per_s" in row},
                         {"raw", "gofs", "companion", "companion-lanes", "rpc", "basic"})
        self.assertEqual({row["name"] for row in self.rows("baselines.jsonl")
                          if row.get("pattern") == "files"}, {"raw", "gofs", "basic"})
        self.assertLess({"inode-lock", "one-by-one"},
                        {row["ablation"] for row in self.rows("ablations.jsonl")
                         if "ablation" in row})
        self.assertEqual({row["work"] for row in self.rows("storage.jsonl")
                          if row["bench"] == "host_storage"},
                         {"random-read", "random-write", "sequential-read", "sequential-write",
                          "batch-create", "batch-read"})
        self.assertLessEqual({"gofs", "rpc", "basic"}, set(self.rows("storage.jsonl")[0]["names"]))
        targets = (self.out / "targets.txt").read_text().splitlines()
        measured = [line for line in targets if line.startswith(("reached", "missed"))]
        for words in ("reads by threads", "4 KiB appends", "memory of an open batch",
                      "1 to 16 outstanding"):
            self.assertTrue([line for line in measured if words in line], "\n".join(targets))
        for name in ("micro.png", "ablations.png", "baselines.png"):
            self.assertTrue((self.out / name).exists(), "\n".join(lines[-20:]))
        log = (self.out / "gpu_bench.txt").read_text()
        self.assertIn("\n".join(targets), log)

    def test_a_part_may_leave_a_table_and_no_rows(self):
        status, lines = self.run_bench(GOFS_PARTS="served", GOFS_SERVED_SECONDS="0.02")
        self.assertEqual((status, lines[-1]), (0, "1 passed, 0 failed"), "\n".join(lines))
        table = (self.out / "served.txt").read_text()
        for words in ("attached", "stat", "pread 4 KiB", "pread 16 MiB"):
            self.assertIn(words, table)

    def test_one_part_is_measured_alone(self):
        status, lines = self.run_bench(GOFS_PARTS="micro", GOFS_MODELS="none", GOFS_SWEEPS="lbas")
        self.assertEqual((status, lines[-1]), (0, "1 passed, 0 failed"), "\n".join(lines))
        self.assertFalse((self.out / "writes.jsonl").exists())

    def test_what_fails_is_counted(self):
        status, lines = self.run_bench(GOFS_PARTS="micro", GOFS_MODELS="floppy none",
                                       GOFS_SWEEPS="lbas")
        self.assertEqual((status, lines[-1]), (1, "1 passed, 1 failed"), "\n".join(lines))
        self.assertTrue([line for line in lines if line.startswith("failed: ")])
        status, lines = self.run_bench(GOFS_PARTS="nothing")
        self.assertEqual((status, lines[-1]), (1, "0 passed, 1 failed"), "\n".join(lines))


if __name__ == "__main__":
    if len(sys.argv) > 1:
        BUILD = sys.argv.pop(1)
    unittest.main()
