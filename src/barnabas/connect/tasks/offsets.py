"""Offsets of sources: in a compacted topic with Connect's own bytes, or in a file of a standalone worker.

In: (source partition, source offset) pairs of a connector. Out: records of the offset topic, and the last
offset of each source partition. Keys are `["connector",{partition}]`; a key that is there already is written
again with the very same bytes, whoever wrote them. Does not know: tasks, transactions.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any, Protocol

import pyarrow as pa

from barnabas.client.blocking import run
from barnabas.client.core.topology import TopicPartition
from barnabas.connect.config.offset_file import change_offset_file, read_offset_file
from barnabas.connect.plugins.contexts import SourcePartition
from barnabas.connect.plugins.tasks import Positions
from barnabas.connect.tasks.client_properties import connection_settings
from barnabas.spark.basics.cluster import WorkerCluster
from barnabas.spark.reading.columns import Table
from barnabas.spark.reading.fetcher import EARLIEST, LATEST, Fetcher, OffsetRange

READ_MS_MAX = 60_000


def json_bytes(value: object) -> bytes:
    """JSON as Connect's converter prints it: nothing between the parts."""
    return json.dumps(value, separators=(",", ":"), ensure_ascii=False).encode()


def canonical(partition: Mapping[str, Any]) -> str:
    return json.dumps(partition, sort_keys=True, separators=(",", ":"), ensure_ascii=False)


class OffsetStore(Protocol):
    """The place where a task reads offsets, and the producer that writes them."""

    topic: str | None  # offsets are records of this topic; None: `save` keeps them

    def read(self, partitions: Sequence[SourcePartition]) -> list[dict[str, Any] | None]: ...

    def table(self, positions: Positions) -> pa.Table:
        """The positions as records of the offset topic."""
        ...

    def save(self, positions: Positions) -> None:
        """The positions are durable (or must become so, in a file): later reads return them."""
        ...


class OffsetMemory:
    """Offsets of one connector, by source partition; keys as bytes."""

    topic: str | None = None

    def __init__(self, connector: str) -> None:
        self.connector = connector
        self._keys: dict[str, bytes] = {}
        self._found: dict[str, dict[str, Any]] = {}

    def apply(self, key: bytes | None, value: bytes | None) -> None:
        """Take a record of the topic. Records of others, and those that are no offsets, are passed over."""
        try:
            connector, partition = json.loads(key or b"")
            offset = None if value is None else json.loads(value)
        except (ValueError, TypeError):
            return
        if connector != self.connector or not isinstance(partition, dict):
            return
        name = canonical(partition)
        if not isinstance(offset, dict):
            self._found.pop(name, None)
            return
        self._keys[name] = key or b""
        self._found[name] = offset

    def read(self, partitions: Sequence[SourcePartition]) -> list[dict[str, Any] | None]:
        found = (self._found.get(canonical(each)) for each in partitions)
        return [None if each is None else dict(each) for each in found]

    def table(self, positions: Positions) -> pa.Table:
        keys = [
            self._keys.get(canonical(partition)) or json_bytes([self.connector, dict(partition)])
            for partition, _ in positions
        ]
        values = [json_bytes(dict(offset)) for _, offset in positions]
        return pa.table(
            {
                "key": pa.array(keys, pa.binary()),
                "value": pa.array(values, pa.binary()),
                "topic": pa.array([self.topic] * len(keys), pa.string()),
            }
        )

    def save(self, positions: Positions) -> None:
        for partition, offset in positions:
            self._found[canonical(partition)] = dict(offset)


class TopicOffsets(OffsetMemory):
    """Offsets in the worker's topic or the connector's own one, read as committed transactions left them."""

    def __init__(self, connector: str, topic: str, properties: Mapping[str, str]) -> None:
        super().__init__(connector)
        self.topic: str | None = topic
        self._properties = properties

    def records(self) -> list[tuple[bytes, bytes]]:
        """The stored offsets, as records of the topic."""
        return [(self._keys[name], json_bytes(offset)) for name, offset in self._found.items()]

    def load(self) -> None:
        """Read the topic up to its end."""
        assert self.topic is not None
        settings = replace(
            connection_settings(self._properties), isolation_level="read_committed", fetch_max_wait_ms=100
        )
        cluster = WorkerCluster(settings)
        try:
            found = run(
                cluster.retrying(
                    lambda: cluster.topics([self.topic or ""], auto_create=True),
                    patience=cluster.patience(READ_MS_MAX),
                )
            )
            topic = found[self.topic]
            places = [TopicPartition(self.topic, each) for each in topic.partitions]
            first = cluster.offsets(dict.fromkeys(places, EARLIEST), timeout_ms=READ_MS_MAX)
            last = cluster.offsets(dict.fromkeys(places, LATEST), timeout_ms=READ_MS_MAX)
            for place in places:
                if first[place] < last[place]:
                    asked = OffsetRange(
                        place.topic, topic.topic_id, place.partition, first[place], last[place]
                    )
                    self._load(cluster, asked)
        finally:
            run(cluster.close())

    def _load(self, cluster: WorkerCluster, asked: OffsetRange) -> None:
        table = Table(asked.topic, asked.partition, ("key", "value"))
        for chunk in Fetcher(cluster, asked, fails_on_loss=False, timeout_ms=READ_MS_MAX).chunks():
            batch = table.batch(chunk, asked.start, asked.stop)
            for key, value in zip(
                batch.column("key").to_pylist(), batch.column("value").to_pylist(), strict=True
            ):
                self.apply(key, value)


class FileOffsets(OffsetMemory):
    """Offsets of a standalone worker."""

    def __init__(self, connector: str, path: Path) -> None:
        super().__init__(connector)
        self._path = path
        for key, value in read_offset_file(path).items():
            self.apply(key, value)

    def save(self, positions: Positions) -> None:
        super().save(positions)
        changes: dict[bytes, bytes | None] = {}
        for partition, offset in positions:
            name = canonical(partition)
            key = self._keys.setdefault(name, json_bytes([self.connector, dict(partition)]))
            changes[key] = json_bytes(dict(offset))
        change_offset_file(self._path, changes)
