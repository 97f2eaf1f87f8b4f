"""Streams groups move with their folder, and their records have Apache Kafka's bytes."""

from __future__ import annotations

from contextlib import closing
from pathlib import Path
from typing import Any

import pytest
from confluent_kafka import OFFSET_BEGINNING, Consumer, TopicPartition

from barnabas.groups.basics.records import Entry, KeyAndValue, decode, encode
from barnabas.protocol.log_records.consumer_offsets import (
    StreamsGroupMetadataValue,
    StreamsGroupTargetAssignmentMetadataValue,
)
from barnabas.testing import Broker
from barnabas.testing.apache import ApacheKafka
from barnabas.testing.waiting import wait_until

from .conftest import ALIKE
from .members import group
from .streams_members import DESCRIBE, StreamsMember, settle, streams_group, word_count
from .talk import Talk

OFFSETS_TOPIC = "__consumer_offsets"
GROUP = "records.group"


def begin(talk: Talk) -> list[StreamsMember]:
    """A group with a word count, standbys and two members that have settled."""
    source = talk.topic(partitions=3)
    name = streams_group(talk, num_standby_replicas="1")
    topology = word_count(talk, source)
    members = [StreamsMember(talk, name, label, topology) for label in ("one", "two")]
    members[0].joins(user_endpoint={"host": "h", "port": 9}, client_tags=[{"key": "zone", "value": "a"}])
    members[0].waits_for_topics()
    settle(members[0])
    members[1].joins()
    settle(*members)
    return members


def records_of(bootstrap: str) -> list[KeyAndValue]:
    """The records of the group, in order. Records of probes before it are left out."""
    consumer = Consumer({"bootstrap.servers": bootstrap, "group.id": "unused", "enable.partition.eof": True})
    consumer.assign([TopicPartition(OFFSETS_TOPIC, 0, OFFSET_BEGINNING)])
    found: list[KeyAndValue] = []

    def is_read() -> bool:
        message = consumer.poll(1)
        if message is None:
            return False
        if message.error() is not None:
            return True  # the end of the partition
        found.append((message.key(), message.value()))
        return False

    wait_until(is_read, 60)
    consumer.close()
    return [pair for pair in found if GROUP.encode() in pair[0]]


def neutral(pair: KeyAndValue) -> Entry:
    """A record without what differs between two right brokers: ids of topics, and the time."""
    entry = decode(*pair)
    assert entry is not None
    assert encode(entry) == pair, "the record has other bytes than ours would have"
    value: Any = entry.value
    if isinstance(value, StreamsGroupMetadataValue):
        value.metadata_hash = 0
    elif isinstance(value, StreamsGroupTargetAssignmentMetadataValue):
        value.assignment_timestamp = 0
    return entry


@pytest.mark.java
def test_records_are_those_of_apache_kafka(apache_kafka: ApacheKafka) -> None:
    found = []
    with Broker(overrides=ALIKE) as ours:
        for bootstrap in (apache_kafka.bootstrap, ours.bootstrap):
            with closing(Talk(int(bootstrap.rpartition(":")[2]), "records")) as talk:
                for member in begin(talk):
                    member.leaves()
            found.append([neutral(pair) for pair in records_of(bootstrap)])
    theirs, mine = found
    assert mine == theirs


def continue_with(port: int, members: list[StreamsMember]) -> Talk:
    """Let the members talk to another broker."""
    talk = Talk(port, "moved")
    group(talk)  # returns when the coordinator has loaded it
    for member in members:
        member.talk = talk
    return talk


def described(member: StreamsMember) -> Any:
    """The group without its topology: Apache Kafka shows sizes of internal topics after the next record."""
    [found] = member.talk.silently(DESCRIBE, 0, group_ids=[member.name])["groups"]
    members = sorted(found["members"], key=lambda each: str(each["member_id"]))
    return found | {"members": members, "topology": None}


@pytest.mark.java
@pytest.mark.long
def test_members_go_on_where_the_other_broker_left_them(tmp_path: Path, java: None) -> None:
    data = tmp_path / "data"
    with ApacheKafka(data) as kafka, closing(Talk(kafka.port, "moved")) as talk:
        members = begin(talk)
        before = described(members[0])
    with Broker(data, in_process=False) as ours, closing(continue_with(ours.port, members)):
        settle(*members)
        assert described(members[0]) == before, "members keep their epochs and tasks"
        members.append(StreamsMember(members[0].talk, members[0].name, "three", members[0].topology))
        members[2].joins()
        settle(*members)
        before = described(members[0])
    with ApacheKafka(data) as kafka, closing(continue_with(kafka.port, members)):
        settle(*members)
        assert described(members[0]) == before, "members keep their epochs and tasks"
        members[0].leaves()
        settle(*members[1:])
