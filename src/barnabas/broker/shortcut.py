"""A shortcut for the request that a busy producer sends again and again: one batch to one partition.

Apart from correlation id and batch, such requests are the same bytes each time. A channel that has seen one
remembers everything in front of the batch (the envelope) with the partition it led to, and the answer's
bytes around the three numbers in it. The next request with the same envelope needs no decoding and its
answer no encoding: a third of the time. What is appended, and every check on it, is the same code as for
all other produce requests.
"""

from __future__ import annotations

import struct
from typing import TYPE_CHECKING, Any

from barnabas.broker.partition import Partition
from barnabas.broker.producing import is_transactional, level_of
from barnabas.broker.verifying import Producer, verify_at_once
from barnabas.protocol import KafkaError
from barnabas.protocol.messages.produce import ProduceRequest, ProduceResponse
from barnabas.records.batch import BatchHeader
from barnabas.replication.verification import ONGOING

if TYPE_CHECKING:
    from barnabas.broker.broker import Broker
    from barnabas.broker.routes import Route
    from barnabas.replication.verification import Verification

ENVELOPE_AT = 8  # behind api key, version and correlation id
ENDING = b"\0\0\0"  # no tagged fields after partition, topic and request
MARKERS = 0x1122334455667788, 0x2233445566778899, 0x33445566778899AA
REMEMBERED_MAX = 64  # envelopes a channel remembers
PRODUCER_AT = 43  # in a batch: id and epoch
_producer = struct.Struct(">qh").unpack_from

Topic = ProduceResponse.TopicProduceResponse
Answer = Topic.PartitionProduceResponse


class Shortcut:
    """One envelope: where its batches go, and how their answers look."""

    __slots__ = (
        "_end",
        "_pack",
        "_size",
        "_start",
        "acks",
        "partition",
        "route",
        "timeout_ms",
        "transactional_id",
        "version",
    )

    def __init__(self, partition: Partition, request: ProduceRequest, route: Route, topic: Topic) -> None:
        self.partition = partition
        self.acks = request.acks
        self.timeout_ms = request.timeout_ms
        self.transactional_id = request.transactional_id
        self.route = route
        self.version = route.version
        base_offset, append_time_ms, log_start = MARKERS
        parts: list[Any] = []
        route.encode(message(topic, partition.index, base_offset, append_time_ms, log_start), parts.append)
        whole = b"\0" + b"".join(parts)  # the answer's header has no tagged fields
        self._start, _, self._end = whole.partition(struct.pack(">qqq", *MARKERS))
        self._pack = struct.Struct(f">ii{len(self._start)}sqqq{len(self._end)}s").pack
        self._size = 4 + len(whole)

    def verify(self, batch: memoryview, broker: Broker) -> Verification | None:
        """What the batch of a transaction comes with; None where the long way has to find out."""
        if not is_transactional(batch):
            return None
        producer_id, epoch = _producer(batch, PRODUCER_AT)
        known = self.partition.log.producers.get(producer_id)
        if known is not None and known.txn_first_offset >= 0 and known.producer_epoch == epoch:
            return ONGOING
        assert self.transactional_id is not None
        header = BatchHeader(batch)
        producer = Producer(self.transactional_id, header.producer_id, header.producer_epoch)
        return verify_at_once(broker, producer, self.partition, header.base_sequence, level_of(self.version))

    def answer(self, correlation_id: int, base_offset: int, append_time_ms: int) -> bytes:
        log_start = self.partition.log.log_start_offset
        return self._pack(
            self._size, correlation_id, self._start, base_offset, append_time_ms, log_start, self._end
        )

    def refusal(self, error: KafkaError) -> ProduceResponse:
        """The answer when the batch could not be written after all."""
        answer = Answer(
            index=self.partition.index, error_code=error.code, base_offset=-1, error_message=error.message
        )
        topic = Topic(
            name=self.partition.topic, topic_id=self.partition.topic_id, partition_responses=[answer]
        )
        return ProduceResponse(responses=[topic])


def message(
    topic: Topic, index: int, base_offset: int, append_time_ms: int, log_start: int
) -> ProduceResponse:
    answer = Answer(
        index=index, base_offset=base_offset, log_append_time_ms=append_time_ms, log_start_offset=log_start
    )
    return ProduceResponse(
        responses=[Topic(name=topic.name, topic_id=topic.topic_id, partition_responses=[answer])]
    )


class Shortcuts:
    """What one channel remembers."""

    __slots__ = ("_by_envelope", "_envelope_end")

    def __init__(self) -> None:
        self._by_envelope: dict[bytes, Shortcut] = {}
        self._envelope_end = 0

    def find(self, frame: memoryview) -> tuple[Shortcut, memoryview] | None:
        """The shortcut for a produce request and its batch, or None when it must be decoded."""
        position = self._envelope_end
        found = self._by_envelope.get(bytes(frame[ENVELOPE_AT:position]))
        if found is None or not found.partition.is_leader:
            return None
        try:
            size = frame[position]
            position += 1
            if size > 127:
                size, shift = size & 127, 7
                while True:
                    byte = frame[position]
                    position += 1
                    size |= (byte & 127) << shift
                    if byte < 128:
                        break
                    shift += 7
        except IndexError:
            return None
        end = position + size - 1
        if end + 3 != len(frame) or frame[end] or frame[end + 1] or frame[end + 2]:
            return None
        return found, frame[position:end]

    def learn(
        self, frame: memoryview, request: ProduceRequest, partition: Partition, route: Route, topic: Topic
    ) -> None:
        """Remember a request that was decoded, if it is of the kind, and was appended."""
        data = request.topic_data[0]
        given = data.partition_data[0]
        if given.records is None or not route.flexible_request:
            return
        size = len(given.records) + 1
        end = len(frame) - len(ENDING) - len(given.records) - (max(size.bit_length(), 1) + 6) // 7
        if end <= ENVELOPE_AT or len(self._by_envelope) >= REMEMBERED_MAX:
            return
        envelope = bytes(frame[ENVELOPE_AT:end])
        known = self._by_envelope.get(envelope)
        if known is not None and known.partition is partition and known.version == route.version:
            self._envelope_end = end
            return
        self._envelope_end = end
        self._by_envelope[envelope] = Shortcut(partition, request, route, topic)
        found = self.find(frame)
        if found is None or found[1] != given.records:
            del self._by_envelope[envelope]
