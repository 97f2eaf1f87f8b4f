"""Files as sources: lines, rows, binaries; new ones only, and those that cannot be read are set aside."""

from __future__ import annotations

import gzip
import json
import os
import struct
import zlib
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, cast

import fastavro
import pytest

from barnabas.engine.errors import CommitConflict, IngestError, SourceUnavailable
from barnabas.pipeline import FileKind, FilesSource, Pipeline, Schema, Staging, Trusted, not_null
from barnabas.pipeline.ingest.source_runner import SourceRunner
from barnabas.pipeline.lake.tables import Lake
from barnabas.pipeline.sources import files
from barnabas.pipeline.sources.file_manifest import FileManifest
from barnabas.pipeline.sources.files import FilesReader
from barnabas.pipeline.sources.line_numbers import numbered
from barnabas.pipeline.sources.listing import ListedPlace, listed_on_executors
from barnabas.pipeline.sources.source_slice import Stamp
from pipeline.orders import rows

pytestmark = pytest.mark.timeout(300)  # Spark takes its time on a machine that is busy

DDL = "id BIGINT, name STRING"


def of_files(lake: str, folder: Path, **source: Any) -> Pipeline:
    given = {"schema": Schema(DDL), **source}
    return Pipeline(
        name="shop",
        lake=lake,
        sources=[FilesSource(name="people", path=str(folder), **given)],
        staging=[Staging(name="people", source="people", key=["id"] if given["schema"].ddl else [])],
        trusted=[Trusted(name="people", staging="people", rules=[not_null("name")])],
    )


def png(width: int, height: int) -> bytes:
    def chunk(kind: bytes, data: bytes) -> bytes:
        return struct.pack(">I", len(data)) + kind + data + struct.pack(">I", zlib.crc32(kind + data))

    head = struct.pack(">IIBBBBB", width, height, 8, 2, 0, 0, 0)
    return b"\x89PNG\r\n\x1a\n" + chunk(b"IHDR", head) + chunk(b"IEND", b"")


def test_lines_of_json_also_in_gz_come_once_and_with_their_numbers(
    spark: Any, lake: str, tmp_path: Path
) -> None:
    folder = tmp_path / "in"
    pipeline = of_files(lake, folder)
    runner = SourceRunner(spark, pipeline, "people")
    with pytest.raises(SourceUnavailable, match="does not exist"):
        runner.step()
    folder.mkdir()
    (folder / "a.json").write_text('{"id": 1, "name": "a"}\n\n{"id": 2}\nbroken\n')
    (folder / "b.json.gz").write_bytes(gzip.compress(b'{"id": 1, "name": "again"}\n{"id": 3, "name": "c"}\n'))
    (folder / "c.json.tmp").write_text('{"id": 9, "name": "unfinished"}\n')
    [batch] = runner.drain()
    assert (batch.rows_in, batch.duplicates, batch.malformed, batch.accepted) == (5, 1, 1, 2)
    refused = rows(spark, pipeline, "quarantine", "people", "offset", "topic", "reason")
    assert [(line, path.rpartition("/")[2]) for line, path, _ in refused] == [(3, "a.json"), (4, "a.json")]
    assert rows(spark, pipeline, "trusted", "people", "id") == [(1,), (3,)]


@pytest.mark.long
def test_a_run_that_was_overtaken_by_another_notices_it(spark: Any, lake: str, tmp_path: Path) -> None:
    folder = tmp_path / "in"
    folder.mkdir()
    pipeline = of_files(lake, folder)
    runner = SourceRunner(spark, pipeline, "people")
    (folder / "a.json").write_text('{"id": 1, "name": "a"}\n')
    runner.drain()
    (folder / "d.json").write_text('{"id": 4, "name": "d"}\n')
    assert [each.rows_in for each in SourceRunner(spark, pipeline, "people").drain()] == [1]
    with pytest.raises(CommitConflict, match="by another run"):  # which was quicker
        runner.step()
    assert runner.step() is None
    assert rows(spark, pipeline, "trusted", "people", "id") == [(1,), (4,)]


@pytest.mark.long
def test_a_file_that_cannot_be_read_does_not_keep_the_others(spark: Any, lake: str, tmp_path: Path) -> None:
    folder = tmp_path / "in"
    folder.mkdir()
    pipeline = of_files(lake, folder)
    (folder / "e.json.gz").write_bytes(b"\x1f\x8b no gzip at all")
    (folder / "f.json").write_text('{"id": 6, "name": "f"}\n')
    again = SourceRunner(spark, pipeline, "people")
    accepted = 0
    for _ in range(6):
        try:
            found = again.step()
        except IngestError:
            continue
        if found is None:
            break
        accepted += found.accepted
    assert accepted == 1
    assert rows(spark, pipeline, "trusted", "people", "id") == [(6,)]


def test_lines_are_numbered_where_they_are_read_block_by_block() -> None:
    import pyarrow as pa

    def batch(*rows: tuple[str, str, int]) -> pa.RecordBatch:
        value, topic, block = ([row[index] for row in rows] for index in range(3))
        at = pa.array([0] * len(rows), pa.timestamp("us", tz="UTC"))
        return pa.RecordBatch.from_arrays(
            [pa.array(value), pa.array(topic), at, pa.array(block, pa.int64())],
            names=["value", "topic", "timestamp", "block"],
        )

    given = [
        batch(("a", "x", 0), ("b", "x", 0), ("c", "y", 0)),
        batch(("d", "y", 0), ("e", "y", 100), ("f", "y", 100)),
        batch(("g", "y", 100), ("h", "z", 0)),
    ]
    found = [row for each in numbered(iter(given)) for row in each.to_pylist()]
    assert [(row["value"], row["offset"]) for row in found] == [
        ("a", 1), ("b", 2), ("c", 1), ("d", 2), ("e", 101), ("f", 102), ("g", 103), ("h", 1),
    ]  # fmt: skip


@pytest.mark.long
def test_lines_of_a_file_that_several_tasks_read_have_growing_numbers(
    spark: Any, lake: str, tmp_path: Path
) -> None:
    lines = [f"line {number}" + "x" * (number % 7) for number in range(20_000)]
    (tmp_path / "in").mkdir()
    (tmp_path / "in" / "a.txt").write_text("\n".join(lines) + "\n\n")
    session = spark.newSession()
    session.conf.set("spark.sql.files.maxPartitionBytes", "30000")
    source = of_files(lake, tmp_path / "in", kind=FileKind.TEXT, schema=Schema()).sources[0]
    assert isinstance(source, FilesSource)
    reader = FilesReader(session, source, Lake(lake))
    source_slice = reader.next(None)
    assert source_slice is not None
    frame = source_slice.read(Stamp("people", 1, datetime.now(UTC)))
    assert frame.rdd.getNumPartitions() > 5
    found = sorted((row["offset"], bytes(row["value"]).decode()) for row in frame.collect())
    assert [value for _, value in found] == [*lines, ""]
    assert len({offset for offset, _ in found}) == len(found) and found[0][0] == 1


@pytest.mark.long
def test_names_of_many_files_stay_on_executors_and_each_file_is_read_once(
    spark: Any, lake: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As with a million files: the driver may hold five names, a batch may have three."""
    monkeypatch.setattr(files, "LISTED_HERE_MAX", 5)
    monkeypatch.setattr(files, "FILES_PER_BATCH_MAX", 3)
    folder = tmp_path / "in"
    for number in range(12):
        place = folder / f"{number % 3} %41" / f"{number:02} a+b.json"
        place.parent.mkdir(parents=True, exist_ok=True)
        place.write_text(f'{{"id": {number}, "name": "n"}}\n' if number else "\n")  # the first has no rows
        os.utime(place, (1_700_000_000 + number, 1_700_000_000 + number))
    pipeline = of_files(lake, folder)
    reader = FilesReader(spark, cast(FilesSource, pipeline.sources[0]), pipeline.lake_location)
    runner = SourceRunner(spark, pipeline, "people", reader=reader)
    first = runner.step()
    assert first is not None and first.rows_in == 2
    assert max(len(reader._waiting), len(reader._read_or_known)) <= 5
    # A process that dies leaves the manifest behind raw; the next one finds what is missing in raw.
    again = SourceRunner(spark, pipeline, "people")
    read = [each.rows_in for each in again.drain()]
    assert sum(read) == 9 and max(read) <= 3
    assert len(rows(spark, pipeline, "raw", "people", "offset")) == 11
    (folder / "later.json").write_text('{"id": 100, "name": "later"}\n')
    for number in range(1, 6):
        (folder / f"{number % 3} %41" / f"{number:02} a+b.json").unlink()
    monkeypatch.setattr(files, "LISTED_HERE_MAX", 100)  # few files now: the driver lists them
    third = SourceRunner(spark, pipeline, "people")
    assert [each.rows_in for each in third.drain()] == [1]
    manifest = FileManifest(spark, pipeline.lake_location, "people")
    manifest.catch_up()
    assert manifest.files().count() == 13  # the file without rows too
    manifest.prune(listed_on_executors(spark, ListedPlace(str(folder))))
    assert manifest.files().count() == 8
    assert SourceRunner(spark, pipeline, "people").step() is None


@pytest.mark.long
def test_csv_parquet_and_avro(spark: Any, lake: str, tmp_path: Path) -> None:
    folder = tmp_path / "csv"
    folder.mkdir()
    (folder / "a.csv").write_text('id;name\n1;a\nx;b\n3;"c;d"\n')
    settings = {"header": "true", "sep": ";"}
    csv = of_files(f"{lake}-csv", folder, kind=FileKind.CSV, settings=settings)
    [batch] = SourceRunner(spark, csv, "people").drain()
    assert (batch.rows_in, batch.malformed) == (3, 1)
    assert rows(spark, csv, "trusted", "people", "id", "name") == [(1, "a"), (3, "c;d")]
    folder = tmp_path / "rows"
    spark.createDataFrame([(1, "a"), (2, None)], DDL).coalesce(1).write.parquet(str(folder / "p"))
    schema = {"type": "record", "name": "person", "fields": [
        {"name": "id", "type": "long"}, {"name": "name", "type": "string"},
    ]}  # fmt: skip
    with (folder / "a.avro").open("wb") as out:
        fastavro.writer(out, schema, [{"id": 7, "name": "g"}])
    parquet = of_files(f"{lake}-parquet", folder, kind=FileKind.PARQUET, pattern="*.parquet")
    [batch] = SourceRunner(spark, parquet, "people").drain()
    assert (batch.rows_in, batch.accepted, batch.quarantined) == (2, 1, 1)
    avro = of_files(f"{lake}-avro", folder, kind=FileKind.AVRO, pattern="*.avro")
    SourceRunner(spark, avro, "people").drain()
    assert rows(spark, avro, "trusted", "people", "id", "name") == [(7, "g")]


@pytest.mark.long
def test_binary_files_are_kept_with_their_metadata(spark: Any, lake: str, tmp_path: Path) -> None:
    folder = tmp_path / "in"
    folder.mkdir()
    (folder / "photo one.png").write_bytes(png(640, 480))
    (folder / "notes.pdf").write_bytes(b"%PDF-1.7 and so on")
    (folder / "no name").write_bytes(b"RIFF\x1a\0\0\0WEBPVP8L\r\0\0\0\x2f\x1f\xc0\x07\0" + bytes(9))
    pipeline = of_files(lake, folder, kind=FileKind.BINARY, schema=Schema())
    SourceRunner(spark, pipeline, "people").drain()
    found = rows(spark, pipeline, "trusted", "people", "name", "media_type", "width", "height", "size_bytes")
    assert found == [
        ("no name", "image/webp", 32, 32, 34),
        ("notes.pdf", "application/pdf", None, None, 18),
        ("photo one.png", "image/png", 640, 480, len(png(640, 480))),
    ]
    values = {bytes(value) for (value,) in rows(spark, pipeline, "raw", "people", "value")}
    assert {png(640, 480), b"%PDF-1.7 and so on"} < values
    facts = [json.loads(row[0]) for row in rows(spark, pipeline, "raw", "people", "metadata")]
    assert [len(each["sha256"]) for each in facts] == [64] * 3
