#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Draws what `gofs bench micro --json` printed: a PNG for each axis and kind of work.

Each point is the median of its runs, its bar their spread. Lines are solid for the file API and
dashed for raw NVMe commands, a colour for each model. Of ablations one PNG has pairs of bars for
each model, as usual and ablated, with a dashed line for raw commands. Needs matplotlib (Debian
package python3-matplotlib).
"""

import argparse
import collections
import json
import pathlib
import sys

# What a sweep moves along, and how the axis is called.
AXES = {
    "outstanding": ("outstanding", "threads, each with one operation under way"),
    "size": ("bytes", "bytes of an operation"),
    "blocks": ("outstanding", "threads, 256 in a block"),
    "lanes": ("lanes_per_warp", "threads of each warp that have an operation under way"),
    "lbas": ("outstanding", "threads, each with one LBA under way"),
    "ssds": ("ssds", "SSDs"),
    "files": ("outstanding", "files of a batch"),
}


def load(path):
    """The rows of a file, and what it says of the machine."""
    machine = None
    rows = []
    with open(path, encoding="utf-8") as lines:
        for number, line in enumerate(lines, 1):
            if not line.strip():
                continue
            try:
                entry = json.loads(line)
            except json.JSONDecodeError as problem:
                raise SystemExit(f"{path}:{number}: not JSON: {problem}") from problem
            if entry.get("bench") == "micro volume" and machine is None:
                machine = entry
            if entry.get("bench") == "micro":
                rows.append(entry)
    if not rows:
        raise SystemExit(f"{path}: no rows of `gofs bench micro --json`")
    return machine, rows


def line_of(row):
    """Which line of its picture a row belongs to."""
    if row["sweep"] == "lanes":
        return f"{row['model']}, {row['outstanding']} outstanding"
    return row["model"]


def draw(pyplot, title, axis, rows, target):
    """One picture: rates of raw commands and of files."""
    key, label = axis
    figure, axes = pyplot.subplots(figsize=(7, 4.5))
    for number, line in enumerate(sorted({line_of(row) for row in rows})):
        points = sorted((row for row in rows if line_of(row) == line), key=lambda row: row[key])
        places = [row[key] for row in points]
        for kind, style in (("raw", "--"), ("file", "-")):
            rates = [row[f"{kind}_bytes_per_s"] for row in points]
            median = [rate["median"] / 1e9 for rate in rates]
            below = [(rate["median"] - rate["least"]) / 1e9 for rate in rates]
            above = [(rate["most"] - rate["median"]) / 1e9 for rate in rates]
            axes.errorbar(places, median, yerr=[below, above], fmt=style, marker="o", capsize=3,
                          color=f"C{number}", label=f"{line}, {kind}")
    axes.set_xscale("log", base=2)
    axes.set_xticks(sorted({row[key] for row in rows}),
                    labels=[str(place) for place in sorted({row[key] for row in rows})],
                    rotation=45)
    axes.minorticks_off()
    axes.set_ylim(bottom=0)
    axes.set_xlabel(label)
    axes.set_ylabel("GB/s")
    axes.set_title(title, fontsize=9)
    axes.grid(alpha=0.3)
    axes.legend(fontsize=8)
    figure.tight_layout()
    figure.savefig(target, dpi=130)
    pyplot.close(figure)


def draw_ablations(pyplot, title, rows, target):
    """One picture: for each ablation and kind of work, bars in pairs."""
    kinds = list(dict.fromkeys((row["ablation"], row["work"]) for row in rows))
    models = sorted({row["model"] for row in rows})
    columns = min(len(kinds), 4)
    lines = -(-len(kinds) // columns)
    figure, grid = pyplot.subplots(lines, columns, figsize=(3 * columns, 2.8 * lines + 0.4),
                                   squeeze=False)
    for axes in grid.flat[len(kinds):]:
        axes.set_visible(False)
    for axes, (ablation, work) in zip(grid.flat, kinds):
        for row in rows:
            if (row["ablation"], row["work"]) != (ablation, work):
                continue
            place = models.index(row["model"]) + (0.2 if row["ablated"] else -0.2)
            rate = row["file_bytes_per_s"]
            spread = [[(rate["median"] - rate["least"]) / 1e9],
                      [(rate["most"] - rate["median"]) / 1e9]]
            axes.bar(place, rate["median"] / 1e9, 0.36, yerr=spread, capsize=3,
                     color="C1" if row["ablated"] else "C0")
            axes.plot([place - 0.18, place + 0.18], [row["raw_bytes_per_s"]["median"] / 1e9] * 2,
                      color="black", linestyle="--", linewidth=1)
        axes.set_title(f"{ablation}, {work}", fontsize=9)
        axes.set_xticks(range(len(models)), labels=models, fontsize=8)
        axes.set_ylim(bottom=0)
        axes.grid(alpha=0.3, axis="y")
    for axes in grid[:, 0]:
        axes.set_ylabel("GB/s")
    figure.suptitle(title, fontsize=9)
    figure.tight_layout()
    figure.savefig(target, dpi=130)
    pyplot.close(figure)


def main():
    parser = argparse.ArgumentParser(description=__doc__,
                                     formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("results", metavar="FILE", help="what `gofs bench micro --json` printed")
    parser.add_argument("folder", metavar="FOLDER", type=pathlib.Path, help="where pictures go")
    options = parser.parse_args()
    try:
        import matplotlib
    except ModuleNotFoundError:
        raise SystemExit("matplotlib is missing (Debian package python3-matplotlib)") from None
    matplotlib.use("Agg")
    from matplotlib import pyplot
    machine, rows = load(options.results)
    options.folder.mkdir(parents=True, exist_ok=True)
    pictures = collections.defaultdict(list)
    ablations = [row for row in rows if row["sweep"] == "ablations"]
    for row in rows:
        if row["sweep"] in AXES:
            pictures[row["sweep"], row["work"], row["pattern"]].append(row)
    where = machine["backend_detail"] if machine else ""
    if ablations:
        target = options.folder / "ablations.png"
        draw_ablations(pyplot, f"usual (left) and ablated (right): {where}", ablations, target)
        print(target)
    for (sweep, work, pattern), some in pictures.items():
        target = options.folder / f"{sweep}_{work}_{pattern}.png"
        draw(pyplot, f"{work}, {pattern} by {sweep}: {where}", AXES[sweep], some, target)
        print(target)


if __name__ == "__main__":
    sys.exit(main())
