"""Share groups (KIP-932): heartbeats, epochs, assignment, and all that can be wrong in them."""

from __future__ import annotations

import time
from typing import Any

from barnabas.protocol import ApiKey

from ..members import group, join_body
from ..talk import Talk, scenario

BEAT, DESCRIBE = ApiKey.SHARE_GROUP_HEARTBEAT, ApiKey.SHARE_GROUP_DESCRIBE
OFFSETS = ApiKey.DESCRIBE_SHARE_GROUP_OFFSETS
SETTLED_TIMEOUT_S = 25.0
PAUSE_S = 0.02
GROUP_RESOURCE = 32  # of settings


class Sharer:
    """A member of a share group."""

    def __init__(self, talk: Talk, name: str, label: str, topics: list[str]) -> None:
        self.talk, self.name, self.label, self.topics = talk, name, label, topics
        self.id = f"{label}-{talk.prefix}"[:36]
        self.epoch = 0
        self.held: set[tuple[bytes, int]] = set()

    def beat(self, what: str, epoch: int | None = None, **fields: Any) -> dict[str, Any]:
        answer = self.talk.ask(f"{self.label} {what}", BEAT, 1, **self.body(epoch, **fields))
        self.note(answer)
        return answer

    def quietly(self, epoch: int | None = None, **fields: Any) -> dict[str, Any]:
        """A heartbeat that is not written down."""
        answer = self.talk.silently(BEAT, 1, **self.body(epoch, **fields))
        self.note(answer)
        return answer

    def join(self, what: str = "joins", **fields: Any) -> dict[str, Any]:
        return self.beat(what, 0, subscribed_topic_names=self.topics, **fields)

    def body(self, epoch: int | None, **fields: Any) -> dict[str, Any]:
        known = {"group_id": self.name, "member_id": self.id}
        return known | {"member_epoch": self.epoch if epoch is None else epoch} | fields

    def note(self, answer: dict[str, Any]) -> None:
        if answer["error_code"] == "NONE":
            self.epoch = answer["member_epoch"]
        if answer.get("assignment") is not None:
            topics = answer["assignment"]["topic_partitions"]
            self.held = {(topic["topic_id"], index) for topic in topics for index in topic["partitions"]}


def share_group(talk: Talk, suffix: str = "group") -> str:
    """A name for a group that assigns without delay, once share coordinators are there to keep its state."""
    name = group(talk, suffix)
    at_once = {"name": "share.assignment.interval.ms", "config_operation": 0, "value": "0"}
    resource = {"resource_type": GROUP_RESOURCE, "resource_name": name, "configs": [at_once]}
    talk.silently(ApiKey.INCREMENTAL_ALTER_CONFIGS, 1, resources=[resource])
    warm = talk.name("warm")
    deadline = time.monotonic() + SETTLED_TIMEOUT_S
    topic = next(iter(talk.topic_ids))
    wanted = [{"topic_name": topic, "partitions": [{"partition_index": 0, "start_offset": 0}]}]
    while True:
        answer = talk.silently(ApiKey.ALTER_SHARE_GROUP_OFFSETS, 0, group_id=warm, topics=wanted)
        codes = [part["error_code"] for found in answer["responses"] for part in found["partitions"]]
        if codes == ["NONE"]:
            talk.silently(ApiKey.DELETE_GROUPS, 2, groups_names=[warm])
            return name
        assert time.monotonic() < deadline, answer
        time.sleep(PAUSE_S)


def settle(*members: Sharer, count: int) -> list[int]:
    """All beat until the group has nothing more to assign. How many partitions does each read?

    Who reads which partition is the assignor's choice; how evenly, and that none is left out, is not.
    """
    deadline = time.monotonic() + SETTLED_TIMEOUT_S
    talk, name = members[0].talk, members[0].name
    while True:
        for member in members:
            answer = member.quietly()
            assert answer["error_code"] == "NONE", answer
        [found] = talk.silently(DESCRIBE, 1, group_ids=[name])["groups"]
        epochs = {found["group_epoch"], found["assignment_epoch"], *(member.epoch for member in members)}
        together = {place for member in members for place in member.held}
        if len(epochs) == 1 and len(together) == count:
            return sorted(len(member.held) for member in members)
        assert time.monotonic() < deadline, found
        time.sleep(PAUSE_S)


def describe(talk: Talk, what: str, *names: str, **fields: Any) -> dict[str, Any]:
    return talk.ask(what, DESCRIBE, 1, group_ids=list(names), **fields)


@scenario
def a_member_reads_all_partitions(talk: Talk) -> None:
    topic = talk.topic(partitions=3)
    name = share_group(talk)
    describe(talk, "an unknown group", name)
    member = Sharer(talk, name, "a", [topic])
    member.join()
    talk.note("partitions of each", settle(member, count=3))
    member.beat("stays")
    member.beat("repeats its subscription", subscribed_topic_names=[topic])
    member.beat("joins again", 0, subscribed_topic_names=[topic])
    describe(talk, "a group of one", name, include_authorized_operations=True)
    member.beat("names a rack", rack_id="r1")
    describe(talk, "a member with a rack", name)
    member.beat("leaves", -1)
    member.beat("leaves again", -1)
    member.epoch = 3
    member.beat("stays after it left")
    describe(talk, "an empty group", name)
    member.join("comes back")
    talk.note("partitions of each", settle(member, count=3))
    member.beat("leaves", -1)


@scenario
def heartbeats_that_are_wrong(talk: Talk) -> None:
    topic = talk.topic(partitions=1)
    name = share_group(talk)
    member = Sharer(talk, name, "a", [topic])
    member.beat("stays in no group", 5)
    member.beat("leaves no group", -1)
    member.beat("joins without topics", 0)
    member.beat("joins with an empty list", 0, subscribed_topic_names=[])
    member.beat("has a strange epoch", -2)
    member.join("has no id", member_id="")
    member.join("has a blank id", member_id="  ")
    member.join("has a long id", member_id="x" * 37)
    member.join("has the longest id", member_id="x" * 36)
    member.beat("has the longest id and leaves", -1, member_id="x" * 36)
    member.join("has a blank rack", rack_id=" ")
    member.join("names no group", group_id="")
    member.join("names a blank group", group_id="  ")
    member.join()
    talk.note("partitions of each", settle(member, count=1))
    epoch = member.epoch
    member.beat("is behind", epoch - 2)
    member.beat("missed a response", epoch - 1)
    member.beat("is ahead", epoch + 1)
    member.beat("is a stranger", epoch, member_id="stranger")
    member.beat("reads a topic that is not there", subscribed_topic_names=[talk.name("missing")])
    settle(member, count=0)
    member.beat("reads nothing", subscribed_topic_names=[])
    member.beat("names a topic twice", subscribed_topic_names=[topic, topic])
    talk.note("partitions of each", settle(member, count=1))
    member.beat("leaves", -1)
    for what, names in (("no group", []), ("an empty name", [""]), ("the same twice", [name, name])):
        describe(talk, what, *names)


@scenario
def members_share_partitions(talk: Talk) -> None:
    topic = talk.topic(partitions=2)
    name = share_group(talk)
    members = [Sharer(talk, name, label, [topic]) for label in "abc"]
    for count, member in enumerate(members, 1):
        member.quietly(0, subscribed_topic_names=[topic])
        talk.note(f"partitions of each of {count}", settle(*members[:count], count=2))
    members[0].quietly(-1)
    talk.note("partitions of the others", settle(*members[1:], count=2))
    other = talk.topic("other", partitions=2)
    members[1].quietly(subscribed_topic_names=[topic, other])
    talk.note("partitions of different subscriptions", settle(*members[1:], count=4))
    members[1].quietly(-1)
    members[2].quietly(-1)


@scenario
def other_protocols_keep_out(talk: Talk) -> None:
    topic = talk.topic(partitions=1)
    name = share_group(talk)
    member = Sharer(talk, name, "a", [topic])
    member.quietly(0, subscribed_topic_names=[topic])
    settle(member, count=1)
    ask_with_other_protocols(talk, name, topic, "a share group")
    member.quietly(-1)
    ask_with_other_protocols(talk, name, topic, "an empty share group")
    classic, consumer = talk.name("classic"), talk.name("consumer")
    commit(talk, "creates a simple group", classic, topic)
    body = {"member_id": "c", "rebalance_timeout_ms": 30_000, "topic_partitions": []}
    talk.silently(
        ApiKey.CONSUMER_GROUP_HEARTBEAT, 1, group_id=consumer, subscribed_topic_names=[topic], **body
    )
    for what, other in (("a simple group", classic), ("a consumer group", consumer)):
        intruder = Sharer(talk, other, f"a sharer of {what}", [topic])
        intruder.id = "intruder"
        intruder.join()
        intruder.beat("stays", 3)
        intruder.beat("leaves", -1)
        describe(talk, what, other)
        alter(talk, f"of {what}", other, {topic: {0: 1}})
        delete_offsets(talk, f"of {what}", other, topic)
        describe_offsets(talk, f"of {what}", other)
    for types in (["share"], ["SHARE"], ["consumer"], ["classic"], ["none"]):
        found = talk.silently(ApiKey.LIST_GROUPS, 5, types_filter=types)
        mine = [each for each in found["groups"] if each["group_id"] in (name, classic, consumer)]
        talk.note(f"groups of types {types}", sorted(mine, key=lambda each: str(each["group_id"])))
    for states in (["Empty"], ["stable"]):
        found = talk.silently(ApiKey.LIST_GROUPS, 5, states_filter=states, types_filter=["share"])
        talk.note(f"groups in {states}", [each for each in found["groups"] if each["group_id"] == name])


def ask_with_other_protocols(talk: Talk, name: str, topic: str, what: str) -> None:
    for version in (5, 9):
        talk.ask(f"{what} is joined", ApiKey.JOIN_GROUP, version, **join_body(name))
    talk.ask(f"{what} is joined with an id", ApiKey.JOIN_GROUP, 9, **join_body(name, "m"))
    known = {"group_id": name, "generation_id": 1, "member_id": "m"}
    talk.ask(f"{what} gets a classic heartbeat", ApiKey.HEARTBEAT, 4, **known)
    talk.ask(
        f"{what} is synced", ApiKey.SYNC_GROUP, 5, protocol_type="consumer", protocol_name="range", **known
    )
    talk.ask(f"{what} is left", ApiKey.LEAVE_GROUP, 5, group_id=name, members=[{"member_id": "m"}])
    joining = {"subscribed_topic_names": [topic], "rebalance_timeout_ms": 30_000, "topic_partitions": []}
    consumer = {"group_id": name, "member_id": "m"}
    beat = ApiKey.CONSUMER_GROUP_HEARTBEAT
    talk.ask(f"{what} is joined by a consumer", beat, 1, member_epoch=0, **consumer, **joining)
    talk.ask(f"{what} gets a consumer's heartbeat", beat, 1, member_epoch=1, **consumer)
    talk.ask(f"{what} is left by a consumer", beat, 1, member_epoch=-1, **consumer)
    for version in (5, 6):
        talk.ask(f"{what} as a classic group", ApiKey.DESCRIBE_GROUPS, version, groups=[name])
    talk.ask(f"{what} as a consumer group", ApiKey.CONSUMER_GROUP_DESCRIBE, 1, group_ids=[name])
    commit(talk, f"of {what}", name, topic)
    for version in (1, 7, 9):
        wanted = [{"name": topic, "partition_indexes": [0]}]
        body: dict[str, Any] = {"group_id": name, "topics": wanted}
        if version > 7:
            body = {"groups": [body]}
        talk.ask(f"offsets of {what}", ApiKey.OFFSET_FETCH, version, **body)
    deleted = [{"name": topic, "partitions": [{"partition_index": 0}]}]
    talk.ask(f"offsets of {what}", ApiKey.OFFSET_DELETE, 0, group_id=name, topics=deleted)


def commit(talk: Talk, what: str, name: str, topic: str) -> None:
    partition = {"partition_index": 0, "committed_offset": 1, "committed_metadata": ""}
    topics = [{"name": topic, "partitions": [partition]}]
    for version in (8, 9):
        talk.ask(what, ApiKey.OFFSET_COMMIT, version, group_id=name, topics=topics)


def alter(talk: Talk, what: str, name: str, offsets: dict[str, dict[int, int]]) -> None:
    topics = [
        {
            "topic_name": topic,
            "partitions": [
                {"partition_index": index, "start_offset": offset} for index, offset in of_topic.items()
            ],
        }
        for topic, of_topic in offsets.items()
    ]
    talk.ask(f"offsets {what}", ApiKey.ALTER_SHARE_GROUP_OFFSETS, 0, group_id=name, topics=topics)


def delete_offsets(talk: Talk, what: str, name: str, *topics: str) -> None:
    wanted = [{"topic_name": topic} for topic in topics]
    talk.ask(f"offsets {what}", ApiKey.DELETE_SHARE_GROUP_OFFSETS, 0, group_id=name, topics=wanted)


def describe_offsets(
    talk: Talk, what: str, name: str, topics: dict[str, list[int]] | None = None, version: int = 1
) -> None:
    wanted = None
    if topics is not None:
        wanted = [{"topic_name": topic, "partitions": indexes} for topic, indexes in topics.items()]
    groups = [{"group_id": name, "topics": wanted}]
    answer = talk.silently(OFFSETS, version, groups=groups)
    for found in answer["groups"]:
        for topic in found["topics"]:
            topic["partitions"].sort(key=lambda each: int(each["partition_index"]))
        found["topics"].sort(key=lambda each: str(each["topic_name"]))
    talk.note(f"{OFFSETS.name} v{version}: {what}", answer)


@scenario
def offsets_are_altered_and_deleted(talk: Talk) -> None:
    topic, other = talk.topic(partitions=2), talk.topic("other", partitions=1)
    missing = talk.name("missing")
    name = share_group(talk)
    describe_offsets(talk, "of an unknown group", name)
    describe_offsets(talk, "of partitions of an unknown group", name, {topic: [0], missing: [0]})
    describe_offsets(talk, "of no topic", name, {})
    delete_offsets(talk, "of an unknown group", name, topic)
    alter(talk, "of no group", "", {topic: {0: 1}})
    delete_offsets(talk, "of no group", "", topic)
    alter(talk, "of nothing", name, {})
    alter(talk, "of a missing topic", name, {missing: {0: 1}})
    describe(talk, "still unknown", name)
    alter(talk, "of a new group", name, {topic: {0: 5, 1: 0, 2: 1}, missing: {0: 1}})
    wait_for_offsets(talk, name, 2)
    describe(talk, "made by its offsets", name)
    describe_offsets(talk, "after it", name)
    describe_offsets(talk, "after it", name, version=0)
    describe_offsets(talk, "of some partitions", name, {topic: [1], other: [0], missing: [0]})
    alter(talk, "again", name, {topic: {0: 6}, other: {0: 3}})
    wait_for_offsets(talk, name, 3)
    describe_offsets(talk, "after the second time", name)
    delete_offsets(talk, "of topics", name, other, missing)
    describe_offsets(talk, "after a deletion", name)
    delete_offsets(talk, "of a topic that has none", name, other)
    member = Sharer(talk, name, "a", [topic])
    member.quietly(0, subscribed_topic_names=[topic])
    talk.note("partitions of each", settle(member, count=2))
    describe_offsets(talk, "beside a member", name)
    alter(talk, "of a group with a member", name, {topic: {0: 1}})
    delete_offsets(talk, "of a group with a member", name, topic)
    talk.ask("a group with a member", ApiKey.DELETE_GROUPS, 2, groups_names=[name])
    member.beat("leaves", -1)
    talk.ask("groups", ApiKey.DELETE_GROUPS, 2, groups_names=[name, talk.name("unknown")])
    describe(talk, "deleted", name)
    describe_offsets(talk, "of a deleted group", name)
    describe_offsets(talk, "of partitions of a deleted group", name, {topic: [0, 1]})
    talk.ask("a deleted group", ApiKey.DELETE_GROUPS, 2, groups_names=[name])


def wait_for_offsets(talk: Talk, name: str, count: int) -> None:
    """Apache Kafka answers a moment before it lists the offsets."""
    deadline = time.monotonic() + SETTLED_TIMEOUT_S
    while True:
        answer = talk.silently(OFFSETS, 1, groups=[{"group_id": name, "topics": None}])
        topics = answer["groups"][0]["topics"]
        if sum(len(topic["partitions"]) for topic in topics) == count:
            return
        assert time.monotonic() < deadline, answer
        time.sleep(PAUSE_S)


@scenario
def topics_grow_and_go(talk: Talk) -> None:
    topic, other = talk.topic(partitions=1), talk.topic("other", partitions=1)
    name = share_group(talk)
    member = Sharer(talk, name, "a", [topic, other])
    member.quietly(0, subscribed_topic_names=[topic, other])
    talk.note("partitions of each", settle(member, count=2))
    grown = [{"name": topic, "count": 3, "assignments": None}]
    talk.silently(ApiKey.CREATE_PARTITIONS, 3, topics=grown, timeout_ms=10_000)
    talk.note("partitions after it grew", settle(member, count=4))
    talk.silently(ApiKey.DELETE_TOPICS, 6, topics=[{"name": other}], timeout_ms=10_000)
    talk.note("partitions after a deletion", settle(member, count=3))
    member.beat("stays")
    wait_for_offsets(talk, name, 3)
    describe(talk, "of a deleted topic", name)
    member.beat("leaves", -1)


@scenario
def groups_have_settings_within_bounds(talk: Talk) -> None:
    talk.topic(partitions=1)
    name = share_group(talk)
    values = {
        "share.assignment.interval.ms": ("-1", "0", "15000", "15001"),
        "share.heartbeat.interval.ms": ("4999", "5000", "15000", "15001", "x"),
        "share.session.timeout.ms": ("44999", "45000", "60000", "60001"),
        "share.record.lock.duration.ms": ("999", "14999", "15000", "60000", "60001"),
        "share.delivery.count.limit": ("1", "2", "10", "11"),
        "share.partition.max.record.locks": ("99", "100", "4000", "4001"),
        "share.renew.acknowledge.enable": ("true", "false", "maybe"),
        "share.auto.offset.reset": ("latest", "earliest", "by_duration:PT1H", "none", "by_duration:-PT1H"),
        "share.isolation.level": ("read_uncommitted", "read_committed", "serializable"),
        "share.unknown": ("1",),
    }
    for setting, found in values.items():
        for value in found:
            change = {"name": setting, "config_operation": 0, "value": value}
            resource = {"resource_type": GROUP_RESOURCE, "resource_name": name, "configs": [change]}
            answer = talk.silently(ApiKey.INCREMENTAL_ALTER_CONFIGS, 1, resources=[resource])
            talk.note(f"{setting}={value}", answer["responses"][0]["error_code"])
    together = [("share.heartbeat.interval.ms", "15000"), ("share.session.timeout.ms", "45000")]
    changes = [{"name": key, "config_operation": 0, "value": value} for key, value in together]
    resource = {"resource_type": GROUP_RESOURCE, "resource_name": name, "configs": changes}
    talk.ask("two at once", ApiKey.INCREMENTAL_ALTER_CONFIGS, 1, resources=[resource])
    wanted = {"resource_type": GROUP_RESOURCE, "resource_name": name, "configuration_keys": list(values)}
    described = talk.silently(ApiKey.DESCRIBE_CONFIGS, 4, resources=[wanted], include_synonyms=True)
    for each in described["results"]:
        each["configs"].sort(key=lambda config: str(config["name"]))
    talk.note("its settings", described)
    member = Sharer(talk, name, "a", list(talk.topic_ids))
    member.join("joins with another interval")
    member.beat("leaves", -1)
