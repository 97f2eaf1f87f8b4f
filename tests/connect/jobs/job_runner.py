"""A runner of tasks with a given Spark session, and records of topics."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from threading import Event
from typing import Any

from barnabas.client.blocking import run
from barnabas.client.core.topology import TopicPartition
from barnabas.connect.jobs.road import SparkRoad
from barnabas.connect.plugins import Plugins
from barnabas.connect.tasks.producing import TaskProducer
from barnabas.connect.tasks.runner import TaskRunner
from barnabas.spark.basics.cluster import WorkerCluster
from barnabas.spark.basics.settings import client_settings
from barnabas.spark.reading.columns import Table
from barnabas.spark.reading.fetcher import EARLIEST, LATEST, Fetcher, OffsetRange
from barnabas.testing.waiting import wait_until
from connect.tasks.parts import States

JSON = "org.apache.kafka.connect.json.JsonConverter"
CONVERTERS = {
    "key.converter": JSON,
    "value.converter": JSON,
    "key.converter.schemas.enable": "false",
    "value.converter.schemas.enable": "false",
}
SECONDS = 120.0


class Tasks:
    """Tasks of one worker, whose jobs run in a session of the tests."""

    def __init__(self, bootstrap: str, spark: Any, folder: Path, **worker: str) -> None:
        self.worker = {
            "bootstrap.servers": bootstrap,
            "group.id": "workers",
            **CONVERTERS,
            **{name.replace("_", "."): text for name, text in worker.items()},
        }
        self.runner = TaskRunner(self.worker, Plugins([str(folder)]), SparkRoad(self.worker, spark))
        self.states: dict[str, States] = {}

    def start(self, name: str, config: Mapping[str, str]) -> States:
        states = self.states[name] = States()
        self.runner.start(name, 0, {"name": name, **config}, "STARTED", states)
        return states

    def progress(self, name: str) -> Any:
        return next(each for each in self.runner.progress() if each.connector == name)

    def client(self, name: str) -> Any:
        """The only client of a task, as metrics see it."""
        [found] = next(each for each in self.runner.tasks() if each.connector == name).clients
        return found

    def stop(self) -> None:
        self.runner.stop_all(SECONDS)


def read_topic(bootstrap: str, topic: str) -> list[tuple[int, int, Any, Any]]:
    """Committed records of a topic: partition, offset, key and value as JSON."""
    return [
        (partition, row["offset"], of_json(row["key"]), of_json(row["value"]))
        for partition, row in rows_in(bootstrap, topic, ("offset", "key", "value"))
    ]


def headers_in(bootstrap: str, topic: str) -> list[dict[str, str]]:
    """The headers of a topic's records as texts."""
    found = rows_in(bootstrap, topic, ("offset", "headers"))
    return [{each["key"]: (each["value"] or b"").decode() for each in row["headers"]} for _, row in found]


def rows_in(bootstrap: str, topic: str, columns: tuple[str, ...]) -> list[tuple[int, dict[str, Any]]]:
    """Committed records of a topic, each with its partition."""
    settings = client_settings(
        {"kafka.bootstrap.servers": bootstrap, "kafka.isolation.level": "read_committed"}
    )
    cluster = WorkerCluster(settings)
    found = []
    try:
        known = run(cluster.topics([topic]))[topic]
        places = [TopicPartition(topic, each) for each in known.partitions]
        first = cluster.offsets(dict.fromkeys(places, EARLIEST))
        last = cluster.offsets(dict.fromkeys(places, LATEST))
        for place in places:
            asked = OffsetRange(topic, known.topic_id, place.partition, first[place], last[place])
            table = Table(topic, place.partition, columns)
            for chunk in Fetcher(cluster, asked, fails_on_loss=True, timeout_ms=30_000).chunks():
                rows = table.batch(chunk, asked.start, asked.stop).to_pylist()
                found += [(place.partition, row) for row in rows]
    finally:
        run(cluster.close())
    return found


def of_json(data: bytes | None) -> Any:
    return None if data is None else json.loads(data)


def until(condition: Any) -> None:
    wait_until(condition, SECONDS)


def produce(bootstrap: str, topic: str, records: list[tuple[str | None, str | None]]) -> None:
    """Write texts, by the producer of tasks."""
    import pyarrow as pa

    producer = TaskProducer({"bootstrap.servers": bootstrap}, Event())
    try:
        producer.start()
        table = pa.table(
            {
                "key": pa.array([None if key is None else key.encode() for key, _ in records], pa.binary()),
                "value": pa.array(
                    [None if text is None else text.encode() for _, text in records], pa.binary()
                ),
                "topic": pa.array([topic] * len(records)),
            }
        )
        producer.write([table])
        producer.flush()
    finally:
        producer.close()
