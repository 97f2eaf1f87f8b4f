"""Offsets of groups, committed in transactions: pending until the end, and then there or not."""

from __future__ import annotations

import random
import time
from typing import Any

from barnabas.protocol import ApiKey

from ..members import Member, commit_topic, fetch_offsets, group
from ..requests import versions
from ..talk import Talk, scenario
from ..transacting import TIMEOUT_S, Transacting

COMMIT = ApiKey.TXN_OFFSET_COMMIT
ADDING_SINCE = 5  # version that brings the group into the transaction


def begin(talk: Talk, suffix: str, name: str, version: int) -> Transacting:
    """A producer whose transaction has, or will have, the group's offsets in it."""
    producer = Transacting(talk, suffix, is_new=version >= ADDING_SINCE)
    if version < ADDING_SINCE:
        producer.add_offsets(name)
    return producer


def end(talk: Talk, producer: Transacting, name: str, *, commit: bool) -> None:
    """The end of the transaction; waits until nothing of the group is pending."""
    producer.end(commit=commit)
    deadline = time.monotonic() + TIMEOUT_S
    while True:
        wanted = [{"group_id": name, "topics": None}]
        answer = talk.silently(ApiKey.OFFSET_FETCH, 9, groups=wanted, require_stable=True)
        found = [each for topic in answer["groups"][0]["topics"] for each in topic["partitions"]]
        if all(each["error_code"] == "NONE" for each in found):
            return
        assert time.monotonic() < deadline, answer


def stable(talk: Talk, label: str, name: str, topics: dict[str, list[int]] | None) -> None:
    fetch_offsets(talk, f"{label}, as it is", name, topics, 9)
    fetch_offsets(talk, f"{label}, stable", name, topics, 9, require_stable=True)


@scenario
def of_simple_groups(talk: Talk) -> None:
    topic = talk.topic(partitions=3)
    for version in versions(COMMIT):
        name = group(talk, f"v{version}")
        producer = begin(talk, f"id-{version}", name, version)
        producer.commit_offsets("two offsets", name, {topic: {0: 5, 2: 7}}, version)
        stable(talk, "pending", name, {topic: [0, 1, 2]})
        stable(talk, "pending, all", name, None)
        end(talk, producer, name, commit=True)
        stable(talk, "committed", name, {topic: [0, 1, 2]})
        if version < ADDING_SINCE:
            producer.add_offsets(name)
        producer.commit_offsets("others", name, {topic: {0: 9, 1: 9}}, version)
        stable(talk, "pending again", name, {topic: [0, 1, 2]})
        stable(talk, "pending again, all", name, None)
        end(talk, producer, name, commit=False)
        stable(talk, "aborted", name, None)


@scenario
def the_newest_commit_wins(talk: Talk) -> None:
    topic, name = talk.topic(partitions=2), group(talk)
    one, two = begin(talk, "one", name, 5), begin(talk, "two", name, 5)
    one.commit_offsets("one", name, {topic: {0: 1, 1: 1}})
    two.commit_offsets("two", name, {topic: {0: 2}})
    talk.ask("outside", ApiKey.OFFSET_COMMIT, 9, group_id=name, topics=[commit_topic(talk, topic, {1: 3})])
    stable(talk, "both pending", name, {topic: [0, 1]})
    two.end(commit=True)
    stable(talk, "two committed", name, {topic: [0, 1]})
    one.end(commit=True)
    stable(talk, "one committed", name, {topic: [0, 1]})


@scenario
def deleted_while_pending(talk: Talk) -> None:
    topic = talk.topic(partitions=2)
    name = group(talk)
    producer = begin(talk, "one", name, 5)
    producer.commit_offsets("pending", name, {topic: {0: 1, 1: 2}})
    wanted = [{"name": topic, "partitions": [{"partition_index": 0}]}]
    talk.ask("one of them", ApiKey.OFFSET_DELETE, 0, group_id=name, topics=wanted)
    stable(talk, "one deleted", name, {topic: [0, 1]})
    end(talk, producer, name, commit=True)
    stable(talk, "committed", name, {topic: [0, 1]})
    producer.commit_offsets("pending again", name, {topic: {0: 5, 1: 6}})
    talk.ask("the group", ApiKey.DELETE_GROUPS, 2, groups_names=[name])
    stable(talk, "without a group", name, {topic: [0, 1]})
    end(talk, producer, name, commit=True)
    stable(talk, "committed without a group", name, {topic: [0, 1]})
    other = group(talk, "other")
    producer.commit_offsets("pending only", other, {topic: {0: 5}})
    talk.ask("described", ApiKey.DESCRIBE_GROUPS, 6, groups=[other])
    end(talk, producer, other, commit=False)
    talk.ask("described when aborted", ApiKey.DESCRIBE_GROUPS, 6, groups=[other])


@scenario
def by_members(talk: Talk) -> None:
    """From version 3 on a member says who it is; it need not."""
    topic = talk.topic()
    for version in versions(COMMIT):
        one = Member(talk, group(talk, f"v{version}"), "one")
        one.join()
        one.sync(assignments={one.id: b"all"})
        producer = begin(talk, f"id-{version}", one.name, version)
        tries: list[tuple[str, dict[str, Any]]] = [("says nothing of itself", {})]
        if version >= 3:
            good = {"member_id": one.id, "generation_id": one.generation}
            tries += [
                ("says who it is", good),
                ("an old generation", {**good, "generation_id": one.generation - 1}),
                ("a new generation", {**good, "generation_id": one.generation + 1}),
                ("no generation", {**good, "generation_id": -1}),
                ("nobody", {**good, "member_id": "nobody"}),
                ("no member", {**good, "member_id": ""}),
                ("an instance nobody knows", {**good, "group_instance_id": "nobody"}),
            ]
        for label, fields in tries:
            producer.commit_offsets(label, one.name, {topic: {0: 5}}, version, **fields)
        end(talk, producer, one.name, commit=True)
        stable(talk, "committed", one.name, {topic: [0]})
        one.send_join("joins again")
        producer.commit_offsets("while it joins", one.name, {topic: {0: 6}}, version)
        one.close()


@scenario
def by_members_of_the_consumer_protocol(talk: Talk) -> None:
    topic, name = talk.topic(), group(talk)
    body = {
        "group_id": name,
        "member_id": "AAAAAAAAAAAAAAAAAAAAAA",
        "member_epoch": 0,
        "rebalance_timeout_ms": 20_000,
        "subscribed_topic_names": [topic],
        "topic_partitions": [],
    }
    answer = talk.silently(ApiKey.CONSUMER_GROUP_HEARTBEAT, 1, **body)
    assert answer["error_code"] == "NONE", answer
    epoch = answer["member_epoch"]
    for version in (3, 4, 5):
        producer = begin(talk, f"id-{version}", name, version)
        good = {"member_id": body["member_id"], "generation_id": epoch}
        for label, fields in (
            ("says who it is", good),
            ("an old epoch", {**good, "generation_id": epoch - 1}),
            ("a new epoch", {**good, "generation_id": epoch + 1}),
            ("no epoch", {**good, "generation_id": -1}),
            ("nobody", {**good, "member_id": "nobody"}),
            ("no member", {**good, "member_id": ""}),
            ("nothing", {}),
        ):
            producer.commit_offsets(label, name, {topic: {0: 5}}, version, **fields)
        end(talk, producer, name, commit=True)
        stable(talk, "committed", name, {topic: [0]})


@scenario
def committed_wrongly(talk: Talk) -> None:
    topic, missing = talk.topic(partitions=2), talk.name("missing")
    name = group(talk)
    for version in versions(COMMIT):
        other = group(talk, f"other-{version}")
        stranger = Transacting(talk, f"stranger-{version}", is_new=version >= ADDING_SINCE)
        if version < ADDING_SINCE:
            stranger.commit_offsets("the group was not added", other, {topic: {0: 1}}, version)
        producer = begin(talk, f"id-{version}", name, version)
        for label, offsets in {
            "no topics": {},
            "no partitions": {topic: {}},
            "a topic that is not there": {missing: {0: 1}},
            "one that is, one that is not": {missing: {0: 1}, topic: {0: 1}},
            "a partition that is not there": {topic: {9: 1, 0: 2}},
            "a negative offset": {topic: {0: -7}},
        }.items():
            producer.commit_offsets(label, name, offsets, version)
        good = {topic: {0: 5}}
        producer.commit_offsets("no group", "", good, version)
        long = [{"partition_index": 0, "committed_offset": 1, "committed_metadata": "x" * 4_097}]
        topics = [{"name": topic, "partitions": long}]
        producer.commit_offsets("words of 4097 bytes", name, {}, version, topics=topics)
        for label, fields in (
            ("an older epoch", {"producer_epoch": producer.epoch - 1}),
            ("a newer epoch", {"producer_epoch": producer.epoch + 1}),
            ("another producer", {"producer_id": producer.producer_id + 500}),
            ("an id nobody has", {"transactional_id": talk.name("nobody")}),
            ("an empty id", {"transactional_id": ""}),
        ):
            producer.commit_offsets(label, name, good, version, **fields)
            producer.commit_offsets(f"{label}, another group", other, good, version, **fields)
        if version >= 3:
            fields = {"generation_id": 3, "member_id": "x"}
            producer.commit_offsets("a group that is not there", talk.name("none"), good, version, **fields)
        producer.end(commit=False)
        stable(talk, "in the end", name, None)


class Walk:
    """Two producers, two groups, two partitions: offsets committed in and outside of transactions, deleted,
    ended, in any order."""

    def __init__(self, talk: Talk, seed: int) -> None:
        self.talk, self.rng = talk, random.Random(seed)
        self.topic = talk.topic(partitions=2)
        self.groups = [group(talk, f"group-{n}") for n in range(2)]
        self.producers = [Transacting(talk, f"id-{n}") for n in range(2)]
        self.is_open = dict.fromkeys(range(len(self.producers)), False)

    def run(self, steps: int) -> None:
        for step in range(steps):
            kind = self.rng.choices(
                ("commit", "outside", "end", "delete", "delete group", "look"), (10, 4, 6, 2, 1, 3)
            )[0]
            name, partition = self.rng.choice(self.groups), self.rng.randrange(2)
            number = self.rng.randrange(len(self.producers))
            label = f"{step} {kind}"
            if kind == "commit":
                producer = self.producers[number]
                producer.commit_offsets(f"{label} by {number}", name, {self.topic: {partition: step}})
                self.is_open[number] = True
            elif kind == "outside":
                topics = [commit_topic(self.talk, self.topic, {partition: step})]
                self.talk.ask(label, ApiKey.OFFSET_COMMIT, 9, group_id=name, topics=topics)
            elif kind == "end" and self.is_open[number]:
                self.producers[number].end(commit=self.rng.random() < 0.6)
                self.is_open[number] = False
            elif kind == "delete":
                wanted = [{"name": self.topic, "partitions": [{"partition_index": partition}]}]
                self.talk.ask(label, ApiKey.OFFSET_DELETE, 0, group_id=name, topics=wanted)
            elif kind == "delete group":
                self.talk.ask(label, ApiKey.DELETE_GROUPS, 2, groups_names=[name])
            elif kind == "look":
                for each in self.groups:
                    stable(self.talk, label, each, {self.topic: [0, 1]})
                    stable(self.talk, f"{label} at all", each, None)
                self.talk.ask(label, ApiKey.DESCRIBE_GROUPS, 6, groups=self.groups)


@scenario
def in_any_order(talk: Talk) -> None:
    Walk(talk, 1).run(150)


@scenario
def in_any_other_order(talk: Talk) -> None:
    Walk(talk, 2).run(150)
