"""Consumer groups as people know them, with confluent-kafka: shared, left, static, committed, reset."""

from __future__ import annotations

import contextlib
from collections.abc import Callable

import pytest
from confluent_kafka import Consumer, ConsumerGroupTopicPartitions, KafkaError, TopicPartition
from confluent_kafka.admin import AdminClient

from .conftest import NewTopicName, Served
from .groups import CLASSIC, EVERY, TIMEOUT_S, Member, committed, disjoint, settle, shares, wait
from .librdkafka import produce


@pytest.mark.parametrize("way", EVERY)
def test_ten_partitions_go_to_one_consumer_and_five_each_to_two(
    broker: Served, new_topic: NewTopicName, fresh_name: Callable[[], str], way: str
) -> None:
    topic, group = new_topic(partitions=10), fresh_name()
    first = Member(broker.bootstrap, group, [topic], way)
    members = [first]
    try:
        wait(members, lambda: len(first.held) == 10, "one has all")

        members.append(Member(broker.bootstrap, group, [topic], way))

        wait(members, lambda: shares(members) == [5, 5] and disjoint(members), "five each")
        assert not first.errors
    finally:
        for member in members:
            member.close()


@pytest.mark.parametrize(
    ("way", "parts"),
    [
        ("range", [{"A0", "B0"}, {"A1", "B1"}, set()]),
        ("roundrobin", [{"A0", "B1"}, {"A1"}, {"B0"}]),
    ],
)
def test_two_topics_of_two_partitions_and_three_consumers(
    broker: Served, new_topic: NewTopicName, fresh_name: Callable[[], str], way: str, parts: list[set[str]]
) -> None:
    names = sorted((new_topic(partitions=2), new_topic(partitions=2)))
    letters = dict(zip(names, "AB", strict=True))
    group = fresh_name()
    members = [Member(broker.bootstrap, group, names, way) for _ in range(3)]

    def held() -> list[set[str]]:
        found = [{f"{letters[topic]}{n}" for topic, n in member.held} for member in members]
        return sorted(found, key=sorted)

    try:
        wait(members, lambda: held() == sorted(parts, key=sorted), "three share")

        leaving = next(member for member in members if ("A", 1) in {(letters[t], n) for t, n in member.held})
        members.remove(leaving)
        leaving.close()

        wait(members, lambda: held() == [{"A0", "B0"}, {"A1", "B1"}], "two share")
    finally:
        for member in members:
            member.close()


def test_assignors_that_do_not_go_together_are_refused(
    broker: Served, new_topic: NewTopicName, fresh_name: Callable[[], str]
) -> None:
    topic, group = new_topic(partitions=2), fresh_name()
    with contextlib.ExitStack() as stack:
        first = Member(broker.bootstrap, group, [topic], "range")
        stack.callback(first.close)
        wait([first], lambda: len(first.held) == 2)
        second = Member(broker.bootstrap, group, [topic], "roundrobin")
        stack.callback(second.close)
        wait([first, second], lambda: bool(second.errors), "the second is refused")

        assert second.errors[0].code() == KafkaError.INCONSISTENT_GROUP_PROTOCOL
        assert len(first.held) == 2


@pytest.mark.parametrize("way", ["range", "cooperative-sticky", "consumer"])
def test_a_static_member_restarts_and_nobody_rebalances(
    broker: Served, new_topic: NewTopicName, fresh_name: Callable[[], str], way: str
) -> None:
    topic, group = new_topic(partitions=4), fresh_name()
    settings = {"session_timeout_ms": 30_000} if way != "consumer" else {}
    stays = Member(broker.bootstrap, group, [topic], way, group_instance_id="stays", **settings)
    goes = Member(broker.bootstrap, group, [topic], way, group_instance_id="goes", **settings)
    wait([stays, goes], lambda: shares([stays, goes]) == [2, 2] and disjoint([stays, goes]))
    settle([stays, goes])
    held, changes = goes.held, stays.changes
    goes.close()

    again = Member(broker.bootstrap, group, [topic], way, group_instance_id="goes", **settings)
    try:
        wait([stays, again], lambda: again.held == held, "it has its part again")
        produce(broker.bootstrap, topic, [{"value": b"%d" % n, "partition": n % 4} for n in range(40)])
        wait([stays, again], lambda: len(stays.read) + len(again.read) == 40, "both read")

        assert stays.changes == changes
        assert not stays.errors
    finally:
        stays.close()
        again.close()


@pytest.mark.parametrize("way", EVERY)
def test_a_group_goes_on_where_it_committed(
    broker: Served, new_topic: NewTopicName, fresh_name: Callable[[], str], way: str
) -> None:
    topic, group = new_topic(), fresh_name()
    produce(broker.bootstrap, topic, [{"value": b"%d" % n} for n in range(10)])
    first = Member(broker.bootstrap, group, [topic], way)
    wait([first], lambda: len(first.read) == 10)
    first.consumer.commit(offsets=[TopicPartition(topic, 0, 6, metadata="six")], asynchronous=False)
    first.close()

    assert committed(broker.bootstrap, group, [(topic, 0)]) == {(topic, 0): 6}
    second = Member(broker.bootstrap, group, [topic], way)
    try:
        wait([second], lambda: len(second.read) == 4)
        assert second.read == [(topic, 0, n) for n in range(6, 10)]

        second.consumer.seek(TopicPartition(topic, 0, 2))
        wait([second], lambda: len(second.read) == 12)
        assert [offset for _, _, offset in second.read[4:]] == list(range(2, 10))
    finally:
        second.close()


def test_offsets_are_committed_by_themselves_and_on_leaving(
    broker: Served, new_topic: NewTopicName, fresh_name: Callable[[], str]
) -> None:
    topic, group = new_topic(), fresh_name()
    produce(broker.bootstrap, topic, [{"value": b"%d" % n} for n in range(10)])
    settings = {"enable_auto_commit": True, "auto_commit_interval_ms": 100}
    member = Member(broker.bootstrap, group, [topic], "range", **settings)
    try:
        wait([member], lambda: committed(broker.bootstrap, group, [(topic, 0)]) == {(topic, 0): 10})
    finally:
        member.close()


def test_a_group_with_lags_is_described_and_its_offsets_are_altered(
    broker: Served, new_topic: NewTopicName, fresh_name: Callable[[], str]
) -> None:
    topic, group = new_topic(partitions=3), fresh_name()
    produce(broker.bootstrap, topic, [{"value": b"%d" % n, "partition": n % 3} for n in range(30)])
    places = [TopicPartition(topic, n, offset) for n, offset in enumerate((8, 9, 9))]
    admin = AdminClient({"bootstrap.servers": broker.bootstrap})

    def altered(offsets: list[TopicPartition]) -> None:
        wanted = ConsumerGroupTopicPartitions(group, offsets)
        admin.alter_consumer_group_offsets([wanted])[group].result(TIMEOUT_S)

    def lags() -> list[int]:
        request = ConsumerGroupTopicPartitions(group)
        found = admin.list_consumer_group_offsets([request])[group].result(TIMEOUT_S).topic_partitions
        reader = Consumer({"bootstrap.servers": broker.bootstrap, "group.id": group})
        try:
            ends = [reader.get_watermark_offsets(place, timeout=10)[1] for place in found]
        finally:
            reader.close()
        return [
            end - place.offset
            for place, end in sorted(zip(found, ends, strict=True), key=lambda pair: int(pair[0].partition))
        ]

    altered(places)
    assert lags() == [2, 1, 1]
    described = admin.describe_consumer_groups([group])[group].result(TIMEOUT_S)
    assert (described.group_id, described.members, described.state.name) == (group, [], "EMPTY")
    altered([TopicPartition(topic, n, 0) for n in range(3)])
    assert lags() == [10, 10, 10]


@pytest.mark.parametrize("way", ["range", "consumer"])
def test_groups_are_listed_described_and_deleted(
    broker: Served, new_topic: NewTopicName, fresh_name: Callable[[], str], way: str
) -> None:
    topic, group = new_topic(partitions=2), fresh_name()
    produce(broker.bootstrap, topic, [{"value": b"x"}])
    member = Member(broker.bootstrap, group, [topic], way, client_id="the-reader")
    admin = AdminClient({"bootstrap.servers": broker.bootstrap})
    wait([member], lambda: len(member.held) == 2)

    def state() -> str:
        return str(admin.describe_consumer_groups([group])[group].result(TIMEOUT_S).state.name)

    wait([member], lambda: state() == "STABLE")
    described = admin.describe_consumer_groups([group])[group].result(TIMEOUT_S)
    assert [one.client_id for one in described.members] == ["the-reader"]
    held = {(place.topic, place.partition) for place in described.members[0].assignment.topic_partitions}
    assert held == member.held
    listed = {found.group_id: found for found in admin.list_consumer_groups().result(TIMEOUT_S).valid}
    assert listed[group].type.name == ("CONSUMER" if way == "consumer" else "CLASSIC")
    with pytest.raises(Exception, match=r"NON_EMPTY_GROUP|not empty"):
        admin.delete_consumer_groups([group])[group].result(TIMEOUT_S)

    member.consumer.commit(offsets=[TopicPartition(topic, 0, 1)], asynchronous=False)
    member.close()
    wait([], lambda: state() == "EMPTY")
    admin.delete_consumer_groups([group])[group].result(TIMEOUT_S)
    listed = {found.group_id: found for found in admin.list_consumer_groups().result(TIMEOUT_S).valid}
    assert group not in listed
    assert committed(broker.bootstrap, group, [(topic, 0)])[topic, 0] < 0


@pytest.mark.parametrize("way", CLASSIC)
def test_a_pattern_finds_topics_that_come_later(
    broker: Served, new_topic: NewTopicName, fresh_name: Callable[[], str], way: str
) -> None:
    topic, group = new_topic(), fresh_name()
    stem = topic.rpartition(".")[0].replace(".", r"\.")
    member = Member(broker.bootstrap, group, [rf"^{stem}\.[0-9]+$"], way)
    try:
        wait([member], lambda: (topic, 0) in member.held)
        later = new_topic(partitions=2)
        wait([member], lambda: {(later, 0), (later, 1)} <= member.held, "the new topic is found")
    finally:
        member.close()
