"""A plan on a broker without Spark: the conductor's steps, with the batches of tasks run in this process."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any, Self

from barnabas.client.admin.topics import NewTopic, TopicAdmin
from barnabas.client.blocking import run
from barnabas.client.core.topology import TopicPartition
from barnabas.client.core.transaction import Transaction
from barnabas.plans.interpreter.records import Output
from barnabas.plans.interpreter.task import Handlers
from barnabas.plans.plan import Plan
from barnabas.plans.serdes import Serde
from barnabas.spark.basics.cluster import WorkerCluster
from barnabas.spark.basics.settings import ClientSettings
from barnabas.spark.reading.fetcher import EARLIEST, LATEST, OffsetRange
from barnabas.streams.serdes.formats import serde_of
from barnabas.streams.spark.conductor import Query
from barnabas.streams.spark.jobs import run_one
from barnabas.streams.spark.queries_of_plan import queries_of
from barnabas.streams.spark.task_outputs import write
from barnabas.streams.spark.task_port import TaskSettings
from barnabas.streams.spark.task_records import read_range
from barnabas.testing.broker import Broker

# Records of tests are from 1970: retention would delete them.
KEEPS_OLD_RECORDS = {"log.retention.check.interval.ms": "86400000", "log.initial.task.delay.ms": "86400000"}


class LocalApplication:
    """Topics must exist (`create`) before the first `run`."""

    def __init__(self, broker: Broker, plan: Plan, folder: Path, *, is_exactly_once: bool = True) -> None:
        self.plan, self.handlers = plan, Handlers()
        self.client = ClientSettings(broker.bootstrap, isolation_level="read_committed")
        self.cluster = WorkerCluster(self.client)
        self.settings = TaskSettings(
            plan.application_id, self.client, str(folder), is_exactly_once, wait_ms=20_000
        )
        self.queries: list[Query] = []

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        run(self.cluster.close())

    def create(self, *topics: str, partitions: int = 2) -> None:
        for topic in topics:
            run(TopicAdmin(self.cluster).create_topic(NewTopic(topic, partitions, 1)))

    def produce(
        self, topic: str, records: Sequence[tuple[Any, Any, int]], key: Any = str, value: Any = str
    ) -> None:
        """Write records of (key, value, timestamp)."""
        formats: list[Serde] = [serde_of(key), serde_of(value)]
        to_key, to_value = formats[0].serializer(topic, True), formats[1].serializer(topic, False)
        self.write(
            Output(topic, None if k is None else to_key(k), None if v is None else to_value(v), time)
            for k, v, time in records
        )

    def write(self, outputs: Iterable[Output]) -> None:
        """Write records in bytes."""
        producer = Transaction(self.cluster)
        run(producer.init())
        write(self.settings, self.cluster, producer, list(outputs))

    def run(self, folder: Path | None = None) -> None:
        """Run batches until there is nothing new."""
        settings = self.settings
        if folder is not None:
            settings = TaskSettings(
                settings.application_id, self.client, str(folder), settings.is_exactly_once, wait_ms=20_000
            )
        queries = self.queries = queries_of(self.plan, settings, self.cluster, handlers=self.handlers)
        for query in queries:
            asked = Transaction(self.cluster).committed(
                settings.application_id, query.places, is_stable=False
            )
            committed = run(asked)
            starts = self.cluster.offsets(dict.fromkeys(query.places, EARLIEST))
            query.positions = starts | {place: offset for place, (offset, _) in committed.items()}
        while sum(self._run_due(query, settings, -1) for query in queries):
            pass

    def run_once(self, query: Query) -> None:
        """One batch of a query, whatever becomes of it."""
        ends = self.cluster.offsets(dict.fromkeys(query.places, LATEST))
        query.apply([run_one(self.settings, query.logic, batch) for batch in query.due(ends)])

    def tick(self, now_ms: int) -> None:
        """Run what is due at a time of the wall clock, as the conductor does; `run` was called before."""
        for query in self.queries:
            self._run_due(query, self.settings, now_ms)

    def _run_due(self, query: Query, settings: TaskSettings, now_ms: int) -> bool:
        batches = query.due(self.cluster.offsets(dict.fromkeys(query.places, LATEST)), now_ms)
        results = [run_one(settings, query.logic, batch) for batch in batches]
        query.apply(results)
        assert query.error is None, query.error
        return bool(results)

    def read(self, topic: str, key: Any = str, value: Any = str) -> list[tuple[Any, Any, int]]:
        """All records of a topic, partition by partition."""
        read_key = serde_of(key).deserializer(topic, True)
        read_value = serde_of(value).deserializer(topic, False)
        places = [TopicPartition(topic, each) for each in run(self.cluster.topics([topic]))[topic].partitions]
        starts = self.cluster.offsets(dict.fromkeys(places, EARLIEST))
        found = []
        for place, end in self.cluster.offsets(dict.fromkeys(places, LATEST)).items():
            asked = OffsetRange(topic, b"", place.partition, starts[place], end)
            found += [
                (
                    None if each.key is None else read_key(each.key),
                    None if each.value is None else read_value(each.value),
                    each.timestamp,
                )
                for each in read_range(self.cluster, asked, 10_000)
            ]
        return found
