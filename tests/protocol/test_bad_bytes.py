"""Bytes that are not a message raise one kind of error, which names the field."""

from __future__ import annotations

import pytest

from barnabas.protocol import ErrorCode, KafkaError, ProtocolError
from barnabas.protocol.messages.api_versions import ApiVersionsRequest
from barnabas.protocol.messages.describe_topic_partitions import DescribeTopicPartitionsRequest
from barnabas.protocol.messages.fetch import FetchRequest
from barnabas.protocol.messages.heartbeat import HeartbeatRequest
from barnabas.protocol.messages.metadata import MetadataRequest
from barnabas.protocol.messages.produce import ProduceRequest
from barnabas.protocol.messages.sasl_authenticate import SaslAuthenticateRequest

Topic = ProduceRequest.TopicProduceData
Partition = Topic.PartitionProduceData


def produce(records: bytes | None = b"batch") -> ProduceRequest:
    topics = [
        Topic(name=name, partition_data=[Partition(index=7, records=records)]) for name in ("a", "b", "c")
    ]
    return ProduceRequest(acks=-1, timeout_ms=1000, topic_data=topics)


def path_of(message_class: type, frame: bytes, version: int) -> str:
    with pytest.raises(ProtocolError) as raised:
        message_class.decode(frame, version)  # type: ignore[attr-defined]
    return raised.value.path


@pytest.mark.parametrize("version", [3, 9])
def test_records_that_are_cut_off_are_named_with_their_place_in_the_arrays(version: int) -> None:
    frame = produce().encode(version)
    cut = frame.rindex(b"batch") + 2
    assert path_of(ProduceRequest, frame[:cut], version) == "topic_data[2].partition_data[0].records"


@pytest.mark.parametrize("version", range(3, 13))
def test_no_beginning_of_a_message_is_a_message(version: int) -> None:
    frame = produce().encode(version)
    for cut in range(len(frame)):
        with pytest.raises(ProtocolError):
            ProduceRequest.decode(memoryview(frame)[:cut], version)


def test_bytes_behind_a_message_are_left_alone() -> None:
    assert ProduceRequest.decode(produce().encode(9) + b"more", 9) == produce()


def test_the_error_names_the_expected_bytes_and_the_message() -> None:
    with pytest.raises(
        ProtocolError, match=r"^member_id: 2 bytes expected, 1 left \(in HeartbeatRequest version 0\)$"
    ):
        HeartbeatRequest.decode(b"\0\1g\0\0\0\5\0\2m", 0)


def test_text_that_is_not_utf_8_is_refused() -> None:
    assert path_of(HeartbeatRequest, b"\0\2\xff\xfe\0\0\0\5\0\1m", 0) == "group_id"


def test_text_beyond_two_to_the_fifteen_is_refused_where_lengths_are_varints() -> None:
    client = b"\x81\x80\x02" + bytes(0x8000)
    assert path_of(ApiVersionsRequest, client + b"\1\0", 3) == "client_software_name"


def test_null_is_refused_where_a_value_is_needed() -> None:
    assert path_of(HeartbeatRequest, b"\xff\xff\0\0\0\5\0\1m", 0) == "group_id"
    assert path_of(ApiVersionsRequest, b"\0\1\0", 3) == "client_software_name"
    assert path_of(MetadataRequest, b"\xff\xff\xff\xff", 0) == "topics"
    assert path_of(SaslAuthenticateRequest, b"\0\0", 2) == "auth_bytes"


def test_null_is_accepted_from_the_version_that_allows_it() -> None:
    assert MetadataRequest.decode(b"\xff\xff\xff\xff", 1).topics is None


def test_lengths_below_minus_one_are_refused() -> None:
    assert path_of(HeartbeatRequest, b"\xff\xfe", 0) == "group_id"
    assert path_of(MetadataRequest, b"\xff\xff\xff\xfe", 1) == "topics"
    assert path_of(ProduceRequest, b"\xff\xfe", 3) == "transactional_id"


def test_an_array_that_cannot_fit_is_refused_before_its_elements_are_read() -> None:
    assert path_of(MetadataRequest, b"\x7f\xff\xff\xff" + b"\0\1a" * 1000, 1) == "topics"
    assert path_of(MetadataRequest, b"\xff\xff\xff\xff\x07" + b"\2a\0" * 1000, 9) == "topics"


def test_a_varint_of_more_than_five_bytes_or_31_bits_is_refused() -> None:
    assert path_of(ApiVersionsRequest, b"\x81\x80\x80\x80\x80\0", 3) == "client_software_name"
    assert path_of(ApiVersionsRequest, b"\xff\xff\xff\xff\x0f", 3) == "client_software_name"


def test_a_varint_that_is_longer_than_it_needs_to_be_is_refused() -> None:
    assert path_of(ApiVersionsRequest, b"\x80\0", 3) == "client_software_name"
    assert path_of(ApiVersionsRequest, b"\x82\x80\0a\1\0", 3) == "client_software_name"


def test_a_varint_that_is_cut_off_is_refused() -> None:
    assert path_of(ApiVersionsRequest, b"\x81", 3) == "client_software_name"
    assert path_of(ApiVersionsRequest, b"", 3) == "client_software_name"


def test_a_null_marker_is_minus_one_or_one() -> None:
    request = DescribeTopicPartitionsRequest(cursor=DescribeTopicPartitionsRequest.Cursor(topic_name="t"))
    frame = request.encode(0)
    assert DescribeTopicPartitionsRequest.decode(frame, 0) == request
    place = frame.index(b"\1\2t")
    assert path_of(DescribeTopicPartitionsRequest, frame[:place] + b"\2" + frame[place + 1 :], 0) == "cursor"


def test_a_tag_section_beyond_the_message_is_refused() -> None:
    frame = HeartbeatRequest(group_id="g", member_id="m").encode(4)
    assert path_of(HeartbeatRequest, frame[:-1] + b"\1", 4) == "tagged fields"
    assert path_of(HeartbeatRequest, frame[:-1] + b"\1\x05\x10abc", 4) == "tag 5"
    assert path_of(HeartbeatRequest, frame[:-1] + b"\xff\xff\xff\xff\x07", 4) == "tagged fields"


def test_a_known_tag_must_be_as_long_as_it_says() -> None:
    frame = FetchRequest(cluster_id="c").encode(12)
    assert FetchRequest.decode(frame, 12).cluster_id == "c"
    assert frame.endswith(b"\1\0\2\2c")
    assert path_of(FetchRequest, frame[:-5] + b"\1\0\3\2cX", 12) == "cluster_id"
    assert path_of(FetchRequest, frame[:-5] + b"\1\0\1\2c", 12) == "cluster_id"


def test_a_version_that_does_not_exist_is_unsupported() -> None:
    with pytest.raises(KafkaError) as raised:
        HeartbeatRequest.decode(b"", 5)
    assert raised.value.code == ErrorCode.UNSUPPORTED_VERSION
