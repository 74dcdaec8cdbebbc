# SPDX-License-Identifier: Apache-2.0
"""Rows that measurements printed: JSON objects, one a line."""

import gzip
import json
import sys


def open_text(path):
    """The lines of a file, of one that is compressed (.gz) too."""
    if str(path).endswith(".gz"):
        return gzip.open(path, "rt", encoding="utf-8")
    return open(path, encoding="utf-8")


def load(paths):
    """Those of all files. A line that is none is told of and left out: the last one of a run that
    was cut short may be half a line."""
    rows = []
    for path in paths:
        with open_text(path) as lines:
            for number, line in enumerate(lines, 1):
                if not line.strip():
                    continue
                try:
                    row = json.loads(line)
                except json.JSONDecodeError as problem:
                    print(f"{path}:{number}: not JSON: {problem}", file=sys.stderr)
                    continue
                if isinstance(row, dict) and "bench" in row:
                    rows.append(row)
    return rows


def best_layouts(rows):
    """Of rows of gofs_baselines: for each (model, work, pattern, outstanding), by name, the row of
    the layout in warps that was fastest."""
    best: dict[tuple, dict] = {}
    for row in rows:
        if row["bench"] != "baseline" or "ops_per_s" not in row:
            continue
        point = best.setdefault(
            (row["model"], row["work"], row["pattern"], row["outstanding"]), {})
        other = point.get(row["name"])
        if other is None or row["ops_per_s"]["median"] > other["ops_per_s"]["median"]:
            point[row["name"]] = row
    return best
