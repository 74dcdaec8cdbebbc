#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""What targets.py says of rows that reach a target, miss it, or are not there."""

import gzip
import json
import pathlib
import subprocess
import sys
import tempfile
import unittest

PROGRAM = pathlib.Path(__file__).with_name("targets.py")
ROOT = PROGRAM.parent.parent
LATEST = PROGRAM.with_name("results") / "latest.json"


def micro(**changed):
    row = {"bench": "micro", "sweep": "outstanding", "model": "none", "work": "read",
           "pattern": "random", "ssds": 1, "outstanding": 1, "lanes_per_warp": 0, "bytes": 4096,
           "raw_bytes_per_s": {"median": 4096 / 20e-6},
           "file_bytes_per_s": {"median": 4096 / 21e-6}, "ratio": 20 / 21}
    return {**row, **changed}


def baseline(name, ops, **changed):
    row = {"bench": "baseline", "name": name, "model": "p5800x", "work": "read",
           "pattern": "random", "outstanding": 32, "lanes_per_warp": 0,
           "ops_per_s": {"median": ops}, "cores": 0.01}
    return {**row, **changed}


def stream(ratio, **changed):
    row = {"bench": "stream", "model": "none", "actor": "warp", "actors": 1056,
           "piece_bytes": 16384, "own_files": False, "work": "new",
           "raw_bytes_per_s": {"median": 50e9}, "file_bytes_per_s": {"median": 50e9 * ratio},
           "ratio": ratio}
    return {**row, **changed}


def records(rate, **changed):
    row = {"bench": "records", "model": "none", "actor": "warp", "writers": 1056, "bytes": 300,
           "reader": False, "durable": False, "records_per_s": {"median": rate}}
    return {**row, **changed}


class TargetsTest(unittest.TestCase):
    def say(self, *rows, extra=""):
        with tempfile.NamedTemporaryFile("w", suffix=".jsonl") as file:
            file.write("\n".join([json.dumps(row) for row in rows] + [extra]))
            file.flush()
            return subprocess.run([sys.executable, PROGRAM, file.name], check=False, text=True,
                                  stdout=subprocess.PIPE, stderr=subprocess.PIPE)

    def lines(self, words, *rows):
        done = self.say(*rows)
        self.assertEqual(done.returncode, 0, done.stderr)
        return [line for line in done.stdout.splitlines() if words in line]

    def test_nothing_is_not_reached(self):
        done = self.say(micro(sweep="size", bytes=16384))
        self.assertEqual(done.returncode, 0)
        for line in done.stdout.splitlines():
            self.assertTrue(line.startswith("not measured"), line)

    def test_each_point_counts(self):
        line, = self.lines("4 KiB reads by threads", micro(ratio=0.98), micro(ratio=0.97))
        self.assertTrue(line.startswith("reached"), line)
        self.assertIn("2 of 2", line)
        line, = self.lines("4 KiB reads by threads", micro(ratio=0.98), micro(ratio=0.96))
        self.assertTrue(line.startswith("missed"), line)
        self.assertIn("1 of 2; worst 0.96, none random read, 1 outstanding", line)

    def test_time_has_a_most(self):
        line, = self.lines("a lone 4 KiB read", micro())
        self.assertTrue(line.startswith("reached"), line)
        slow = micro(file_bytes_per_s={"median": 4096 / 23e-6})
        line, = self.lines("a lone 4 KiB read", micro(), slow)
        self.assertTrue(line.startswith("missed"), line)
        self.assertIn("worst 3.00 us", line)

    def test_memory_is_counted_by_files(self):
        row = micro(sweep="files", outstanding=65536, batch_memory_bytes=16 << 20)
        line, = self.lines("memory of an open batch", row)
        self.assertTrue(line.startswith("reached"), line)
        line, = self.lines("memory of an open batch", micro(sweep="files", outstanding=65535,
                                                           batch_memory_bytes=16 << 20))
        self.assertTrue(line.startswith("missed"), line)

    def test_eight_ssds(self):
        rows = [micro(sweep="ssds", ssds=8, outstanding=32768,
                      file_bytes_per_s={"median": ops * 4096}) for ops in (11.7e6, 11.9e6)]
        line, = self.lines("11.8 M random", *rows)
        self.assertTrue(line.startswith("missed"), line)
        line, = self.lines("11.8 M random", rows[1])
        self.assertTrue(line.startswith("reached"), line)

    def test_files_are_held_against_fio_from_32_outstanding_on(self):
        def storage(outstanding, **ours):
            fio = {"ops_per_s": 1000, "cpu_us_per_op": 10}
            gofs = {"ops_per_s": 1000 * ours["ratio"], "cpu_us_per_op": 1, **ours}
            names = {"gofs": gofs, "gofs poll=always": {**gofs, "cpu_ratio": 9}, "fio": fio,
                     "rpc": {"ops_per_s": 950, "cpu_us_per_op": 1}}
            return {"bench": "host_storage", "work": "random-read", "outstanding": outstanding,
                    "direct": True, "names": names}
        few = storage(1, ratio=0.1, cpu_ratio=9)
        good = storage(32, ratio=0.96, cpu_ratio=1.2)
        for words in (">= 0.9 of fio", "<= 1.3 of fio's", "ahead of the host's own"):
            line, = self.lines(words, few, good)
            self.assertTrue(line.startswith("reached"), line)
        bad = storage(64, ratio=0.89, cpu_ratio=1.4)
        for words, worst in ((">= 0.9 of fio", "worst 0.89, gofs random-read, 64 outstanding"),
                             ("<= 1.3 of fio's", "worst 1.40 times"),
                             ("ahead of the host's own", "worst 0.937 of it")):
            line = self.lines(words, few, good, bad)[0]
            self.assertTrue(line.startswith("missed") and worst in line, line)

    def test_streams_of_small_calls_by_a_grid_have_a_target_of_their_own(self):
        grid = {"actor": "grid", "actors": 1, "piece_bytes": 1 << 20}
        rows = stream(0.91), stream(0.2, model="p5800x"), stream(0.55, **grid)
        for words in ("by grids, blocks and warps", "by a grid, 1 MiB"):
            line, = self.lines(words, *rows)
            self.assertTrue(line.startswith("reached") and "1 of 1" in line, line)
        line = self.lines("by grids, blocks and warps", *rows, stream(0.8))[0]
        self.assertIn("worst 0.8, 1,056 warps, 16 KiB, new", line)

    def test_records_of_one_and_of_many_have_targets(self):
        few = records(49e3, writers=1)
        line, = self.lines("by 1,056 warps", records(5e5), records(1, durable=True), few)
        self.assertTrue(line.startswith("reached") and "1 of 1" in line, line)
        line, = self.lines("by one warp", records(5e5), few)
        self.assertTrue(line.startswith("missed"), line)

    def test_the_ceiling_is_the_best_of_its_points(self):
        rows = [micro(sweep="lbas", model="hbm", bytes=512, file_bytes_per_s={"median": ops * 512})
                for ops in (20e6, 150e6)]
        line, = self.lines("reads of 512 bytes", *rows)
        self.assertTrue(line.startswith("reached"), line)
        line, = self.lines("reads of 512 bytes", rows[0])
        self.assertTrue(line.startswith("missed"), line)

    def test_stripes_scale_until_the_link_is_full(self):
        def stripe(ssds, bytes_per_s, raw):
            return micro(sweep="ssds", model="p5800x", ssds=ssds,
                         file_bytes_per_s={"median": bytes_per_s}, raw_bytes_per_s={"median": raw})
        rows = [stripe(1, 6e9, 6e9), stripe(2, 11.9e9, 12e9), stripe(8, 40e9, 47e9)]
        line, = self.lines("scale >= 0.95", *rows)
        self.assertTrue(line.startswith("reached"), line)
        line, = self.lines("scale >= 0.95", *rows, stripe(4, 20e9, 24e9))
        self.assertTrue(line.startswith("missed"), line)

    def test_others_have_their_best_layout_and_their_best_point(self):
        rows = [baseline("gofs", 200e3), baseline("gofs", 900e3, lanes_per_warp=1),
                baseline("basic", 500e3)]
        line, = self.lines("ahead of basic", *rows)
        self.assertTrue(line.startswith("reached"), line)
        # It has no more threads than that, and is measured no further.
        line, = self.lines("ahead of basic", *rows, baseline("gofs", 400e3, outstanding=256))
        self.assertTrue(line.startswith("missed"), line)
        line, = self.lines("ahead of companion:", *rows, baseline("companion", 950e3))
        self.assertTrue(line.startswith("missed"), line)

    def test_small_files_are_compared_with_the_best_of_the_host(self):
        rows = [baseline("basic", ops, pattern="files", outstanding=threads)
                for ops, threads in ((90e3, 16), (80e3, 64))]
        batch = baseline("gofs", 85e3, pattern="files", outstanding=100000)
        line, = self.lines("ahead of basic", *rows, batch)
        self.assertTrue(line.startswith("missed"), line)
        line, = self.lines("ahead of basic", *rows, {**batch, "ops_per_s": {"median": 95e3}})
        self.assertTrue(line.startswith("reached"), line)
        self.assertIn("1 of 1", line)

    def test_few_outstanding_are_compared_by_time(self):
        few = {"outstanding": 16}
        rows = [baseline("gofs", 100e3, **few), baseline("basic", 119e3, **few)]
        line, = self.lines("1 to 16 outstanding", *rows)
        self.assertTrue(line.startswith("reached"), line)
        line, = self.lines("1 to 16 outstanding", *rows, baseline("rpc", 121e3, **few))
        self.assertTrue(line.startswith("missed"), line)
        self.assertIn("rpc", line)

    def test_rows_may_be_compressed(self):
        with tempfile.NamedTemporaryFile(suffix=".jsonl.gz") as file:
            file.write(gzip.compress(json.dumps(micro(ratio=0.98)).encode()))
            file.flush()
            done = subprocess.run([sys.executable, PROGRAM, file.name], check=False, text=True,
                                  stdout=subprocess.PIPE)
        self.assertIn("1 of 1", done.stdout)

    def test_what_is_kept_is_read(self):
        kept = sorted(PROGRAM.parent.glob("results/*/*.jsonl*"))
        self.assertTrue(kept)
        done = subprocess.run([sys.executable, PROGRAM, *kept], check=False, text=True,
                              stdout=subprocess.PIPE, stderr=subprocess.PIPE)
        self.assertEqual((done.returncode, done.stderr), (0, ""))
        self.assertIn("reached", done.stdout)

    def test_a_row_cut_short_is_left_out_and_a_strange_one_refused(self):
        done = self.say(micro(ratio=0.98), extra='{"bench":"mic')
        self.assertEqual(done.returncode, 0)
        self.assertIn("not JSON", done.stderr)
        self.assertIn("reached", done.stdout)
        done = self.say({"bench": "micro"})
        self.assertEqual(done.returncode, 2)
        self.assertIn("not what it should be", done.stderr)

class LatestTest(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = pathlib.Path(folder.name)

    def file(self, name, text):
        path = self.folder / name
        path.write_text(text, encoding="utf-8")
        return path

    def run_with(self, *arguments):
        return subprocess.run([sys.executable, PROGRAM, *arguments], check=False, text=True,
                              stdout=subprocess.PIPE, stderr=subprocess.PIPE)

    def latest(self, *runs):
        """What --latest prints of files of rows, oldest first."""
        paths = [self.file(f"{number}.jsonl", "\n".join(json.dumps(row) for row in rows))
                 for number, rows in enumerate(runs)]
        done = self.run_with("--latest", *paths)
        self.assertEqual((done.returncode, done.stderr), (0, ""))
        return json.loads(done.stdout)

    def page(self, text, *runs):
        """A page after its tables were filled in."""
        page = self.file("page.md", text)
        kept = self.file("latest.json", json.dumps(self.latest(*runs)))
        done = self.run_with("--page", page, kept)
        return done, page.read_text(encoding="utf-8")

    def test_the_newest_file_replaces_points_that_it_has(self):
        old = [micro(), micro(outstanding=32)]
        new = [micro(file_bytes_per_s={"median": 4096 / 30e-6})]
        points = self.latest(old, new)["points"]
        self.assertEqual([one["point"] for one in points], ["1", "32"])
        self.assertAlmostEqual(points[0]["ratio"], 0.667, places=3)
        self.assertTrue(points[0]["source"].endswith("1.jsonl"), points)
        self.assertTrue(points[1]["source"].endswith("0.jsonl"), points)

    def test_the_lower_of_two_runs_counts(self):
        fast = micro(file_bytes_per_s={"median": 4096 / 19e-6})
        point, = self.latest([fast, micro()])["points"]
        self.assertAlmostEqual(point["ratio"], 0.952, places=3)

    def test_a_row_that_no_table_has_is_left_out(self):
        self.assertEqual(self.latest([micro(pattern="sequential")])["points"], [])

    def test_a_table_shows_the_time_of_one_and_the_rate_of_many(self):
        done, text = self.page("a\n<!-- table outstanding of x -->\nold\n<!-- end -->\nb\n",
                               [micro(), micro(outstanding=32)])
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertIn("| 1 | 21.0 us, raw 20.0 (0.95) |", text)
        self.assertIn("| 32 | 195 MB/s (0.95) |", text)
        self.assertNotIn("old", text)
        self.assertTrue(text.startswith("a\n") and text.endswith("\nb\n"), text)

    def test_streams_and_records_have_tables(self):
        marks = "".join(f"<!-- table {name} of x -->\n<!-- end -->\n"
                        for name in ("streams", "records"))
        done, text = self.page(marks, [stream(0.9), stream(0.5, work="over", own_files=True),
                                       records(3.5e6), records(2e6, durable=True, reader=True)])
        self.assertEqual(done.returncode, 0, done.stderr)
        for line in ("| 1,056 warps, 16 KiB | 45 GB/s (0.90) |  |",
                     "| 1,056 warps, 16 KiB, files of their own |  | 25 GB/s (0.50) |",
                     "| 1,056 warps | 3.5 M/s |  |",
                     "| 1,056 warps, a reader beside |  | 2 M/s |"):
            self.assertIn(line, text)

    def test_a_page_that_is_filled_in_again_stays_as_it_is(self):
        mark = "<!-- table outstanding of x -->\n<!-- end -->\n"
        _, text = self.page(mark, [micro()])
        _, again = self.page(text, [micro()])
        self.assertEqual(text, again)

    def test_a_table_that_there_is_not_is_refused_and_the_page_kept(self):
        mark = "<!-- table nothing of x -->\nold\n<!-- end -->\n"
        done, text = self.page(mark, [micro()])
        self.assertEqual((done.returncode, text), (2, mark))
        self.assertIn("nothing", done.stderr)

    def test_what_is_kept_is_what_its_sources_say(self):
        kept = json.loads(LATEST.read_text(encoding="utf-8"))
        done = self.run_with("--latest", *(ROOT / source for source in kept["sources"]))
        self.assertEqual(json.loads(done.stdout), kept)

    def test_documents_have_the_tables_of_what_is_kept(self):
        named = 0
        for page in sorted(ROOT.glob("docs/**/*.md")):
            text = page.read_text(encoding="utf-8")
            named += text.count("<!-- table ")
            copy = self.file("copy.md", text)
            self.assertEqual(self.run_with("--page", copy, LATEST).returncode, 0)
            self.assertEqual(copy.read_text(encoding="utf-8"), text,
                             f"{page}: bench/targets.py --page {page} {LATEST}")
        self.assertGreater(named, 0)


if __name__ == "__main__":
    unittest.main()
