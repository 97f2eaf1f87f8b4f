"""Malformed and wide messages are read in bounded pieces."""

from __future__ import annotations

import struct

import pytest

from barnabas.broker.api import large_requests
from barnabas.broker.api.large_requests import bounded
from barnabas.metadata.steps import at_once
from barnabas.protocol import ProtocolError
from barnabas.protocol.codec import codec
from barnabas.protocol.headers import RequestHeader
from barnabas.protocol.messages.describe_producers import DescribeProducersRequest
from barnabas.protocol.messages.offset_commit import OffsetCommitRequest
from barnabas.protocol.reading import VALUES_EXPLAINED_MAX
from barnabas.protocol.wire import TAGS_MAX, varint

Topic = OffsetCommitRequest.OffsetCommitRequestTopic


def wide(topics: int) -> bytes:
    request = OffsetCommitRequest(group_id="g", topics=[Topic(name=f"t{number}") for number in range(topics)])
    return request.encode(8)


def tags(count: int) -> bytes:
    """A section of tagged fields that nobody knows."""
    return varint(count) + b"".join(varint(900 + number) + b"\0" for number in range(count))


def test_the_field_with_the_error_is_named_in_a_short_message() -> None:
    with pytest.raises(ProtocolError, match=r"topics\[9\]"):
        codec(OffsetCommitRequest, 8).decode(wide(10)[:-2], 0)


def test_a_long_message_is_not_searched_for_the_error() -> None:
    data = wide(VALUES_EXPLAINED_MAX)[:-2]
    reason = f"malformed after the first {VALUES_EXPLAINED_MAX} values"
    with pytest.raises(ProtocolError, match=reason):
        codec(OffsetCommitRequest, 8).decode(data, 0)
    with pytest.raises(ProtocolError, match=reason):
        at_once(codec(OffsetCommitRequest, 8).decode_in_steps(data, 0))


def test_numbers_are_read_some_at_a_time() -> None:
    topic = DescribeProducersRequest.TopicRequest(name="t", partition_indexes=list(range(5_500)))
    request = DescribeProducersRequest(topics=[topic])
    data = request.encode(0)
    steps = codec(DescribeProducersRequest, 0).decode_in_steps(data, 0)
    assert [found for found in steps if found] == [1000] * 5
    assert at_once(codec(DescribeProducersRequest, 0).decode_in_steps(data, 0))[0] == request


def test_a_request_has_a_bounded_number_of_elements() -> None:
    def read(data: bytes, elements_max: int) -> object:
        decoding = codec(OffsetCommitRequest, 8).decode_in_steps(data, 0)
        return at_once(bounded(decoding, "OffsetCommitRequest", 8, elements_max))[0]

    assert read(wide(90), 100) == OffsetCommitRequest.decode(wide(90), 8)
    with pytest.raises(ProtocolError, match="more than 100 elements"):
        read(wide(110), 100)
    with pytest.raises(ProtocolError, match="more than 100 elements"):
        read(wide(3)[:-1] + tags(101), 100)
    assert large_requests.ELEMENTS_MAX >= 200_000  # a node may lead a hundred thousand partitions


def test_tagged_fields_are_bounded() -> None:
    header = struct.pack(">hhih", 8, 8, 1, -1)
    assert RequestHeader.decode(header + tags(TAGS_MAX), 2).unknown_tagged_fields
    with pytest.raises(ProtocolError, match=f"{TAGS_MAX + 1} tagged fields"):
        RequestHeader.decode(header + tags(TAGS_MAX + 1), 2)
