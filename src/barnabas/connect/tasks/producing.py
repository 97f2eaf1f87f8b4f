"""The producer of a task: tables become batches, written with acks=all, idempotent or in transactions.

In: properties of a producer, tables as the chain makes them. Out: records that all in-sync replicas have,
after `flush` or `commit`. A stop ends waits for brokers that are away. Does not know: where rows come from.
"""

from __future__ import annotations

import random
import time
from collections.abc import Callable, Iterable, Mapping
from threading import Event
from typing import Any

import pyarrow as pa

from barnabas.client.admin.topics import TopicAdmin
from barnabas.client.blocking import BlockingConnection, BlockingNetwork, run
from barnabas.client.core.address import Address
from barnabas.client.core.errors import Unreachable
from barnabas.client.core.network import ConnectionSettings
from barnabas.client.core.topology import TopicPartition
from barnabas.client.core.traffic import Traffic
from barnabas.client.core.transaction import Fenced, Transaction
from barnabas.connect.plugins import ConnectError, FencedError, RetriableError
from barnabas.connect.tasks.client_properties import connection_settings
from barnabas.connect.tasks.errors import Stopped
from barnabas.records.compression import Compression
from barnabas.spark.basics.cluster import WorkerCluster
from barnabas.spark.producer import BlockingProducer, OnAcknowledged, OnRefused
from barnabas.spark.writing.encoding import Encoded, Encoder
from barnabas.spark.writing.rows import RowError, Undelivered

BATCH_BYTES = 512 * 1024
ENDLESS_MS = 2**31 - 1
TRANSACTION_TIMEOUT_MS = 60_000
PREPARE_MS_MAX = 60_000

Prepare = Callable[[TopicAdmin, str], None]
OnAway = Callable[[BaseException], None]


class StoppableNetwork(BlockingNetwork):
    """Waits that end when the task is told to stop."""

    def __init__(self, stopping: Event, on_away: OnAway | None = None) -> None:
        self._stopping = stopping
        self._on_away = on_away

    async def connect(self, address: Address, settings: ConnectionSettings) -> BlockingConnection:
        try:
            return await super().connect(address, settings)
        except Unreachable as error:
            if self._on_away is not None:
                self._on_away(error)
            raise

    async def sleep(self, seconds: float) -> None:
        if self._stopping.wait(seconds):
            raise Stopped


class Partitions(dict[str, int]):
    """How many partitions a topic has; asked for, and the topic made if need be, when it first comes up."""

    def __init__(self, cluster: WorkerCluster, prepare: Prepare | None) -> None:
        super().__init__()
        self._cluster = cluster
        self._prepare = prepare

    def __missing__(self, topic: str) -> int:
        if self._prepare is not None:
            self._prepare(TopicAdmin(self._cluster), topic)
        patience = self._cluster.patience(PREPARE_MS_MAX)
        found = run(
            self._cluster.retrying(lambda: self._cluster.topics([topic], auto_create=True), patience=patience)
        )
        count = self[topic] = len(found[topic].partitions)
        return count

    def looked_up_again(self, topic: str) -> int:
        """The partitions of a topic that was deleted: it is made again as at first."""
        self.pop(topic, None)
        return self[topic]


class TaskProducer:
    """The producer of one task, for one thread. With a transactional id, everything between two commits is
    one transaction."""

    def __init__(
        self,
        properties: Mapping[str, str],
        stopping: Event,
        *,
        prepare: Prepare | None = None,
        transactional_id: str | None = None,
        seed: str | None = None,
        on_refused: OnRefused | None = None,
        on_away: OnAway | None = None,
        cancelled: Event | None = None,
    ) -> None:
        """`seed` decides about partitions of records without a key: a repeated task chooses the same.
        `on_refused` is told of single records that the broker refuses; without it they are errors. `on_away`
        is told of brokers that cannot be reached, while the producer goes on trying. After `cancelled` is set
        it writes nothing more: the task may run elsewhere already."""
        self._on_refused = on_refused
        self.cancelled = cancelled or Event()
        client = connection_settings(properties)
        self._cluster = WorkerCluster(client)
        self._coordinators = WorkerCluster(client)
        for each in (self._cluster, self._coordinators):
            each.network = StoppableNetwork(stopping, on_away)
        self.transactional_id = transactional_id
        self.on_acknowledged: OnAcknowledged | None = None
        self.has_failed = False  # records may be missing: no offset behind them may count
        timeout_ms = int(properties.get("transaction.timeout.ms", TRANSACTION_TIMEOUT_MS))
        self._transaction = Transaction(
            self._coordinators,
            transactional_id,
            timeout_ms=timeout_ms,
            wait_ms=ENDLESS_MS,
            waits_for_topics=False,
        )
        self.partitions = Partitions(self._cluster, prepare)
        name = properties.get("compression.type", "none").strip().upper()
        try:
            codec = Compression[name]
        except KeyError:
            known = ", ".join(each.name.lower() for each in Compression)
            raise ConnectError(f"compression.type is {name.lower()!r}, it may be {known}") from None
        self._encoder = Encoder(
            self.partitions,
            compression=codec,
            batch_bytes=int(properties.get("batch.size", BATCH_BYTES)),
            rng=random.Random(seed),
        )
        self._delivery_ms = int(properties.get("delivery.timeout.ms", ENDLESS_MS))
        self._begin()

    def _begin(self) -> None:
        self._producer = BlockingProducer(
            self._cluster,
            self._encoder,
            self._transaction,
            timeout_ms=self._delivery_ms,
            on_refused=self._on_refused,
            on_missing=self.partitions.looked_up_again,
            on_acknowledged=self._acknowledged,
        )

    def _acknowledged(self, batch: Encoded, append_time_ms: int) -> None:
        if self.on_acknowledged is not None:
            self.on_acknowledged(batch, append_time_ms)

    @property
    def traffic(self) -> Traffic:
        return self._cluster.traffic + self._coordinators.traffic

    def start(self) -> None:
        """Get a producer id. With a transactional id this fences the producer that had it before."""
        run(self._transaction.init())

    def ensure(self, topic: str) -> None:
        """Look up a topic, and make it if the producer may."""
        with self._named():
            self.partitions[topic]

    def renew(self) -> tuple[int, int]:
        """Begin a transaction that executors may join; an open one is aborted. Out: producer id and epoch.
        FencedError if another task has taken over the transactional id."""
        with self._named():
            run(self._transaction.renew())
        self._begin()
        return self._transaction.producer_id, self._transaction.producer_epoch

    def join(self, producer_id: int, producer_epoch: int) -> None:
        """Write in a transaction that the driver ends, in place of `start`. No other producer may write to
        the same partitions in it, because sequences begin at 0."""
        self._transaction.join(producer_id, producer_epoch)

    def include(self, places: Iterable[TopicPartition]) -> None:
        """Partitions that others have written to in this transaction: it ends at `commit`."""
        with self._named():
            for place in places:
                run(self._transaction.add(place))

    def partitions_of(self, table: pa.Table, topic: str) -> Any:
        """The partition of each row of a table with records of one topic."""
        with self._named():
            return self._encoder.chosen_partitions(table, topic)

    def write(self, tables: Iterable[pa.Table]) -> int:
        """Hand tables over; how many records they have."""
        count = 0
        with self._named():
            for table in tables:
                count += table.num_rows
                self._producer.write(self._encoder.batches(table, None, int(time.time() * 1000)))
        return count

    def flush(self, timeout_ms: int | None = None) -> None:
        with self._named():
            self._producer.flush(timeout_ms)

    def commit(self) -> None:
        """Flush, and commit the transaction if there is one."""
        with self._named():
            self._producer.flush()
            run(self._transaction.end(commit=True))

    def abort(self) -> None:
        with self._named():
            self._producer.flush()
            run(self._transaction.end(commit=False))

    def close(self) -> None:
        run(self._cluster.close())
        run(self._coordinators.close())

    def _named(self) -> _Named:
        return _Named(self)


class _Named:
    """Errors of the producer as errors of Connect."""

    def __init__(self, producer: TaskProducer) -> None:
        self._producer = producer

    def __enter__(self) -> None:
        if self._producer.cancelled.is_set():
            raise Stopped

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, _: object) -> None:
        if error is not None:
            self._producer.has_failed = True
        if isinstance(error, Fenced):
            known = self._producer.transactional_id
            raise FencedError(
                f"another task took over the transactional id {known}: this one ends"
            ) from error
        if isinstance(error, Undelivered):
            raise RetriableError(f"records are not delivered: {error}") from error
        if isinstance(error, RowError):
            raise ConnectError(f"records cannot be written: {error}") from error
