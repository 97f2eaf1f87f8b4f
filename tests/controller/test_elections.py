"""ElectLeaders, UpdateFeatures and client quotas, decided without a log."""

from __future__ import annotations

import random
from collections.abc import Iterable
from dataclasses import replace
from typing import Any

import pytest

from barnabas.controller.context import Context
from barnabas.controller.elections import PREFERRED, UNCLEAN, elect_leaders, list_reassignments
from barnabas.controller.features import SAFE_DOWNGRADE, UPGRADE, update_features
from barnabas.controller.quotas import alter_client_quotas
from barnabas.controller.sessions import BrokerSessions
from barnabas.metadata.delta import MetadataDelta
from barnabas.metadata.image import EMPTY_IMAGE, MetadataImage
from barnabas.metadata.partitions import NO_LEADER
from barnabas.metadata.steps import at_once
from barnabas.protocol import ErrorCode, Message
from barnabas.protocol.log_records.metadata import (
    ConfigRecord,
    FeatureLevelRecord,
    PartitionChangeRecord,
    PartitionRecord,
    RegisterBrokerRecord,
    TopicRecord,
)
from barnabas.protocol.messages.alter_client_quotas import AlterClientQuotasRequest
from barnabas.protocol.messages.elect_leaders import ElectLeadersRequest
from barnabas.protocol.messages.list_partition_reassignments import ListPartitionReassignmentsRequest
from barnabas.protocol.messages.update_features import UpdateFeaturesRequest
from barnabas.settings import BrokerSettings

from .cluster import SETTINGS

TOPIC_ID = b"t" * 16
DIRECTORY = b"d" * 16


def image_after(image: MetadataImage, records: Iterable[Message]) -> MetadataImage:
    delta = MetadataDelta(image)
    delta.replay_all(records)
    return delta.apply()


def broker(number: int, *, fenced: bool = False) -> RegisterBrokerRecord:
    feature = RegisterBrokerRecord.BrokerFeature
    return RegisterBrokerRecord(
        broker_id=number,
        fenced=fenced,
        log_dirs=[DIRECTORY],
        features=[
            feature(name="metadata.version", min_supported_version=7, max_supported_version=30),
            feature(name="group.version", min_supported_version=0, max_supported_version=1),
            feature(
                name="eligible.leader.replicas.version", min_supported_version=0, max_supported_version=1
            ),
        ],
    )


def partition(number: int, leader: int, isr: list[int], **more: Any) -> PartitionRecord:
    return PartitionRecord(
        partition_id=number,
        topic_id=TOPIC_ID,
        replicas=[1, 2, 3],
        directories=[DIRECTORY] * 3,
        isr=isr,
        leader=leader,
        **more,
    )


def context(*records: Message) -> Context:
    first = [FeatureLevelRecord(name="metadata.version", feature_level=29), *map(broker, (1, 2, 3))]
    return Context(
        image=image_after(EMPTY_IMAGE, [*first, TopicRecord(name="t", topic_id=TOPIC_ID), *records]),
        settings=BrokerSettings.load(SETTINGS),
        cluster_id="c",
        sessions=BrokerSessions(timeout_ms=9000),
        rng=random.Random(1),
        now_ms=0,
        next_offset=0,
    )


def elected(where: Context, kind: int, *numbers: int) -> tuple[dict[int, int], list[Any]]:
    asked = ElectLeadersRequest.TopicPartitions(topic="t", partitions=list(numbers))
    decision = elect_leaders(where, ElectLeadersRequest(election_type=kind, topic_partitions=[asked]))
    [topic] = decision.reply.replica_election_results
    return {each.partition_id: each.error_code for each in topic.partition_result}, list(decision.records)


def test_the_preferred_leader_takes_over_when_it_is_in_sync() -> None:
    where = context(partition(0, 2, [1, 2]), partition(1, 2, [2, 3]), partition(2, 1, [1, 2, 3]))
    codes, records = elected(where, PREFERRED, 0, 1, 2)
    assert codes == {
        0: ErrorCode.NONE,
        1: ErrorCode.PREFERRED_LEADER_NOT_AVAILABLE,
        2: ErrorCode.ELECTION_NOT_NEEDED,
    }
    assert records == [PartitionChangeRecord(partition_id=0, topic_id=TOPIC_ID, leader=1)]


def test_an_unclean_election_elects_any_active_replica() -> None:
    where = context(partition(0, NO_LEADER, [3]), partition(1, 2, [2]), broker(3, fenced=True))
    codes, records = elected(where, UNCLEAN, 0, 1)
    assert codes == {0: ErrorCode.NONE, 1: ErrorCode.ELECTION_NOT_NEEDED}
    [record] = records
    assert (record.leader, record.isr) == (1, [1])


def test_without_an_active_replica_there_is_no_leader() -> None:
    everyone = [broker(number, fenced=True) for number in (1, 2, 3)]
    codes, records = elected(context(partition(0, NO_LEADER, [3]), *everyone), UNCLEAN, 0)
    assert codes == {0: ErrorCode.ELIGIBLE_LEADERS_NOT_AVAILABLE}
    assert records == []


def test_a_request_for_all_partitions_lists_only_what_changed() -> None:
    where = context(partition(0, 2, [1, 2]), partition(1, 1, [1, 2]))
    decision = elect_leaders(where, ElectLeadersRequest(topic_partitions=None))
    [topic] = decision.reply.replica_election_results
    assert [each.partition_id for each in topic.partition_result] == [0]


def test_partitions_that_move_are_listed() -> None:
    where = context(partition(0, 1, [1], adding_replicas=[3]), partition(1, 1, [1]))
    found = at_once(list_reassignments(where.image.topics, ListPartitionReassignmentsRequest(topics=None)))
    assert [(t.name, [p.partition_index for p in t.partitions]) for t in found.topics] == [("t", [0])]


def updated(where: Context, **levels: int) -> tuple[Any, list[Message]]:
    updates = [
        UpdateFeaturesRequest.FeatureUpdateKey(
            feature=name.replace("_", "."), max_version_level=abs(level), upgrade_type=kind
        )
        for name, level in levels.items()
        for kind in [SAFE_DOWNGRADE if level <= 0 else UPGRADE]
    ]
    decision = update_features(where, UpdateFeaturesRequest(feature_updates=updates))
    return decision.reply, list(decision.records)


def test_a_feature_goes_up_and_down() -> None:
    reply, records = updated(context(), group_version=1)
    assert reply.error_code == ErrorCode.NONE
    assert records == [FeatureLevelRecord(name="group.version", feature_level=1)]
    reply, records = updated(
        context(FeatureLevelRecord(name="group.version", feature_level=1)), group_version=0
    )
    assert records == [FeatureLevelRecord(name="group.version", feature_level=0)]


def test_one_invalid_feature_update_changes_no_feature() -> None:
    reply, records = updated(context(), group_version=1, share_version=1)
    assert reply.error_code == ErrorCode.INVALID_UPDATE_VERSION
    assert "Broker 1 does not support this feature" in reply.error_message
    assert records == []


def test_metadata_version_can_be_raised_and_not_lowered_past_new_records() -> None:
    assert updated(context(), metadata_version=30)[1] == [
        FeatureLevelRecord(name="metadata.version", feature_level=30)
    ]
    at_30 = context(FeatureLevelRecord(name="metadata.version", feature_level=30))
    assert updated(at_30, metadata_version=-29)[0].error_code == ErrorCode.INVALID_UPDATE_VERSION
    assert updated(context(), metadata_version=-28)[0].error_code == ErrorCode.NONE


def test_eligible_leader_replicas_bring_one_min_insync_replicas_for_all() -> None:
    own = ConfigRecord(resource_type=4, resource_name="2", name="min.insync.replicas", value="2")
    _, records = updated(context(own), eligible_leader_replicas_version=1)
    assert [type(each) for each in records] == [FeatureLevelRecord, ConfigRecord, ConfigRecord]
    changes = [(each.resource_name, each.value) for each in records if isinstance(each, ConfigRecord)]
    assert changes == [("", "1"), ("2", None)]


def quota(value: float | None, **entity: str | None) -> AlterClientQuotasRequest:
    kind = AlterClientQuotasRequest.EntryData
    return AlterClientQuotasRequest(
        entries=[
            kind(
                entity=[
                    kind.EntityData(entity_type=name.replace("_", "-"), entity_name=each)
                    for name, each in entity.items()
                ],
                ops=[kind.OpData(key="producer_byte_rate", value=value or 0.0, remove=value is None)],
            )
        ]
    )


def test_a_quota_is_written_once() -> None:
    where = context()
    request = quota(5.0, user="u", client_id=None)
    first = alter_client_quotas(where, request)
    assert len(first.records) == 1
    where = replace(where, image=image_after(where.image, first.records))
    assert list(alter_client_quotas(where, request).records) == []
    [removal] = alter_client_quotas(where, quota(None, user="u", client_id=None)).records
    where = replace(where, image=image_after(where.image, [removal]))
    assert not where.image.quotas.by_entity


@pytest.mark.parametrize("value", [0.0, -1.0, 0.5])
def test_a_wrong_quota_changes_nothing(value: float) -> None:
    decision = alter_client_quotas(context(), quota(value, user="u"))
    assert decision.reply.entries[0].error_code == ErrorCode.INVALID_REQUEST
    assert list(decision.records) == []
