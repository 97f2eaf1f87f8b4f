"""Writing batches to their leaders: several requests under way, in order, each batch once.

In: encoded batches. Out: nothing but the certainty, after `flush`, that all replicas have them. Batches carry
a producer id and sequences, so that sending again after a failure writes nothing twice. A batch that the
broker finds too large is cut in two; a row that cannot be written is an error that names its key.
Does not know: rows, Spark.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field

from barnabas.client.blocking import run
from barnabas.client.core.connection import ConnectionCore, Exchange
from barnabas.client.core.errors import ClientError, ConnectionLost, Unreachable, error_of
from barnabas.client.core.patience import Patience
from barnabas.client.core.producing import (
    TOO_LARGE,
    TRANSACTION_VERSION_MAX,
    WRITTEN,
    produce_request,
    produce_results,
)
from barnabas.client.core.send_queue import Failure, SendQueue
from barnabas.client.core.topology import TopicPartition
from barnabas.client.core.transaction import FENCED, Fenced, Transaction
from barnabas.protocol import ErrorCode, KafkaError
from barnabas.protocol.messages.produce import ProduceRequest, ProduceResponse
from barnabas.spark.basics.cluster import WorkerCluster
from barnabas.spark.writing.encoding import Encoded, Encoder
from barnabas.spark.writing.rows import RowError, Undelivered

REQUEST_BYTES = 4 * 1024 * 1024  # brokers take 100 MB at once
IN_FLIGHT_MAX = 5  # as many batches a producer's sequences are remembered
ACKS_ALL = -1
PRODUCE = "produce"  # requests under way must not hold up questions

OF_ONE_RECORD = TOO_LARGE | {ErrorCode.INVALID_RECORD, ErrorCode.INVALID_TIMESTAMP}

Filling = dict[TopicPartition, Encoded]
MISSING = (ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, ErrorCode.UNKNOWN_TOPIC_ID)
OnMissing = Callable[[str], int]  # a topic that is not there (any more); how many partitions it has now
OnAcknowledged = Callable[[Encoded, int], None]
OnRefused = Callable[[TopicPartition, bytes | None, str], None]  # where, the key, the error


@dataclass(slots=True, eq=False)
class Lane:
    """Requests to one leader: the request being filled, and those under way."""

    connection: ConnectionCore
    filling: Filling = field(default_factory=dict)
    bytes: int = 0
    in_flight: deque[tuple[Exchange[ProduceResponse] | None, Filling]] = field(default_factory=deque)


class BlockingProducer:
    def __init__(
        self,
        cluster: WorkerCluster,
        encoder: Encoder,
        transaction: Transaction,
        *,
        timeout_ms: int,
        on_refused: OnRefused | None = None,
        on_missing: OnMissing | None = None,
        on_acknowledged: OnAcknowledged | None = None,
        queue: SendQueue[Encoded] | None = None,
    ) -> None:
        """`on_refused` hears of a record that the broker refuses; the record is left out, and the others
        go on. `on_acknowledged` hears of each batch that is written, with the time that the topic gave its
        records (-1: they have their own). `on_missing` makes a topic again that was deleted; without it
        the producer waits for the topic. A `queue` of an earlier producer with the same id goes on with its
        sequences."""
        self._on_refused = on_refused
        self._on_missing = on_missing
        self._on_acknowledged = on_acknowledged
        self._cluster = cluster
        self._encoder = encoder
        self._transaction = transaction
        self._timeout_ms = timeout_ms
        self._queue: SendQueue[Encoded] = SendQueue(IN_FLIGHT_MAX) if queue is None else queue
        self._lanes: dict[ConnectionCore, Lane] = {}

    def write(self, batches: Iterable[Encoded]) -> None:
        for batch in batches:
            self._queue.append(batch)
            while not self._queue.has_failures and self._queue.next_of(batch.where) is not batch:
                self._make_way(batch.where)
            if self._queue.has_failures:
                self.flush()
            else:
                self._try(batch)

    def send_filled(self) -> None:
        """Send requests that are not full yet; `flush` waits for their responses."""
        for lane in list(self._lanes.values()):
            self._send(lane)

    def flush(self, timeout_ms: int | None = None) -> None:
        """Wait until everything is acknowledged; raises what cannot be written."""
        self._drain()
        patience = self._cluster.patience(self._timeout_ms if timeout_ms is None else timeout_ms)
        while not self._queue.is_empty():
            self._check(patience)
            while batches := list(self._queue.next_batches()):
                for batch in batches:
                    self._try(batch)
            self._drain()

    # -- sending ---------------------------------------------------------------------------------

    def _make_way(self, where: TopicPartition) -> None:
        """Wait for a response, so that one more batch of this partition may be under way."""
        for lane in list(self._lanes.values()):
            if where in lane.filling or any(where in each for _, each in lane.in_flight):
                if not lane.in_flight:
                    self._send(lane)
                if lane.in_flight:
                    self._receive(lane)
                return
        raise AssertionError(f"a batch of {where} waits, and none is under way")

    def _try(self, batch: Encoded) -> None:
        where = batch.where
        try:
            run(self._transaction.add(where))
            connection = run(self._cluster.leader_connection(where, PRODUCE))
        except (Unreachable, KafkaError) as error:
            self._queue.block(where, error)
            return
        lane = self._lanes.get(connection)
        if lane is None:
            lane = self._lanes[connection] = Lane(connection)
        if where in lane.filling or lane.bytes + len(batch.buffer) > REQUEST_BYTES:
            self._send(lane)
        if connection.lost is not None:
            self._queue.block(where, connection.lost)
        elif self._queue.next_of(where) is batch:
            self._queue.send(batch)
            lane.filling[where] = batch
            lane.bytes += len(batch.buffer)

    def _send(self, lane: Lane) -> None:
        while len(lane.in_flight) >= IN_FLIGHT_MAX:
            self._receive(lane)
        if not lane.filling:
            return
        filling, lane.filling, lane.bytes = lane.filling, {}, 0
        transaction = self._transaction
        is_transactional = transaction.transactional_id is not None
        version = lane.connection.version_for(ProduceRequest, TRANSACTION_VERSION_MAX)
        request = produce_request(
            (
                (where, batch.sealed(transaction.producer_id, transaction.producer_epoch, is_transactional))
                for where, batch in filling.items()
            ),
            {},
            version,
            acks=ACKS_ALL,
            timeout_ms=self._timeout_ms,
            transactional_id=transaction.transactional_id,
        )
        try:
            exchange = run(lane.connection.start(request, ProduceResponse, version))
            lane.in_flight.append((exchange, filling))
        except Unreachable as error:
            lane.in_flight.append((None, filling))
            self._lose(lane, error)

    def _receive(self, lane: Lane) -> None:
        exchange, filling = lane.in_flight[0]
        assert exchange is not None
        try:
            response = run(lane.connection.wait(exchange))
        except Unreachable as error:
            self._lose(lane, error)
            return
        lane.in_flight.popleft()
        for where, result in produce_results(response, {}):
            batch = filling.pop(where)
            if result.error_code in WRITTEN:
                self._queue.acknowledged(batch)
                if self._on_acknowledged is not None:
                    self._on_acknowledged(batch, result.log_append_time_ms)
            else:
                self._queue.failed(batch, error_of(result.error_code, result.error_message))
        for batch in filling.values():
            self._queue.failed(batch, ConnectionLost(lane.connection.address, f"no result for {batch.where}"))

    def _lose(self, lane: Lane, error: Unreachable) -> None:
        """The connection broke: what was under way may be written or not, and is sent again."""
        for filling in (*(each for _, each in lane.in_flight), lane.filling):
            for batch in filling.values():
                self._queue.failed(batch, error)
        lane.in_flight.clear()
        lane.filling.clear()
        self._lanes.pop(lane.connection, None)
        run(lane.connection.close())

    def _drain(self) -> None:
        for lane in list(self._lanes.values()):
            self._send(lane)
            while lane.in_flight:
                self._receive(lane)

    # -- when something failed ---------------------------------------------------------------------

    def _check(self, patience: Patience) -> None:
        """Go on only with errors that pass, after a pause; large batches are cut in two."""
        failures = self._queue.failures()
        passing: list[tuple[Encoded, Failure]] = []
        going_on: list[Encoded] = []
        for batch, failure in failures:
            code = code_of(failure)
            if code in FENCED:
                raise Fenced(self._transaction.transactional_id)
            if code in TOO_LARGE and batch.count > 1:
                self._queue.replace(batch.where, self._encoder.halves(batch))
            elif self._on_refused is not None and code in OF_ONE_RECORD:
                if batch.count == 1:
                    error = refused(batch, code)
                    self._queue.give_up(batch.where, was_refused=True)
                    self._on_refused(batch.where, key_of(batch), str(error))
                    continue
                self._queue.replace(batch.where, self._encoder.halves(batch, shrinks=False))
            elif may_pass(failure):
                passing.append((batch, failure))
            else:
                raise refused(batch, code)
            going_on.append(batch)
        if passing:
            batch, failure = passing[0]
            for missing in {each.where for each, why in passing if code_of(why) in MISSING}:
                if self._on_missing is not None and missing.partition >= self._on_missing(missing.topic):
                    raise refused(batch, code_of(failure))  # the topic came back with fewer partitions
            try:
                run(patience.pause(failure))
            except (KafkaError, ClientError):
                raise Undelivered(str(refused(batch, code_of(failure)))) from None
        self._cluster.forget_leaders({batch.where.topic for batch, _ in failures})
        for batch in going_on:
            self._queue.send_again(batch.where)


def code_of(failure: Failure) -> ErrorCode:
    return failure.code if isinstance(failure, KafkaError) else ErrorCode.NETWORK_EXCEPTION


def may_pass(failure: Failure) -> bool:
    """Whether sending again can help. A broker may not have an earlier batch yet: both are sent again."""
    code = code_of(failure)
    return code.retriable or code == ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER


def key_of(batch: Encoded) -> bytes | None:
    """The key of its first record."""
    rows, piece = batch.rows
    key: bytes | None = rows.keys.value(int(piece[0]))
    return key


def refused(batch: Encoded, code: ErrorCode) -> RowError:
    key = key_of(batch)
    which = f"the row with key {key!r}" if batch.count == 1 else f"{batch.count} rows from key {key!r} on"
    return RowError(f"{which} cannot be written to {batch.where}: {code.name}")
