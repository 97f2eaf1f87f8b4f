"""Tagged fields: written when they are set, kept when they are unknown."""

from __future__ import annotations

import pytest

from barnabas.protocol import EncodingError
from barnabas.protocol.log_records.consumer_offsets import ConsumerGroupMemberMetadataValue
from barnabas.protocol.messages.fetch import FetchRequest, FetchResponse
from barnabas.protocol.messages.heartbeat import HeartbeatRequest
from barnabas.protocol.messages.produce import ProduceResponse

HEARTBEAT = b"\2g\0\0\0\0\2m\0"


def test_a_tagged_field_at_its_default_is_not_written() -> None:
    plain = FetchRequest().encode(12)
    assert plain.endswith(b"\0")
    assert FetchRequest(cluster_id="c").encode(12) == plain[:-1] + b"\1\0\2\2c"


def test_a_tagged_struct_is_written_when_one_of_its_fields_is_set() -> None:
    state = FetchRequest.ReplicaState(replica_id=3)
    frame = FetchRequest(replica_state=state).encode(15)
    assert frame.endswith(b"\1\1\x0d\0\0\0\3" + b"\xff" * 8 + b"\0")
    assert FetchRequest.decode(frame, 15).replica_state == state
    assert FetchRequest(replica_state=FetchRequest.ReplicaState()).encode(15) == FetchRequest().encode(15)


def test_tagged_fields_of_nested_structs_come_back() -> None:
    Topic = ProduceResponse.TopicProduceResponse
    Partition = Topic.PartitionProduceResponse
    partition = Partition(
        error_code=6, current_leader=Partition.LeaderIdAndEpoch(leader_id=2, leader_epoch=9)
    )
    endpoint = ProduceResponse.NodeEndpoint(node_id=2, host="h", port=9092)
    response = ProduceResponse(
        responses=[Topic(name="t", partition_responses=[partition])], node_endpoints=[endpoint]
    )
    assert ProduceResponse.decode(response.encode(10), 10) == response


def test_unknown_tags_are_kept_and_written_back() -> None:
    frame = HEARTBEAT + b"\2\5\3abc\x90\1\0"
    decoded = HeartbeatRequest.decode(frame, 4)
    assert decoded.unknown_tagged_fields == [(5, b"abc"), (144, b"")]
    assert decoded.encode(4) == frame


def test_unknown_tags_stand_between_known_ones_in_the_order_of_their_numbers() -> None:
    request = FetchRequest(cluster_id="c", unknown_tagged_fields=[(9, b"nine"), (1, b"one")])
    assert request.encode(12).endswith(b"\3\0\2\2c\1\3one\x09\4nine")


def test_a_message_without_tags_has_none() -> None:
    assert HeartbeatRequest.decode(HEARTBEAT + b"\0", 4).unknown_tagged_fields is None


def test_tags_are_dropped_by_versions_that_cannot_carry_them() -> None:
    request = HeartbeatRequest(group_id="g", member_id="m", unknown_tagged_fields=[(5, b"abc")])
    assert HeartbeatRequest.decode(request.encode(3), 3).unknown_tagged_fields is None


def test_of_a_known_tag_that_occurs_twice_the_last_one_counts() -> None:
    plain = FetchRequest().encode(12)
    assert FetchRequest.decode(plain[:-1] + b"\2\0\2\2a\0\2\2b", 12).cluster_id == "b"


def test_an_unknown_tag_that_occurs_twice_is_read_and_not_written() -> None:
    decoded = HeartbeatRequest.decode(HEARTBEAT + b"\2\5\1a\5\1b", 4)
    assert decoded.unknown_tagged_fields == [(5, b"a"), (5, b"b")]
    with pytest.raises(EncodingError) as raised:
        decoded.encode(4)
    assert raised.value.path == "tag 5"


def test_tags_in_any_order_are_read_and_written_in_order() -> None:
    decoded = HeartbeatRequest.decode(HEARTBEAT + b"\2\7\1a\5\1b", 4)
    assert decoded.encode(4) == HEARTBEAT + b"\2\5\1b\7\1a"


def test_a_tagged_struct_that_is_null_is_marked_by_zero() -> None:
    # Apache Kafka 4.3.1 writes these very bytes.
    value = ConsumerGroupMemberMetadataValue(classic_member_metadata=None)
    assert value.encode(0) == bytes.fromhex("010101010101ffffffff0101000100")
    assert ConsumerGroupMemberMetadataValue.decode(value.encode(0), 0) == value


def test_a_tagged_nullable_struct_that_is_there_is_marked_by_one() -> None:
    # Apache Kafka 4.3.1 writes these very bytes.
    Classic = ConsumerGroupMemberMetadataValue.ClassicMemberMetadata
    value = ConsumerGroupMemberMetadataValue(classic_member_metadata=Classic(session_timeout_ms=0x01020304))
    assert value.encode(0) == bytes.fromhex("010101010101ffffffff0101000701010203040100")
    assert ConsumerGroupMemberMetadataValue.decode(value.encode(0), 0) == value


def test_several_tags_of_one_struct_come_back() -> None:
    Topic = FetchResponse.FetchableTopicResponse
    Partition = Topic.PartitionData
    partition = Partition(
        diverging_epoch=Partition.EpochEndOffset(epoch=1, end_offset=2),
        current_leader=Partition.LeaderIdAndEpoch(leader_id=3, leader_epoch=4),
        snapshot_id=Partition.SnapshotId(end_offset=5, epoch=6),
    )
    response = FetchResponse(responses=[Topic(partitions=[partition])])
    assert FetchResponse.decode(response.encode(17), 17) == response
