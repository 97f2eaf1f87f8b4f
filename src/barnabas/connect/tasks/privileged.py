"""Writes of workers in transactions or to topics of a connector's own, by blocking clients in a thread.

In: properties of the worker. Out: records of the config topic as one transaction, by one leader (KIP-618);
offsets of a connector that has an offsets topic of its own, read and changed. Does not know: herders, REST.
"""

from __future__ import annotations

import threading
from collections.abc import Mapping, Sequence
from contextlib import suppress

import pyarrow as pa

from barnabas.connect.plugins import FencedError
from barnabas.connect.tasks.client_properties import client_properties
from barnabas.connect.tasks.offsets import TopicOffsets
from barnabas.connect.tasks.producing import TaskProducer

Bytes = tuple[bytes, bytes | None]
EXACT = "exactly.once.source.support"
TRANSACTIONAL = ("preparing", "enabled")
OWN_TOPIC = "offsets.storage.topic"
WAIT_MS = "30000"


def table_of(topic: str, records: Sequence[Bytes], partition: int | None = None) -> pa.Table:
    columns = {
        "key": pa.array([key for key, _ in records], pa.binary()),
        "value": pa.array([value for _, value in records], pa.binary()),
        "topic": pa.array([topic] * len(records), pa.string()),
    }
    if partition is not None:
        columns["partition"] = pa.array([partition] * len(records), pa.int32())
    return pa.table(columns)


class LeaderWriter:
    """Writes the config topic as the leader. A leader that takes over fences the one before."""

    def __init__(self, worker: Mapping[str, str], topic: str) -> None:
        self._worker = worker
        self._topic = topic
        self._producer: TaskProducer | None = None
        self._stopping = threading.Event()
        self._lock = threading.Lock()
        self.transactional_id = f"connect-cluster-{worker['group.id']}"

    @staticmethod
    def is_wanted(worker: Mapping[str, str]) -> bool:
        return worker.get(EXACT, "disabled").strip().lower() in TRANSACTIONAL

    def take_over(self) -> None:
        """Fence the leader before."""
        with self._lock:
            self._close()
            self._start()

    def _start(self) -> TaskProducer:
        given = client_properties("producer", self._worker, {}, f"{self.transactional_id}-leader")
        properties = {"delivery.timeout.ms": WAIT_MS, **given}
        made = TaskProducer(properties, self._stopping, transactional_id=self.transactional_id)
        try:
            made.start()
        except BaseException:
            made.close()
            raise
        self._producer = made
        return made

    def write(self, records: Sequence[Bytes]) -> None:
        """All records or none. FencedError: another worker leads."""
        with self._lock:
            producer = self._producer or self._start()
            try:
                producer.write([table_of(self._topic, records, partition=0)])
                producer.commit()
            except BaseException as error:
                if not isinstance(error, FencedError):
                    with suppress(Exception):
                        producer.abort()
                self._close()  # the next write takes over anew, if this worker still leads
                raise

    def _close(self) -> None:
        producer, self._producer = self._producer, None
        if producer is not None:
            producer.close()

    def close(self) -> None:
        self._stopping.set()
        with self._lock:
            self._close()


class OwnOffsets:
    """Offsets topics that connectors have of their own."""

    def __init__(self, worker: Mapping[str, str]) -> None:
        self._worker = worker

    def topic(self, config: Mapping[str, str]) -> str:
        """The connector's own topic; empty if it uses the worker's."""
        own = config.get(OWN_TOPIC, "").strip()
        return "" if own == self._worker.get("offset.storage.topic") else own

    def read(self, name: str, config: Mapping[str, str]) -> list[tuple[bytes, bytes]]:
        """The records of a connector, as they are in its topic."""
        properties = client_properties("consumer", self._worker, config, f"connector-offsets-{name}")
        found = TopicOffsets(name, self.topic(config), properties)
        found.load()
        return found.records()

    def write(self, name: str, config: Mapping[str, str], records: Sequence[Bytes]) -> None:
        properties = client_properties("producer", self._worker, config, f"connector-offsets-{name}")
        producer = TaskProducer({"delivery.timeout.ms": WAIT_MS, **properties}, threading.Event())
        try:
            producer.start()
            producer.write([table_of(self.topic(config), records)])
            producer.flush()
        finally:
            producer.close()
