"""One raw connection to a broker: pipelined requests, responses read in order."""

from __future__ import annotations

import select
import socket
from types import TracebackType
from typing import Any, Self, TypeVar

from barnabas.protocol import Message, apis
from barnabas.protocol.headers import RequestHeader
from barnabas.protocol.messages.fetch import FetchRequest, FetchResponse
from barnabas.protocol.messages.list_offsets import ListOffsetsRequest, ListOffsetsResponse
from barnabas.protocol.messages.produce import ProduceRequest
from barnabas.records.record import Record, build_batch
from barnabas.testing import Broker

PRODUCE_VERSION = 12
FETCH_VERSION = 12
M = TypeVar("M", bound=Message)


class Conversation:
    def __init__(
        self, broker: Broker, *, client_id: str = "test", port: int = 0, source: str = "127.0.0.1"
    ) -> None:
        address = ("127.0.0.1", port or broker.port)
        self._socket = socket.create_connection(address, 30, source_address=(source, 0))
        self._client_id = client_id
        self._sent: list[tuple[int, int, int]] = []

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._socket.close()

    def send(self, *requests: tuple[Message, int], answered: bool = True) -> None:
        """Several requests in one piece, as a pipelining client sends them."""
        data = bytearray()
        for request, version in requests:
            key = request.schema.key
            assert key is not None
            correlation_id = len(self._sent) + 1000
            header = RequestHeader(
                request_api_key=key,
                request_api_version=version,
                correlation_id=correlation_id,
                client_id=self._client_id,
            )
            body = header.encode(apis.request_header_version(key, version)) + request.encode(version)
            data += len(body).to_bytes(4, "big") + body
            if answered:
                self._sent.append((key, version, correlation_id))
        self._socket.sendall(data)

    def receive(self) -> Any:
        """The next response, which must be the one to the oldest request."""
        key, version, correlation_id = self._sent.pop(0)
        frame = self._exactly(int.from_bytes(self._exactly(4), "big"))
        assert int.from_bytes(frame[:4], "big") == correlation_id
        start = 5 if apis.response_header_version(key, version) else 4
        return apis.response_class(key).decode(frame[start:], version)

    def ask(self, request: Message, version: int) -> Any:
        self.send((request, version))
        return self.receive()

    def is_closed(self) -> bool:
        """Whether the broker has ended the conversation (waits for it)."""
        try:
            return self._socket.recv(1) == b""
        except ConnectionError:
            return True

    def has_answer(self) -> bool:
        """Whether bytes of a response have arrived; does not wait."""
        return bool(select.select([self._socket], [], [], 0)[0])

    def _exactly(self, count: int) -> bytes:
        data = bytearray()
        while len(data) < count:
            part = self._socket.recv(count - len(data))
            if not part:
                raise ConnectionError("the broker closed the connection")
            data += part
        return bytes(data)


def batch(
    *values: bytes, producer_id: int = -1, epoch: int = -1, sequence: int = -1, timestamp: int = 1
) -> bytes:
    records = [Record(offset=index, timestamp=timestamp, value=value) for index, value in enumerate(values)]
    return bytes(build_batch(records, producer_id=producer_id, producer_epoch=epoch, base_sequence=sequence))


def produce(topic: str, *batches: bytes, acks: int = 1) -> tuple[ProduceRequest, int]:
    """One batch for each of the partitions 0, 1, 2 ..."""
    data = ProduceRequest.TopicProduceData
    partitions = [data.PartitionProduceData(index=index, records=each) for index, each in enumerate(batches)]
    request = ProduceRequest(
        acks=acks, timeout_ms=5000, topic_data=[data(name=topic, partition_data=partitions)]
    )
    return request, PRODUCE_VERSION


def fetch(topic: str, offset: int, *, wait_ms: int = 0, min_bytes: int = 1) -> tuple[FetchRequest, int]:
    asked = FetchRequest.FetchTopic.FetchPartition(
        partition=0, fetch_offset=offset, partition_max_bytes=1 << 20
    )
    topics = [FetchRequest.FetchTopic(topic=topic, partitions=[asked])]
    return FetchRequest(
        max_wait_ms=wait_ms, min_bytes=min_bytes, max_bytes=1 << 24, topics=topics
    ), FETCH_VERSION


def end_offset(talk: Conversation, topic: str) -> int:
    return list_offset(talk, topic, -1)


def start_offset(talk: Conversation, topic: str) -> int:
    return list_offset(talk, topic, -2)


def list_offset(talk: Conversation, topic: str, timestamp: int) -> int:
    partition = ListOffsetsRequest.ListOffsetsTopic.ListOffsetsPartition(
        partition_index=0, timestamp=timestamp
    )
    topics = [ListOffsetsRequest.ListOffsetsTopic(name=topic, partitions=[partition])]
    answer: ListOffsetsResponse = talk.ask(ListOffsetsRequest(replica_id=-1, topics=topics), 5)
    offset: int = answer.topics[0].partitions[0].offset
    return offset


def records_of(answer: FetchResponse) -> bytes:
    return bytes(answer.responses[0].partitions[0].records or b"")
