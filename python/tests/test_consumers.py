# SPDX-License-Identifier: Apache-2.0
"""Programs that take gofs:// by fsspec, as their users call them."""

from __future__ import annotations

import pathlib
import subprocess
import sys
from collections.abc import Iterator
from typing import Any

import numpy
import pytest

import gofs
import gofs.fsspec

pandas = pytest.importorskip("pandas")


@pytest.fixture
def named(volume: gofs.Volume, request: pytest.FixtureRequest) -> Iterator[str]:
    """What gofs://NAME/ has as NAME for the test's volume."""
    name = request.node.name.replace("_", "-").split("[")[0]
    gofs.fsspec.register(name, volume)
    yield name


def some_frame(rows: int = 2000) -> Any:
    draw = numpy.random.default_rng(1)
    return pandas.DataFrame(
        {
            "number": numpy.arange(rows),
            "value": draw.random(rows),
            "word": [f"word {number % 7}, über" for number in range(rows)],
            "when": pandas.date_range("2026-01-01", periods=rows, freq="min"),
        }
    )


@pytest.mark.parametrize("compression", ["snappy", "zstd"])
def test_pandas_writes_and_reads_parquet(volume: gofs.Volume, named: str, compression: str) -> None:
    pytest.importorskip("pyarrow")
    frame = some_frame()
    url = f"gofs://{named}/new/folder/table.parquet"
    frame.to_parquet(url, compression=compression)
    assert volume.isfile("/new/folder/table.parquet")
    pandas.testing.assert_frame_equal(pandas.read_parquet(url), frame)
    two = pandas.read_parquet(url, columns=["word"], filters=[("number", "<", 5)])
    assert two["word"].tolist() == frame["word"][:5].tolist()


def test_pandas_takes_a_volume_as_an_option(volume: gofs.Volume) -> None:
    frame = some_frame(10)
    frame.to_csv("gofs:///table.csv", index=False, storage_options={"volume": volume})
    found = pandas.read_csv(
        "gofs:///table.csv", parse_dates=["when"], storage_options={"volume": volume}
    )
    pandas.testing.assert_frame_equal(found, frame, check_dtype=False)


@pytest.mark.parametrize("suffix", ["csv", "csv.gz", "jsonl"])
def test_pandas_writes_and_reads_text(volume: gofs.Volume, named: str, suffix: str) -> None:
    frame = some_frame()[["number", "word"]]
    url = f"gofs://{named}/table.{suffix}"
    if suffix == "jsonl":
        frame.to_json(url, orient="records", lines=True)
        found = pandas.read_json(url, orient="records", lines=True)
    else:
        frame.to_csv(url, index=False)
        found = pandas.read_csv(url)
    pandas.testing.assert_frame_equal(found, frame)
    with pytest.raises(FileNotFoundError):
        pandas.read_csv(f"gofs://{named}/none.csv")


def test_pandas_pickles(named: str) -> None:
    frame = some_frame()
    frame.to_pickle(f"gofs://{named}/frame.pkl")
    pandas.testing.assert_frame_equal(pandas.read_pickle(f"gofs://{named}/frame.pkl"), frame)


def test_pyarrow_writes_and_reads_a_dataset(volume: gofs.Volume) -> None:
    arrow = pytest.importorskip("pyarrow")
    dataset = pytest.importorskip("pyarrow.dataset")
    from pyarrow.fs import FileSelector, FileType, FSSpecHandler, PyFileSystem

    fs = PyFileSystem(FSSpecHandler(gofs.fsspec.GofsFileSystem(volume)))
    table = arrow.Table.from_pandas(some_frame())
    dataset.write_dataset(
        table,
        "/data",
        format="parquet",
        filesystem=fs,
        partitioning=dataset.partitioning(arrow.schema([("word", arrow.string())]), flavor="hive"),
        max_rows_per_file=100,
        max_rows_per_group=100,
    )
    assert len(volume.listdir("/data")) == 7
    found = dataset.dataset("/data", filesystem=fs, partitioning="hive")
    assert found.count_rows() == table.num_rows
    assert len(found.files) == 21
    part = found.to_table(filter=dataset.field("number") >= 1990, columns=["number"])
    assert sorted(part["number"].to_pylist()) == list(range(1990, 2000))
    infos = fs.get_file_info(FileSelector("/data", recursive=True))
    assert sum(info.type == FileType.File for info in infos) == 21
    fs.delete_dir_contents("/data")
    assert volume.listdir("/data") == []
    fs.move("/data", "/moved")
    with fs.open_output_stream("/moved/file") as stream:
        stream.write(b"contents")
    fs.copy_file("/moved/file", "/moved/copy")
    with fs.open_input_file("/moved/copy") as stream:
        assert stream.read_at(4, 2) == b"nten"
    with pytest.raises(FileNotFoundError):
        fs.open_input_file("/none")


def test_zarr_keeps_arrays_in_a_volume(volume: gofs.Volume, named: str) -> None:
    zarr = pytest.importorskip("zarr", minversion="3")
    store = zarr.storage.FsspecStore.from_url(f"gofs://{named}/store.zarr")
    group = zarr.open_group(store, mode="w")
    values = numpy.arange(300 * 200, dtype="f4").reshape(300, 200)
    array = group.create_array("a", shape=values.shape, chunks=(64, 64), dtype="f4")
    array[:] = values
    array.attrs["unit"] = "m"
    sharded = group.create_array(
        "sharded", shape=values.shape, chunks=(10, 10), shards=(100, 100), dtype="f4"
    )
    sharded[:] = values
    sharded[5:25, 7:9] = -1
    # By another store, which knows nothing yet.
    again = zarr.open_group(
        zarr.storage.FsspecStore.from_url(f"gofs://{named}/store.zarr", read_only=True), mode="r"
    )
    assert sorted(again.array_keys()) == ["a", "sharded"]
    assert numpy.array_equal(again["a"][:], values)
    assert numpy.array_equal(again["a"][60:130, 5], values[60:130, 5])
    assert again["a"].attrs["unit"] == "m"
    values[5:25, 7:9] = -1
    assert numpy.array_equal(again["sharded"][:], values)
    assert numpy.array_equal(again["sharded"][3:14, ::50], values[3:14, ::50])
    assert volume.exists("/store.zarr/a/c/0/0")
    with pytest.raises(ValueError, match="read-only"):
        again["a"][:] = 0
    del group["a"]
    assert not volume.exists("/store.zarr/a")


def test_zarr_reads_chunks_to_the_gpu(volume: gofs.Volume, named: str) -> None:
    zarr = pytest.importorskip("zarr", minversion="3")
    cupy = pytest.importorskip("cupy")
    if not cupy.cuda.is_available():
        pytest.skip("no GPU")
    with zarr.config.enable_gpu():
        store = zarr.storage.FsspecStore.from_url(f"gofs://{named}/store.zarr")
        array = zarr.create_array(
            store, shape=(300, 200), chunks=(64, 64), dtype="float32", compressors=None
        )
        wanted = cupy.arange(60_000, dtype=cupy.float32).reshape(300, 200)
        array[:] = wanted
        again = zarr.open_array(
            zarr.storage.FsspecStore.from_url(f"gofs://{named}/store.zarr", read_only=True)
        )
        found = again[10:200, 5:150]
    assert isinstance(found, cupy.ndarray)
    assert bool((found == wanted[10:200, 5:150]).all())
    assert volume.exists("/store.zarr/c/4/3")



HF = """
import socket
import sys


def refuse(self, address):
    raise OSError(f"no network in tests: {address}")


socket.socket.connect = refuse
import datasets

[image, cache] = sys.argv[1:]
found = datasets.load_dataset(
    "parquet",
    data_files={"train": "gofs:///data/*.parquet", "test": "gofs:///test.parquet"},
    storage_options={"volume": image},
    cache_dir=cache,
)
assert sorted(row["number"] for row in found["train"]) == list(range(2000))
assert [row["word"] for row in found["test"]] == ["a", "b"]
print("fine")
"""


def test_datasets_of_hugging_face_are_loaded(image: pathlib.Path, tmp_path: pathlib.Path) -> None:
    pytest.importorskip("datasets")
    frame = some_frame()
    with gofs.mount(image, writable=True, backend="cpu") as volume:
        fs = {"volume": volume}
        for part in range(4):
            url = f"gofs:///data/{part}.parquet"
            frame[part * 500 : (part + 1) * 500].to_parquet(url, storage_options=fs)
        two = pandas.DataFrame({"word": ["a", "b"], "number": [1, 2]})
        two.to_parquet("gofs:///test.parquet", storage_options=fs)
    said = subprocess.run(
        [sys.executable, "-c", HF, str(image), str(tmp_path / "cache")],
        env={"PATH": "", "HOME": str(tmp_path), "HF_HUB_DISABLE_TELEMETRY": "1"},
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )
    assert said.stdout.endswith("fine\n"), said.stderr
