"""Messages that cannot be written say which field is to blame."""

from __future__ import annotations

from typing import Any

import pytest

from barnabas.protocol import EncodingError, ErrorCode, KafkaError, Message
from barnabas.protocol.messages.create_topics import CreateTopicsRequest
from barnabas.protocol.messages.fetch import FetchRequest
from barnabas.protocol.messages.heartbeat import HeartbeatRequest
from barnabas.protocol.messages.metadata import MetadataRequest, MetadataResponse
from barnabas.protocol.messages.produce import ProduceRequest
from barnabas.protocol.messages.sasl_authenticate import SaslAuthenticateRequest

NONE: Any = None
Creatable = CreateTopicsRequest.CreatableTopic


@pytest.mark.parametrize(
    ("message", "version", "path"),
    [
        (HeartbeatRequest(group_id="x" * 0x8000), 0, "group_id"),
        (HeartbeatRequest(group_id="x" * 0x8000), 4, "group_id"),
        (HeartbeatRequest(group_id="ü" * 0x4000), 4, "group_id"),
        (HeartbeatRequest(group_id="\ud800"), 4, "group_id"),
        (HeartbeatRequest(member_id=NONE), 0, "member_id"),
        (HeartbeatRequest(member_id=NONE), 4, "member_id"),
        (HeartbeatRequest(generation_id=2**31), 0, "generation_id"),
        (HeartbeatRequest(generation_id=-(2**31) - 1), 4, "generation_id"),
        (HeartbeatRequest(generation_id=NONE), 4, "generation_id"),
        (MetadataRequest(topics=None), 0, "topics"),
        (SaslAuthenticateRequest(auth_bytes=NONE), 0, "auth_bytes"),
        (SaslAuthenticateRequest(auth_bytes="text"), 2, "auth_bytes"),  # type: ignore[arg-type]
        (
            CreateTopicsRequest(topics=[Creatable(), Creatable(num_partitions=1 << 40)]),
            5,
            "topics[1].num_partitions",
        ),
        (CreateTopicsRequest(topics=[Creatable(name=NONE)]), 5, "topics[0].name"),
        (CreateTopicsRequest(topics=[NONE]), 5, "topics[0]"),
        (CreateTopicsRequest(topics=NONE), 5, "topics"),
        (FetchRequest(replica_state=NONE), 15, "replica_state"),
        (
            FetchRequest(replica_state=FetchRequest.ReplicaState(replica_id=1 << 33)),
            15,
            "replica_state.replica_id",
        ),
    ],
)
def test_a_value_that_does_not_fit_is_named(message: Message, version: int, path: str) -> None:
    with pytest.raises(EncodingError) as raised:
        message.encode(version)
    assert raised.value.path == path


def test_the_error_shows_the_value() -> None:
    with pytest.raises(
        EncodingError, match=r"^generation_id: 2147483648 does not fit in Int32 \(in HeartbeatRequest"
    ):
        HeartbeatRequest(generation_id=2**31).encode(4)


def test_a_field_that_the_version_lacks_is_refused_when_it_is_set() -> None:
    with pytest.raises(KafkaError) as raised:
        HeartbeatRequest(group_instance_id="static").encode(2)
    assert raised.value.code == ErrorCode.UNSUPPORTED_VERSION
    assert "HeartbeatRequest has no field group_instance_id in version 2" in str(raised.value)


def test_a_field_that_the_version_lacks_is_no_trouble_at_its_default() -> None:
    assert HeartbeatRequest(group_id="g").encode(2) == HeartbeatRequest(group_id="g").encode(0)


def test_a_nested_field_that_the_version_lacks_is_refused_when_it_is_set() -> None:
    topic = MetadataRequest.MetadataRequestTopic(topic_id=bytes(range(16)), name="t")
    assert MetadataRequest(topics=[topic]).encode(9)  # the id is ignorable
    with pytest.raises(KafkaError, match="allow_auto_topic_creation"):
        MetadataRequest(allow_auto_topic_creation=False).encode(0)


def test_an_ignorable_field_that_the_version_lacks_is_dropped() -> None:
    response = MetadataResponse(cluster_id="abc", throttle_time_ms=5)
    assert MetadataResponse.decode(response.encode(1), 1).cluster_id is None


def test_records_are_passed_on_as_the_objects_they_are() -> None:
    class Slice:
        def __len__(self) -> int:
            return 300

    records = Slice()
    Topic = ProduceRequest.TopicProduceData
    partition = Topic.PartitionProduceData(records=records)
    request = ProduceRequest(topic_data=[Topic(name="t", partition_data=[partition])])
    for version in (3, 9):
        parts = request.encode_parts(version)
        assert sum(part is records for part in parts) == 1
    partition.records = bytes(300)
    assert b"".join(bytes(300) if part is records else part for part in parts) == request.encode(9)
