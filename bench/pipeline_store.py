"""Measures the serving store with large views: time and memory of a batch part, of speed parts, of a new
horizon, and of queries.

    python -m bench.pipeline_store --keys 5000000 --memory-mb 1024

Parts are Parquet files, as executors write them, made here without Spark. The store runs in a process of its
own; its resident memory is sampled while it works.
"""

from __future__ import annotations

import argparse
import multiprocessing
import tempfile
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import numpy as np
import psutil
import pyarrow as pa
import pyarrow.compute as pc
from pyarrow import parquet

from barnabas.pipeline.lake.tables import Lake
from barnabas.pipeline.serving.store.opening import open_store
from barnabas.pipeline.serving.store.port import Limits
from barnabas.pipeline.serving.store.query import parse
from barnabas.pipeline.views.layout import Column, Layout, Merge, Role
from barnabas.pipeline.views.part_files import LakeParts
from barnabas.pipeline.views.parts import BatchPart, PartFiles, SpeedPart, TableVersion

LAYOUT = Layout(
    "customers",
    (
        Column("customer", "string", Role.KEY),
        Column("orders", "bigint", Role.MEASURE, Merge.COUNT),
        Column("revenue", "double", Role.MEASURE, Merge.SUM),
        Column("dearest", "double", Role.MEASURE, Merge.MAX),
        Column("last_seen", "timestamp", Role.MEASURE, Merge.MAX),
    ),
    "bench",
)
PIECE = 500_000
SAMPLE_S = 0.05
BEGINNING = datetime(2026, 1, 1, tzinfo=UTC)


def written(root: Path, kind: str, number: int, keys: np.ndarray[Any, Any]) -> PartFiles:
    """Files of a part with these keys."""
    folder = f"customers/{kind}-{number}-{number + 1}-{int(time.time() * 1000)}-0{number}"
    (root / folder).mkdir(parents=True)
    names = []
    for start in range(0, len(keys), PIECE):
        some = keys[start : start + PIECE]
        ones = np.ones(len(some), dtype=np.int64)
        columns: dict[str, Any] = {
            "customer": pc.binary_join_element_wise("customer-", pa.array(some).cast(pa.string()), ""),
            "orders": ones,
            "revenue": some % 100 * 0.5,
            "dearest": some % 100 * 0.5,
            "last_seen": pa.array([BEGINNING] * len(some), pa.timestamp("us", tz="UTC")),
        }
        if kind == "speed":
            columns |= {"_replaces": pa.array(ones == 0), "_gone": pa.array(ones == 0)}
        name = f"part-{start:012}.parquet"
        parquet.write_table(pa.table(columns), root / folder / name)
        names.append(name)
    return PartFiles(folder, tuple(names), len(keys))


@contextmanager
def measured(what: str, rows: int) -> Iterator[None]:
    """Prints seconds, rows a second, and the highest resident memory meanwhile."""
    process = psutil.Process()
    most = [process.memory_info().rss]
    done = threading.Event()

    def sample() -> None:
        while not done.wait(SAMPLE_S):
            most[0] = max(most[0], process.memory_info().rss)

    sampler = threading.Thread(target=sample, daemon=True)
    sampler.start()
    started, used = time.perf_counter(), process.cpu_times()
    yield
    seconds = time.perf_counter() - started
    cpu = sum(process.cpu_times()[:2]) - sum(used[:2])
    done.set()
    sampler.join()
    rate = f"{rows / seconds:12,.0f} rows/s" if rows else " " * 18
    print(f"{what:34} {seconds:8.2f} s {cpu:8.2f} s cpu {rate} {most[0] >> 20:6,} MiB", flush=True)


def run(folder: Path, keys: int, memory_mb: int, store_url: str) -> None:
    lake = LakeParts(Lake(str(folder)))
    root = Path(lake.root)
    limits = Limits(memory_bytes_max=memory_mb << 20)
    store = open_store(store_url, name="bench", folder=folder, limits=limits, lake=lake)
    everybody = np.random.default_rng(1).permutation(keys)
    changed = everybody[: keys // 10]
    at = TableVersion(1, BEGINNING)
    resident = psutil.Process().memory_info().rss >> 20
    print(f"{keys:,} keys, store with {memory_mb:,} MiB, {resident:,} MiB at start")
    files = written(root, "batch", 0, everybody)
    with measured("first batch part", keys):
        store.put_batch(BatchPart(LAYOUT, at, files))
    for number in range(1, 4):
        part = written(root, "speed", number, changed)
        with measured(f"speed part of {len(changed):,} keys", len(changed)):
            store.put_speed(SpeedPart(LAYOUT, number, TableVersion(number + 1, BEGINNING), part))
    small = written(root, "speed", 4, changed[:1000])
    with measured("speed part of 1,000 keys", 1000):
        store.put_speed(SpeedPart(LAYOUT, 4, TableVersion(5, BEGINNING), small))
    again = written(root, "batch", 5, everybody)
    with measured("next horizon, a tenth changed", keys):
        store.put_batch(BatchPart(LAYOUT, TableVersion(5, BEGINNING), again))
    for name, parameters in (
        ("a key", [("customer", f"customer-{keys // 2}")]),
        ("the ten greatest", [("order", "-revenue"), ("limit", "10")]),
    ):
        times = []
        for _ in range(5):
            started = time.perf_counter()
            assert store.answer(parse("customers", parameters)).rows.num_rows
            times.append(time.perf_counter() - started)
        print(f"query: {name:27} {min(times) * 1000:8.1f} ms")
    sizes = {
        path.name: path.stat().st_size >> 20 for path in folder.glob("serving.duckdb*") if path.is_file()
    }
    print(f"files: {sizes} MiB")
    store.close()


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--keys", type=int, nargs="+", default=[1_000_000, 5_000_000])
    parser.add_argument("--memory-mb", type=int, default=1024)
    parser.add_argument("--store", default="duckdb", help="duckdb, or a PostgreSQL URL")
    options = parser.parse_args()
    for keys in options.keys:
        with tempfile.TemporaryDirectory() as folder:
            process = multiprocessing.get_context("spawn").Process(
                target=run, args=(Path(folder), keys, options.memory_mb, options.store)
            )
            process.start()
            process.join()


if __name__ == "__main__":
    main()
