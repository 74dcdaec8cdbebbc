#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Draws what `make gpu-bench` measured, a PNG for each kind of rows that is there.

micro.png      `gofs bench micro`: a diagram for each axis and kind of work. Lines are solid for the
               file API and dashed for raw NVMe commands, a colour for each model.
ablations.png  the same with and without each mechanism: pairs of bars, with a dashed line for raw
               commands.
baselines.png  gofs_baselines: rates by outstanding requests, and by the cores of the host that are
               busy meanwhile; each system in the better of its layouts in warps.

Each point is the median of its runs, its bar their spread. Needs matplotlib (Debian package
python3-matplotlib).
"""

import argparse
import collections
import pathlib
import sys

from rows import best_layouts, load

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
COLUMNS_MAX = 4
NAMES = ("raw", "gofs", "companion", "companion-lanes", "rpc", "basic", "cufile")


class Sheet:
    """A picture of several diagrams."""

    def __init__(self, pyplot, title, count, columns=COLUMNS_MAX):
        columns = min(count, columns)
        lines = -(-count // columns)
        self.pyplot = pyplot
        self.figure, grid = pyplot.subplots(
            lines, columns, figsize=(4.4 * columns, 3.4 * lines + 0.4), squeeze=False,
            layout="constrained")
        self.diagrams = list(grid.flat)[:count]
        for axes in list(grid.flat)[count:]:
            axes.set_visible(False)
        self.figure.suptitle(title, fontsize=10)

    def save(self, target):
        self.figure.savefig(target, dpi=110)
        self.pyplot.close(self.figure)
        print(target)


def spread(rates, unit):
    """Medians, and how far the runs were below and above them."""
    median = [rate["median"] / unit for rate in rates]
    below = [(rate["median"] - rate["least"]) / unit for rate in rates]
    above = [(rate["most"] - rate["median"]) / unit for rate in rates]
    return median, [below, above]


def mark_places(axes, places, label):
    """An axis on which these places are named, each twice the one before it as far as the next."""
    places = sorted(set(places))
    axes.set_xscale("log", base=2)
    axes.set_xticks(places, labels=[str(place) for place in places], rotation=45, fontsize=8)
    axes.minorticks_off()
    axes.set_xlabel(label, fontsize=8)
    axes.grid(alpha=0.3)


def from_zero(axes):
    axes.set_ylim(0, axes.get_ylim()[1] * 1.08)


def line_of(row):
    """Which line of its diagram a row belongs to."""
    if row["sweep"] == "lanes":
        return f"{row['model']}, {row['outstanding']} outstanding"
    return row["model"]


def draw_micro(pyplot, rows, title, target):
    diagrams = collections.defaultdict(list)
    for row in rows:
        if row["bench"] == "micro" and row["sweep"] in AXES:
            diagrams[row["sweep"], row["work"], row["pattern"]].append(row)
    if not diagrams:
        return
    sheet = Sheet(pyplot, title, len(diagrams))
    for axes, ((sweep, work, pattern), some) in zip(sheet.diagrams, diagrams.items()):
        key, label = AXES[sweep]
        for number, line in enumerate(sorted({line_of(row) for row in some})):
            points = sorted((row for row in some if line_of(row) == line),
                            key=lambda row: row[key])
            for kind, style in (("raw", "--"), ("file", "-")):
                median, bars = spread([row[f"{kind}_bytes_per_s"] for row in points], 1e9)
                axes.errorbar([row[key] for row in points], median, yerr=bars, fmt=style,
                              marker="o", markersize=3, capsize=3, color=f"C{number}",
                              label=f"{line}, {kind}")
        mark_places(axes, [row[key] for row in some], label)
        from_zero(axes)
        axes.set_ylabel("GB/s", fontsize=8)
        axes.set_title(f"{work}, {pattern}", fontsize=9)
        axes.legend(fontsize=7)
    sheet.save(target)


def draw_ablations(pyplot, rows, title, target):
    rows = [row for row in rows if row["bench"] == "micro" and row["sweep"] == "ablations"]
    kinds = list(dict.fromkeys((row["ablation"], row["work"]) for row in rows))
    if not kinds:
        return
    models = sorted({row["model"] for row in rows})
    sheet = Sheet(pyplot, f"usual (left) and ablated (right): {title}", len(kinds))
    for axes, (ablation, work) in zip(sheet.diagrams, kinds):
        for row in rows:
            if (row["ablation"], row["work"]) != (ablation, work):
                continue
            place = models.index(row["model"]) + (0.2 if row["ablated"] else -0.2)
            median, bars = spread([row["file_bytes_per_s"]], 1e9)
            axes.bar(place, median, 0.36, yerr=bars, capsize=3,
                     color="C1" if row["ablated"] else "C0")
            axes.plot([place - 0.18, place + 0.18], [row["raw_bytes_per_s"]["median"] / 1e9] * 2,
                      color="black", linestyle="--", linewidth=1)
        axes.set_title(f"{ablation}, {work}", fontsize=9)
        axes.set_xticks(range(len(models)), labels=models, fontsize=8)
        from_zero(axes)
        axes.set_ylabel("GB/s", fontsize=8)
        axes.grid(alpha=0.3, axis="y")
    sheet.save(target)


def draw_baselines(pyplot, rows, title, target):
    lines: dict[tuple, dict] = collections.defaultdict(lambda: collections.defaultdict(list))
    for (model, work, pattern, _), point in sorted(best_layouts(rows).items()):
        for name, row in point.items():
            lines[model, work, pattern][name].append(row)
    if not lines:
        return
    sheet = Sheet(pyplot, title, 2 * len(lines))
    for number, (kind, by_name) in enumerate(lines.items()):
        by_outstanding, by_cores = sheet.diagrams[2 * number:2 * number + 2]
        for name in [*NAMES, *(name for name in by_name if name not in NAMES)]:
            if name not in by_name:
                continue
            points = by_name[name]
            median, bars = spread([row["ops_per_s"] for row in points], 1e3)
            colour = f"C{NAMES.index(name) if name in NAMES else len(NAMES)}"
            by_outstanding.errorbar([row["outstanding"] for row in points], median, yerr=bars,
                                    marker="o", markersize=3, capsize=3, color=colour, label=name,
                                    linestyle="--" if name == "raw" else "-")
            by_cores.plot([row["cores"] for row in points], median, marker="o", markersize=4,
                          color=colour, label=name, linestyle="")
        mark_places(by_outstanding,
                    [row["outstanding"] for points in by_name.values() for row in points],
                    "requests outstanding")
        by_cores.set_xlabel("cores of the host that are busy", fontsize=8)
        by_cores.grid(alpha=0.3)
        for axes in (by_outstanding, by_cores):
            axes.set_yscale("log")
            axes.set_ylabel("1000 operations/s", fontsize=8)
            axes.set_title(", ".join(kind), fontsize=9)
        by_outstanding.legend(fontsize=7)
    sheet.save(target)


def main():
    parser = argparse.ArgumentParser(description=__doc__,
                                     formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("results", metavar="FILE", nargs="+", help="JSON objects, one a line")
    parser.add_argument("folder", metavar="FOLDER", type=pathlib.Path, help="where pictures go")
    options = parser.parse_args()
    try:
        import matplotlib
    except ModuleNotFoundError:
        raise SystemExit("matplotlib is missing (Debian package python3-matplotlib)") from None
    matplotlib.use("Agg")
    from matplotlib import pyplot
    rows = load(options.results)
    title = next((row["backend_detail"] for row in rows if "backend_detail" in row), "")
    options.folder.mkdir(parents=True, exist_ok=True)
    try:
        draw_micro(pyplot, rows, title, options.folder / "micro.png")
        draw_ablations(pyplot, rows, title, options.folder / "ablations.png")
        draw_baselines(pyplot, rows, title, options.folder / "baselines.png")
    except (KeyError, TypeError) as problem:
        raise SystemExit(f"a row is not what it should be: {problem!r}") from problem


if __name__ == "__main__":
    sys.exit(main())
