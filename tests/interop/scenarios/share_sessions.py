"""Share sessions: epochs, members, partitions that come and go, and all that can be wrong with them."""

from __future__ import annotations

from barnabas.protocol import ApiKey

from ..sharers import ACCEPT, Sharer, load, share_group
from ..talk import Talk, scenario

FETCH, ACKNOWLEDGE = ApiKey.SHARE_FETCH, ApiKey.SHARE_ACKNOWLEDGE
NOW = {"max_wait_ms": 0, "min_bytes": 0}


@scenario
def a_session_from_beginning_to_end(talk: Talk) -> None:
    topic = talk.topic(partitions=2)
    load(talk, topic, (3, 2))
    name = share_group(talk, [topic])
    for version in (1, 2):
        ann = Sharer(talk, name, f"ann-{version}", version)
        ann.fetch("opens", {topic: {0: ()}})
        ann.fetch("accepts and fetches", {topic: {0: [(0, 4, [ACCEPT])]}}, **NOW)
        load(talk, topic, (2,))
        answer = ann.fetch("fetches new records", {})
        [acquired] = answer["responses"][0]["partitions"][0]["acquired_records"]
        first, last = acquired["first_offset"], acquired["last_offset"]
        ann.acknowledge("accepts one", {topic: {0: [(first, first, [ACCEPT])]}})
        ann.acknowledge("closes and accepts", {topic: {0: [(last, last, [ACCEPT])]}}, share_session_epoch=-1)
        load(talk, topic, (3, 2), partition=1)
        name = share_group(talk, [topic], f"group-{version}")


@scenario
def wrong_epochs(talk: Talk) -> None:
    topic = talk.topic()
    load(talk, topic)
    name = share_group(talk, [topic])
    ann = Sharer(talk, name)
    for epoch in (1, 7, -1, -2, 2**31 - 1):
        ann.fetch(f"without a session, epoch {epoch}", {topic: {0: ()}}, share_session_epoch=epoch, **NOW)
        ann.acknowledge(f"without a session, epoch {epoch}", {}, share_session_epoch=epoch)
    ann.acknowledge("opens with acknowledgements", {topic: {0: [(0, 0, [ACCEPT])]}}, share_session_epoch=0)
    ann.fetch("opens with acknowledgements", {topic: {0: [(0, 0, [ACCEPT])]}}, share_session_epoch=0, **NOW)
    ann.open(topic, 3)
    for epoch in (0, 1, 3, 9, -2):
        if epoch == 0:
            continue
        ann.fetch(f"with epoch {epoch} instead of {ann.epoch}", {}, share_session_epoch=epoch + 20, **NOW)
        ann.acknowledge(f"with epoch {epoch} instead of {ann.epoch}", {}, share_session_epoch=epoch + 20)
    ann.fetch("goes on", {}, **NOW)
    ann.fetch("closes and adds a partition", {topic: {0: ()}}, share_session_epoch=-1, **NOW)
    ann.acknowledge("closes", {}, share_session_epoch=-1)
    ann.acknowledge("closes again", {}, share_session_epoch=-1)


@scenario
def a_session_is_opened_again(talk: Talk) -> None:
    topic = talk.topic()
    load(talk, topic)
    name = share_group(talk, [topic])
    ann = Sharer(talk, name)
    ann.open(topic, 3)
    ann.epoch = 0
    ann.fetch("opens again, without waiting", {topic: {0: ()}}, **NOW)
    ann.acknowledge("accepts what the first session acquired", {topic: {0: [(0, 2, [ACCEPT])]}})


@scenario
def members_and_groups(talk: Talk) -> None:
    topic = talk.topic()
    load(talk, topic)
    name = share_group(talk, [topic])
    for version in (1, 2):
        for label, member in (("no", None), ("an empty", ""), ("a plain", "somebody"), ("a long", "x" * 100)):
            ann = Sharer(talk, name, version=version)
            ann.fetch(f"with {label} member id", {topic: {0: ()}}, member_id=member, max_records=1, **NOW)
            ann.acknowledge(
                f"with {label} member id",
                {topic: {0: [(9, 9, [ACCEPT])]}},
                member_id=member,
                share_session_epoch=1,
            )
        for label, group_id in (("no", None), ("an empty", "")):
            ann = Sharer(talk, name, version=version)
            ann.fetch(
                f"with {label} group", {topic: {0: ()}}, group_id=group_id, share_session_epoch=0, **NOW
            )
            ann.acknowledge(f"with {label} group", {}, group_id=group_id, share_session_epoch=1)


@scenario
def partitions_that_are_not_there(talk: Talk) -> None:
    topic = talk.topic()
    load(talk, topic)
    name = share_group(talk, [topic])
    talk.learn("nowhere", b"0123456789abcdef")
    ann = Sharer(talk, name)
    ann.fetch("asks for partitions that do not exist", {topic: {1: (), 7: ()}, "nowhere": {0: ()}}, **NOW)
    ann.fetch("forgets them", {}, forget={topic: [1, 7], "nowhere": [0]}, **NOW)
    ann.fetch("forgets what it never asked for", {}, forget={topic: [5]}, **NOW)
    nowhere = {topic: {1: [(0, 0, [1])]}, "nowhere": {0: [(0, 0, [1])]}}
    ann.acknowledge("accepts in partitions that do not exist", nowhere)
    ann.acknowledge("accepts in a partition that it did not ask for", {topic: {0: [(0, 0, [1])]}})
    ann.fetch("asks for a partition that exists", {topic: {0: ()}})


@scenario
def partitions_that_cannot_exist(talk: Talk) -> None:
    topic = talk.topic()
    load(talk, topic)
    name = share_group(talk, [topic])
    Sharer(talk, name).fetch("asks for partition -1", {topic: {-1: ()}}, **NOW)
    Sharer(talk, name, "bob").fetch("has no topic id", {"none": {0: ()}}, **NOW)


@scenario
def partitions_come_and_go(talk: Talk) -> None:
    one, other = talk.topic("one"), talk.topic("other")
    load(talk, one)
    load(talk, other)
    name = share_group(talk, [one, other])
    ann = Sharer(talk, name)
    ann.open(one, 3)
    ann.fetch("adds a topic and forgets the first", {other: {0: ()}}, forget={one: [0]})
    ann.acknowledge("accepts what it forgot", {one: {0: [(0, 2, [ACCEPT])]}})
    ann.fetch("accepts what it forgot, and fetches", {one: {0: [(0, 2, [ACCEPT])]}}, **NOW)
