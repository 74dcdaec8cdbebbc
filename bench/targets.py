#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Says of rows that `make gpu-bench` measured what was wanted, what was reached, and where not.

Takes JSON objects, one a line, of `gofs bench micro`, `stream` and `records`, `gofs_write_matrix`
and `gofs_baselines`.
Prints a line for each target: `reached`, `missed` or `not measured`, the target, the least that
was measured of it and where, and below it the points that miss it. Exits with 0 whatever was
reached; with 2 where a file is not what it should be.

`--latest` prints bench/results/latest.json instead: the newest measurement of each point, where
files are given oldest first. `--page PAGE` takes that file and rewrites the tables of a document
between the marks that name them (bench/latest.py).
"""

import argparse
import collections
import json
import os
import pathlib
import sys

import latest
from rows import best_layouts, load

ROOT = pathlib.Path(__file__).resolve().parent.parent

# Rates of raw commands on a link that is full, in bytes a second: scaling ends there.
LINK_FULL = 0.9 * 51e9
HOST_DRIVEN = ("basic", "cufile", "rpc")
POINTS_MAX = 12


class Verdict:
    """One target. Points are (measured, words); `least` is what each of them must have."""

    def __init__(self, title, least, form="{:.3g}", most=None):
        self.title = title
        self.least = least
        self.most = most
        self.form = form
        self.points = []

    def add(self, value, words):
        self.points.append((value, words))

    def holds(self, value):
        return value >= self.least if self.most is None else value <= self.most

    def lines(self):
        """What is printed of it."""
        if not self.points:
            return [f"not measured  {self.title}"]
        order = sorted(self.points, key=lambda point: point[0], reverse=self.most is not None)
        missed = [point for point in order if not self.holds(point[0])]
        word = "missed" if missed else "reached"
        worst, where = order[0]
        count = f"{len(order) - len(missed)} of {len(order)}"
        lines = [f"{word:<12}  {self.title}: {count}; worst {self.form.format(worst)}, {where}"]
        for value, words in missed[1:POINTS_MAX]:
            lines.append(f"{'':<14}{self.form.format(value)}  {words}")
        if len(missed) > POINTS_MAX:
            lines.append(f"{'':<14}and {len(missed) - POINTS_MAX} more")
        return lines


def median(row, kind):
    return row[f"{kind}_bytes_per_s"]["median"]


def words_of(row):
    """A point of `gofs bench micro`."""
    lanes = row.get("lanes_per_warp", 0)
    spread = f", {lanes} of each warp" if lanes else ""
    return (f"{row['model']} {row['pattern']} {row['work']}, {row['outstanding']} outstanding"
            f"{spread}")


def of_raw(rows):
    """4 KiB operations beside raw commands."""
    verdicts = []
    for work in ("read", "write"):
        verdict = Verdict(f"4 KiB {work}s by threads >= 0.97 of raw commands", 0.97)
        for row in rows:
            if (row["bench"] == "micro" and row["sweep"] in ("outstanding", "lanes")
                    and row["work"] == work and row["bytes"] == 4096):
                verdict.add(row["ratio"], words_of(row))
        verdicts.append(verdict)
    appends = Verdict("4 KiB appends >= 0.97 of raw commands", 0.97)
    warps = Verdict("4 KiB writes by warps >= 0.97 of raw commands", 0.97)
    for row in rows:
        if row["bench"] != "write":
            continue
        words = (f"{row['model']} {row['pattern']}, {row['outstanding']} {row['scope']}s, "
                 f"{row['files']} file{'s' if row['files'] == 'own' else ''}")
        if row["pattern"] == "append":
            appends.add(row["ratio"], words)
        elif row["scope"] == "warp":
            warps.add(row["ratio"], words)
    return [*verdicts, warps, appends]


def of_lone_reads(rows):
    """What a file adds to one read."""
    verdict = Verdict("a lone 4 KiB read takes <= 2 us more than a raw one", 0, "{:.2f} us", most=2)
    for row in rows:
        if (row["bench"] == "micro" and row["sweep"] == "outstanding" and row["work"] == "read"
                and row["outstanding"] == 1):
            more = row["bytes"] / median(row, "file") - row["bytes"] / median(row, "raw")
            verdict.add(more * 1e6, words_of(row))
    return [verdict]


def of_batches(rows):
    """100,000 files of 16 KiB."""
    reads = Verdict("a batch of 16 KiB files is read at >= 0.95 of raw commands", 0.95)
    writes = Verdict("a batch of 16 KiB files is made and written at >= 0.9 of raw commands", 0.9)
    memory = Verdict("memory of an open batch <= 16 MiB for 65,536 files, 256 bytes each", 0,
                     "{:.0f} bytes", most=256)
    creates = Verdict("files made in a batch, model none: >= 1 M/s", 1e6, "{:.3g} /s")
    for row in rows:
        if row["bench"] == "micro" and row["sweep"] == "files":
            (reads if row["work"] == "read" else writes).add(row["ratio"], words_of(row))
            if "batch_memory_bytes" in row:
                memory.add(row["batch_memory_bytes"] / row["outstanding"], words_of(row))
        if row["bench"] == "batch_create":
            words = f"{row['model']}, {row['files']} files of {row['file_bytes']} bytes"
            if "ratio" in row:
                writes.add(row["ratio"], words)
            if row["model"] == "none":
                creates.add(row["files_per_s"], words)
    return [reads, writes, creates, memory]


def of_ceilings(rows):
    """The link's, and the software's own."""
    rate = Verdict("8 SSDs without a model: reads >= 48 GB/s", 48e9, "{:.3g} B/s")
    reads = Verdict("8 SSDs without a model: >= 11.8 M random 4 KiB reads/s", 11.8e6, "{:.4g} /s")
    lbas = Verdict("reads of 512 bytes from the GPU's memory >= 100 M/s", 100e6, "{:.3g} /s")
    ceiling = []
    for row in rows:
        if row["bench"] != "micro" or row["work"] != "read":
            continue
        operations = median(row, "file") / row["bytes"]
        if row["sweep"] == "ssds" and row["ssds"] == 8 and row["model"] == "none":
            rate.add(median(row, "file"), words_of(row))
            reads.add(operations, words_of(row))
        if row["model"] == "hbm" and row["bytes"] == 512:
            ceiling.append((operations, words_of(row)))
    if ceiling:
        lbas.add(*max(ceiling))
    return [rate, reads, lbas]


def of_stripes(rows):
    """SSDs that do not fill the link yet."""
    verdict = Verdict("1 to 8 SSDs with a model scale >= 0.95 linearly until the link is full",
                      0.95)
    series: dict[tuple, dict] = collections.defaultdict(dict)
    for row in rows:
        if row["bench"] == "micro" and row["sweep"] == "ssds" and row["model"] != "none":
            series[row["model"], row["work"]][row["ssds"]] = row
    for (model, work), by_count in series.items():
        if 1 not in by_count:
            continue
        one = median(by_count[1], "file")
        for count, row in sorted(by_count.items()):
            if count > 1 and median(row, "raw") < LINK_FULL:
                verdict.add(median(row, "file") / (count * one), f"{model} {work}s, {count} SSDs")
    return [verdict]


def of_others(rows):
    """Beside stand-ins for other systems: the best layout in warps of each."""
    verdicts = {name: Verdict(f"from 32 outstanding on ahead of {name}", 1, "{:.3g} of it")
                for name in ("companion", *HOST_DRIVEN)}
    # Which stands for no system, but for the best that one could do.
    verdicts["companion-lanes"] = Verdict(
        "from 32 outstanding on >= 0.97 of companion-lanes", 0.97, "{:.3g} of it")
    few = Verdict("1 to 16 outstanding: time <= 1.2 of the best of them", 0, "{:.2f} times",
                  most=1.2)
    idle = Verdict("cores of the host that GoFS keeps busy <= 0.1", 0, "{:.2f}", most=0.1)
    # Of who has fewer outstanding at most.
    most: dict[tuple, float] = collections.defaultdict(float)
    for (model, work, pattern, outstanding), point in sorted(best_layouts(rows).items()):
        rates = {name: row["ops_per_s"]["median"] for name, row in point.items()}
        for name, rate in rates.items():
            key = model, work, pattern, name
            most[key] = max(most[key], rate)
        if "gofs" not in point:
            continue
        ours = rates["gofs"]
        words = f"{model} {pattern} {work}, {outstanding} outstanding"
        idle.add(point["gofs"]["cores"], words)
        if outstanding <= 16:
            others = {name: rate for name, rate in rates.items()
                      if name in ("companion", *HOST_DRIVEN)}
            if others:
                name = max(others, key=others.__getitem__)
                few.add(others[name] / ours, f"{words}, {name}")
        if outstanding < 32:
            continue
        for name, verdict in verdicts.items():
            theirs = rates.get(name, most[model, work, pattern, name])
            if theirs:
                verdict.add(ours / theirs, words)
    return [*verdicts.values(), few, idle]


def of_streams(rows):
    """Large files, and larger requests of threads."""
    streams = Verdict("large files, model none, by grids, blocks and warps: >= 0.9 of raw commands",
                      0.9)
    small = Verdict("the same by a grid, 1 MiB a call: >= 0.5 of raw commands", 0.5)
    writes = Verdict("random writes of 64 KiB and more by threads, model none: >= 0.85 of raw "
                     "commands", 0.85)
    reads = Verdict("random reads of 64 KiB and more by threads, model none: >= 0.9 of raw "
                    "commands", 0.9)
    for row in rows:
        if row.get("model") != "none":
            continue
        if row["bench"] == "stream":
            of_grid = row["actor"] == "grid" and row["piece_bytes"] == 1 << 20
            (small if of_grid else streams).add(
                row["ratio"], f"{latest.words_of_shape(row)}, {row['work']}")
        if row["bench"] == "micro" and row["sweep"] == "size" and row["bytes"] >= 1 << 16:
            if row["pattern"] == "random":
                (reads if row["work"] == "read" else writes).add(
                    row["ratio"], f"{words_of(row)}, {latest.words_of_bytes(row['bytes'])}")
    return [streams, small, writes, reads]


def of_records(rows):
    """Records appended to one log."""
    many = Verdict("records of 300 bytes by 1,056 warps, model none: >= 500,000 /s", 500e3,
                   "{:.3g} /s")
    lone = Verdict("records of 300 bytes by one warp, model none: >= 50,000 /s", 50e3, "{:.3g} /s")
    for row in rows:
        if (row["bench"] == "records" and row.get("model", "none") == "none"
                and row["actor"] == "warp" and row["bytes"] == 300 and not row["durable"]):
            words = "a reader beside" if row["reader"] else "alone"
            verdict = {1: lone, 1056: many}.get(row["writers"])
            if verdict is not None:
                verdict.add(row["records_per_s"]["median"], words)
    return [many, lone]


def of_host_storage(rows):
    """Files and block devices beside fio and the host's baselines (bench/host_storage.py)."""
    rates = Verdict("files and block devices: >= 0.9 of fio from 32 outstanding on", 0.9)
    times = Verdict("files and block devices: CPU time of an operation <= 1.3 of fio's", 0,
                    "{:.2f} times", most=1.3)
    others = Verdict("files and block devices: ahead of the host's own from 16 outstanding on", 1,
                     "{:.3g} of it")
    for row in rows:
        if row["bench"] != "host_storage":
            continue
        for name, one in row["names"].items():
            if not name.startswith("gofs"):
                continue
            words = (f"{name} {row['work']}, {row['outstanding']} outstanding, "
                     f"{'O_DIRECT' if row['direct'] else 'buffered'}")
            if "ratio" in one and row["outstanding"] >= 32:
                rates.add(one["ratio"], words)
                if "cpu_ratio" in one and "poll" not in name:
                    times.add(one["cpu_ratio"], words)
            for other in HOST_DRIVEN:
                if row["outstanding"] >= 16 and other in row["names"]:
                    others.add(one["ops_per_s"] / row["names"][other]["ops_per_s"],
                               f"{words}, {other}")
    return [rates, times, others]


def print_targets(paths):
    rows = load(paths)
    for part in (of_raw, of_lone_reads, of_streams, of_records, of_batches, of_ceilings, of_stripes,
                 of_others, of_host_storage):
        for verdict in part(rows):
            print("\n".join(verdict.lines()))


def print_latest(paths):
    """Sources are named from the repository's root, wherever this is called."""
    points = latest.collect(paths)
    for one in points:
        one["source"] = os.path.relpath(one["source"], ROOT)
    sources = [os.path.relpath(path, ROOT) for path in paths]
    lines = ",\n".join(json.dumps(one) for one in points)
    print(f'{{"sources": {json.dumps(sources)},\n"points": [\n{lines}\n]}}')


def rewrite_page(page, paths):
    """Fills in the tables of a document, from files that --latest printed."""
    points = [one for path in paths
              for one in json.loads(pathlib.Path(path).read_text(encoding="utf-8"))["points"]]
    before = page.read_text(encoding="utf-8")
    page.write_text(latest.filled(before, points), encoding="utf-8")


def main():
    parser = argparse.ArgumentParser(description=__doc__,
                                     formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("results", metavar="FILE", nargs="+", help="JSON objects, one a line")
    parser.add_argument("--latest", action="store_true", help="print the newest of each point")
    parser.add_argument("--page", type=pathlib.Path, help="rewrite the tables of this document")
    arguments = parser.parse_args()
    try:
        if arguments.latest:
            print_latest(arguments.results)
        elif arguments.page is not None:
            rewrite_page(arguments.page, arguments.results)
        else:
            print_targets(arguments.results)
    except (KeyError, TypeError, json.JSONDecodeError) as problem:
        print(f"a row is not what it should be: {problem!r}", file=sys.stderr)
        return 2
    return 0


if __name__ == "__main__":
    sys.exit(main())
