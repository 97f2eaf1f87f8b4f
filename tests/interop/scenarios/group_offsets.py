"""Offsets of groups and of nobody's group: committed, fetched, deleted, rightly and wrongly."""

from __future__ import annotations

from typing import Any

from barnabas.protocol import NULL_UUID, ApiKey

from ..members import Member, commit_topic, fetch_offsets, group, subscription
from ..requests import versions
from ..talk import Talk, scenario

COMMIT, FETCH, DELETE = ApiKey.OFFSET_COMMIT, ApiKey.OFFSET_FETCH, ApiKey.OFFSET_DELETE


def commit(talk: Talk, label: str, version: int, name: str, topics: list[Any], **fields: Any) -> None:
    talk.ask(label, COMMIT, version, group_id=name, topics=topics, **fields)


@scenario
def without_members(talk: Talk) -> None:
    """A simple consumer: no member, no generation."""
    topic = talk.topic(partitions=3)
    for version in versions(COMMIT):
        name = group(talk, f"v{version}")
        commit(talk, "two offsets", version, name, [commit_topic(talk, topic, {0: 5, 2: 7})])
        fetch_offsets(talk, "both, and one that is not there", name, {topic: [0, 1, 2]}, 9)
        commit(talk, "back", version, name, [commit_topic(talk, topic, {0: 3}, "with a word")])
        commit(talk, "no word", version, name, [commit_topic(talk, topic, {1: 3}, None)])
        fetch_offsets(talk, "all", name, None, 9)


@scenario
def fetched_in_every_version(talk: Talk) -> None:
    topic, other = talk.topic(partitions=2), talk.topic("other", partitions=2)
    name = group(talk)
    both = [commit_topic(talk, topic, {0: 1, 1: 2}, "word"), commit_topic(talk, other, {1: 4})]
    commit(talk, "three offsets", 9, name, both)
    epochs = commit_topic(talk, topic, {1: 9})
    epochs["partitions"][0]["committed_leader_epoch"] = 5
    commit(talk, "with a leader epoch", 9, name, [epochs])
    for version in versions(FETCH):
        fetch_offsets(talk, "some", name, {topic: [1, 0], other: [0]}, version)
        fetch_offsets(talk, "a partition that is not there", name, {topic: [9, -1]}, version)
        fetch_offsets(talk, "a topic that is not there", name, {talk.name("missing"): [0]}, version)
        fetch_offsets(talk, "a topic without partitions", name, {topic: []}, version)
        fetch_offsets(talk, "the same partition twice", name, {topic: [0, 0]}, version)
        fetch_offsets(talk, "no topics", name, {}, version)
        fetch_offsets(talk, "a group that is not there", talk.name("missing"), {topic: [0]}, version)
        fetch_offsets(talk, "no group", "", {topic: [0]}, version)
        if version >= 2:
            fetch_offsets(talk, "all topics", name, None, version)
            fetch_offsets(talk, "all of a group that is not there", talk.name("missing"), None, version)
        if version >= 7:
            fetch_offsets(talk, "stable ones", name, {topic: [0]}, version, require_stable=True)


@scenario
def of_many_groups_at_once(talk: Talk) -> None:
    topic = talk.topic(partitions=2)
    names = [group(talk, f"{n}") for n in range(4)]
    for n, name in enumerate(names):
        commit(talk, f"group {n}", 9, name, [commit_topic(talk, topic, {0: n, 1: 10 * n})])
    topics = [{"name": topic, "topic_id": talk.topic_ids[topic], "partition_indexes": [0, 1]}]
    for version in (8, 9, 10):
        wanted = [{"group_id": name, "topics": topics} for name in names[:3]]
        wanted += [{"group_id": names[3], "topics": None}]
        talk.ask("four groups", FETCH, version, groups=wanted)
        wanted += [{"group_id": talk.name("missing"), "topics": topics}, {"group_id": "", "topics": None}]
        talk.ask("and two that are not there", FETCH, version, groups=wanted)
        talk.ask("the same group twice", FETCH, version, groups=[wanted[0], wanted[0]])
        talk.ask("no groups", FETCH, version, groups=[])


@scenario
def committed_wrongly(talk: Talk) -> None:
    topic = talk.topic(partitions=2)
    name = group(talk)
    good = commit_topic(talk, topic, {0: 5})
    for version in versions(COMMIT):
        for label, topics in {
            "no topics": [],
            "no partitions": [commit_topic(talk, topic, {})],
            "a topic that is not there": [commit_topic(talk, talk.name("missing"), {0: 1}), good],
            "a partition that is not there": [commit_topic(talk, topic, {9: 1, 0: 2})],
            "a negative partition": [commit_topic(talk, topic, {-1: 1})],
            "a negative offset": [commit_topic(talk, topic, {0: -7})],
            "offset -1": [commit_topic(talk, topic, {0: -1})],
            "words of 4096 bytes": [commit_topic(talk, topic, {0: 1}, "x" * 4_096)],
            "words of 4097 bytes": [commit_topic(talk, topic, {0: 1}, "x" * 4_097), good],
            "words of 4096 letters, more bytes": [commit_topic(talk, topic, {0: 1}, "ü" * 4_096)],
            "the same partition twice": [commit_topic(talk, topic, {0: n}) for n in (1, 2)],
        }.items():
            commit(talk, label, version, name, topics)
        commit(talk, "no group", version, "", [good])
        fields = {"generation_id_or_member_epoch": 3, "member_id": "nobody"}
        commit(talk, "a member of a group without any", version, name, [good], **fields)
        fields = {"generation_id_or_member_epoch": 0, "member_id": ""}
        commit(talk, "generation 0 without a member", version, name, [good], **fields)
        fields = {"generation_id_or_member_epoch": -1, "member_id": "nobody"}
        commit(talk, "a member without a generation", version, name, [good], **fields)
        fields = {"generation_id_or_member_epoch": 5, "member_id": "nobody"}
        commit(talk, "a group that is not there", version, talk.name("missing"), [good], **fields)
        if version >= 7:
            commit(talk, "an instance nobody knows", version, name, [good], group_instance_id="nobody")
        if version == 10:
            nowhere = {"topic_id": NULL_UUID, "partitions": good["partitions"]}
            commit(talk, "the null id", version, name, [nowhere])
        fetch_offsets(talk, "what is left of it", name, None)


@scenario
def by_members(talk: Talk) -> None:
    topic = talk.topic(partitions=2)
    for version in versions(COMMIT):
        one = Member(talk, group(talk, f"v{version}"), "one")
        one.join()
        one.commit("commits before it synced", topic, 1, version)
        one.sync(assignments={one.id: b"all"})
        one.commit("commits", topic, 5, version)
        one.commit("generation too high", topic, 6, version, generation_id_or_member_epoch=9)
        one.commit("generation too low", topic, 6, version, generation_id_or_member_epoch=0)
        one.commit("no generation", topic, 6, version, generation_id_or_member_epoch=-1)
        one.commit("nobody", topic, 6, version, member_id="nobody")
        one.commit("no member", topic, 6, version, member_id="")
        simple = {"member_id": "", "generation_id_or_member_epoch": -1}
        one.commit("as if there were no group", topic, 8, version, **simple)
        fetch_offsets(talk, "what is left of it", one.name, {topic: [0]})
        one.leave()
        one.commit("after it left", topic, 9, version)
        one.commit("as if there were no group, now that it is empty", topic, 9, version, **simple)
        fetch_offsets(talk, "in the end", one.name, {topic: [0]})
        one.close()


@scenario
def by_static_members(talk: Talk) -> None:
    topic = talk.topic()
    for version in (7, 8, 9, 10):
        one = Member(talk, group(talk, f"v{version}"), "one", group_instance_id="i1")
        one.join()
        one.sync(assignments={one.id: b"all"})
        one.commit("commits", topic, 5, version)
        one.commit("another id", topic, 6, version, member_id="nobody")
        one.commit("another instance", topic, 6, version, group_instance_id="i2")
        one.commit("no instance", topic, 6, version, group_instance_id=None)
        fetch_offsets(talk, "in the end", one.name, {topic: [0]})
        one.close()


@scenario
def fetched_by_members(talk: Talk) -> None:
    """Version 9 says who asks; a classic group does not mind."""
    topic = talk.topic()
    one = Member(talk, group(talk), "one")
    one.join()
    one.sync(assignments={one.id: b"all"})
    one.commit("commits", topic, 5)
    for version in (9, 10):
        for label, member, epoch in (
            ("itself", one.id, one.generation),
            ("an old epoch", one.id, one.generation - 1),
            ("a new epoch", one.id, one.generation + 1),
            ("nobody", "nobody", one.generation),
            ("no name", "", 0),
            ("no epoch", one.id, -1),
        ):
            who = {"member_id": member, "member_epoch": epoch}
            fetch_offsets(talk, label, one.name, {topic: [0]}, version, **who)
            fetch_offsets(talk, f"{label}, group missing", talk.name("none"), {topic: [0]}, version, **who)
    one.close()


def delete(talk: Talk, label: str, name: str, topics: dict[str, list[int]]) -> None:
    wanted = [
        {"name": topic, "partitions": [{"partition_index": n} for n in partitions]}
        for topic, partitions in topics.items()
    ]
    talk.ask(label, DELETE, 0, group_id=name, topics=wanted)


@scenario
def deleted(talk: Talk) -> None:
    topic, other = talk.topic(partitions=3), talk.topic("other")
    name = group(talk)
    offsets = [commit_topic(talk, topic, {0: 1, 1: 2, 2: 3}), commit_topic(talk, other, {0: 4})]
    commit(talk, "four offsets", 9, name, offsets)
    delete(talk, "one, and one that is not there", name, {topic: [1, 9]})
    fetch_offsets(talk, "three are left", name, None)
    delete(talk, "again", name, {topic: [1]})
    delete(talk, "a topic that is not there", name, {talk.name("missing"): [0]})
    delete(talk, "nothing", name, {})
    delete(talk, "no partitions", name, {topic: []})
    delete(talk, "the same twice", name, {topic: [2, 2]})
    delete(talk, "a group that is not there", talk.name("missing"), {topic: [0]})
    delete(talk, "no group", "", {topic: [0]})
    delete(talk, "the last ones", name, {topic: [0, 2], other: [0]})
    fetch_offsets(talk, "nothing is left", name, None)
    talk.ask("the group that had only offsets", ApiKey.DESCRIBE_GROUPS, 6, groups=[name])


@scenario
def deleted_while_they_are_used(talk: Talk) -> None:
    """Offsets of topics that members subscribe to stay; others go."""
    topic, other = talk.topic(), talk.topic("other")
    name = group(talk)
    commit(talk, "offsets", 9, name, [commit_topic(talk, topic, {0: 1}), commit_topic(talk, other, {0: 4})])
    one = Member(talk, name, "one", protocols=[{"name": "range", "metadata": subscription(topic)}])
    one.join()
    delete(talk, "while it joins", name, {topic: [0], other: [0]})
    one.sync(assignments={one.id: b"all"})
    delete(talk, "one that is used, one that is not", name, {topic: [0], other: [0]})
    fetch_offsets(talk, "what is left of it", name, None)
    one.leave()
    delete(talk, "after it left", name, {topic: [0]})
    fetch_offsets(talk, "nothing", name, None)
    connect = Member(talk, group(talk, "connect"), "worker", protocol_type="connect")
    connect.join()
    connect.sync(assignments={connect.id: b"all"}, protocol_type="connect")
    connect.commit("commits", topic, 1)
    delete(talk, "of a group of another type", connect.name, {topic: [0]})
    one.close(), connect.close()


@scenario
def of_a_topic_that_is_deleted(talk: Talk) -> None:
    topic, other = talk.topic(), talk.topic("other")
    name = group(talk)
    commit(talk, "offsets", 9, name, [commit_topic(talk, topic, {0: 1}), commit_topic(talk, other, {0: 4})])
    talk.silently(ApiKey.DELETE_TOPICS, 5, topic_names=[topic], timeout_ms=30_000)
    wait_until_gone(talk, name, topic)
    fetch_offsets(talk, "one topic is left", name, None)
    fetch_offsets(talk, "by name", name, {topic: [0]})
    talk.topic()
    fetch_offsets(talk, "a new topic of that name", name, {topic: [0], other: [0]})
    fetch_offsets(talk, "by id", name, {topic: [0], other: [0]}, 10)


def wait_until_gone(talk: Talk, name: str, topic: str) -> None:
    for _ in range(2_000):
        answer = talk.silently(FETCH, 9, groups=[{"group_id": name, "topics": None}])
        if topic not in [found["name"] for found in answer["groups"][0]["topics"]]:
            return
    raise AssertionError(f"offsets of {topic} stay")
