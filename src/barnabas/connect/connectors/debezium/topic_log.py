"""A topic that a connector reads and writes itself, with clients of its own: schema history, signals.

In: properties of clients. Out: records from an offset on; appended records are durable when `append` returns.
"""

from __future__ import annotations

import random
import time
from collections.abc import Mapping, Sequence
from dataclasses import replace

import pyarrow as pa

from barnabas.client.admin.topics import NewTopic, TopicAdmin
from barnabas.client.blocking import run
from barnabas.client.core.topology import TopicPartition
from barnabas.client.core.transaction import Transaction
from barnabas.connect.plugins import ConnectError
from barnabas.protocol import ErrorCode, KafkaError
from barnabas.records.compression import Compression
from barnabas.spark.basics.cluster import WorkerCluster
from barnabas.spark.basics.settings import FORBIDDEN, client_settings
from barnabas.spark.producer import BlockingProducer
from barnabas.spark.reading.columns import Table
from barnabas.spark.reading.fetcher import EARLIEST, LATEST, Fetcher, OffsetRange
from barnabas.spark.writing.encoding import Encoder

WAIT_MS_MAX = 60_000
BATCH_BYTES = 512 * 1024
Pair = tuple[bytes | None, bytes | None]


class TopicLog:
    """A topic with one partition. Not for several threads."""

    def __init__(self, properties: Mapping[str, str], topic: str) -> None:
        self.topic = topic
        settings = client_settings(
            {f"kafka.{name}": text for name, text in properties.items() if name not in FORBIDDEN}
        )
        settings = replace(settings, isolation_level="read_committed", fetch_max_wait_ms=100)
        self._cluster = WorkerCluster(settings)
        self._producer: BlockingProducer | None = None
        self.next_offset = 0

    def create(self, config: dict[str, str]) -> None:
        """Create the topic with one partition if it is missing."""
        topic = NewTopic(self.topic, 1, -1, configs=config)
        try:
            run(TopicAdmin(self._cluster).create_topic(topic))
        except KafkaError as error:
            if error.code != ErrorCode.TOPIC_ALREADY_EXISTS:
                raise ConnectError(f"topic {self.topic} cannot be created: {error}") from error

    def read(self) -> list[Pair]:
        """Records behind those that were read before."""
        cluster = self._cluster
        found = run(
            cluster.retrying(
                lambda: cluster.topics([self.topic], auto_create=True), patience=cluster.patience(WAIT_MS_MAX)
            )
        )[self.topic]
        place = TopicPartition(self.topic, 0)
        first = max(cluster.offsets({place: EARLIEST}, timeout_ms=WAIT_MS_MAX)[place], self.next_offset)
        last = cluster.offsets({place: LATEST}, timeout_ms=WAIT_MS_MAX)[place]
        pairs: list[Pair] = []
        if first < last:
            asked = OffsetRange(self.topic, found.topic_id, 0, first, last)
            table = Table(self.topic, 0, ("key", "value"))
            for chunk in Fetcher(cluster, asked, fails_on_loss=False, timeout_ms=WAIT_MS_MAX).chunks():
                batch = table.batch(chunk, asked.start, asked.stop)
                pairs += zip(batch.column("key").to_pylist(), batch.column("value").to_pylist(), strict=True)
        self.next_offset = last
        return pairs

    def seek_to_end(self) -> None:
        place = TopicPartition(self.topic, 0)
        self.next_offset = self._cluster.offsets({place: LATEST}, timeout_ms=WAIT_MS_MAX)[place]

    def append(self, pairs: Sequence[Pair]) -> None:
        """Append records; all in-sync replicas have them then."""
        if self._producer is None:
            transaction = Transaction(self._cluster, None, wait_ms=WAIT_MS_MAX)
            run(transaction.init())
            self._encoder = Encoder(
                {self.topic: 1}, compression=Compression.NONE, batch_bytes=BATCH_BYTES, rng=random.Random()
            )
            self._producer = BlockingProducer(
                self._cluster, self._encoder, transaction, timeout_ms=WAIT_MS_MAX
            )
        table = pa.table(
            {
                "key": pa.array([key for key, _ in pairs], pa.binary()),
                "value": pa.array([value for _, value in pairs], pa.binary()),
                "topic": pa.array([self.topic] * len(pairs), pa.string()),
            }
        )
        self._producer.write(self._encoder.batches(table, None, int(time.time() * 1000)))
        self._producer.flush()

    def close(self) -> None:
        run(self._cluster.close())
