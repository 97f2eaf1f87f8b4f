"""Members of a share group for measurements: raw requests, a connection each, in one loop.

In: an address, a group, the topic id and the partitions of a topic with a backlog. Out: how long it takes to
acquire and accept so many records; times of single exchanges; records that stay acquired.
Does not know: which broker it is.
"""

from __future__ import annotations

import base64
import os
import selectors
import socket
import struct
import time
from collections.abc import Iterable, Sequence
from typing import TypeVar

from barnabas.client.core.acknowledgements import AckBatch, AcknowledgeType
from barnabas.client.core.frames import decode_response, key_of, request_frame
from barnabas.client.core.share_session import Place, ShareLimits, ShareSession
from barnabas.client.core.topology import TopicPartition
from barnabas.protocol import Message
from barnabas.protocol.messages.share_acknowledge import ShareAcknowledgeResponse
from barnabas.protocol.messages.share_fetch import ShareFetchRequest, ShareFetchResponse
from barnabas.protocol.messages.share_group_heartbeat import (
    ShareGroupHeartbeatRequest,
    ShareGroupHeartbeatResponse,
)
from bench.generator import LoadError

VERSION = 2  # of ShareFetch and ShareAcknowledge
STALL_S = 60.0
RECEIVE_BYTES = 1 << 20
ACCEPT = (int(AcknowledgeType.ACCEPT),)
NOT_YET = (14, 15, 16)  # the coordinator loads, is not available, or has moved: retry

R = TypeVar("R", bound=Message)
Acquired = dict[Place, list[AckBatch]]


def new_id() -> str:
    return base64.urlsafe_b64encode(os.urandom(16)).decode().rstrip("=")


class Wire:
    """One connection; a request is on its way at most."""

    def __init__(self, port: int) -> None:
        self.sock = socket.create_connection(("127.0.0.1", port), STALL_S)
        self.sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        self._received = bytearray()
        self._buffer = bytearray(RECEIVE_BYTES)

    def send(self, request: Message, version: int) -> None:
        self.sock.sendall(b"".join(request_frame(request, version, 1, "bench")))

    def receive(self) -> memoryview | None:
        """A whole response without its size; None until all of it has arrived."""
        count = self.sock.recv_into(self._buffer)
        if not count:
            raise LoadError("connection closed by the broker")
        self._received += memoryview(self._buffer)[:count]
        if len(self._received) < 4:
            return None
        (size,) = struct.unpack_from(">i", self._received)
        if len(self._received) < 4 + size:
            return None
        frame, self._received = self._received, bytearray()
        return memoryview(frame)[4:]

    def ask(self, request: Message, response: type[R], version: int) -> R:
        self.send(request, version)
        while (frame := self.receive()) is None:
            pass
        return decode_response(frame, response, key_of(type(request)), version)

    def close(self) -> None:
        self.sock.close()


class ShareMember:
    """A member that accepts with each fetch what the fetch before has acquired."""

    def __init__(self, port: int, group: str, partitions: Iterable[Place], limits: ShareLimits) -> None:
        self.wire = Wire(port)
        self._session = ShareSession(group, new_id())
        self._wanted = dict.fromkeys(partitions, TopicPartition("", 0))
        self._limits = limits
        self._accepting: Acquired = {}
        self.acquired: Acquired = {}

    def send_fetch(self) -> None:
        """Fetch, and accept what is acquired."""
        self._accepting, self.acquired = self.acquired, {}
        request = self._session.fetch_request(self._wanted, self._accepting, self._limits)
        self.wire.send(request, VERSION)

    def read_fetch(self, frame: memoryview) -> int:
        """Take a response in; how many records it accepted."""
        response = decode_response(frame, ShareFetchResponse, key_of(ShareFetchRequest), VERSION)
        self._session.answered(response.error_code)
        if response.error_code:
            raise LoadError(f"a ShareFetch was refused with error {response.error_code}")
        for topic in response.responses:
            for data in topic.partitions:
                if data.error_code or data.acknowledge_error_code:
                    codes = f"{data.error_code} and {data.acknowledge_error_code}"
                    raise LoadError(f"a partition has errors {codes}")
                if data.acquired_records:
                    self.acquired[topic.topic_id, data.partition_index] = [
                        AckBatch(each.first_offset, each.last_offset, ACCEPT)
                        for each in data.acquired_records
                    ]
        return count_of(self._accepting)

    def fetch(self) -> int:
        """A whole exchange; how many records were acquired."""
        self.send_fetch()
        while (frame := self.wire.receive()) is None:
            pass
        self.read_fetch(frame)
        return count_of(self.acquired)

    def acknowledge(self, batches: Acquired) -> None:
        request = self._session.acknowledge_request(batches)
        response = self.wire.ask(request, ShareAcknowledgeResponse, VERSION)
        self._session.answered(response.error_code)
        codes = [each.error_code for topic in response.responses for each in topic.partitions]
        if response.error_code or any(codes):
            raise LoadError(f"an acknowledgement was refused: {response.error_code}, {codes}")

    def close(self) -> None:
        self.wire.close()


def count_of(acquired: Acquired) -> int:
    return sum(last - first + 1 for batches in acquired.values() for first, last, _ in batches)


def initialize(port: int, group: str, topic: str, partitions: int) -> list[Place]:
    """Join and leave a group, so that its share partitions are there: their places."""
    wire = Wire(port)
    member, epoch, places = new_id(), 0, []
    deadline = time.perf_counter() + STALL_S
    try:
        while len(places) < partitions:
            request = ShareGroupHeartbeatRequest(group_id=group, member_id=member, member_epoch=epoch)
            request.subscribed_topic_names = [topic] if not epoch else None
            answer = wire.ask(request, ShareGroupHeartbeatResponse, 1)
            if answer.error_code and answer.error_code not in NOT_YET:
                raise LoadError(f"a heartbeat was refused with error {answer.error_code}")
            epoch = answer.member_epoch
            if answer.assignment is not None:
                assigned = answer.assignment.topic_partitions
                places = [(each.topic_id, index) for each in assigned for index in each.partitions]
            if time.perf_counter() > deadline:
                raise LoadError(f"{len(places)} of {partitions} partitions were assigned in time")
            if len(places) < partitions:
                time.sleep(0.02)
        last = ShareGroupHeartbeatRequest(group_id=group, member_id=member, member_epoch=-1)
        wire.ask(last, ShareGroupHeartbeatResponse, 1)
    finally:
        wire.close()
    return places


def consume(members: Sequence[ShareMember], records: int, seconds: float) -> float:
    """Let members fetch and accept side by side until so many records are accepted, or the time is up:
    records a second."""
    selector = selectors.DefaultSelector()
    for member in members:
        selector.register(member.wire.sock, selectors.EVENT_READ, member)
    accepted = 0
    began = now = time.perf_counter()
    for member in members:
        member.send_fetch()
    waiting = len(members)
    while waiting:
        ready = selector.select(STALL_S)
        if not ready:
            raise LoadError("no member has got a response")
        for key, _ in ready:
            frame = key.data.wire.receive()
            if frame is None:
                continue
            accepted += key.data.read_fetch(frame)
            now = time.perf_counter()
            if accepted < records and now - began < seconds:
                key.data.send_fetch()
            else:
                waiting -= 1
    selector.close()
    return accepted / (now - began)
