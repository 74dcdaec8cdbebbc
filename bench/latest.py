# SPDX-License-Identifier: Apache-2.0
"""The newest measurement of each point, and the tables that documents make of them.

A point is a dictionary: the table it belongs to, the SSD model, the point on the table's axis, the
series (the column), the unit, the rates of raw commands and of the file system, their ratio, and
the file that it comes from. `raw` and `ratio` are null where there are no raw commands to compare
with. Rates are bytes per second or operations per second.
"""

import re

import rows as results

MODELS = ("none", "p5800x", "990pro", "hbm")
BEGIN = "<!-- table {} of latest.json: bench/targets.py --page -->"
END = "<!-- end -->"
MARKED = re.compile(r"<!-- table (\S+) of .*? -->\n.*?<!-- end -->", re.DOTALL)
DIGITS = 4
# Of the points beside other systems, those that a page shows.
OTHERS = ("1", "32", "256", "32,768")


def rounded(value):
    return None if value is None else float(f"{value:.{DIGITS}g}")


def point(table, row, axis, series, unit, raw, file):
    """One point of a table."""
    return {"table": table, "model": row["model"], "point": axis, "series": series, "unit": unit,
            "raw": rounded(raw), "file": rounded(file),
            "ratio": None if raw is None else rounded(file / raw)}


def words_of_bytes(count):
    for unit, size in (("MiB", 1 << 20), ("KiB", 1 << 10)):
        if count % size == 0:
            return f"{count // size} {unit}"
    return f"{count} bytes"


def words_of_warps(row):
    return "1 warp" if row["warps"] == 1 else f"{row['warps']:,} warps"


def of_micro(row):
    """The points of a row of `gofs bench micro`."""
    raw, file = row["raw_bytes_per_s"]["median"], row["file_bytes_per_s"]["median"]
    sweep, work, pattern = row["sweep"], row["work"], row["pattern"]
    if sweep == "outstanding" and pattern == "random":
        yield point(sweep, row, f"{row['outstanding']:,}", work, "B/s", raw, file)
    if sweep == "size":
        threads = "" if row["outstanding"] == 1024 else f", {row['outstanding']} threads"
        yield point(sweep, row, words_of_bytes(row["bytes"]) + threads, f"{pattern} {work}s", "B/s",
                    raw, file)
    if sweep == "blocks":
        yield point(sweep, row, f"{row['outstanding'] // row['threads_per_block']}", f"{work}s",
                    "B/s", raw, file)
    if sweep in ("ssds", "files"):
        series = f"random {work}s" if sweep == "ssds" else f"batch {work}"
        yield point("ssds", row, f"{row['ssds']}", series, "B/s", raw, file)
    if sweep == "lbas":
        yield point(sweep, row, f"{row['outstanding']:,}", f"{work}s", "/s", raw / row["bytes"],
                    file / row["bytes"])
    if sweep == "ablations":
        axis = (f"`{row['ablation']}`: {pattern} {work}s, {row['outstanding']:,} "
                f"{row['actors']}")
        yield point(sweep, row, axis, "without" if row["ablated"] else "with", "B/s", None, file)


def words_of_shape(row):
    """Who streams, how much at a time."""
    who = {"grid": "the grid", "block": f"{row['actors']} blocks",
           "warp": f"{row['actors']:,} warps",
           "thread": f"{row['actors']:,} threads"}[row["actor"]]
    where = ", files of their own" if row["own_files"] else ""
    return f"{who}, {words_of_bytes(row['piece_bytes'])}{where}"


def of_streams(row):
    """The points of a row of `gofs bench stream`."""
    raw, file = row["raw_bytes_per_s"]["median"], row["file_bytes_per_s"]["median"]
    yield point("streams", row, words_of_shape(row), row["work"], "B/s", raw, file)


def of_records(row):
    """The points of a row of `gofs bench records`."""
    beside = ", a reader beside" if row["reader"] else ""
    one = row["writers"] == 1
    who = f"{row['writers']:,} {row['actor']}{'' if one else 's'}{beside}"
    yield point("records", row, who, words_of_bytes(row["bytes"]) +
                (", durable" if row["durable"] else ""), "/s", None,
                row["records_per_s"]["median"])


def of_writes(row):
    """The points of a row of `gofs_write_matrix`."""
    kind = row["bench"]
    if kind == "write" and row["pattern"] != "sequential":
        what = "overwrites" if row["pattern"] == "random" else "appends"
        where = "files of their own" if row["files"] == "own" else "one file"
        yield point(kind, row, f"{row['outstanding']:,}", f"{what} by {row['scope']}s, {where}",
                    "/s", row["raw_writes_per_s"], row["file_writes_per_s"])
    if kind == "fsync":
        yield point("metadata", row, "overwrite and fsync", f"made by {words_of_warps(row)}", "/s",
                    None, row["fsyncs_per_s"])
    if kind == "names" and row["what"] != "mkdir in one directory":
        what, warps = row["what"], words_of_warps(row)
        yield point("metadata", row, what, f"made by {warps}", "/s", None, row["made_per_s"])
        yield point("metadata", row, what, f"removed by {warps}", "/s", None,
                    row["removed_per_s"])
    if kind == "batch_create" and row["file_bytes"] == 0:
        yield point("metadata", row, "empty files", "by a grid, in a batch", "/s", None,
                    row["files_per_s"])


def of_baselines(found):
    """Those of gofs_baselines: the better layout of each."""
    for (model, work, pattern, outstanding), best in results.best_layouts(found).items():
        if pattern != "random" or "raw" not in best:
            continue
        raw = best["raw"]["ops_per_s"]["median"]
        for name, row in best.items():
            yield point("baselines", {"model": model}, f"{work}s, {outstanding:,}", name, "/s",
                        raw, row["ops_per_s"]["median"])


def points_of(found):
    """Points of one file's rows, by what they are; of several runs the median, of two the lower."""
    runs: dict[tuple, list] = {}
    every = list(of_baselines(found))
    for row in found:
        if row["bench"] == "micro":
            every += of_micro(row)
        elif row["bench"] == "stream":
            every += of_streams(row)
        elif row["bench"] == "records":
            every += of_records(row)
        elif row["bench"] != "baseline" and "model" in row:
            every += of_writes(row)
    for one in every:
        key = tuple(one[name] for name in ("table", "model", "point", "series"))
        runs.setdefault(key, []).append(one)
    return {key: sorted(same, key=lambda one: one["file"])[(len(same) - 1) // 2]
            for key, same in runs.items()}


def collect(paths):
    """What latest.json holds of files, the newest last: a later file replaces points of the earlier
    ones."""
    newest = {}
    for path in paths:
        for key, one in points_of(results.load([path])).items():
            newest[key] = {**one, "source": str(path)}
    return list(newest.values())


# --- Tables ---------------------------------------------------------------------------------------

def amount(value, unit):
    """A rate in few digits."""
    for size, prefix in ((1e9, "G"), (1e6, "M"), (1e3, "k")):
        if value >= size:
            return f"{value / size:.3g} {prefix}{unit}"
    return f"{value:.3g} {unit}"


def cell(one, lone=False):
    """`file of raw (ratio)`; of a lone operation its time."""
    if lone:
        time = [4096 / one[name] * 1e6 for name in ("file", "raw")]
        return f"{time[0]:.1f} us, raw {time[1]:.1f} ({one['ratio']:.2f})"
    if one["raw"] is None:
        return amount(one["file"], one["unit"])
    return f"{amount(one['file'], one['unit'])} ({one['ratio']:.2f})"


def in_order(names, first=()):
    """Names once each, those of `first` first."""
    seen = dict.fromkeys(names)
    return [name for name in first if name in seen] + [n for n in seen if n not in first]


def number_first(text):
    """Axes in the order of their numbers."""
    match = re.search(r"\d[\d,]*", text)
    number = int(match.group().replace(",", "")) if match else 0
    return (text.split()[0] if not text[0].isdigit() else "",
            number * (1 << 20 if "MiB" in text else 1 << 10 if "KiB" in text else 1))


def grid(points, head, column, row, show=cell, axis=None):
    """A Markdown table; `column` and `row` name what each point belongs to."""
    columns = in_order(column(one) for one in points)
    lines = in_order(row(one) for one in points)
    if axis is not None:
        lines.sort(key=axis)
    cells = {(row(one), column(one)): show(one) for one in points}
    yield f"| {head} | {' | '.join(columns)} |"
    yield "| --- |" + " --- |" * len(columns)
    for line in lines:
        yield f"| {line} | {' | '.join(cells.get((line, name), '') for name in columns)} |"


def by_model(points):
    return sorted(points, key=lambda one: MODELS.index(one["model"])
                  if one["model"] in MODELS else len(MODELS))


def of_axis(points, head):
    """Rows are the points of the axis, columns the models and series."""
    models = len({one["model"] for one in points})
    return grid(by_model(points), head,
                lambda one: f"{one['model']}: {one['series']}" if models > 1 else one["series"],
                lambda one: one["point"],
                lambda one: cell(one, one["table"] == "outstanding" and one["point"] == "1"),
                number_first)


def of_model_rows(points, head):
    """Rows are models and points."""
    return grid(by_model(points), head, lambda one: one["series"],
                lambda one: f"{one['model']}: {one['point']}")


def of_shapes(points, head):
    """Rows are who streams, columns the works, of the model none."""
    mine = [one for one in points if one["model"] == "none"]
    return grid(mine, head, lambda one: one["series"], lambda one: one["point"])


def of_metadata(points, head):
    """Rates of what has no raw commands, of the model none."""
    mine = sorted((one for one in points if one["model"] == "none"),
                  key=lambda one: one["series"].split()[0] == "removed")
    return grid(mine, head, lambda one: one["series"], lambda one: one["point"])


def of_ablations(points, head):
    """With and without a mechanism."""
    ordered = sorted(points, key=lambda one: (one["series"] == "without"))
    return grid(ordered, head, lambda one: one["series"], lambda one: one["point"],
                axis=lambda text: text)


def of_others(points, head):
    """Beside other systems, on the model whose rate decides."""
    few = [one for one in points
           if one["model"] == "p5800x" and one["point"].split(", ")[1] in OTHERS]
    return grid(few, head, lambda one: one["series"], lambda one: one["point"],
                lambda one: amount(one["file"], one["unit"]), number_first)


TABLES = {
    "outstanding": (of_axis, "threads, 4 KiB each"),
    "size": (of_axis, "bytes an operation, 1,024 threads"),
    "blocks": (of_axis, "blocks of 256 threads"),
    "ssds": (of_model_rows, "model: SSDs"),
    "lbas": (of_axis, "threads, 512 bytes each"),
    "write": (of_model_rows, "model: threads or warps"),
    "streams": (of_shapes, "model none, 4 GiB"),
    "records": (of_shapes, "appended to one log, model none"),
    "metadata": (of_metadata, "model none"),
    "ablations": (of_ablations, "mechanism"),
    "baselines": (of_others, "p5800x, outstanding"),
}


def table(points, name):
    """The lines of one table. KeyError: there is none of this name."""
    lay_out, head = TABLES[name]
    mine = [one for one in points if one["table"] == name]
    return list(lay_out(mine, head)) if mine else []


def filled(page, points):
    """The text of a page with the tables that its marks name."""
    return MARKED.sub(lambda match: "\n".join(
        [BEGIN.format(match.group(1)), *table(points, match.group(1)), END]), page)
