"""Writing batches to their leaders: several requests under way, in order, each batch once.

In: encoded batches. Out: nothing but the certainty, after `flush`, that all replicas have them. Batches carry
a producer id and sequences, so that sending again after a failure writes nothing twice. A batch that the
broker finds too large is cut in two; a row that cannot be written is an error that names its key.
Does not know: rows, Spark.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable
from dataclasses import dataclass, field

from barnabas.client.errors import Unreachable
from barnabas.protocol import ErrorCode, KafkaError
from barnabas.protocol.messages.produce import ProduceRequest, ProduceResponse
from barnabas.spark.cluster import RETRIABLE, BlockingCluster, Place, Retry
from barnabas.spark.connection import BlockingConnection
from barnabas.spark.encoding import Encoded, Encoder
from barnabas.spark.rows import RowError
from barnabas.spark.transaction import Fenced, Transaction

REQUEST_BYTES = 4 * 1024 * 1024  # brokers take 100 MB at once
IN_FLIGHT_MAX = 5  # as many batches a producer's sequences are remembered
PRODUCE_VERSION_MAX = 11  # later versions add partitions to transactions by themselves
TOPIC_ID_VERSION = 13
ACKS_ALL = -1
TOO_LARGE = frozenset({ErrorCode.MESSAGE_TOO_LARGE, ErrorCode.RECORD_LIST_TOO_LARGE})
FENCED = frozenset({ErrorCode.INVALID_PRODUCER_EPOCH, ErrorCode.PRODUCER_FENCED})
PASSING = RETRIABLE | {
    ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER,  # an earlier batch is not there yet: both are sent again
    ErrorCode.NOT_ENOUGH_REPLICAS,
    ErrorCode.NOT_ENOUGH_REPLICAS_AFTER_APPEND,
    ErrorCode.CONCURRENT_TRANSACTIONS,
}


@dataclass(slots=True, eq=False)
class Sent:
    """A batch with its place in the producer's sequence, until it is acknowledged."""

    batch: Encoded
    sequence: int


@dataclass(slots=True, eq=False)
class Lane:
    """What goes to one leader: the request being filled, and those under way."""

    connection: BlockingConnection
    filling: dict[Place, Sent] = field(default_factory=dict)
    bytes: int = 0
    in_flight: deque[dict[Place, Sent]] = field(default_factory=deque)


class BlockingProducer:
    def __init__(
        self, cluster: BlockingCluster, encoder: Encoder, transaction: Transaction, *, timeout_ms: int
    ) -> None:
        self._cluster = cluster
        self._encoder = encoder
        self._transaction = transaction
        self._timeout_ms = timeout_ms
        self._sequences: dict[Place, int] = {}
        self._unacknowledged: dict[Place, deque[Sent]] = {}
        self._lanes: dict[BlockingConnection, Lane] = {}
        self._errors: dict[Place, ErrorCode] = {}

    def write(self, batches: Iterable[Encoded]) -> None:
        for batch in batches:
            self._submit(batch)

    def flush(self) -> None:
        """Wait until everything is acknowledged; raises what cannot be written."""
        self._drain()
        retry = Retry(self._timeout_ms)
        while self._unacknowledged:
            self._check(retry)
            self._send_again()
            self._drain()

    # -- sending ---------------------------------------------------------------------------------

    def _submit(self, batch: Encoded) -> None:
        place = batch.place
        sent = Sent(batch, self._sequences.get(place, 0))
        self._sequences[place] = (sent.sequence + batch.count) & 0x7FFFFFFF
        self._unacknowledged.setdefault(place, deque()).append(sent)
        while not self._errors and len(self._unacknowledged.get(place, ())) > IN_FLIGHT_MAX:
            self._make_way(place)
        if self._errors:
            self.flush()
            return
        self._try(sent)

    def _make_way(self, place: Place) -> None:
        """Wait for an answer, so that one more batch of this partition may be under way."""
        for lane in list(self._lanes.values()):
            if place in lane.filling or any(place in each for each in lane.in_flight):
                if not lane.in_flight:
                    self._send(lane)
                if lane.in_flight:
                    self._receive(lane)
                return
        self._errors[place] = ErrorCode.NETWORK_EXCEPTION  # nothing is under way: all is sent again

    def _try(self, sent: Sent) -> None:
        place = sent.batch.place
        try:
            self._transaction.add(place)
            connection = self._cluster.to_leader(place)
            lane = self._lanes.get(connection)
            if lane is None:
                lane = self._lanes[connection] = Lane(connection)
            if place in lane.filling or lane.bytes + len(sent.batch.buffer) > REQUEST_BYTES:
                self._send(lane)
            lane.filling[place] = sent
            lane.bytes += len(sent.batch.buffer)
        except Unreachable:
            self._errors[place] = ErrorCode.NETWORK_EXCEPTION
        except KafkaError as error:
            self._errors[place] = error.code

    def _send(self, lane: Lane) -> None:
        if not lane.filling:
            return
        while len(lane.in_flight) >= IN_FLIGHT_MAX:
            self._receive(lane)
        filling, lane.filling, lane.bytes = lane.filling, {}, 0
        transaction = self._transaction
        request = ProduceRequest(
            transactional_id=transaction.transactional_id, acks=ACKS_ALL, timeout_ms=self._timeout_ms
        )
        topics: dict[str, ProduceRequest.TopicProduceData] = {}
        for place, sent in filling.items():
            topic = topics.setdefault(place.topic, ProduceRequest.TopicProduceData(name=place.topic))
            records = sent.batch.sealed(
                transaction.producer_id,
                transaction.producer_epoch,
                sent.sequence,
                transactional=transaction.transactional_id is not None,
            )
            topic.partition_data.append(topic.PartitionProduceData(index=place.partition, records=records))
        request.topic_data = list(topics.values())
        try:
            lane.connection.send(request, lane.connection.version_for(ProduceRequest, PRODUCE_VERSION_MAX))
            lane.in_flight.append(filling)
        except Unreachable:
            lane.in_flight.append(filling)
            self._lose(lane)

    def _receive(self, lane: Lane) -> None:
        try:
            response = lane.connection.receive(ProduceResponse)
        except Unreachable:
            self._lose(lane)
            return
        lane.in_flight.popleft()
        for topic in response.responses:
            for each in topic.partition_responses:
                place = Place(topic.name, each.index)
                code = ErrorCode(each.error_code)
                if code in (ErrorCode.NONE, ErrorCode.DUPLICATE_SEQUENCE_NUMBER):
                    if place not in self._errors:
                        self._acknowledge(place)
                elif place not in self._errors:
                    self._errors[place] = code

    def _acknowledge(self, place: Place) -> None:
        waiting = self._unacknowledged[place]
        waiting.popleft()
        if not waiting:
            del self._unacknowledged[place]

    def _lose(self, lane: Lane) -> None:
        """The connection broke: what was under way may be written or not, and is sent again."""
        for filling in lane.in_flight:
            for place in filling:
                self._errors.setdefault(place, ErrorCode.NETWORK_EXCEPTION)
        lane.in_flight.clear()
        self._lanes.pop(lane.connection, None)
        self._cluster.drop(lane.connection)

    def _drain(self) -> None:
        for lane in list(self._lanes.values()):
            self._send(lane)
            while lane.in_flight:
                self._receive(lane)

    # -- when something failed ---------------------------------------------------------------------

    def _check(self, retry: Retry) -> None:
        """Go on only with errors that pass, after a pause; large batches are cut in two."""
        pauses = False
        for place, code in self._errors.items():
            sent = self._unacknowledged[place][0]
            if code in FENCED:
                raise Fenced(f"another attempt has taken over {self._transaction.transactional_id}")
            if code in TOO_LARGE and sent.batch.count > 1:
                self._cut(place)
            elif code in PASSING:
                pauses = True
            else:
                raise self._refused(sent.batch, code)
        if pauses and not retry.wait():
            place, code = next(iter(self._errors.items()))
            raise self._refused(self._unacknowledged[place][0].batch, code)
        self._cluster.forget({place.topic for place in self._errors})
        self._errors.clear()

    def _cut(self, place: Place) -> None:
        """The first batch in two. Nothing behind it was written, so sequences are given out anew."""
        waiting = self._unacknowledged[place]
        first = waiting.popleft()
        batches = [*self._encoder.halves(first.batch), *(sent.batch for sent in waiting)]
        sequence = first.sequence
        waiting.clear()
        for batch in batches:
            waiting.append(Sent(batch, sequence))
            sequence = (sequence + batch.count) & 0x7FFFFFFF
        self._sequences[place] = sequence

    def _send_again(self) -> None:
        for waiting in list(self._unacknowledged.values()):
            for sent in list(waiting)[:IN_FLIGHT_MAX]:
                self._try(sent)

    def _refused(self, batch: Encoded, code: ErrorCode) -> RowError:
        rows, piece = batch.rows
        key = rows.keys.value(int(piece[0]))
        which = f"the row with key {key!r}" if batch.count == 1 else f"{batch.count} rows from key {key!r} on"
        return RowError(f"{which} cannot be written to {batch.place}: {code.name}")
