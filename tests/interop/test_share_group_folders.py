"""Share groups in `__consumer_offsets`: both brokers write the same records, and each goes on with the
other's folder."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from barnabas.groups.basics.records import decode, encode
from barnabas.protocol import ApiKey
from barnabas.protocol.message import Struct
from barnabas.records.batch import headers
from barnabas.records.record import iter_records
from barnabas.testing.waiting import wait_until

from .scenarios.group_share import Sharer, alter, delete_offsets, settle, share_group
from .talk import Talk
from .test_share_folders import apache, ours

DIFFERENT = "metadata_hash", "assignment_timestamp"
READY_TIMEOUT_S = 30.0

pytestmark = [pytest.mark.long, pytest.mark.java, pytest.mark.usefixtures("java")]


def records_of(data: Path, group: str) -> list[tuple[bytes, bytes | None]]:
    """Keys and values of the group's records, in the order in which they were written."""
    found = []
    for path in sorted(data.glob("__consumer_offsets-*/*.log")):
        log = path.read_bytes()
        for position, header in headers(log):
            if header.is_control:
                continue
            for record in iter_records(log, position=position):
                entry = decode(record.key or b"", record.value)
                if entry is not None and getattr(entry.key, "group_id", None) == group:
                    assert encode(entry) == (record.key, record.value)
                    found.append((bytes(record.key or b""), record.value))
    return found


def shown(key: bytes, value: bytes | None, names: dict[bytes, str]) -> str:
    """A record without ids, times and the order of topics, which differ between two brokers."""
    entry = decode(key, value)
    assert entry is not None
    return f"{type(entry.key).__name__} {plain(entry.key, names)} {plain(entry.value, names)}"


def plain(found: Any, names: dict[bytes, str]) -> Any:
    if isinstance(found, bytes):
        return names[found]
    if isinstance(found, list):
        return sorted((plain(each, names) for each in found), key=str)
    if isinstance(found, Struct):
        fields = [field.name for field in found.schema.fields if field.name not in DIFFERENT]
        return {name: plain(getattr(found, name), names) for name in fields}
    return found


def live(talk: Talk) -> str:
    """A group with all kinds of records. Members come one at a time, so that the order is the same."""
    topic, other = talk.topic(partitions=1), talk.topic("other", partitions=1)
    name = share_group(talk)
    alter(talk, "first", name, {topic: {0: 3}})
    member = Sharer(talk, name, "a", [topic, other])
    member.join()
    settle(member, count=2)
    member.beat("reads less", subscribed_topic_names=[topic])
    settle(member, count=1)
    member.beat("names a rack", rack_id="r")
    member.beat("leaves", -1)
    delete_offsets(talk, "of a topic", name, other)
    back = Sharer(talk, name, "b", [topic])
    back.join()
    settle(back, count=1)
    back.beat("leaves", -1)
    talk.silently(ApiKey.DELETE_GROUPS, 2, groups_names=[name])
    return name


def test_both_brokers_write_the_same_records(tmp_path: Path) -> None:
    found = {}
    for brand, side in {"apache": apache, "ours": ours}.items():
        data = tmp_path / brand
        with side(data) as talk:
            name = live(talk)
            names = {topic_id: topic for topic, topic_id in talk.topic_ids.items()}
        found[brand] = [shown(key, value, names) for key, value in records_of(data, name)]
    assert len(found["ours"]) > 25
    assert found["ours"] == found["apache"]


def test_each_broker_goes_on_with_the_groups_of_the_other(tmp_path: Path) -> None:
    data = tmp_path / "data"
    with apache(data) as talk:
        topic = talk.topic(partitions=3)
        name = share_group(talk)
        stays, goes = Sharer(talk, name, "a", [topic]), Sharer(talk, name, "b", [topic])
        for member in (stays, goes):
            member.quietly(0, subscribed_topic_names=[topic])
        settle(stays, goes, count=3)
        described = talk.silently(ApiKey.SHARE_GROUP_DESCRIBE, 1, group_ids=[name])
    for side in (ours, apache, ours):
        with side(data) as talk:
            again = described_again(talk, name)
            assert members_of(again) == members_of(described)
            for member in (stays, goes):
                member.talk = talk
                assert member.quietly()["error_code"] == "NONE"
            goes.quietly(-1)
            settle(stays, count=3)
            goes = Sharer(talk, name, f"{goes.label}b", [topic])
            goes.quietly(0, subscribed_topic_names=[topic])
            settle(stays, goes, count=3)
            described = talk.silently(ApiKey.SHARE_GROUP_DESCRIBE, 1, group_ids=[name])
            assert described["groups"][0]["group_epoch"] > again["groups"][0]["group_epoch"]


def members_of(described: dict[str, Any]) -> list[Any]:
    [group] = described["groups"]
    return sorted(
        (each["member_id"], each["member_epoch"], str(each["assignment"])) for each in group["members"]
    )


def described_again(talk: Talk, name: str) -> dict[str, Any]:
    """The group, once the coordinator has loaded it."""
    found: dict[str, Any] = {}

    def is_loaded() -> bool:
        found.update(talk.silently(ApiKey.SHARE_GROUP_DESCRIBE, 1, group_ids=[name]))
        return bool(found["groups"][0]["error_code"] == "NONE")

    wait_until(is_loaded, READY_TIMEOUT_S)
    return found
