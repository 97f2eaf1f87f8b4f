"""A worker that reads objects back is killed again and again: every record is in the topic, in order."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import orjson
import pytest
from confluent_kafka import Consumer
from tests.connect.connectors.contexts import started_sink
from tests.connect.connectors.worker import running_worker, until

from barnabas.connect.connectors.objects.connectors import HdfsSinkConnector
from barnabas.connect.data import Column, Records
from barnabas.testing.broker import Broker

COUNT = 2000


@pytest.mark.long
@pytest.mark.timeout(300)
def test_killed_workers_miss_no_record(barnabas_broker: Broker, barnabas_topic: str, tmp_path: Path) -> None:
    config = {"hdfs.url": str(tmp_path / "lake"), "format.class": "JsonFormat", "flush.size": "100"}
    sink = started_sink(HdfsSinkConnector, config)
    rows = Column.of([{"n": n} for n in range(COUNT)])
    sink.put(Records.of(barnabas_topic, rows, partitions=[0] * COUNT, offsets=list(range(COUNT))))
    source = {
        "name": "back",
        "connector.class": "io.confluent.connect.hdfs3.Hdfs3SourceConnector",
        "hdfs.url": str(tmp_path / "lake"),
        "format.class": "JsonFormat",
        "record.batch.max.size": "7",
    }
    consumer = Consumer(
        {"bootstrap.servers": barnabas_broker.bootstrap, "group.id": "b", "auto.offset.reset": "earliest"}
    )
    consumer.subscribe([barnabas_topic])
    seen: list[int] = []

    def reached(number: int) -> Any:
        def more() -> bool:
            for one in consumer.consume(500, 0.2):
                if one.error() is None:
                    seen.append(orjson.loads(one.value())["n"])
            return bool(seen) and max(seen) >= number

        return more

    for number in (50, 500):
        with running_worker(tmp_path / "worker", barnabas_broker.bootstrap, source) as worker:
            until(reached(number), 90.0)
            worker.kill()
    with running_worker(tmp_path / "worker", barnabas_broker.bootstrap, source):
        until(reached(COUNT - 1), 90.0)
    consumer.close()
    assert list(dict.fromkeys(seen)) == list(range(COUNT))
