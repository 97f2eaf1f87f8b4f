"""Logs of `__consumer_offsets` that Apache Kafka 4.3.1 wrote: `clients.log` for clients (see `record_apache`)
and `requests.log` for hand-made requests with every result, among them offsets with an expiry time.
"""

from __future__ import annotations

import random
from collections import Counter
from pathlib import Path

import pytest

from barnabas.groups.basics.outcome import Caller
from barnabas.groups.basics.records import Entry, decode, encode, record_types
from barnabas.groups.basics.settings import GroupSettings
from barnabas.groups.shard import GroupShard
from barnabas.metadata.image import EMPTY_IMAGE
from barnabas.metadata.steps import at_once
from barnabas.protocol import ProtocolError
from barnabas.protocol.log_records.consumer_offsets import (
    LegacyOffsetCommitKey,
    LegacyOffsetCommitValue,
    OffsetCommitKey,
)
from barnabas.protocol.messages.list_groups import ListGroupsRequest
from barnabas.records.batch import headers
from barnabas.records.record import read_records

RECORDED = Path(__file__).parent / "recorded"
CALLER = Caller("test", "/127.0.0.1", 5)


def recorded(name: str) -> list[tuple[bytes, bytes | None]]:
    data = (RECORDED / name).read_bytes()
    return [
        (bytes(record.key), None if record.value is None else bytes(record.value))
        for position, header in headers(data)
        for record in read_records(data[position : position + header.size])
        if record.key is not None
    ]


def loaded(name: str) -> GroupShard:
    shard = GroupShard(GroupSettings(), random.Random(1), 0)
    for key, value in recorded(name):
        entry = decode(key, value)
        assert entry is not None
        shard.apply(entry)
    at_once(shard.replayed(0))
    shard.loaded(0)
    return shard


@pytest.mark.parametrize("name", ["clients.log", "requests.log"])
def test_records_are_written_as_apache_kafka_writes_them(name: str) -> None:
    records = recorded(name)
    assert len(records) > 20
    for key, value in records:
        entry = decode(key, value)
        assert entry is not None
        assert encode(entry) == (key, value)


def test_the_recordings_hold_what_they_should() -> None:
    found = Counter(
        (key[1], value and value[1]) for name in RECORDED.iterdir() for key, value in recorded(name.name)
    )
    offsets_with_topic_id, offsets_with_expiry = found[1, 4], found[1, 1]
    groups, tombstones = found[2, 3], found[2, None]
    assert min(offsets_with_topic_id, offsets_with_expiry, groups, tombstones) > 0
    assert {kind for kind, _ in found} >= {1, 2, 3, 5, 6, 7, 8}


def test_a_coordinator_continues_the_groups_of_apache_kafka() -> None:
    shard = loaded("clients.log")
    listed = shard.handle(ListGroupsRequest(), CALLER, EMPTY_IMAGE, 0).reply
    assert {(group.group_id, group.group_state, group.group_type) for group in listed.groups} == {  # type: ignore[union-attr]
        ("classic", "Empty", "classic"),
        ("static", "Stable", "classic"),
        ("simple", "Empty", "classic"),
        ("modern", "Empty", "consumer"),
    }
    orders = shard.offsets.of_group("classic")["orders"]
    assert sorted(value.offset for value in orders.values()) == [7, 7]
    assert {value.metadata for value in orders.values()} == {
        "note\0"
    }  # the client sends the end of its C string too
    clicks = shard.offsets.of_group("simple")["clicks"]
    assert {partition: value.offset for partition, value in clicks.items()} == {0: 5, 1: 6}
    assert not shard.offsets.count_of("deleted")


def test_a_static_member_of_apache_kafka_keeps_its_place() -> None:
    group = loaded("clients.log").classic.get("static")
    assert group is not None
    [member] = group.members.values()
    assert member.instance_id == "one" and group.leader == member.member_id
    assert group.subscribed == {"orders", "clicks"}


def test_records_of_types_to_come_are_skipped() -> None:
    assert decode(b"\0\x7fabc", b"\0\0") is None
    assert 127 not in record_types()


@pytest.mark.parametrize(
    ("key", "value"), [(b"", None), (b"\0", None), (b"\0\2\0\1g", b"\0"), (b"\0\2\0", b"\0\3")]
)
def test_records_that_are_cut_short_are_refused(key: bytes, value: bytes | None) -> None:
    with pytest.raises(ProtocolError):
        decode(key, value)


def test_offsets_of_the_first_format_are_understood() -> None:
    shard = GroupShard(GroupSettings(), random.Random(1), 0)
    key = LegacyOffsetCommitKey(group="old", topic="t", partition=3)
    shard.apply(Entry(key, LegacyOffsetCommitValue(offset=5, metadata="m", commit_timestamp=9)))
    value = shard.offsets.get("old", "t", 3)
    assert value is not None and (value.offset, value.metadata, value.commit_timestamp) == (5, "m", 9)
    shard.apply(Entry(key, None))
    assert not shard.offsets.count_of("old")


def test_a_tombstone_for_what_is_not_there_changes_nothing() -> None:
    shard = GroupShard(GroupSettings(), random.Random(1), 0)
    shard.apply(Entry(OffsetCommitKey(group="g", topic="t", partition=0), None))
    assert not shard.classic.owns("g")
