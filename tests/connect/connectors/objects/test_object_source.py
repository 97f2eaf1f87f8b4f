"""What the objects sink wrote is read back: formats, partitioners, keys, headers, once over killed tasks."""

from __future__ import annotations

import io
import os
import random
import time
from datetime import UTC, date, datetime
from decimal import Decimal
from pathlib import Path
from typing import Any

import pytest
from tests.connect.connectors.contexts import Offsets, started_sink, started_source
from tests.s3_server import running_s3

from barnabas.connect.connectors.objects.connectors import HdfsSinkConnector, S3SinkConnector
from barnabas.connect.connectors.objects.object_source import HdfsSourceConnector, S3SourceConnector
from barnabas.connect.connectors.objects.reading import lines
from barnabas.connect.data import (
    DATE,
    INT32,
    INT64,
    OPTIONAL_STRING,
    STRING,
    TIMESTAMP,
    Column,
    Header,
    Record,
    Records,
    array,
    decimal,
    mapping,
    struct,
)
from barnabas.connect.plugins import ConnectError, Plugins


class Bytes(io.BytesIO):
    """A file that is read in small pieces."""

    def read(self, size: int | None = -1) -> bytes:
        return super().read(min(size or 3, 3))


@pytest.mark.parametrize("end", [b"\n", b"--", b"aba"])
def test_lines_are_those_of_split_wherever_pieces_end(end: bytes) -> None:
    chosen = random.Random(end)
    for _ in range(300):
        text = bytes(chosen.choice(b"ab-\nx") for _ in range(chosen.randrange(40)))
        expected = text.split(end)
        assert list(lines(Bytes(text), end)) == (expected if expected[-1] else expected[:-1])


def test_one_huge_line_takes_linear_time() -> None:
    size = 96 << 20
    began = time.process_time()
    [line] = lines(io.BytesIO(b"x" * size), b"\n")
    assert len(line) == size
    assert time.process_time() - began < 3.0


ORDER = struct(
    name="Order",
    id=INT64,
    country=OPTIONAL_STRING,
    price=decimal(2),
    day=DATE,
    at=TIMESTAMP,
    tags=array(STRING),
    counts=mapping(STRING, INT32),
)
NOON = datetime(2024, 5, 1, 12, tzinfo=UTC)


def order(n: int) -> dict[str, Any]:
    return {
        "id": n,
        "country": ("DE", "CH", None)[n % 3],
        "price": Decimal(n) / 100,
        "day": date(2024, 1, 1 + n % 28),
        "at": NOON,
        "tags": [str(n)] * (n % 3),
        "counts": {"n": n},
    }


def records(first: int, count: int, partition: int = 0) -> Records:
    numbers = range(first, first + count)
    return Records.of(
        "orders",
        Column.of([order(n) for n in numbers], ORDER),
        Column.of([f"k{n}" if n % 5 else None for n in numbers], OPTIONAL_STRING),
        timestamps=[1_700_000_000_000 + n * 1000 for n in numbers],
        partitions=[partition] * count,
        offsets=list(numbers),
        headers=[(Header("n", str(n), STRING), Header("none", None)) if n % 2 else () for n in numbers],
    )


def write(folder: Path, count: int, partition: int = 0, **more: str) -> None:
    config = {"hdfs.url": str(folder), "flush.size": "10", **more}
    task = started_sink(HdfsSinkConnector, config)
    for first in range(0, count, 7):
        task.put(records(first, min(7, count - first), partition))
    task.stop()


def read(folder: Path, offsets: Offsets | None = None, **more: str) -> list[Record]:
    config = {"hdfs.url": str(folder), "record.batch.max.size": "4", **more}
    task = started_source(HdfsSourceConnector, config, offsets if offsets is not None else Offsets())
    found: list[Record] = []
    while (batch := task.poll()) is not None:
        found += batch.rows()
        if offsets is not None:
            offsets.store(batch)
    task.stop()
    return found


def test_files_that_were_written_before_a_time_are_left_out(tmp_path: Path) -> None:
    both = {"format.class": "JsonFormat", "store.kafka.keys": "true"}
    write(tmp_path, 40, **both)
    files = sorted(each for each in tmp_path.rglob("*.json") if ".keys." not in each.name)
    assert len(files) == 4
    for number, each in enumerate(files):
        os.utime(each, (1_700_000_000 + number, 1_700_000_000 + number))
    since = {"file.discovery.starting.timestamp": "1700000002000"}
    rows = read(tmp_path, **both, **since)
    assert [(row.key, row.value["id"]) for row in rows] == [
        (f"k{n}" if n % 5 else None, n) for n in range(20, 40)
    ]


@pytest.mark.parametrize("form", ["ParquetFormat", "AvroFormat", "JsonFormat"])
def test_values_keys_and_headers_come_back(tmp_path: Path, form: str) -> None:
    both = {"store.kafka.keys": "true", "store.kafka.headers": "true", "format.class": form}
    write(tmp_path, 20, **both)
    write(tmp_path, 10, 3, **both)
    assert len([each for each in tmp_path.rglob("*.keys.*") if each.is_file()]) == 3
    rows = read(tmp_path, **{"format.class": form})
    assert [(row.topic, row.partition) for row in rows] == [("orders", 0)] * 20 + [("orders", 3)] * 10
    assert [row.value["id"] for row in rows] == [*range(20), *range(10)]
    if form != "JsonFormat":
        assert [row.value for row in rows[:20]] == [order(n) for n in range(20)]
        assert {row.value_schema.field("at") for row in rows if row.value_schema} == {TIMESTAMP}
    assert [row.key for row in rows[:6]] == [None, "k1", "k2", "k3", "k4", None]
    assert [(each.name, each.value) for each in rows[1].headers] == [("n", "1"), ("none", None)]
    assert rows[2].headers == ()


def test_text_bytes_and_csv_come_back(tmp_path: Path) -> None:
    for form, values, schema in (
        ("StringFormat", ["a", "b c"], STRING),
        ("CsvFormat", [{"id": 1, "note": "x,y"}], struct(id=INT64, note=STRING)),
        ("ByteArrayFormat", [b"a", b"\xff"], None),
    ):
        folder = tmp_path / form
        config = {"hdfs.url": str(folder), "flush.size": str(len(values)), "format.class": form}
        task = started_sink(HdfsSinkConnector, {**config, "s3.compression.type": "gzip"})
        count = len(values)
        task.put(
            Records.of("t", Column.of(values, schema), partitions=[0] * count, offsets=list(range(count)))
        )
        expected = [{"id": "1", "note": "x,y"}] if form == "CsvFormat" else values
        assert [row.value for row in read(folder, **{"format.class": form})] == expected


@pytest.mark.parametrize(
    "partitioner",
    [
        {"partitioner.class": "FieldPartitioner", "partition.field.name": "country"},
        {"partitioner.class": "HourlyPartitioner", "timestamp.extractor": "Record"},
    ],
)
def test_each_record_is_read_once_although_tasks_die_and_files_come(
    tmp_path: Path, partitioner: dict[str, str]
) -> None:
    rng, offsets = random.Random(str(partitioner)), Offsets()
    config = {"hdfs.url": str(tmp_path), "flush.size": "10", "format.class": "AvroFormat", **partitioner}
    sink = started_sink(HdfsSinkConnector, config)
    seen: list[int] = []
    for first in range(0, 300, 30):
        sink.put(records(first, 30))
        tasks = [
            started_source(
                HdfsSourceConnector,
                {
                    "hdfs.url": str(tmp_path), "format.class": "AvroFormat", "record.batch.max.size": "3",
                    "barnabas.objects.task": str(number), "barnabas.objects.tasks": "2",
                },
                offsets,
            )
            for number in range(2)
        ]  # fmt: skip
        for task in tasks:
            for _ in range(rng.randrange(1, 40)):
                batch = task.poll()
                if batch is None:
                    break
                if rng.random() < 0.1:
                    break  # the task dies before the records are durable
                offsets.store(batch)
                seen += [row.value["id"] for row in batch.rows()]
            task.stop()
    seen += [row.value["id"] for row in read(tmp_path, offsets, **{"format.class": "AvroFormat"})]
    assert sorted(seen) == list(range(300))


def test_files_of_others_are_read_by_expressions(tmp_path: Path) -> None:
    (tmp_path / "in").mkdir()
    (tmp_path / "in" / "a.json").write_text('{"n": 1}\n{"n": 2}\n')
    (tmp_path / "in" / "b.txt").write_text("no")
    (tmp_path / "in" / "c.json").write_text("{broken\n")
    config = {"format.class": "JsonFormat", "mode": "GENERIC", "topic.regex.list": r"numbers:in/.*\.json"}
    offsets = Offsets()
    with pytest.raises(ConnectError, match=r"in/c\.json cannot be read as json"):
        read(tmp_path, offsets, **config)
    rows = read(tmp_path, **config, **{"behavior.on.error": "ignore"})
    assert [(row.topic, row.partition, row.value) for row in rows] == [
        ("numbers", None, {"n": 1}), ("numbers", None, {"n": 2}),
    ]  # fmt: skip
    assert offsets == {(("folder", "in"), ("topic", "numbers")): {"file": "in/a.json", "records": 2}}


def test_large_groups_are_on_the_disk_until_they_are_complete(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    from barnabas.connect.connectors.objects import spools

    monkeypatch.setattr(spools, "MEMORY_BYTES", 2000)
    config = {"hdfs.url": str(tmp_path), "flush.size": "500", "format.class": "ParquetFormat"}
    task: Any = started_sink(HdfsSinkConnector, {**config, "store.kafka.keys": "true"})
    for first in range(0, 500, 50):
        task.put(records(first, 50))
        waiting = [
            len(some)
            for cutter in task._cutters.values()
            for some in cutter.files.values()
            for some in some.waiting
        ]
        assert sum(waiting) <= 50
    task.stop()
    assert [row.value for row in read(tmp_path, **{"format.class": "ParquetFormat"})] == [
        order(n) for n in range(500)
    ]


@pytest.mark.parametrize(
    ("level", "versions", "files"),
    [
        ("NONE", [1, 2, 1, 2], [1, 1, 1, 1]),
        ("BACKWARD", [1, 2, 1, 2, 2], [1, 4]),
        ("FULL", [1, 1, 2, 1], [2, 2]),
        ("FORWARD", [2, 3, 2, 1, 3], [3, 2]),
    ],
)
def test_records_of_other_versions_fit_the_open_file(
    tmp_path: Path, level: str, versions: list[int], files: list[int]
) -> None:
    fields = [("a", INT32), ("b", OPTIONAL_STRING), ("c", OPTIONAL_STRING)]
    config = {"hdfs.url": str(tmp_path), "flush.size": "100", "format.class": "AvroFormat"}
    config |= {"schema.compatibility": level}
    task = started_sink(HdfsSinkConnector, config)
    for offset, version in enumerate(versions):
        schema = struct(dict(fields[:version]), name="V", version=version)
        value = {name: offset if name == "a" else "x" for name, _ in fields[:version]}
        task.put(Records.of("t", Column.of([value], schema), partitions=[0], offsets=[offset]))
    cutters: Any = task
    for where, cutter in cutters._cutters.items():
        cutters._write(where, cutter)
    rows = read(tmp_path, **{"format.class": "AvroFormat"})
    assert [row.value["a"] for row in rows] == list(range(len(versions)))
    written = sorted(each.name for each in tmp_path.rglob("*.avro"))
    ends = [int(name.split("+")[3].split(".")[0]) - int(name.split("+")[2]) + 1 for name in written]
    assert ends == files


@pytest.mark.long
def test_a_bucket_is_read_back() -> None:
    with running_s3("bucket") as server:
        config = {
            "s3.bucket.name": "bucket", "store.url": server.address, "aws.access.key.id": "test",
            "aws.secret.access.key": "test", "s3.region": "us-east-1", "format.class": "ParquetFormat",
        }  # fmt: skip
        sink = started_sink(S3SinkConnector, {**config, "flush.size": "10", "store.kafka.headers": "true"})
        sink.put(records(0, 20))
        task = started_source(S3SourceConnector, config, Offsets())
        rows: list[Record] = []
        while (batch := task.poll()) is not None:
            rows += batch.rows()
        assert [row.value for row in rows] == [order(n) for n in range(20)]
        assert rows[1].headers[0][:2] == ("n", "1")
        for hours, count in ((-1, 20), (1, 0)):
            since = {"file.discovery.starting.timestamp": str(int(time.time() + hours * 3600) * 1000)}
            task = started_source(S3SourceConnector, {**config, **since}, Offsets())
            assert sum(len(batch) for batch in iter(task.poll, None)) == count
            task.stop()


def test_settings_and_classes() -> None:
    plugins = Plugins()
    assert plugins.connector("io.confluent.connect.s3.source.S3SourceConnector") is S3SourceConnector
    assert plugins.connector("io.confluent.connect.hdfs3.Hdfs3SourceConnector") is HdfsSourceConnector
    config = {"hdfs.url": "/x", "format.class": "JsonFormat", "mode": "GENERIC"}
    assert "is needed" in HdfsSourceConnector().check(config)["topic.regex.list"][0]
    config["topic.regex.list"] = "a:("
    assert "is no pair" in HdfsSourceConnector().check(config)["topic.regex.list"][0]
    with pytest.raises(ConnectError, match="records"):
        S3SourceConnector().alter_offsets({}, [({"topic": "t", "folder": "f"}, {"file": "x"})])
    config = {
        "hdfs.url": "/x",
        "format.class": "JsonFormat",
        "flush.size": "1",
        "store.kafka.headers": "true",
    }
    assert "headers are lists" in str(
        HdfsSinkConnector().check({**config, "headers.format.class": "CsvFormat"})
    )
