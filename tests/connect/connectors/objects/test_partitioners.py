"""Folders of the objects sink: times in zones, values of fields."""

from __future__ import annotations

from pathlib import Path

import pytest
from tests.connect.connectors.contexts import started_sink

from barnabas.client.core.topology import TopicPartition
from barnabas.connect.connectors.objects.connectors import HdfsSinkConnector
from barnabas.connect.data import BOOLEAN, INT64, STRING, Column, Records, struct

WHERE = TopicPartition("orders", 0)


def hdfs(folder: Path, **more: str) -> dict[str, str]:
    return {"hdfs.url": str(folder), "format.class": "JsonFormat", "flush.size": "10", **more}


@pytest.mark.parametrize(
    ("pattern", "duration_ms", "zone", "at", "folder"),
    [
        # A day is one of the zone, not of UTC.
        ("'day'=dd", 86_400_000, "Europe/Berlin", "2024-06-30T21:59:59Z", "day=30"),
        ("'day'=dd", 86_400_000, "Europe/Berlin", "2024-06-30T22:00:00Z", "day=01"),
        ("'day'=dd", 86_400_000, "America/New_York", "2024-07-01T03:59:59Z", "day=30"),
        ("'day'=dd/HH", 86_400_000, "Europe/Berlin", "2024-03-31T12:00:00Z", "day=31/00"),
        ("HH-mm", 3_600_000, "Asia/Kolkata", "2024-06-30T18:30:00Z", "00-00"),
        ("mm", 600_000, "Asia/Kathmandu", "2024-07-01T13:05:06Z", "50"),
        ("'day'=dd", 86_400_000, "Europe/Berlin", "1969-12-31T23:30:00Z", "day=01"),
        # Numbers have as many digits as letters, words are short or long.
        ("yyyy/M/d/H/m/s.SSS", 1, "UTC", "2024-07-01T03:05:06.007Z", "2024/7/1/3/5/6.007"),
        ("yy MMM MMMM EEEE a hh D 'o'", 1, "UTC", "2024-07-01T13:00:00Z", "24 Jul July Monday PM 01 183 o"),
        ("xxxx-'W'ww-e", 1, "UTC", "2024-12-30T00:00:00Z", "2025-W01-1"),
    ],
)  # fmt: skip
def test_folders_of_times_are_those_of_the_zone(
    tmp_path: Path, pattern: str, duration_ms: int, zone: str, at: str, folder: str
) -> None:
    given = hdfs(
        tmp_path,
        **{"partitioner.class": "TimeBasedPartitioner", "path.format": pattern, "timezone": zone},
        **{"partition.duration.ms": str(duration_ms), "timestamp.extractor": "RecordField"},
        **{"timestamp.field": "at", "flush.size": "1"},
    )
    task = started_sink(HdfsSinkConnector, given)
    task.open([WHERE])
    row = Column.of([{"at": at}], struct(at=STRING))
    task.put(Records.of("orders", row, partitions=[0], offsets=[0]))
    [path] = tmp_path.rglob("*.json")
    assert str(path.parent.relative_to(tmp_path / "topics/orders")) == folder


def test_values_do_not_lead_out_of_the_folder_of_a_topic(tmp_path: Path) -> None:
    """Names of folders come from records: those that no store may take are refused alone."""
    refused: list[str] = []
    given = {"partitioner.class": "FieldPartitioner", "partition.field.name": "country,ok", "flush.size": "1"}
    task = started_sink(
        HdfsSinkConnector,
        hdfs(tmp_path / "lake", **given),
        errant=lambda _, indices, error: refused.append(str(error)),
    )
    task.open([WHERE])
    bad = ["x/../../../../away", "a//b", "a/", "x\0", "n" * 300]
    good = ["DE", None, "..", "a/b"]
    rows = [{"id": 1, "country": each, "ok": True} for each in (*bad, *good)]
    schema = struct(id=INT64, country=STRING.as_optional(), ok=BOOLEAN)
    task.put(Records.of("orders", Column.of(rows, schema), partitions=[0] * 9, offsets=list(range(9))))
    assert [each.split(":")[0] for each in refused] == [f"orders-0 offset {number}" for number in range(5)]
    found = {
        str(path.parent.relative_to(tmp_path / "lake/topics/orders")) for path in tmp_path.rglob("*.json")
    }
    names = ("country=DE", "country=null", "country=..", "country=a/b")
    assert found == {f"{each}/ok=true" for each in names}


def test_a_time_that_is_no_year_is_refused_alone(tmp_path: Path) -> None:
    refused: list[str] = []
    given = {"partitioner.class": "DailyPartitioner", "timestamp.extractor": "RecordField", "flush.size": "1"}
    task = started_sink(
        HdfsSinkConnector,
        hdfs(tmp_path, **given, **{"timestamp.field": "id"}),
        errant=lambda _, indices, error: refused.append(str(error)),
    )
    task.open([WHERE])
    rows = [{"id": 1_700_000_000_000_000_000}, {"id": 1_700_000_000_000}]  # nanoseconds by mistake
    task.put(Records.of("orders", Column.of(rows, struct(id=INT64)), partitions=[0, 0], offsets=[0, 1]))
    assert len(refused) == 1 and "orders-0 offset 0" in refused[0] and "milliseconds?" in refused[0]
    assert len(list(tmp_path.rglob("*.json"))) == 1


def test_the_schedule_closes_files_when_records_come_too(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Commits may be minutes apart: files end where the wall clock says, not where the commit is."""
    clock = [1_700_000_000.0]
    monkeypatch.setattr("barnabas.connect.connectors.objects.object_sink.time.time", lambda: clock[0])
    task = started_sink(HdfsSinkConnector, hdfs(tmp_path, **{"rotate.schedule.interval.ms": "1000"}))
    task.open([WHERE])
    for number in range(3):
        row = Column.of([{"id": number}], struct(id=INT64))
        task.put(Records.of("orders", row, partitions=[0], offsets=[number]))
        clock[0] += 1.0
    assert len(list(tmp_path.rglob("*.json"))) == 2
    assert task.flush({WHERE: 3}) == {WHERE: 3}
    assert len(list(tmp_path.rglob("*.json"))) == 3
