"""Acknowledgements of share consumers: what becomes of records, and acknowledgements that are wrong."""

from __future__ import annotations

from barnabas.protocol import ApiKey

from ..sharers import ACCEPT, REJECT, RELEASE, RENEW, Sharer, configure, load, share_group
from ..talk import Talk, scenario

NOW = {"max_wait_ms": 0, "min_bytes": 0}
SOON = {"max_wait_ms": 300, "min_bytes": 1}


def describe_offsets(talk: Talk, name: str, topic: str) -> None:
    wanted = [{"group_id": name, "topics": [{"topic_name": topic, "partitions": [0]}]}]
    talk.ask("where the group stands", ApiKey.DESCRIBE_SHARE_GROUP_OFFSETS, 1, groups=wanted)


@scenario
def every_kind(talk: Talk) -> None:
    topic = talk.topic()
    load(talk, topic, (6,))
    name = share_group(talk, [topic])
    for version in (1, 2):
        ann = Sharer(talk, name, f"ann-{version}", version)
        ann.fetch("acquires", {topic: {0: ()}})
        kinds = [ACCEPT, RELEASE, REJECT, ACCEPT, RELEASE, RELEASE]
        ann.acknowledge("accepts, releases, rejects", {topic: {0: [(0, 5, kinds)]}})
        describe_offsets(talk, name, topic)
        ann.fetch("gets what was released", {})
        ann.acknowledge("accepts all", {topic: {0: [(1, 1, [ACCEPT]), (4, 5, [ACCEPT])]}})
        describe_offsets(talk, name, topic)
        ann.fetch("finds nothing", {}, **SOON)
        ann.acknowledge("closes", {}, share_session_epoch=-1)
        if version == 1:
            name = share_group(talk, [topic], "again")


@scenario
def records_that_were_not_acquired(talk: Talk) -> None:
    topic = talk.topic()
    load(talk, topic, (5,))
    load(talk, topic, (5,))
    name = share_group(talk, [topic])
    ann, bob = Sharer(talk, name), Sharer(talk, name, "bob")
    bob.fetch("acquires five", {topic: {0: ()}}, max_records=5, batch_size=5)
    ann.fetch("acquires the others", {topic: {0: ()}}, max_records=5, batch_size=5)
    for label, batches in (
        ("another member's", [(0, 4, [ACCEPT])]),
        ("partly another member's", [(3, 6, [ACCEPT])]),
        ("behind the end", [(10, 12, [ACCEPT])]),
        ("partly behind the end", [(8, 12, [ACCEPT])]),
        ("far away", [(10_000, 10_000, [ACCEPT])]),
    ):
        ann.acknowledge(f"accepts what is {label}", {topic: {0: batches}})
    ann.acknowledge("accepts its own", {topic: {0: [(5, 9, [ACCEPT])]}})
    for kind in (ACCEPT, RELEASE, REJECT):
        ann.acknowledge(f"acknowledges them again ({kind})", {topic: {0: [(5, 9, [kind])]}})
    bob.acknowledge("accepts its own", {topic: {0: [(0, 4, [ACCEPT])]}})
    bob.acknowledge("accepts what is before the start", {topic: {0: [(0, 4, [ACCEPT])]}})
    describe_offsets(talk, name, topic)


@scenario
def batches_that_are_wrong(talk: Talk) -> None:
    topic = talk.topic()
    load(talk, topic, (10,))
    name = share_group(talk, [topic])
    for version in (1, 2):
        ann = Sharer(talk, name, f"ann-{version}", version)
        ann.open(topic, 10)
        for label, batches in (
            ("no types", [(0, 1, [])]),
            ("too few types", [(0, 2, [ACCEPT, ACCEPT])]),
            ("too many types", [(0, 0, [ACCEPT, ACCEPT])]),
            ("type 5", [(0, 0, [5])]),
            ("type -1", [(0, 0, [-1])]),
            ("types 1 and 9", [(0, 1, [ACCEPT, 9])]),
            ("an end before the beginning", [(3, 2, [ACCEPT])]),
            ("negative offsets", [(-5, -3, [ACCEPT])]),
            ("batches that overlap", [(0, 2, [ACCEPT]), (2, 3, [ACCEPT])]),
            ("batches in the wrong order", [(4, 5, [ACCEPT]), (2, 3, [ACCEPT])]),
            ("no batches", []),
        ):
            ann.acknowledge(f"sends {label}", {topic: {0: batches}})
            ann.fetch(f"fetches with {label}", {topic: {0: batches}}, **NOW)
        ann.acknowledge("accepts one twice in a request", {topic: {0: [(6, 6, [1]), (6, 6, [1])]}})
        ann.acknowledge("closes", {}, share_session_epoch=-1)


@scenario
def gaps(talk: Talk) -> None:
    topic = talk.topic()
    load(talk, topic, (4,))
    name = share_group(talk, [topic])
    ann = Sharer(talk, name)
    ann.open(topic, 4)
    ann.acknowledge("says that records are gaps", {topic: {0: [(0, 1, [0]), (2, 3, [ACCEPT, 0])]}})
    describe_offsets(talk, name, topic)
    ann.fetch("finds nothing", {}, **SOON)


@scenario
def some_of_a_batch(talk: Talk) -> None:
    topic = talk.topic()
    load(talk, topic, (10,))
    name = share_group(talk, [topic])
    ann = Sharer(talk, name)
    ann.open(topic, 10)
    ann.acknowledge("accepts the middle", {topic: {0: [(4, 5, [ACCEPT])]}})
    describe_offsets(talk, name, topic)
    ann.acknowledge("releases around it", {topic: {0: [(3, 3, [RELEASE]), (6, 6, [RELEASE])]}})
    ann.fetch("gets both again", {})
    ann.acknowledge("accepts the beginning", {topic: {0: [(0, 3, [ACCEPT])]}})
    describe_offsets(talk, name, topic)
    ann.acknowledge("rejects the end", {topic: {0: [(6, 9, [REJECT])]}})
    describe_offsets(talk, name, topic)


@scenario
def renewals(talk: Talk) -> None:
    topic = talk.topic()
    load(talk, topic, (4,))
    name = share_group(talk, [topic])
    ann, bob = Sharer(talk, name), Sharer(talk, name, "bob")
    ann.open(topic, 4)
    ann.acknowledge("renews", {topic: {0: [(0, 3, [RENEW])]}}, is_renew_ack=True)
    ann.acknowledge("renews, and does not say so", {topic: {0: [(0, 3, [RENEW])]}})
    ann.acknowledge("says that it renews, and accepts", {topic: {0: [(0, 0, [ACCEPT])]}}, is_renew_ack=True)
    none = {"max_wait_ms": 0, "min_bytes": 0, "max_bytes": 0, "max_records": 0, "batch_size": 0}
    ann.fetch("renews and fetches nothing", {topic: {0: [(1, 1, [RENEW])]}}, is_renew_ack=True, **none)
    ann.fetch("renews and fetches", {topic: {0: [(1, 1, [RENEW])]}}, is_renew_ack=True, **NOW)
    ann.fetch("renews, and does not say so", {topic: {0: [(1, 1, [RENEW])]}}, **NOW)
    ann.acknowledge("renews what is acknowledged", {topic: {0: [(0, 0, [RENEW])]}}, is_renew_ack=True)
    bob.fetch("opens", {topic: {0: ()}}, **NOW)
    bob.acknowledge("renews another member's", {topic: {0: [(2, 2, [RENEW])]}}, is_renew_ack=True)
    old = Sharer(talk, name, "old", 1)
    old.fetch("opens", {topic: {0: ()}}, **NOW)
    old.acknowledge("renews with version 1", {topic: {0: [(2, 2, [RENEW])]}})
    ann.acknowledge(
        "accepts, and renews one", {topic: {0: [(1, 3, [ACCEPT, RENEW, ACCEPT])]}}, is_renew_ack=True
    )
    ann.acknowledge("accepts the last", {topic: {0: [(2, 2, [ACCEPT])]}})
    describe_offsets(talk, name, topic)


@scenario
def renewals_are_switched_off(talk: Talk) -> None:
    topic = talk.topic()
    load(talk, topic, (2,))
    name = share_group(talk, [topic], share_renew_acknowledge_enable="false")
    ann = Sharer(talk, name)
    ann.open(topic, 2)
    ann.acknowledge("renews", {topic: {0: [(0, 1, [RENEW])]}}, is_renew_ack=True)
    ann.acknowledge("accepts", {topic: {0: [(0, 1, [ACCEPT])]}})


@scenario
def deliveries_have_a_limit(talk: Talk) -> None:
    topic = talk.topic()
    load(talk, topic, (3,))
    name = share_group(talk, [topic])
    configure(talk, name, share_delivery_count_limit="3")
    ann = Sharer(talk, name)
    ann.fetch("acquires", {topic: {0: ()}})
    for delivery in (1, 2, 3):
        ann.acknowledge(f"releases after delivery {delivery}", {topic: {0: [(0, 2, [RELEASE])]}})
        ann.fetch("fetches again", {}, **SOON)
        if delivery == 2:
            for offset in (0, 1, 2):
                ann.fetch(f"fetches more ({offset})", {}, **SOON)
    describe_offsets(talk, name, topic)


@scenario
def closing_releases(talk: Talk) -> None:
    topic = talk.topic()
    load(talk, topic, (5,))
    name = share_group(talk, [topic])
    ann, bob = Sharer(talk, name), Sharer(talk, name, "bob")
    ann.open(topic, 5)
    ann.acknowledge("closes with two accepted", {topic: {0: [(0, 1, [ACCEPT])]}}, share_session_epoch=-1)
    bob.fetch("gets the others", {topic: {0: ()}})
