"""ListGroups, DescribeGroups, DeleteGroups: every version, every filter, every refusal."""

from __future__ import annotations

from typing import Any

from barnabas.protocol import ApiKey

from ..members import Member, commit_topic, group, subscription
from ..requests import versions
from ..talk import Talk, scenario
from .group_consumer import wait_until_assigned

LIST, DESCRIBE, DELETE = ApiKey.LIST_GROUPS, ApiKey.DESCRIBE_GROUPS, ApiKey.DELETE_GROUPS
STATES = ("Stable", "stable", "STABLE", "Empty", "CompletingRebalance", "Dead", "Assigning", "no")


def make(talk: Talk) -> tuple[list[Member], list[str]]:
    """Groups of all kinds: stable, empty, of offsets only, of another type, of the consumer protocol."""
    topic = talk.topic()
    stable = Member(talk, group(talk, "stable"), "stable")
    wait_until_assigned(talk)
    stable.fields["protocols"] = [{"name": "range", "metadata": subscription(topic)}]
    stable.join()
    stable.sync(assignments={stable.id: b"all"})
    joining = Member(talk, talk.name("joining"), "joining")
    joining.join()
    empty = Member(talk, talk.name("empty"), "empty")
    empty.join()
    empty.sync(assignments={empty.id: b"all"})
    empty.leave()
    worker = Member(talk, talk.name("connect"), "worker", protocol_type="connect")
    worker.join()
    worker.sync(assignments={worker.id: b"all"}, protocol_type="connect")
    new = Member(talk, talk.name("consumer"), "new", topic_partitions=[])
    new.id = "new-member"
    fields = {"subscribed_topic_names": [topic], "rebalance_timeout_ms": 30_000}
    new.heartbeat("joins", epoch=0, **fields)
    simple = Member(talk, talk.name("simple"), "simple")
    simple.commit("commits", topic, 4)
    members = [stable, joining, empty, worker, new, simple]
    return members, [member.name for member in members]


def listed(talk: Talk, label: str, version: int, **filters: Any) -> None:
    """Other conversations have groups too: only those of this one are compared."""
    answer = talk.silently(LIST, version, **filters)
    own = [found for found in answer.get("groups", []) if found["group_id"].startswith(talk.prefix)]
    talk.note(f"LIST_GROUPS v{version}: {label}", answer | ({"groups": own} if "groups" in answer else {}))


@scenario
def listed_with_filters(talk: Talk) -> None:
    members, _ = make(talk)
    for version in versions(LIST):
        listed(talk, "all", version)
        if version < 4:
            continue
        for state in STATES:
            listed(talk, f"state {state}", version, states_filter=[state])
        listed(talk, "two states", version, states_filter=["Stable", "Empty", "Stable"])
        listed(talk, "no name of a state", version, states_filter=[""])
        if version < 5:
            continue
        for kind in ("classic", "Classic", "CONSUMER", "consumer", "share", "streams", "no", ""):
            listed(talk, f"type {kind!r}", version, types_filter=[kind])
        listed(talk, "two types", version, types_filter=["classic", "consumer"])
        listed(talk, "both", version, types_filter=["consumer"], states_filter=["Stable", "Reconciling"])
        listed(talk, "none of both", version, types_filter=["consumer"], states_filter=["Empty"])
    for member in members:
        member.close()


@scenario
def described(talk: Talk) -> None:
    members, names = make(talk)
    for version in versions(DESCRIBE):
        talk.ask("all kinds", DESCRIBE, version, groups=names)
        talk.ask("not there", DESCRIBE, version, groups=[talk.name("missing")])
        talk.ask("no name", DESCRIBE, version, groups=[""])
        talk.ask("the same twice", DESCRIBE, version, groups=names[:1] * 2)
        talk.ask("none", DESCRIBE, version, groups=[])
        if version >= 3:
            fields = {"include_authorized_operations": True}
            talk.ask("what is allowed", DESCRIBE, version, groups=[names[0], talk.name("missing")], **fields)
    for version in (0, 1):
        describe = ApiKey.CONSUMER_GROUP_DESCRIBE
        talk.ask("all kinds", describe, version, group_ids=names)
        talk.ask("not there", describe, version, group_ids=[talk.name("missing"), ""])
        talk.ask("none", describe, version, group_ids=[])
        fields = {"include_authorized_operations": True}
        talk.ask("what is allowed", describe, version, group_ids=[talk.name("consumer")], **fields)
    for member in members:
        member.close()


@scenario
def deleted(talk: Talk) -> None:
    members, names = make(talk)
    stable, joining, _, worker, new, _ = members
    topic = talk.name("topic")
    for version in versions(DELETE):
        talk.ask("all kinds", DELETE, version, groups_names=names)
        talk.ask("not there", DELETE, version, groups_names=[talk.name("missing")])
        talk.ask("no name", DELETE, version, groups_names=[""])
        talk.ask("the same twice", DELETE, version, groups_names=names[:1] * 2)
        talk.ask("none", DELETE, version, groups_names=[])
        body = {"group_id": talk.name("simple"), "topics": [commit_topic(talk, topic, {0: 1})]}
        talk.ask("the simple one again", ApiKey.OFFSET_COMMIT, 9, **body)
    stable.leave()
    joining.leave()
    worker.leave()
    new.heartbeat("leaves", epoch=-1)
    talk.ask("now that all are empty", DELETE, 2, groups_names=names)
    talk.ask("again", DELETE, 2, groups_names=names)
    listed(talk, "nothing is left", 5)
    stable.beat("a member of a deleted group")
    for member in members:
        member.close()
