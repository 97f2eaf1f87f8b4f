"""The consumer protocol (KIP-848): heartbeats, epochs, reconciliation, and all that can be wrong in them."""

from __future__ import annotations

import time
from typing import Any

from barnabas.protocol import ApiKey

from ..members import Member, commit_topic, fetch_offsets, group
from ..talk import Talk, scenario

BEAT, DESCRIBE = ApiKey.CONSUMER_GROUP_HEARTBEAT, ApiKey.CONSUMER_GROUP_DESCRIBE
SETTLED_TIMEOUT_S = 25.0
PAUSE_S = 0.02


def newcomer(talk: Talk, name: str, label: str, topics: list[str], **fields: Any) -> Member:
    """A member that has not joined: it chose its id, as version 1 wants."""
    wait_until_assigned(talk)
    member = Member(talk, name, label)
    member.id = f"{label}-{talk.prefix}"[:36]
    member.generation = 0
    member.joining = {  # type: ignore[attr-defined]
        "subscribed_topic_names": topics,
        "rebalance_timeout_ms": 30_000,
        "topic_partitions": [],
        **fields,
    }
    return member


def wait_until_assigned(talk: Talk) -> None:
    """A broker may serve a new topic a moment before its groups know of it: another group is asked first."""
    deadline = time.monotonic() + SETTLED_TIMEOUT_S
    wanted = {"subscribed_topic_names": list(talk.topic_ids), "rebalance_timeout_ms": 30_000}
    found, attempt = -1, 0
    while found < len(talk.topic_ids):
        attempt += 1
        probe: dict[str, Any] = {"group_id": talk.name(f"probe-{attempt}"), "member_id": "probe"}
        answer = talk.silently(BEAT, 1, **probe, member_epoch=0, topic_partitions=[], **wanted)
        found = len(owned(answer))
        talk.silently(BEAT, 1, **probe, member_epoch=-1)
        talk.silently(ApiKey.DELETE_GROUPS, 2, groups_names=[probe["group_id"]])
        assert time.monotonic() < deadline, answer


def joins(member: Member, what: str = "joins", **fields: Any) -> dict[str, Any]:
    answer = member.heartbeat(what, epoch=0, **(member.joining | fields))  # type: ignore[attr-defined]
    hold(member, answer)
    return answer


def hold(member: Member, answer: dict[str, Any]) -> None:
    if answer.get("assignment") is not None:
        member.held = {(t["topic_id"], p) for t in owned(answer) for p in t["partitions"]}  # type: ignore[attr-defined]


def owned(answer: dict[str, Any]) -> list[dict[str, Any]]:
    """What an answer assigns, as the member reports it."""
    return list((answer["assignment"] or {"topic_partitions": []})["topic_partitions"])


def quietly(member: Member, **fields: Any) -> dict[str, Any]:
    """A heartbeat that is not written down."""
    body = {"group_id": member.name, "member_id": member.id, "member_epoch": member.generation, **fields}
    answer = member.talk.silently(BEAT, 1, **body)
    if answer["error_code"] == "NONE":
        member.generation = answer["member_epoch"]
    return answer


def changes(member: Member, what: str, **fields: Any) -> None:
    """A heartbeat that changes the member; whether the answer has the new assignment already is a race."""
    answer = quietly(member, **fields)
    hold(member, answer)
    member.talk.note(f"{member.label} {what}", answer["error_code"])


def settle(*members: Member) -> list[int]:
    """All beat and report what they own until nothing changes; how many partitions each has.

    Who gets which partition is the assignor's choice; how evenly, and that nobody shares, is not.
    """
    held: dict[str, set[tuple[bytes, int]]] = {m.id: getattr(m, "held", set()) for m in members}
    deadline = time.monotonic() + SETTLED_TIMEOUT_S
    while True:
        changed = False
        epochs = []
        for member in members:
            answer = quietly(member, topic_partitions=as_topics(held[member.id]))
            assert answer["error_code"] == "NONE", answer
            epochs.append(answer["member_epoch"])
            if answer["assignment"] is not None:
                new = {(t["topic_id"], p) for t in owned(answer) for p in t["partitions"]}
                changed = changed or new != held[member.id]
                held[member.id] = new
        every = [place for places in held.values() for place in places]
        assert len(every) == len(set(every)), "a partition with two owners"
        if not changed and len(set(epochs)) == 1 and stable(members[0]):
            break
        assert time.monotonic() < deadline, (held, epochs)
        time.sleep(PAUSE_S)
    for member in members:
        member.held = held[member.id]  # type: ignore[attr-defined]
    members[0].talk.note("settled", {"epochs": epochs, "sizes": sorted(len(held[m.id]) for m in members)})
    return [len(held[member.id]) for member in members]


def as_topics(places: set[tuple[bytes, int]]) -> list[dict[str, Any]]:
    ids = sorted({topic for topic, _ in places})
    return [{"topic_id": i, "partitions": sorted(p for t, p in places if t == i)} for i in ids]


def stable(member: Member) -> bool:
    [found] = member.talk.silently(DESCRIBE, 1, group_ids=[member.name])["groups"]
    return bool(found["group_state"] == "Stable")


def leave(member: Member, what: str = "leaves", epoch: int = -1) -> None:
    member.heartbeat(what, epoch=epoch)
    member.generation = 0


@scenario
def a_life(talk: Talk) -> None:
    topic = talk.topic(partitions=3)
    for version in (0, 1):
        name = group(talk, f"v{version}")
        one = newcomer(talk, name, "one", [topic])
        if version == 0:
            one.id = ""
        answer = one.heartbeat("joins", version, epoch=0, **one.joining)  # type: ignore[attr-defined]
        talk.ask("described", DESCRIBE, version, group_ids=[name])
        one.heartbeat("owns it", version, topic_partitions=owned(answer))
        one.heartbeat("says nothing new", version)
        one.heartbeat(
            "says all again",
            version,
            topic_partitions=owned(answer),
            **{
                key: value
                for key, value in one.joining.items()
                if key != "topic_partitions"  # type: ignore[attr-defined]
            },
        )
        talk.ask("described", DESCRIBE, version, group_ids=[name])
        one.commit("commits", topic, 4, 9)
        one.commit("commits by id", topic, 5, 10)
        fetch_offsets(talk, "fetched", name, {topic: [0]})
        one.heartbeat("leaves", version, epoch=-1)
        talk.ask("described", DESCRIBE, version, group_ids=[name])
        talk.ask("after it left", BEAT, version, group_id=name, member_id=one.id, member_epoch=1)
        fetch_offsets(talk, "its offsets stay", name, {topic: [0]})
        one.close()


@scenario
def heartbeats_that_are_wrong(talk: Talk) -> None:
    topic = talk.topic()
    name = group(talk)
    first: dict[str, Any] = {
        "group_id": name,
        "member_id": "me",
        "member_epoch": 0,
        "rebalance_timeout_ms": 30_000,
        "subscribed_topic_names": [topic],
        "topic_partitions": [],
    }
    somewhere = [{"topic_id": talk.topic_ids[topic], "partitions": [0]}]
    for version in (0, 1):
        for label, fields in {
            "no group": {"group_id": ""},
            "a group of blanks": {"group_id": "   "},
            "an empty instance": {"instance_id": ""},
            "an empty rack": {"rack_id": ""},
            "an empty assignor": {"server_assignor": ""},
            "an assignor that is not there": {"server_assignor": "no-such-assignor"},
            "no rebalance timeout": {"rebalance_timeout_ms": -1},
            "a rebalance timeout of nothing": {"rebalance_timeout_ms": 0},
            "no topics": {"subscribed_topic_names": None},
            "no list of partitions": {"topic_partitions": None},
            "partitions in the first heartbeat": {"topic_partitions": somewhere},
            "an epoch of -3": {"member_epoch": -3},
            "an epoch of -2 without an instance": {"member_epoch": -2},
            "an epoch of a group that is not there": {"member_epoch": 5},
            "leaving a group that is not there": {"member_epoch": -1},
        }.items():
            talk.ask(label, BEAT, version, **(first | fields))
    talk.ask("no member id", BEAT, 1, **(first | {"member_id": ""}))
    talk.ask("an epoch without a member id", BEAT, 0, **(first | {"member_id": "", "member_epoch": 4}))
    for expression in ("[", "(", "a**", "x(?=y)", "\\1"):
        fields = {"subscribed_topic_names": None, "subscribed_topic_regex": expression}
        talk.ask(f"the expression {expression}", BEAT, 1, **(first | fields))
    talk.ask("the group nobody could join", DESCRIBE, 1, group_ids=[name])


@scenario
def epochs_that_are_wrong(talk: Talk) -> None:
    topic = talk.topic(partitions=2)
    name = group(talk)
    one = newcomer(talk, name, "one", [topic])
    answer = joins(one)
    one.heartbeat("owns it", topic_partitions=owned(answer))
    for version in (0, 1):
        for label, fields in {
            "an epoch too high": {"member_epoch": 9},
            "an epoch too low": {"member_epoch": one.generation - 1, "topic_partitions": None},
            "a member that nobody knows": {"member_id": "nobody"},
            "an instance that it does not have": {"instance_id": "x"},
        }.items():
            body = {"group_id": name, "member_id": one.id, "member_epoch": one.generation}
            if body | fields != body and fields.get("member_epoch") == 0:
                continue
            talk.ask(label, BEAT, version, **(body | fields))
    elsewhere = [{"topic_id": b"0123456789abcdef", "partitions": [0, 7]}]
    one.heartbeat("owns what is not there", topic_partitions=elsewhere)
    one.heartbeat("owns nothing", topic_partitions=[])
    for version in (9, 10):
        one.commit("an epoch too high", topic, 4, version, generation_id_or_member_epoch=9)
        one.commit("an epoch too low", topic, 4, version, generation_id_or_member_epoch=0)
        one.commit("nobody", topic, 4, version, member_id="nobody")
        one.commit("no member", topic, 4, version, member_id="", generation_id_or_member_epoch=-1)
        one.commit("rightly", topic, 4, version)
        for label, member, epoch in (
            ("itself", one.id, one.generation),
            ("an epoch too high", one.id, 9),
            ("an epoch too low", one.id, 0),
            ("nobody", "nobody", one.generation),
            ("no member", "", -1),
        ):
            who = {"member_id": member, "member_epoch": epoch}
            fetch_offsets(talk, label, name, {topic: [0]}, version, **who)
    for version in (2, 6, 8):
        one.commit("in a version that knows no epochs", topic, 4, version)
        simple = {"member_id": "", "generation_id_or_member_epoch": -1}
        one.commit("as if there were no group", topic, 4, version, **simple)
    joins(one, "joins although it is in")
    one.close()


@scenario
def requests_of_the_classic_protocol(talk: Talk) -> None:
    topic = talk.topic()
    name = group(talk)
    one = newcomer(talk, name, "one", [topic])
    joins(one)
    who = {"group_id": name, "member_id": one.id, "generation_id": one.generation}
    talk.ask("beats", ApiKey.HEARTBEAT, 4, **who)
    talk.ask("syncs", ApiKey.SYNC_GROUP, 5, **who)
    talk.ask("leaves", ApiKey.LEAVE_GROUP, 5, group_id=name, members=[{"member_id": one.id}])
    talk.ask("nobody beats", ApiKey.HEARTBEAT, 4, **(who | {"member_id": "nobody"}))
    talk.ask("described as a classic group", ApiKey.DESCRIBE_GROUPS, 6, groups=[name])
    topics = [{"name": topic, "partitions": [{"partition_index": 0}]}]
    talk.ask("offsets deleted", ApiKey.OFFSET_DELETE, 0, group_id=name, topics=topics)
    talk.ask("deleted", ApiKey.DELETE_GROUPS, 2, groups_names=[name])
    one.close()


@scenario
def members_come_and_go(talk: Talk) -> None:
    topic = talk.topic(partitions=6)
    for assignor in ("uniform", "range"):
        name = group(talk, assignor)
        one, two, three = (newcomer(talk, name, who, [topic]) for who in ("one", "two", "three"))
        for member in (one, two, three):
            member.joining["server_assignor"] = assignor  # type: ignore[attr-defined]
        joins(one)
        settle(one)
        joins(two, "joins while one owns all")
        settle(one, two)
        joins(three)
        settle(one, two, three)
        leave(two)
        settle(one, three)
        leave(one)
        settle(three)
        leave(three)
        talk.ask("nobody is left", DESCRIBE, 1, group_ids=[name])
        for member in (one, two, three):
            member.close()


@scenario
def partitions_are_revoked_before_they_are_given(talk: Talk) -> None:
    topic = talk.topic(partitions=2)
    name = group(talk)
    one, two = newcomer(talk, name, "one", [topic]), newcomer(talk, name, "two", [topic])
    answer = joins(one)
    whole = owned(answer)
    one.heartbeat("owns it", topic_partitions=whole)
    joins(two)
    two.heartbeat("has to wait")
    sizes(talk, "one has to give up a partition", quietly(one))
    sizes(talk, "one is told once only", quietly(one))
    sizes(talk, "two still waits", quietly(two, topic_partitions=[]))
    half = [{"topic_id": whole[0]["topic_id"], "partitions": []}]
    sizes(talk, "one gave up everything", quietly(one, topic_partitions=half))
    sizes(talk, "two gets its part", quietly(two, topic_partitions=[]))
    settle(one, two)
    one.close(), two.close()


def sizes(talk: Talk, label: str, answer: dict[str, Any]) -> None:
    """How much an answer assigns, not which partitions."""
    held = answer.get("assignment")
    count = None if held is None else sum(len(topic["partitions"]) for topic in held["topic_partitions"])
    short = {key: answer[key] for key in ("error_code", "member_epoch", "heartbeat_interval_ms")}
    talk.note(label, short | {"partitions": count})


@scenario
def static_members(talk: Talk) -> None:
    topic = talk.topic(partitions=4)
    name = group(talk)
    one = newcomer(talk, name, "one", [topic], instance_id="i1")
    two = newcomer(talk, name, "two", [topic], instance_id="i2")
    joins(one)
    settle(one)
    joins(two)
    settle(one, two)
    twin = newcomer(talk, name, "twin", [topic], instance_id="i2")
    joins(twin, "takes an instance that is in use")
    body = {"group_id": name, "member_id": two.id, "member_epoch": -2, "instance_id": "i2"}
    talk.ask("two goes for a while", BEAT, 1, **body)
    talk.ask("one is told nothing", BEAT, 1, group_id=name, member_id=one.id, member_epoch=one.generation)
    again = newcomer(talk, name, "again", [topic], instance_id="i2")
    joins(again, "is back under another id")
    settle(one, again)
    talk.ask("the old two", BEAT, 1, group_id=name, member_id=two.id, member_epoch=two.generation)
    fields = {"instance_id": "i2"}
    talk.ask("the old two by instance", BEAT, 1, **(body | {"member_epoch": two.generation} | fields))
    talk.ask("the old two leaves", BEAT, 1, **(body | {"member_epoch": -1}))
    wrong = {"group_id": name, "member_id": "nobody", "member_epoch": 3, "instance_id": "nobody"}
    talk.ask("an instance that nobody knows", BEAT, 1, **wrong)
    final = {"group_id": name, "member_id": again.id, "member_epoch": -1, "instance_id": "i2"}
    talk.ask("it leaves for good", BEAT, 1, **final)
    settle(one)
    for member in (one, two, twin, again):
        member.close()


@scenario
def subscriptions_change(talk: Talk) -> None:
    first, second = talk.topic("first", partitions=2), talk.topic("second", partitions=3)
    name = group(talk)
    one = newcomer(talk, name, "one", [first])
    joins(one)
    settle(one)
    changes(one, "takes another topic too", subscribed_topic_names=[first, second])
    settle(one)
    changes(one, "takes the other only", subscribed_topic_names=[second])
    settle(one)
    changes(one, "takes a topic that is not there", subscribed_topic_names=[talk.name("missing")])
    settle(one)
    changes(one, "takes none", subscribed_topic_names=[])
    settle(one)
    talk.ask("described", DESCRIBE, 1, group_ids=[name])
    changes(one, "takes the first twice", subscribed_topic_names=[first, first])
    settle(one)
    changes(one, "changes its rack", rack_id="r1")
    changes(one, "changes its assignor", server_assignor="range")
    changes(one, "changes its patience", rebalance_timeout_ms=12_345)
    changes(one, "to an assignor that is not there", server_assignor="nothing")
    settle(one)
    talk.ask("described", DESCRIBE, 1, group_ids=[name])
    one.close()


@scenario
def regular_expressions(talk: Talk) -> None:
    talk.topic("red.1", partitions=2), talk.topic("red.2"), talk.topic("blue.1")
    name = group(talk)
    one = newcomer(talk, name, "one", [])
    stem = talk.prefix.replace(".", r"\.")
    fields = {"subscribed_topic_names": None, "subscribed_topic_regex": rf"{stem}\.red\..*"}
    joins(one, "joins by expression", **fields)
    held_until(one, 3)
    changes(one, "takes blue", subscribed_topic_regex=rf"{stem}\.blue\.[0-9]")
    held_until(one, 1)
    changes(one, "both, by expression and by name", subscribed_topic_names=[talk.name("red.2")])
    held_until(one, 2)
    changes(one, "no expression any more", subscribed_topic_regex="")
    held_until(one, 1)
    changes(one, "a wrong one", subscribed_topic_regex="[")
    described = talk.silently(DESCRIBE, 1, group_ids=[name])["groups"][0]["members"]
    keys = ("subscribed_topic_names", "subscribed_topic_regex", "member_type")
    talk.note("described", [{key: member[key] for key in keys} for member in described])
    one.close()


def held_until(member: Member, count: int) -> None:
    """Expressions are resolved in a while: beats until the member has so many partitions."""
    held: set[tuple[bytes, int]] = getattr(member, "held", set())
    deadline = time.monotonic() + SETTLED_TIMEOUT_S
    while len(held) != count:
        answer = quietly(member, topic_partitions=as_topics(held))
        assert answer["error_code"] == "NONE", answer
        if answer["assignment"] is not None:
            held = {(t["topic_id"], p) for t in owned(answer) for p in t["partitions"]}
        assert time.monotonic() < deadline, f"{len(held)} partitions, {count} wanted"
        time.sleep(PAUSE_S)
    quietly(member, topic_partitions=as_topics(held))
    member.held = held  # type: ignore[attr-defined]
    member.talk.note(f"{count} partitions are held", {})


@scenario
def topics_grow_and_go(talk: Talk) -> None:
    topic, other = talk.topic(partitions=2), talk.topic("other", partitions=2)
    name = group(talk)
    one = newcomer(talk, name, "one", [topic, other])
    joins(one)
    settle(one)
    body = {"group_id": name, "topics": [commit_topic(talk, other, {0: 5})]}
    who = {"generation_id_or_member_epoch": one.generation, "member_id": one.id}
    talk.ask("commits", ApiKey.OFFSET_COMMIT, 9, **body, **who)
    wanted = [{"name": topic, "count": 5, "assignments": None}]
    talk.silently(ApiKey.CREATE_PARTITIONS, 3, topics=wanted, timeout_ms=30_000)
    held_until(one, 7)
    talk.silently(ApiKey.DELETE_TOPICS, 5, topic_names=[other], timeout_ms=30_000)
    held_until(one, 5)
    fetch_offsets(talk, "of the deleted topic", name, {other: [0]})
    one.close()


@scenario
def heartbeats_that_stop(talk: Talk) -> None:
    """Nothing is heard for the session timeout of 45 s: too long for a test, the group is just left alone."""
    topic = talk.topic()
    one = newcomer(talk, group(talk), "one", [topic])
    joins(one)
    settle(one)
    one.close()
    talk.ask("its connection is gone, it is not", DESCRIBE, 1, group_ids=[one.name])
