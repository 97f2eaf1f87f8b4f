"""Random walks of groups: long conversations that nobody thought of, the same ones with every broker."""

from __future__ import annotations

import random
from typing import Any

from barnabas.protocol import ApiKey

from ..members import Member, commit_topic, fetch_offsets, group, protocols
from ..talk import Talk, scenario

STEPS = 300
KINDS = ("join", "join", "sync", "sync", "beat", "beat", "commit", "commit", "leave", "look")
SIMPLE: dict[str, Any] = {"member_id": "", "generation_id_or_member_epoch": -1}


@scenario
def a_classic_member_that_errs(talk: Talk) -> None:
    """One member at a time, mostly right, sometimes with an old id, a wrong generation, another protocol."""
    rng = random.Random(1)
    topic = talk.topic(partitions=3)
    name = group(talk)
    one = Member(talk, name, "one")
    old_ids = ["nobody", ""]
    for step in range(STEPS):
        kind = rng.choice(
            ("join", "join", "sync", "sync", "beat", "beat", "commit", "commit", "leave", "look")
        )
        wrong: dict[str, Any] = {}
        if rng.random() < 0.25:
            wrong["member_id"] = rng.choice(old_ids)
        if rng.random() < 0.2 and kind in ("sync", "beat"):
            wrong["generation_id"] = one.generation + rng.choice((-1, 1, 5))
        what = f"{step} {kind} {sorted(wrong)}"
        if kind == "join" and "member_id" not in wrong:
            names = rng.choice((("range",), ("range", "sticky"), ("sticky",)))
            one.join(what, rng.choice((3, 5, 7, 9)), protocols=protocols(*names))
            if one.id and one.id not in old_ids:
                old_ids.append(one.id)
        elif kind == "join":
            if wrong["member_id"]:  # without any, a second member would come
                one.ask(what, ApiKey.JOIN_GROUP, 9, **join_as(one, wrong["member_id"]))
        elif kind == "sync":
            part = {one.id: b"part %d" % step} if rng.random() < 0.8 else {}
            one.sync(what, rng.choice((0, 3, 4)), part, **wrong)
        elif kind == "beat":
            one.beat(what, rng.choice((0, 3, 4)), **wrong)
        elif kind == "commit":
            fields = SIMPLE if rng.random() < 0.2 else wrong
            if rng.random() < 0.2 and fields is wrong:
                fields = wrong | {"generation_id_or_member_epoch": one.generation + 1}
            one.commit(what, topic, step, rng.choice((2, 6, 8, 9)), rng.randrange(4), **fields)
        elif kind == "leave" and rng.random() < 0.5:
            one.leave(what, rng.choice((0, 2)), **wrong)
            if "member_id" not in wrong or wrong["member_id"] == one.id:
                one.id = ""
        elif kind == "look":
            talk.ask(what, ApiKey.DESCRIBE_GROUPS, 6, groups=[name])
            fetch_offsets(talk, what, name, None)
    one.close()


def join_as(member: Member, member_id: str) -> dict[str, Any]:
    return {
        "group_id": member.name,
        "session_timeout_ms": 10_000,
        "rebalance_timeout_ms": 10_000,
        "member_id": member_id,
        "protocol_type": "consumer",
        "protocols": protocols("range", "sticky"),
    }


@scenario
def offsets_of_three_groups(talk: Talk) -> None:
    """Committed, fetched and deleted in no order, groups deleted in between."""
    rng = random.Random(2)
    topics = [talk.topic(f"{n}", partitions=2) for n in range(3)]
    names = [group(talk, f"group-{n}") for n in range(3)]
    for step in range(STEPS):
        name, topic, partition = rng.choice(names), rng.choice(topics), rng.randrange(3)
        kind = rng.choice(("commit", "commit", "commit", "fetch", "all", "delete", "delete group", "list"))
        what = f"{step} {kind}"
        if kind == "commit":
            words = rng.choice(("", "words", None))
            wanted = [commit_topic(talk, each, {partition: step}, words) for each in {topic, topics[0]}]
            wanted.sort(key=lambda each: str(each["name"]))
            talk.ask(what, ApiKey.OFFSET_COMMIT, rng.randint(2, 10), group_id=name, topics=wanted)
        elif kind == "fetch":
            fetch_offsets(talk, what, name, {topic: [0, partition]}, rng.randint(1, 10))
        elif kind == "all":
            fetch_offsets(talk, what, name, None, rng.randint(2, 10))
        elif kind == "delete":
            place = [{"name": topic, "partitions": [{"partition_index": partition}]}]
            talk.ask(what, ApiKey.OFFSET_DELETE, 0, group_id=name, topics=place)
        elif kind == "delete group" and rng.random() < 0.4:
            talk.ask(what, ApiKey.DELETE_GROUPS, rng.randint(0, 2), groups_names=[name])
        elif kind == "list":
            found = talk.silently(ApiKey.LIST_GROUPS, 5)["groups"]
            talk.note(what, [each for each in found if each["group_id"] in names])
