#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Whether host_storage.py compares what it says, in small. usage: host_storage_test.py BUILD"""

import json
import os
import pathlib
import shutil
import subprocess
import sys
import tempfile
import time
import unittest

PROGRAM = pathlib.Path(__file__).with_name("host_storage.py")
BUILD = pathlib.Path("build/cpu")
# Says that it read and wrote 1,000 blocks at 5,000 a second, and keeps what it was asked for.
FAKE = """#!/bin/sh
echo "$@" >> {log}
echo 'fio: a word of warning'
echo '{{"jobs": [{{"read": {{"iops": 5000, "total_ios": 1000}},
                  "write": {{"iops": 5000, "total_ios": 1000}}}}]}}'
"""


class HostStorageTest(unittest.TestCase):
    def setUp(self):
        # Most of the time would go into writing images.
        memory = "/dev/shm" if os.access("/dev/shm", os.W_OK) else None
        folder = tempfile.TemporaryDirectory(dir=memory)
        self.addCleanup(folder.cleanup)
        self.folder = pathlib.Path(folder.name)
        self.target = self.folder / "a+b.img"
        self.log = self.folder / "fio.log"

    def fake_fio(self, text=FAKE):
        path = self.folder / "fio"
        path.write_text(text.format(log=self.log), encoding="ascii")
        path.chmod(0o755)
        return path

    def compare(self, *options, fio="fio", target=None):
        """What it ended with, and its rows."""
        rows = self.folder / "rows.jsonl"
        done = subprocess.run(
            [sys.executable, PROGRAM, "--build", BUILD, "--fio", fio, "--volume-bytes", "64M",
             "--fio-bytes", "8M", "--file-bytes", "4M", "--files", "20", "--seconds", "0.01",
             "--passes", "1", "--threads", "1", "--no-baselines", "--json", rows, *options,
             target or self.target],
            check=False, text=True, stdout=subprocess.PIPE, stderr=subprocess.PIPE)
        lines = rows.read_text().splitlines() if rows.exists() else []
        return done, [json.loads(line) for line in lines]

    def test_each_work_is_compared_and_the_file_goes(self):
        done, rows = self.compare("--outstanding", "1", "--variants", "default,mode=lfs",
                                  fio=self.fake_fio())
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertFalse(self.target.exists())
        points = {row["work"]: row["names"] for row in rows if row["bench"] == "host_storage"}
        self.assertEqual(set(points), {"random-read", "random-write", "sequential-read",
                                       "sequential-write", "batch-create", "batch-read"})
        for work, names in points.items():
            expected = {"gofs", "gofs mode=lfs"} | (set() if "batch" in work else {"fio"})
            self.assertEqual(set(names), expected, work)
        ours = points["random-read"]["gofs"]
        self.assertAlmostEqual(ours["ratio"], ours["ops_per_s"] / 5000)
        self.assertGreater(ours["cpu_us_per_op"], 0)
        self.assertIn("random-read", done.stdout)
        about = rows[-1]["about"]
        self.assertEqual(about["gofs mode=lfs"]["mode"], "lfs")
        self.assertIn("hosted NVMe SSD", about["gofs"]["ssd"])
        self.assertGreater(rows[-1]["names"]["gofs"]["RssAnon_peak"], 1 << 20)

    def test_fio_has_the_place_behind_the_volume_and_the_same_access(self):
        done, rows = self.compare("--works", "random-write", "--threads", "2", "--outstanding",
                                  "2", fio=self.fake_fio())
        self.assertEqual(done.returncode, 0, done.stderr)
        asked = self.log.read_text().splitlines()[-1].split()
        row = rows[0]
        jobs = min(row["outstanding"], 2)
        for word in (f"--offset={64 << 20}", f"--size={(8 << 20) // jobs}", "--rw=randwrite",
                     f"--numjobs={jobs}", f"--iodepth={row['outstanding'] // jobs}",
                     f"--direct={int(row['direct'])}", f"--filename={self.target}"):
            self.assertIn(word, asked)

    def test_where_o_direct_is_refused_neither_has_it(self):
        for place in (None, self.folder):  # newer kernels take it of tmpfs, too
            with tempfile.TemporaryDirectory(dir=place) as folder:
                done, rows = self.compare("--works", "random-read", "--outstanding", "1",
                                          fio=self.fake_fio(), target=f"{folder}/image")
            self.assertEqual(done.returncode, 0, done.stderr)
            direct = rows[-2]["direct"]
            self.assertEqual("direct=0 for fio" in done.stdout, not direct)
            self.assertEqual("buffered" in rows[-1]["about"]["gofs"]["ssd"], not direct)
            self.assertIn(f"--direct={int(direct)}", self.log.read_text().splitlines()[-1])

    def test_without_fio_gofs_is_measured_alone(self):
        for fio, words in (("no-such-fio", "note: no no-such-fio"),
                           (self.fake_fio("#!/bin/sh\necho refused >&2; exit 1\n"),
                            "note: fio: refused")):
            done, rows = self.compare("--works", "random-read", "--outstanding", "1", fio=fio)
            self.assertEqual(done.returncode, 0, done.stderr)
            self.assertIn(words, done.stdout)
            self.assertEqual(set(rows[-2]["names"]), {"gofs"})
            self.assertNotIn("ratio", rows[-2]["names"]["gofs"])

    def test_what_is_there_is_not_lost_unasked(self):
        self.target.write_text("mine")
        done, rows = self.compare()
        self.assertNotEqual(done.returncode, 0)
        self.assertIn("is there already", done.stderr)
        self.assertEqual((self.target.read_text(), rows), ("mine", []))
        done, _ = self.compare("--overwrite", "--works", "random-read", "--outstanding", "1",
                               fio=self.fake_fio())
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertTrue(self.target.exists(), "it was not made here")

    def test_it_ends_when_its_time_is_over(self):
        done, _ = self.compare("--works", "random-read", "--limit", "0.0")
        self.assertNotEqual(done.returncode, 0)
        self.assertIn("took too long", done.stderr)
        self.assertFalse(self.target.exists())

    def test_it_leaves_nothing_behind_when_it_is_told_to_end(self):
        slow = self.fake_fio(f"#!/bin/sh\ntouch {self.folder}/began; exec sleep 60\n")
        with subprocess.Popen([sys.executable, PROGRAM, "--build", BUILD, "--fio", slow,
                               "--volume-bytes", "64M", "--fio-bytes", "4M", "--file-bytes", "4M",
                               "--works", "random-read", "--outstanding", "1", "--seconds", "0.01",
                               self.target], stderr=subprocess.DEVNULL) as child:
            while not (self.folder / "began").exists() and child.poll() is None:
                time.sleep(0.01)
            self.assertTrue(self.target.exists())
            child.terminate()
            self.assertNotEqual(child.wait(30), 0)
        self.assertFalse(self.target.exists())

    def test_wrong_words_are_refused(self):
        for words in (("--works", "random"), ("--threads", "0"), ("--volume-bytes", "4Q")):
            self.assertEqual(self.compare(*words)[0].returncode, 2, words)

    @unittest.skipUnless(shutil.which("fio"), "no fio")
    def test_fio_itself_takes_what_it_is_asked(self):
        done, rows = self.compare("--works", "random-read,sequential-write", "--outstanding", "1")
        self.assertEqual(done.returncode, 0, done.stderr)
        if any("fio: " in note for note in rows[-1]["notes"]):
            self.skipTest(rows[-1]["notes"][0])  # a container that forbids io_uring
        for row in rows[:-1]:
            self.assertGreater(row["names"]["fio"]["ops_per_s"], 0)
            self.assertGreater(row["names"]["gofs"]["ratio"], 0)


if __name__ == "__main__":
    if len(sys.argv) > 1:
        BUILD = pathlib.Path(sys.argv.pop(1))
    unittest.main()
