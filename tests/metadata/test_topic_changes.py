"""The topic changes that coordinators get from a delta."""

from __future__ import annotations

from barnabas.metadata.delta import MetadataDelta
from barnabas.metadata.image import EMPTY_IMAGE, MetadataImage
from barnabas.metadata.topic_changes import NO_CHANGES, TopicChanges, topic_changes
from barnabas.protocol import Message
from barnabas.protocol.log_records import metadata as records

A, B = b"a" * 16, b"b" * 16


def changed(before: MetadataImage, *told: Message) -> tuple[TopicChanges, MetadataImage]:
    delta = MetadataDelta(before)
    delta.replay_all(told)
    assert delta.topics is not None
    return topic_changes(delta.topics), delta.apply()


def partition(topic_id: bytes, number: int) -> records.PartitionRecord:
    return records.PartitionRecord(partition_id=number, topic_id=topic_id, replicas=[1], isr=[1], leader=1)


def image() -> MetadataImage:
    created, found = changed(EMPTY_IMAGE, records.TopicRecord(name="a", topic_id=A), partition(A, 0))
    assert created == TopicChanges(created=("a",))
    return found


def test_changes_of_leaders_and_in_sync_replicas_are_left_out() -> None:
    change = records.PartitionChangeRecord(partition_id=0, topic_id=A, isr=[1], leader=1)
    assert changed(image(), change)[0] is NO_CHANGES
    assert not NO_CHANGES


def test_more_partitions_or_other_replicas_alter_a_topic() -> None:
    assert changed(image(), partition(A, 1))[0] == TopicChanges(altered=("a",))
    moved = records.PartitionChangeRecord(partition_id=0, topic_id=A, replicas=[2])
    assert changed(image(), moved)[0] == TopicChanges(altered=("a",))


def test_the_same_partition_told_again_alters_nothing() -> None:
    assert changed(image(), partition(A, 0))[0] is NO_CHANGES


def test_a_topic_created_again_is_both_deleted_and_created() -> None:
    told = records.RemoveTopicRecord(topic_id=A), records.TopicRecord(name="a", topic_id=B), partition(B, 0)
    found, _ = changed(image(), *told)
    assert found == TopicChanges(created=("a",), deleted={"a": A})
    assert found
