"""Reading a range of offsets of one partition, as fast as the broker sends it.

In: a cluster, a partition, the range. Out: chunks of batches; while one is decoded the next is on its way.
Leaders that move and brokers that restart are waited for; offsets that are gone are an error that names them,
or skipped.
Does not know: columns, Spark.
"""

from __future__ import annotations

import logging
from collections.abc import Generator, Iterable
from dataclasses import dataclass

from barnabas.client.blocking import run
from barnabas.client.core.connection import ConnectionCore, Exchange
from barnabas.client.core.errors import Unreachable
from barnabas.client.core.fetching import FETCH, PartitionData, aborted_in, fetch_request, fetched_partitions
from barnabas.client.core.topology import TopicPartition
from barnabas.protocol import ErrorCode, KafkaError
from barnabas.protocol.messages.fetch import FetchRequest, FetchResponse
from barnabas.spark.basics.cluster import WorkerCluster
from barnabas.spark.reading.batches import FAIL, Chunk, Unreadable, next_offset_of, read_chunks
from barnabas.spark.reading.unpacking import Room

log = logging.getLogger("barnabas.spark")

EARLIEST = -2
LATEST = -1


class DataLoss(Exception):
    """Offsets that were asked for are not there any more; the message names them."""


@dataclass(frozen=True, slots=True)
class OffsetRange:
    """The work of one task: read offsets from `start` on, before `stop`."""

    topic: str
    topic_id: bytes
    partition: int
    start: int
    stop: int

    @property
    def place(self) -> TopicPartition:
        return TopicPartition(self.topic, self.partition)


class Fetcher:
    def __init__(
        self,
        cluster: WorkerCluster,
        asked: OffsetRange,
        *,
        fails_on_loss: bool,
        timeout_ms: int,
        unreadable: Unreadable = FAIL,
    ) -> None:
        self._cluster = cluster
        self._range = asked
        self._fails_on_loss = fails_on_loss
        self._unreadable = unreadable
        self._timeout_ms = timeout_ms
        self._position = asked.start
        self._connection: ConnectionCore | None = None
        self._exchange: Exchange[FetchResponse] | None = None  # the fetch under way
        self._room = Room()

    def chunks(self) -> Generator[Chunk, None, None]:
        """All batches of the range, in order."""
        patience = self._cluster.patience(self._timeout_ms)
        try:
            while self._position < self._range.stop:
                try:
                    chunks = self._next()
                except (Unreachable, KafkaError) as error:
                    if isinstance(error, KafkaError) and not may_pass(error.code):
                        raise
                    self._abandon()
                    run(patience.pause(error))
                    self._cluster.forget_leaders([self._range.topic])
                    continue
                if chunks is None:
                    text = (
                        f"{self._range.place} gave no record from offset {self._position} on within "
                        f"{self._timeout_ms} ms (kafkaConsumer.pollTimeoutMs)"
                    )
                    run(patience.pause(KafkaError(ErrorCode.REQUEST_TIMED_OUT, text)))
                    continue
                patience = self._cluster.patience(self._timeout_ms)
                yield from chunks
        finally:
            if self._exchange is not None:
                self._abandon()

    def _next(self) -> Iterable[Chunk] | None:
        """The chunks at the position; None when there was nothing yet."""
        connection = self._connection
        if connection is None:
            connection = self._connection = self._connect()
        data = self._data(connection)
        if data.error_code == ErrorCode.OFFSET_OUT_OF_RANGE:
            self._skip_loss()
            return None
        if data.error_code:
            code = ErrorCode(data.error_code)
            raise KafkaError(code, f"fetching {self._range.place} at {self._position}: {code.name}")
        records = data.records
        if not records:
            return self._at_end(data)
        view = memoryview(records)
        start, following = self._position, next_offset_of(view, self._position)
        aborted = None
        if self._cluster.client.is_read_committed:
            aborted = aborted_in(data)
        if following == start:
            raise KafkaError(
                ErrorCode.CORRUPT_MESSAGE, f"{self._range.place} sent no whole batch at offset {start}"
            )
        self._position = following
        if following < self._range.stop:
            self._exchange = self._request(connection, following)  # it travels while these chunks are decoded
        checks_crc = self._cluster.client.check_crcs
        return read_chunks(
            view,
            start,
            self._range.stop,
            aborted,
            self._room,
            checks_crc=checks_crc,
            unreadable=self._unreadable,
        )

    def _at_end(self, data: PartitionData) -> Iterable[Chunk] | None:
        """An empty answer: more may come, unless what can be read ends before the range does."""
        end = data.last_stable_offset if self._cluster.client.is_read_committed else data.high_watermark
        if self._position >= self._range.stop or self._position < end:
            return None
        if end < self._range.stop and data.high_watermark < self._range.stop:
            self._lose(self._position, self._range.stop, f"the log ends at {data.high_watermark}")
            self._position = self._range.stop
            return ()
        return None

    def _skip_loss(self) -> None:
        place = self._range.place
        bounds = self._cluster.offsets({place: EARLIEST})
        earliest = bounds[place]
        latest = self._cluster.offsets({place: LATEST})[place]
        if self._position < earliest:
            stop = min(earliest, self._range.stop)
            self._lose(self._position, stop, f"the log starts at {earliest}")
            self._position = stop
        elif self._position > latest:
            self._lose(self._position, self._range.stop, f"the log ends at {latest}")
            self._position = self._range.stop

    def _lose(self, first: int, stop: int, why: str) -> None:
        text = f"offsets {first} to {stop - 1} of {self._range.place} are gone: {why}"
        if self._fails_on_loss:
            raise DataLoss(
                f"{text}. Retention may have deleted them, or the topic was deleted and created again. "
                "Set the option failOnDataLoss to false to go on without them."
            )
        log.warning("%s; the query goes on without them", text)

    def _connect(self) -> ConnectionCore:
        """A connection to the leader on which no response of an earlier reader is expected."""
        connection = run(self._cluster.leader_connection(self._range.place, FETCH))
        if not connection.is_idle:
            run(connection.close())
            connection = run(self._cluster.leader_connection(self._range.place, FETCH))
        return connection

    def _request(self, connection: ConnectionCore, offset: int) -> Exchange[FetchResponse]:
        settings = self._cluster.client
        version = connection.version_for(FetchRequest)
        request = fetch_request(
            {self._range.place: offset},
            self._cluster.topology.topics,
            version,
            wait_ms_max=settings.fetch_max_wait_ms,
            bytes_max=settings.fetch_max_bytes,
            partition_bytes_max=settings.fetch_max_bytes,
            read_committed=settings.is_read_committed,
            rack=settings.rack,
        )
        return run(connection.start(request, FetchResponse, version))

    def _data(self, connection: ConnectionCore) -> PartitionData:
        """The response of the fetch under way, or of a new one at the position."""
        exchange, self._exchange = self._exchange or self._request(connection, self._position), None
        response = run(connection.wait(exchange))
        [(_, data)] = fetched_partitions(response, {})
        return data

    def _abandon(self) -> None:
        if self._connection is not None:
            run(self._connection.close())
            self._connection = self._exchange = None


def may_pass(code: ErrorCode) -> bool:
    return code.retriable and code != ErrorCode.CORRUPT_MESSAGE
