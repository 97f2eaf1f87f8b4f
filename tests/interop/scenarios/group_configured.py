"""Groups on a node whose settings are not the defaults (`CONFIGURED` in comparing.py)."""

from __future__ import annotations

from barnabas.protocol import ApiKey

from ..members import (
    Member,
    commit_topic,
    everyone_syncs,
    fetch_offsets,
    group,
    join_body,
    subscription,
    wait_for_state,
)
from ..talk import Talk, scenario
from .group_consumer import joins, newcomer

JOIN = ApiKey.JOIN_GROUP


@scenario
def groups_are_full(talk: Talk) -> None:
    """`group.max.size` and `group.consumer.max.size` are 2."""
    name = group(talk)
    one, two = Member(talk, name, "one"), Member(talk, name, "two")
    one.join()
    one.sync(assignments={one.id: b"all"})
    two.send_join()
    wait_for_state(talk, name, "PreparingRebalance", 2)
    one.join()
    two.joined()
    everyone_syncs([one, two], one)
    for version in (2, 5, 9):
        talk.ask("a third one", JOIN, version, **join_body(name))
    talk.ask("a static third one", JOIN, 9, **join_body(name, group_instance_id="i3"))
    one.beat("was not disturbed")
    one.close(), two.close()
    topic = talk.topic(partitions=3)
    new = talk.name("new")
    members = [newcomer(talk, new, label, [topic]) for label in ("one", "two", "three")]
    for member in members:
        joins(member)
        member.close()


@scenario
def sessions_have_bounds(talk: Talk) -> None:
    """From one second to twenty."""
    name = group(talk)
    for time_ms in (999, 1_000, 20_000, 20_001):
        label = f"a session of {time_ms} ms"
        talk.ask(label, JOIN, 3, **join_body(f"{name}-{time_ms}", session_timeout_ms=time_ms))


@scenario
def words_have_bounds(talk: Talk) -> None:
    """`offset.metadata.max.bytes` is 10."""
    topic = talk.topic(partitions=2)
    name = group(talk)
    for words in ("x" * 10, "x" * 11, "ü" * 10, ""):
        topics = [commit_topic(talk, topic, {0: 1}, words)]
        talk.ask(f"words: {words!r}", ApiKey.OFFSET_COMMIT, 9, group_id=name, topics=topics)
        fetch_offsets(talk, "fetched", name, {topic: [0]})


@scenario
def assignors_are_chosen_by_the_node(talk: Talk) -> None:
    """`group.consumer.assignors` is `range`."""
    topic = talk.topic()
    name = group(talk)
    joins(one := newcomer(talk, name, "one", [topic], server_assignor="uniform"))
    joins(two := newcomer(talk, name, "two", [topic], server_assignor="range"))
    one.close(), two.close()


@scenario
def groups_do_not_change_their_type(talk: Talk) -> None:
    """`group.consumer.migration.policy` is `disabled`; an empty group may be taken over all the same."""
    topic = talk.topic()
    name = group(talk)
    old = Member(talk, name, "old", protocols=[{"name": "range", "metadata": subscription(topic)}])
    old.join()
    old.sync(assignments={old.id: b"all"})
    new = newcomer(talk, name, "new", [topic])
    joins(new, "joins a classic group")
    old.leave()
    joins(new, "joins when it is empty")
    talk.ask("the classic protocol", JOIN, 9, **join_body(name, "nobody"))
    old.close(), new.close()
