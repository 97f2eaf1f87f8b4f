"""Reading a range of offsets of one partition, as fast as the broker sends it.

In: a cluster, a partition, the range. Out: chunks of batches; while one is decoded the next is on its way.
Leaders that move and brokers that restart are waited for; offsets that are gone are an error that names them,
or skipped.
Does not know: columns, Spark.
"""

from __future__ import annotations

import logging
from collections.abc import Iterable, Iterator
from dataclasses import dataclass

from barnabas.client.errors import Unreachable
from barnabas.protocol import ErrorCode, KafkaError
from barnabas.protocol.messages.fetch import FetchRequest, FetchResponse
from barnabas.spark.batches import FAIL, Aborted, Chunk, Unreadable, next_offset_of, read_chunks
from barnabas.spark.cluster import RETRIABLE, BlockingCluster, Place, Retry
from barnabas.spark.connection import BlockingConnection
from barnabas.spark.unpacking import Room

log = logging.getLogger("barnabas.spark")

EARLIEST = -2
LATEST = -1
TOPIC_ID_VERSION = 13
PartitionData = FetchResponse.FetchableTopicResponse.PartitionData


class DataLoss(Exception):
    """Offsets that were asked for are not there any more; the message names them."""


@dataclass(frozen=True, slots=True)
class OffsetRange:
    """What one task reads: offsets from `start` on, before `stop`."""

    topic: str
    topic_id: bytes
    partition: int
    start: int
    stop: int

    @property
    def place(self) -> Place:
        return Place(self.topic, self.partition)


class Fetcher:
    def __init__(
        self,
        cluster: BlockingCluster,
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
        self._connection: BlockingConnection | None = None
        self._room = Room()

    def chunks(self) -> Iterator[Chunk]:
        """All batches of the range, in order."""
        retry = Retry(self._timeout_ms)
        try:
            while self._position < self._range.stop:
                try:
                    chunks = self._next()
                except (Unreachable, KafkaError) as error:
                    if isinstance(error, KafkaError) and error.code not in RETRIABLE:
                        raise
                    self._abandon()
                    if not retry.wait():
                        raise
                    self._cluster.forget([self._range.topic])
                    continue
                if chunks is None:
                    if not retry.wait():
                        raise KafkaError(
                            ErrorCode.REQUEST_TIMED_OUT,
                            f"{self._range.place} gave no record from offset {self._position} on within "
                            f"{self._timeout_ms} ms (kafkaConsumer.pollTimeoutMs)",
                        )
                    continue
                retry = Retry(self._timeout_ms)
                yield from chunks
        finally:
            if self._connection is not None and not self._connection.is_idle:
                self._abandon()

    def _next(self) -> Iterable[Chunk] | None:
        """The chunks at the position; None when there was nothing yet."""
        connection = self._connection
        if connection is None:
            connection = self._connection = self._cluster.to_leader(self._range.place)
            if not connection.is_idle:
                self._cluster.drop(connection)
                connection = self._connection = self._cluster.to_leader(self._range.place)
        if connection.is_idle:
            self._request(connection, self._position)
        data = self._answer(connection)
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
        if self._cluster.settings.is_read_committed:
            aborted = Aborted(
                (each.first_offset, each.producer_id) for each in data.aborted_transactions or ()
            )
        if following == start:
            raise KafkaError(
                ErrorCode.CORRUPT_MESSAGE, f"{self._range.place} sent no whole batch at offset {start}"
            )
        self._position = following
        if following < self._range.stop:
            self._request(connection, following)  # it travels while these chunks are decoded
        checks_crc = self._cluster.settings.check_crcs
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
        end = data.last_stable_offset if self._cluster.settings.is_read_committed else data.high_watermark
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

    def _request(self, connection: BlockingConnection, offset: int) -> None:
        settings = self._cluster.settings
        version = connection.version_for(FetchRequest)
        asked = self._range
        partition = FetchRequest.FetchTopic.FetchPartition(
            partition=asked.partition, fetch_offset=offset, partition_max_bytes=settings.fetch_max_bytes
        )
        topic = FetchRequest.FetchTopic(partitions=[partition])
        if version >= TOPIC_ID_VERSION:
            topic.topic_id = self._cluster.topic_id(asked.topic)
        else:
            topic.topic = asked.topic
        request = FetchRequest(
            max_wait_ms=settings.fetch_max_wait_ms,
            min_bytes=1,
            max_bytes=settings.fetch_max_bytes,
            isolation_level=int(settings.is_read_committed),
            rack_id=settings.rack,
            topics=[topic],
        )
        connection.send(request, version)

    def _answer(self, connection: BlockingConnection) -> PartitionData:
        response = connection.receive(FetchResponse)
        if response.error_code:
            code = ErrorCode(response.error_code)
            raise KafkaError(code, f"fetching {self._range.place}: {code.name}")
        return response.responses[0].partitions[0]

    def _abandon(self) -> None:
        if self._connection is not None:
            self._cluster.drop(self._connection)
            self._connection = None
