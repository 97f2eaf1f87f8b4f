"""Files as sources: lines, rows, binaries; new ones only, and those that cannot be read are set aside."""

from __future__ import annotations

import gzip
import json
import struct
import zlib
from pathlib import Path
from typing import Any

import fastavro
import pytest

from barnabas.engine.errors import CommitConflict, IngestError, SourceUnavailable
from barnabas.pipeline import FileKind, FilesSource, Pipeline, Schema, Staging, Trusted, not_null
from barnabas.pipeline.ingest.source_runner import SourceRunner
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
    (folder / "d.json").write_text('{"id": 4, "name": "d"}\n')
    assert [each.rows_in for each in SourceRunner(spark, pipeline, "people").drain()] == [1]
    with pytest.raises(CommitConflict, match="by another run"):  # which was quicker
        runner.step()
    assert runner.step() is None
    # One that cannot be read does not keep the others.
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
    assert rows(spark, pipeline, "trusted", "people", "id") == [(1,), (3,), (4,), (6,)]


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


def test_binary_files_are_kept_with_their_metadata(spark: Any, lake: str, tmp_path: Path) -> None:
    folder = tmp_path / "in"
    folder.mkdir()
    (folder / "photo one.png").write_bytes(png(640, 480))
    (folder / "notes.pdf").write_bytes(b"%PDF-1.7 and so on")
    pipeline = of_files(lake, folder, kind=FileKind.BINARY, schema=Schema())
    SourceRunner(spark, pipeline, "people").drain()
    found = rows(spark, pipeline, "trusted", "people", "name", "media_type", "width", "height", "size_bytes")
    assert found == [
        ("notes.pdf", "application/pdf", None, None, 18),
        ("photo one.png", "image/png", 640, 480, len(png(640, 480))),
    ]
    values = {bytes(value) for (value,) in rows(spark, pipeline, "raw", "people", "value")}
    assert values == {png(640, 480), b"%PDF-1.7 and so on"}
    [facts] = [json.loads(row[0]) for row in rows(spark, pipeline, "raw", "people", "metadata")][1:]
    assert len(facts["sha256"]) == 64
