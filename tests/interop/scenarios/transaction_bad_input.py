"""Requests about transactions that are wrong: names, ids, epochs, timeouts, partitions."""

from __future__ import annotations

from barnabas.protocol import ApiKey

from ..requests import versions
from ..talk import Talk, scenario
from ..transactional import Producer, transactional_id

INIT, ADD, OFFSETS, END = (
    ApiKey.INIT_PRODUCER_ID,
    ApiKey.ADD_PARTITIONS_TO_TXN,
    ApiKey.ADD_OFFSETS_TO_TXN,
    ApiKey.END_TXN,
)


@scenario
def timeouts(talk: Talk) -> None:
    producer = Producer(talk, transactional_id(talk))
    for version in versions(INIT):
        for timeout_ms in (-1, 0, 1, 900_000, 900_001, 2**31 - 1, -(2**31)):
            producer.init(f"wants {timeout_ms} ms", version, transaction_timeout_ms=timeout_ms)
    producer.described()


@scenario
def nobody_knows_them(talk: Talk) -> None:
    topic = talk.topic()
    producer = Producer(talk, transactional_id(talk, "unknown"))
    for version in versions(ADD):
        producer.add("adds", {topic: [0]}, version)
        producer.add("adds as somebody", {topic: [0]}, version, producer_id=5, producer_epoch=0)
    for version in versions(OFFSETS):
        talk.ask("offsets", OFFSETS, version, **producer.who(group_id="g"))
    for version in versions(END):
        producer.end("commits", version=version)
        producer.end("aborts", commit=False, version=version)
    producer.described()


@scenario
def empty_names(talk: Talk) -> None:
    transactional_id(talk)
    topic = talk.topic()
    producer = Producer(talk, "", "nobody")
    for version in versions(INIT):
        producer.init(version=version)
        producer.init("without a timeout", version, transaction_timeout_ms=0)
    for version in versions(ADD):
        producer.add("adds", {topic: [0]}, version)
        producer.add("adds what is not there", {topic: [7]}, version)
    for version in (4, 5):
        producer.add("verifies", {topic: [0]}, version, verify_only=True)
    for version in versions(OFFSETS):
        talk.ask("offsets", OFFSETS, version, **producer.who(group_id="g"))
    for version in versions(END):
        producer.end(version=version)
    producer.described()
    real = Producer(talk, transactional_id(talk, "real"), "somebody")
    real.init()
    for version in versions(OFFSETS):
        talk.ask("offsets of no group", OFFSETS, version, **real.who(group_id=""))
    real.described()
    real.end(commit=False)


@scenario
def wrong_ids_and_epochs(talk: Talk) -> None:
    topic = talk.topic()
    producer = Producer(talk, transactional_id(talk))
    producer.init()
    producer.init()
    wrong = {
        "another id": {"producer_id": 987_654},
        "no id": {"producer_id": -1},
        "an older epoch": {"producer_epoch": 0},
        "a newer epoch": {"producer_epoch": 2},
        "the largest epoch": {"producer_epoch": 32767},
        "no epoch": {"producer_epoch": -1},
        "the lowest epoch": {"producer_epoch": -32768},
    }
    for begun in (False, True):
        if begun:
            producer.add("adds", {topic: [0]})
        for what, fields in wrong.items():
            for version in versions(ADD):
                producer.add(f"adds with {what}", {topic: [0]}, version, **fields)
            for version in versions(OFFSETS):
                talk.ask(f"offsets with {what}", OFFSETS, version, **producer.who(group_id="g", **fields))
            for version in versions(END):
                producer.end(f"commits with {what}", version=version, **fields)
                producer.end(f"aborts with {what}", commit=False, version=version, **fields)
        producer.described()
    producer.end()


@scenario
def partitions_that_cannot_be_added(talk: Talk) -> None:
    topic = talk.topic(partitions=2)
    producer = Producer(talk, transactional_id(talk))
    producer.init()
    missing = talk.name("missing")
    for version in versions(ADD):
        producer.add("a missing partition", {topic: [0, 2]}, version)
        producer.add("a negative partition", {topic: [-1]}, version)
        producer.add("a missing topic", {missing: [0]}, version)
        producer.add("some missing", {topic: [0, 1], missing: [0, 1]}, version)
        producer.add("a bad name", {"not a name": [0]}, version)
        producer.add("an empty name", {"": [0]}, version)
        producer.add("one of the coordinator's own", {"__transaction_state": [0]}, min(version, 3))
        producer.add(
            "one of the coordinator's own and another",
            {"__transaction_state": [0], topic: [0]},
            min(version, 3),
        )
        producer.add("of the same twice", {topic: [0, 0]}, version)
        producer.end("ends", version=4)
    producer.described()
    for version in versions(ADD):
        producer.add("no partitions", {topic: []}, version)
        producer.described()
        producer.end("ends", version=4)
        producer.add("no topics", {}, version)
        producer.described()
        producer.end("ends", version=4)


@scenario
def versions_that_are_not_stable(talk: Talk) -> None:
    """Served only where the settings ask for them (see transaction_configured)."""
    producer = Producer(talk, transactional_id(talk))
    fields = {"transactional_id": producer.name, "transaction_timeout_ms": 60_000}
    talk.ask("an ordinary producer", INIT, 6, **fields)
    talk.ask("a producer of two phases", INIT, 6, **fields, enable2_pc=True)
    producer.described()
