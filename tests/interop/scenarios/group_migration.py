"""Groups that change between the classic and the consumer protocol, empty and while they are used."""

from __future__ import annotations

from barnabas.protocol import ApiKey

from ..members import Member, commit_topic, describe, fetch_offsets, group, subscription, wait_for_state
from ..talk import Talk, scenario
from .group_consumer import DESCRIBE, changes, joins, leave, newcomer, settle

LIST = ApiKey.LIST_GROUPS


def kind(talk: Talk, label: str, name: str) -> None:
    found = [each for each in talk.silently(LIST, 5)["groups"] if each["group_id"] == name]
    talk.note(f"{label}: listed", found)


@scenario
def empty_groups(talk: Talk) -> None:
    """An empty group is taken over by whoever comes, and keeps its offsets."""
    topic = talk.topic()
    name = group(talk)
    one = Member(talk, name, "one", protocols=[{"name": "range", "metadata": subscription(topic)}])
    one.join()
    one.sync(assignments={one.id: b"all"})
    one.commit("commits", topic, 5)
    one.leave()
    kind(talk, "empty and classic", name)
    two = newcomer(talk, name, "two", [topic])
    joins(two)
    kind(talk, "taken over", name)
    fetch_offsets(talk, "the offsets stay", name, {topic: [0]})
    settle(two)
    leave(two)
    one.id = ""
    one.join("comes back")
    kind(talk, "classic again", name)
    fetch_offsets(talk, "the offsets stay", name, {topic: [0]})
    one.sync(assignments={one.id: b"all"})
    one.leave()
    one.close(), two.close()


@scenario
def simple_offsets(talk: Talk) -> None:
    topic = talk.topic()
    name = group(talk)
    talk.ask("commits", ApiKey.OFFSET_COMMIT, 9, group_id=name, topics=[commit_topic(talk, topic, {0: 3})])
    kind(talk, "offsets only", name)
    one = newcomer(talk, name, "one", [topic])
    joins(one)
    kind(talk, "with a member", name)
    fetch_offsets(talk, "the offsets stay", name, {topic: [0]})
    leave(one)
    one.close()


@scenario
def a_consumer_joins_a_classic_group_in_use(talk: Talk) -> None:
    """The whole group becomes a consumer group; its classic members are told to join again."""
    topic = talk.topic(partitions=2)
    name = group(talk)
    protocols = [{"name": "range", "metadata": subscription(topic)}]
    old = Member(talk, name, "old", protocols=protocols)
    old.join()
    part = b"\0\0" + (1).to_bytes(4, "big") + len(topic).to_bytes(2, "big") + topic.encode()
    part += (2).to_bytes(4, "big") + (0).to_bytes(4, "big") + (1).to_bytes(4, "big") + b"\xff\xff\xff\xff"
    old.sync(assignments={old.id: part})
    old.commit("commits", topic, 4)
    kind(talk, "classic", name)
    new = newcomer(talk, name, "new", [topic])
    changes(new, "joins", **new.joining, member_epoch=0)  # type: ignore[attr-defined]
    kind_only = [each["group_type"] for each in talk.silently(LIST, 5)["groups"] if each["group_id"] == name]
    talk.note("the group is of the other type", kind_only)
    fetch_offsets(talk, "the offsets stay", name, {topic: [0]})
    describe(talk, "as a classic group", name)
    old.beat("is told to join again")
    leave(new)
    old.close(), new.close()


@scenario
def groups_that_cannot_change(talk: Talk) -> None:
    """Another protocol type, and a group in the middle of a rebalance."""
    topic = talk.topic()
    worker = Member(talk, group(talk, "connect"), "worker", protocol_type="connect")
    worker.join()
    worker.sync(assignments={worker.id: b"all"}, protocol_type="connect")
    new = newcomer(talk, worker.name, "new", [topic])
    joins(new, "joins workers")
    worker.beat("notices nothing")
    odd = Member(talk, talk.name("odd"), "odd")
    odd.join()
    odd.sync(assignments={odd.id: b"not an assignment of consumers"})
    wait_for_state(talk, odd.name, "Stable", 1)
    odd_new = newcomer(talk, odd.name, "odd new", [topic])
    joins(odd_new, "joins a group whose parts nobody understands")
    odd.beat("notices nothing")
    talk.ask("described", DESCRIBE, 1, group_ids=[worker.name, odd.name])
    for member in (worker, new, odd, odd_new):
        member.close()
