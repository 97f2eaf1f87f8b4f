"""Consumer groups beyond the transcripts: plugin assignors, group settings, sizes, old records."""

from __future__ import annotations

import random
from collections.abc import Mapping
from dataclasses import replace

from barnabas.groups.assignors.spec import Assignment, AssignorError, GroupSpec
from barnabas.groups.basics.records import Entry
from barnabas.groups.basics.settings import GroupSettings
from barnabas.groups.shard import GroupShard
from barnabas.metadata.configs import ConfigResource, ConfigsImage, ResourceType
from barnabas.protocol import ErrorCode
from barnabas.protocol.log_records.consumer_offsets import (
    ConsumerGroupPartitionMetadataKey,
    ConsumerGroupPartitionMetadataValue,
)

from ..host import Host
from .group_client import GroupClient, assignment, beat


class Moody:
    """Fails until it is told to work."""

    name = "moody"
    is_willing = False

    def assign(self, spec: GroupSpec) -> Mapping[str, Assignment]:
        if not self.is_willing:
            raise AssignorError("not today")
        return {}


def test_a_failing_assignor_is_retried_and_nothing_is_written_meanwhile() -> None:
    host = Host(topics={"t": 1})
    assignor = Moody()
    settings = GroupSettings(consumer_assignors=("moody",))
    host.shard = GroupShard(settings, random.Random(1), host.now_ms, {"moody": assignor})

    refused = beat(host, "g", "a", 0, owned={}, topics=["t"], timeout_ms=1000)
    written = list(host.log)
    assignor.is_willing = True
    accepted = beat(host, "g", "a", 0, owned={}, topics=["t"], timeout_ms=1000)

    assert refused.error_code == ErrorCode.UNKNOWN_SERVER_ERROR
    assert refused.error_message == "Failed to compute a new target assignment for epoch 2: not today"
    assert written == []
    assert (accepted.error_code, accepted.member_epoch) == (ErrorCode.NONE, 2)


def test_a_group_may_have_its_own_session_timeout_and_heartbeat_interval_within_the_bounds() -> None:
    host = Host(topics={"t": 1})
    group = ConfigResource(ResourceType.GROUP, "g")
    own = {"consumer.session.timeout.ms": "50000", "consumer.heartbeat.interval.ms": "1"}
    host.image = replace(host.image, configs=ConfigsImage({group: own}))

    reply = beat(host, "g", "a", 0, owned={}, topics=["t"], timeout_ms=1000)
    host.advance(49_999)
    in_time = beat(host, "g", "a", 2)
    host.advance(50_000)
    too_late = beat(host, "g", "a", 2)

    assert reply.heartbeat_interval_ms == 5000
    assert in_time.error_code == ErrorCode.NONE
    assert too_late.error_code == ErrorCode.UNKNOWN_MEMBER_ID


def test_a_hundred_members_share_a_thousand_partitions_evenly() -> None:
    host = Host(topics={"t": 1000})
    clients = [GroupClient(host, "g", f"m{number}", ["t"]) for number in range(100)]
    for client in clients:
        client.join()
    for _ in range(4):
        host.advance(1000)
        for client in clients:
            client.revoke()
            client.beat()

    assert {len(client.owned.get("t", ())) for client in clients} == {10}
    assert set().union(*(client.owned["t"] for client in clients)) == set(range(1000))


def test_topic_records_of_an_older_version_are_deleted_with_the_next_check() -> None:
    host = Host(topics={"t": 1})
    beat(host, "g", "a", 0, owned={}, topics=["t"], timeout_ms=1000)
    old = ConsumerGroupPartitionMetadataKey(group_id="g")
    host.shard.apply(Entry(old, ConsumerGroupPartitionMetadataValue()))
    host.new_records.clear()

    beat(host, "g", "a", 2, topics=["t"])
    beat(host, "g", "a", 2, topics=["t"])

    assert host.new_records == [Entry(old, None)]


def test_a_subscription_to_a_hundred_thousand_topics_gets_a_response() -> None:
    host = Host(topics={"t": 2})
    topics = [f"none-{number}" for number in range(100_000)]

    reply = beat(host, "g", "a", 0, owned={}, topics=[*topics, "t"], timeout_ms=1000)

    assert assignment(host, reply) == {"t": {0, 1}}
