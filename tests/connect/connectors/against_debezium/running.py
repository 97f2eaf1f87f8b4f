"""Debezium's connectors from Maven Central in Apache's Connect, and the events that they send."""

from __future__ import annotations

import asyncio
import re
import shutil
import time
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, NamedTuple

import pytest

from barnabas.client.admin.admin import Admin
from barnabas.client.admin.offsets import OffsetSpec
from barnabas.client.cluster import Cluster
from barnabas.client.consumer import Consumer
from barnabas.client.core.address import parse_bootstrap
from barnabas.client.core.topology import TopicPartition
from barnabas.connect.convert.json import JsonConverter
from barnabas.connect.data import Column, Records
from barnabas.testing import Broker, maven
from barnabas.testing.waiting import wait_until
from connect.worker_processes import WorkerProcess

ARTIFACTS = {
    "postgres": "io.debezium:debezium-connector-postgres:3.6.3.Final",
    "mysql": "io.debezium:debezium-connector-mysql:3.6.1.Final",
    "mariadb": "io.debezium:debezium-connector-mariadb:3.5.0.Final",
}
OF_CONNECT = ("kafka-", "connect-", "jackson-", "slf4j-", "lz4-", "snappy-", "zstd-", "jakarta.")
JSON = "org.apache.kafka.connect.json.JsonConverter"


class Event(NamedTuple):
    """A record as bytes of JSON with schemas; headers likewise."""

    topic: str
    key: bytes | None
    value: bytes | None
    headers: tuple[tuple[str, bytes | None], ...] = ()


def plugin_folder(folder: Path, kind: str) -> Path:
    """A folder for plugin.path with one of Debezium's connectors; the test is skipped where there is none."""
    artifacts = (ARTIFACTS[kind],)
    name = artifacts[0].split(":", 1)[1].replace(":", "-")
    if reason := maven.missing(name, artifacts, ("org.apache.kafka",)):
        pytest.skip(reason)
    place = folder / "plugins" / kind
    place.mkdir(parents=True, exist_ok=True)
    for jar in maven.fetch(name, artifacts, ("org.apache.kafka",)).glob("*.jar"):
        if not jar.name.startswith(OF_CONNECT):
            shutil.copy(jar, place)
    return place.parent


class Debezium:
    """A worker of Apache's Connect with Debezium's connectors, and a broker for their topics."""

    def __init__(self, folder: Path, broker: Broker, kind: str) -> None:
        self.broker = broker
        more = {
            "plugin__path": str(plugin_folder(folder, kind)),
            "key__converter": JSON,
            "value__converter": JSON,
            "header__converter": JSON,
            "offset__flush__interval__ms": "200",
        }
        self.worker = WorkerProcess(folder, broker.bootstrap, "debezium", is_apache=True, **more)

    def events(self, prefix: str) -> list[Event]:
        """All events of one connector so far, topic by topic."""
        return asyncio.run(read_events(self.broker.bootstrap, prefix))

    def until_end(self, prefix: str, end: str) -> list[Event]:
        """All events, when the last of them has come."""
        self.wait(prefix, lambda: any(end in each.topic for each in self.events(prefix)))
        time.sleep(0.5)  # the record of the end of a transaction
        return self.events(prefix)

    def wait(self, name: str, condition: Callable[[], bool]) -> None:
        """Wait until the condition is true; a task that fails is told at once."""

        def is_over() -> bool:
            assert (failure := self.failure(name)) is None, failure
            return condition()

        wait_until(is_over, 60)

    def failure(self, name: str) -> str | None:
        found = self.worker.get(f"/connectors/{name}/status") or {}
        failed = [str(each.get("trace")) for each in found.get("tasks", ()) if each["state"] == "FAILED"]
        return failed[0] if failed else None


@contextmanager
def running(folder: Path, kind: str) -> Iterator[Debezium]:
    with Broker(overrides={"group.initial.rebalance.delay.ms": "0"}) as broker:
        found = Debezium(folder, broker, kind)
        try:
            found.worker.wait()
            yield found
        except BaseException:
            print(found.worker.said())
            raise
        finally:
            found.worker.stop()


def is_of(topic: str, prefix: str) -> bool:
    return prefix in re.split(r"[.-]", topic)


async def read_events(bootstrap: str, prefix: str) -> list[Event]:
    cluster = Cluster(parse_bootstrap(bootstrap))
    try:
        admin = Admin(cluster)
        topics = [each.name for each in await admin.list_topics(internal=False) if is_of(each.name, prefix)]
        counts = {each: await cluster.partitions_of(each) for each in topics}
        places = [TopicPartition(each, number) for each, count in counts.items() for number in range(count)]
        if not places:
            return []
        ends = await admin.list_offsets(dict.fromkeys(places, OffsetSpec.LATEST))
        consumer = Consumer(cluster)
        await consumer.assign_at(places, OffsetSpec.EARLIEST)
        found: list[Event] = []
        while any(consumer.positions[place] < ends[place].offset for place in places):  # type: ignore[union-attr]
            for each in await consumer.poll(200.0):
                found.append(Event(each.topic, each.key, each.value, tuple(each.headers)))
        await consumer.close()
        return sorted(found, key=lambda each: each.topic)
    finally:
        await cluster.close()


class Written:
    """Records of our connectors as the same bytes."""

    def __init__(self) -> None:
        self._converters = {True: JsonConverter(), False: JsonConverter()}
        for is_key, each in self._converters.items():
            each.configure({"schemas.enable": "true"}, is_key)

    def _bytes(self, topic: str, column: Column, *, is_key: bool) -> list[Any]:
        done = self._converters[is_key].to_bytes(topic, column)
        for error in done.failures.values():
            raise error
        return list(done.data.to_pylist())

    def events(self, batches: Iterable[Records]) -> list[Event]:
        found = []
        for batch in batches:
            if not len(batch):
                continue
            topic = str(batch.topics[0])
            keys = self._bytes(topic, batch.keys, is_key=True)
            values = self._bytes(topic, batch.values, is_key=False)
            headers = batch.headers or [()] * len(batch)
            for name, key, value, each in zip(batch.topics.to_pylist(), keys, values, headers, strict=True):
                made = tuple((one.name, self._header(topic, one)) for one in each)
                found.append(Event(name, key, value, made))
        return sorted(found, key=lambda each: each.topic)

    def _header(self, topic: str, header: Any) -> bytes | None:
        column = Column.of([header.value], header.schema)
        found: bytes | None = self._bytes(topic, column, is_key=False)[0]
        return found
