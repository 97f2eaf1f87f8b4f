"""Assignors of consumer groups give Kafka's own results; their bytes are those of Kafka's clients."""

from __future__ import annotations

import pytest

from barnabas.client.consumers.assignors import Subscriber, assign_in_turn, assign_ranges
from barnabas.client.consumers.embedded_protocol import (
    assigned_partitions,
    assignment_bytes,
    subscribed_topics,
    subscription_bytes,
)
from barnabas.client.core.topology import TopicPartition
from barnabas.protocol import KafkaError


def member(name: str, *topics: str, instance: str | None = None) -> Subscriber:
    return Subscriber(name, frozenset(topics), instance)


def shown(plan: dict[str, list[TopicPartition]]) -> dict[str, str]:
    return {name: " ".join(f"{each.topic}{each.partition}" for each in some) for name, some in plan.items()}


def test_ranges_are_neighbours_and_the_first_members_get_more() -> None:
    members = [member("b", "x", "y"), member("a", "x", "y")]
    assert shown(assign_ranges(members, {"x": 3, "y": 3})) == {"a": "x0 x1 y0 y1", "b": "x2 y2"}


def test_ranges_count_only_members_that_subscribed_to_the_topic() -> None:
    members = [member("a", "x"), member("b", "x", "y"), member("c", "z")]
    assert shown(assign_ranges(members, {"x": 2, "y": 2})) == {"a": "x0", "b": "x1 y0 y1", "c": ""}


def test_static_members_come_first() -> None:
    members = [member("a", "x"), member("z", "x", instance="1")]
    assert shown(assign_ranges(members, {"x": 1})) == {"a": "", "z": "x0"}


def test_in_turn_goes_through_all_topics() -> None:
    members = [member("a", "x", "y"), member("b", "x", "y")]
    assert shown(assign_in_turn(members, {"x": 3, "y": 3})) == {"a": "x0 x2 y1", "b": "x1 y0 y2"}


def test_in_turn_passes_over_members_without_the_topic() -> None:
    members = [member("a", "x"), member("b", "x", "y"), member("c", "x", "y", "z")]
    plan = shown(assign_in_turn(members, {"x": 1, "y": 2, "z": 3}))
    assert plan == {"a": "x0", "b": "y0", "c": "y1 z0 z1 z2"}


def test_bytes_come_back() -> None:
    assert subscribed_topics(subscription_bytes({"b", "a"})) == {"a", "b"}
    partitions = [TopicPartition("a", 1), TopicPartition("b", 0), TopicPartition("a", 2)]
    assert sorted(assigned_partitions(assignment_bytes(partitions))) == sorted(partitions)
    assert assigned_partitions(b"") == []


@pytest.mark.parametrize("data", [b"", b"\x00", b"\xff\xff", b"\x00\x01\x00\x00"])
def test_metadata_that_cannot_be_read_are_refused(data: bytes) -> None:
    with pytest.raises(KafkaError, match="cannot be read"):
        subscribed_topics(data)
