"""The sink and the source on a real HDFS (Hadoop's own servers), and workers that are killed meanwhile."""

from __future__ import annotations

import io
import random
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import httpx
import pytest
from tests.connect.connectors.contexts import Offsets, started_sink, started_source
from tests.connect.connectors.killed_sink import changes, run_with_kills
from tests.stores import java_servers
from tests.stores.java_servers import Hdfs

from barnabas.client.core.topology import TopicPartition
from barnabas.connect.connectors.objects.connectors import HdfsSinkConnector
from barnabas.connect.connectors.objects.object_source import HdfsSourceConnector
from barnabas.connect.data import INT64, STRING, Column, Records, struct
from barnabas.connect.plugins import ConnectError, RetriableError
from barnabas.testing.broker import Broker

pytestmark = [pytest.mark.long, pytest.mark.timeout(600)]
SCHEMA = struct(name="Order", id=INT64, country=STRING)
WHERE = TopicPartition("orders", 0)
FORMATS = ("ParquetFormat", "AvroFormat", "JsonFormat", "CsvFormat")


@pytest.fixture(scope="module")
def hdfs() -> Iterator[Hdfs]:
    reason = java_servers.HDFS.available()
    if reason is not None:
        pytest.skip(f"no HDFS: {reason}")
    with java_servers.hdfs() as found:
        yield found


def records(first: int, count: int, country: str = "DE") -> Records:
    return Records.of(
        "orders",
        Column.of([{"id": n, "country": country} for n in range(first, first + count)], SCHEMA),
        partitions=[0] * count,
        offsets=list(range(first, first + count)),
    )


def settings(hdfs: Hdfs, folder: str, **more: str) -> dict[str, str]:
    return {
        "hdfs.url": f"{hdfs.url}/data/{folder}",
        "barnabas.webhdfs.url": hdfs.web_url,
        "barnabas.hdfs.user": "kafka",
        "format.class": "JsonFormat",
        **{name.replace("_", "."): value for name, value in more.items()},
    }


def sink(hdfs: Hdfs, folder: str, sought: dict[Any, int] | None = None, **more: str) -> Any:
    config = {"flush.size": "10", "retry.backoff.ms": "100", **settings(hdfs, folder, **more)}
    return started_sink(HdfsSinkConnector, config, seek=({} if sought is None else sought).update)


def read(hdfs: Hdfs, folder: str, **more: str) -> list[Any]:
    config = {key: value for key, value in settings(hdfs, folder, **more).items() if key != "flush.size"}
    task = started_source(HdfsSourceConnector, config, Offsets())
    rows = [row.value for batch in iter(task.poll, None) for row in batch.rows()]
    task.stop()
    return rows


def status(hdfs: Hdfs, path: str) -> dict[str, Any]:
    asked = {"op": "GETFILESTATUS", "user.name": "root"}
    found: dict[str, Any] = httpx.get(f"{hdfs.web_url}/webhdfs/v1{path}", params=asked).json()
    return found["FileStatus"]


@pytest.mark.parametrize("form", FORMATS)
def test_files_are_written_and_read_back(hdfs: Hdfs, form: str) -> None:
    task = sink(hdfs, form, format_class=form)
    for first in range(0, 250, 50):  # more files than a listing's page
        task.put(records(first, 50))
    assert task.flush({}) == {WHERE: 250}
    names = task._layout.storage.names("topics/orders")
    extension = task._layout.form.extension
    assert names[0] == f"topics/orders/partition=0/orders+0+0000000000+0000000009{extension}"
    assert len(names) == 25 and list(task._layout.storage._hdfs.files(f"/data/{form}/topics/+tmp")) == []
    assert status(hdfs, f"/data/{form}/{names[0]}")["owner"] == "kafka"
    sought: dict[Any, int] = {}
    after = sink(hdfs, form, sought, format_class=form)
    after.open([WHERE])
    assert sought == {WHERE: 250}
    for each in (task, after):
        each.stop()
    rows = read(hdfs, form, format_class=form)
    assert [int(row["id"]) for row in rows] == list(range(250))


def test_folders_may_have_any_letters(hdfs: Hdfs) -> None:
    task = sink(hdfs, "let ters", partitioner_class="FieldPartitioner", partition_field_name="country")
    countries = ["Ö+ 1%2B", "a&b=c?d#e"]
    for place, country in enumerate(countries):
        task.put(records(place * 10, 10, country))
    task.stop()
    assert {row["country"] for row in read(hdfs, "let ters")} == set(countries)


def test_a_large_file_goes_through_pieces(hdfs: Hdfs) -> None:
    task = sink(hdfs, "large")
    data = random.Random(1).randbytes(20 << 20)
    task._layout.storage.put_file("topics/x/large.bin", io.BytesIO(data))
    with task._layout.storage.open("topics/x/large.bin") as file:
        assert file.read() == data
    task.stop()


def test_a_file_that_is_written_again_replaces_itself(hdfs: Hdfs) -> None:
    task = sink(hdfs, "again")
    task.put(records(0, 10, "old"))
    task.stop()
    task = sink(hdfs, "again")
    task.put(records(0, 10, "new"))
    task.stop()
    assert [(row["id"], row["country"]) for row in read(hdfs, "again")] == [(n, "new") for n in range(10)]


def test_a_namenode_that_goes_and_comes_costs_no_record(hdfs: Hdfs) -> None:
    task = sink(hdfs, "away")
    task.put(records(0, 10))
    hdfs.stop_namenode()
    with pytest.raises(RetriableError, match="cannot be reached"):
        task.put(records(10, 10))
    hdfs.start_namenode()
    for _ in range(100):
        try:
            task.put(records(10, 10))
            break
        except RetriableError:  # datanodes report again after a while
            continue
    assert task.flush({}) == {WHERE: 20}
    task.stop()
    assert [row["id"] for row in read(hdfs, "away")] == list(range(20))


def test_the_namenode_that_answers_is_asked(hdfs: Hdfs) -> None:
    more = {"barnabas_webhdfs_url": f"http://127.0.0.1:1,{hdfs.web_url}"}
    task = sink(hdfs, "second", **more)
    task.put(records(0, 10))
    task.stop()
    assert len(read(hdfs, "second", **more)) == 10


def test_a_user_without_rights_fails_the_task(hdfs: Hdfs) -> None:
    task = sink(hdfs, "../private", barnabas_hdfs_user="stranger")
    with pytest.raises(
        ConnectError, match=r"AccessControlException: Permission denied: user=stranger"
    ) as told:
        task.put(records(0, 10))
    assert not isinstance(told.value, RetriableError) and "barnabas.hdfs.user" in str(told.value)
    task.stop()


def test_a_former_owner_cannot_finish_its_file(hdfs: Hdfs) -> None:
    former, owner = sink(hdfs, "fenced"), sink(hdfs, "fenced")
    real = former._layout.storage._hdfs.rename

    def late(path: str, to: str) -> None:
        owner.open([WHERE])
        real(path, to)

    former._layout.storage._hdfs.rename = late
    with pytest.raises(RetriableError, match="not found"):
        former.put(records(0, 10))
    assert owner._layout.storage.names("topics") == []
    for each in (former, owner):
        each.stop()


def test_killed_workers_write_each_record_once(
    hdfs: Hdfs, barnabas_broker: Broker, barnabas_topic: str, tmp_path: Path
) -> None:
    """Files end by the wall clock too, so only their names tell where to go on."""
    connector = {
        "name": "hdfs",
        "connector.class": "io.confluent.connect.hdfs3.Hdfs3SinkConnector",
        "topics": barnabas_topic,
        "flush.size": "50",
        "rotate.schedule.interval.ms": "700",
        "consumer.override.max.poll.records": "20",
        **settings(hdfs, "killed"),
    }
    rows = changes("hdfs", 4000, 500, deletes=False)

    def ids() -> list[int]:
        return [row["id"] for row in read(hdfs, "killed")]

    def highest() -> int:
        return max(ids(), default=-1)

    run_with_kills(tmp_path, barnabas_broker.bootstrap, connector, rows, highest)
    assert sorted(ids()) == list(range(4000))
