"""Idempotent producers: ids, sequences, duplicates, epochs."""

from __future__ import annotations

import time
from typing import Any

from barnabas.protocol import ApiKey

from ..requests import batch, fetch, produce, versions
from ..talk import Talk, scenario

PRODUCE, INIT = ApiKey.PRODUCE, ApiKey.INIT_PRODUCER_ID
INT32_MAX = 2**31 - 1


def new_producer(talk: Talk) -> int:
    """An id; the first one may have to wait until the broker got its block of them."""
    deadline = time.monotonic() + 20
    while True:
        answer = talk.silently(INIT, 4, transactional_id=None, transaction_timeout_ms=60_000)
        if answer["error_code"] == "NONE":
            talk.neutral("producer_id", answer["producer_id"])  # named in the order of birth
            return int(answer["producer_id"])
        assert answer["error_code"] == "COORDINATOR_LOAD_IN_PROGRESS" and time.monotonic() < deadline, answer


def send(
    talk: Talk, label: str, topic: str, producer: int, epoch: int, sequence: int, count: int = 1, **more: Any
) -> None:
    values = [b"%d" % n for n in range(count)]
    data = batch(*values, producer_id=producer, producer_epoch=epoch, base_sequence=sequence, **more)
    talk.ask(
        f"{label} (epoch {epoch}, sequence {sequence}, {count} records)",
        PRODUCE,
        9,
        **produce(talk, topic, data),
    )


def stored(talk: Talk, topic: str) -> None:
    talk.ask("what was stored", ApiKey.FETCH, 12, **fetch(talk, {topic: [{}]}))


@scenario
def every_version_gives_ids(talk: Talk) -> None:
    new_producer(talk)
    for version in versions(INIT):
        talk.ask("a new id", INIT, version, transactional_id=None, transaction_timeout_ms=60_000)
    known = new_producer(talk)
    for version in range(3, versions(INIT)[-1] + 1):
        for label, producer, epoch in (
            ("its own id and epoch", known, 0),
            ("an unknown id", 999_999, 5),
            ("an id without an epoch", known, -1),
            ("an epoch without an id", -1, 0),
        ):
            fields = {"transactional_id": None, "producer_id": producer, "producer_epoch": epoch}
            talk.ask(label, INIT, version, transaction_timeout_ms=60_000, **fields)
    talk.ask("a timeout of -1", INIT, 4, transactional_id=None, transaction_timeout_ms=-1)
    talk.ask("an empty transactional id", INIT, 4, transactional_id="", transaction_timeout_ms=60_000)


@scenario
def sequences_in_order(talk: Talk) -> None:
    topic, producer = talk.topic(), new_producer(talk)
    for sequence in range(0, 30, 3):
        send(talk, "next", topic, producer, 0, sequence, 3)
    stored(talk, topic)


@scenario
def the_last_five_batches_are_known(talk: Talk) -> None:
    topic, producer = talk.topic(), new_producer(talk)
    for sequence in range(8):
        send(talk, "next", topic, producer, 0, sequence)
    for sequence in reversed(range(8)):
        send(talk, "again", topic, producer, 0, sequence)
    send(talk, "again but longer", topic, producer, 0, 7, 2)
    send(talk, "two of the last as one", topic, producer, 0, 6, 2)
    send(talk, "next", topic, producer, 0, 8)
    stored(talk, topic)


@scenario
def gaps_are_refused(talk: Talk) -> None:
    topic, producer = talk.topic(), new_producer(talk)
    send(talk, "first", topic, producer, 0, 0, 2)
    send(talk, "gap", topic, producer, 0, 3)
    send(talk, "gap", topic, producer, 0, 1_000)
    send(talk, "next", topic, producer, 0, 2)
    send(talk, "again the first", topic, producer, 0, 0, 2)
    stored(talk, topic)


@scenario
def a_producer_that_nobody_knows(talk: Talk) -> None:
    topic, producer = talk.topic(), new_producer(talk)
    send(talk, "starts at five", topic, producer, 0, 5)
    send(talk, "next", topic, producer, 0, 6)
    other = new_producer(talk)
    send(talk, "epoch three at once", topic, other, 3, 0)
    send(talk, "an id that was never given", topic, 123_456_789, 0, 0)
    stored(talk, topic)


@scenario
def epochs_fence(talk: Talk) -> None:
    topic, producer = talk.topic(), new_producer(talk)
    send(talk, "first", topic, producer, 0, 0)
    send(talk, "new epoch, wrong start", topic, producer, 1, 1)
    send(talk, "new epoch", topic, producer, 1, 0)
    send(talk, "old epoch", topic, producer, 0, 1)
    send(talk, "old epoch, duplicate", topic, producer, 0, 0)
    send(talk, "next", topic, producer, 1, 1)
    send(talk, "a jump of epochs", topic, producer, 9, 0)
    send(talk, "one back", topic, producer, 8, 1)
    send(talk, "largest epoch", topic, producer, 32767, 0)
    stored(talk, topic)


@scenario
def sequences_where_the_broker_stamps_or_recompresses(talk: Talk) -> None:
    kinds = {
        "append": {"message_timestamp_type": "LogAppendTime"},
        "gzip": {"compression_type": "gzip"},
        "both": {"message_timestamp_type": "LogAppendTime", "compression_type": "gzip"},
    }
    for kind, settings in kinds.items():
        topic, producer = talk.topic(kind, **settings), new_producer(talk)
        for sequence in (0, 1, 2, 4, 2, 3, 9, 4):
            send(talk, kind, topic, producer, 1, sequence)
        send(talk, kind, topic, producer, 0, 5)
        stored(talk, topic)


@scenario
def sequences_wrap(talk: Talk) -> None:
    topic, producer = talk.topic(), new_producer(talk)
    send(talk, "near the end", topic, producer, 0, INT32_MAX - 1, 1)
    send(talk, "over the end", topic, producer, 0, INT32_MAX, 3)
    send(talk, "after the end", topic, producer, 0, 2)
    send(talk, "again over the end", topic, producer, 0, INT32_MAX, 3)
    stored(talk, topic)


@scenario
def incomplete_producer_fields(talk: Talk) -> None:
    topic, producer = talk.topic(), new_producer(talk)
    for label, fields in {
        "no sequence": (producer, 0, -1),
        "no epoch": (producer, -1, 0),
        "no id": (-1, 0, 0),
        "id -2": (-2, 0, 0),
        "epoch -2": (producer, -2, 0),
        "sequence -2": (producer, 0, -2),
    }.items():
        send(talk, label, topic, *fields)
    stored(talk, topic)


@scenario
def two_batches_of_a_producer_in_one_request(talk: Talk) -> None:
    topic, producer = talk.topic(), new_producer(talk)
    first = batch(b"a", producer_id=producer, producer_epoch=0, base_sequence=0)
    second = batch(b"b", producer_id=producer, producer_epoch=0, base_sequence=1)
    talk.ask("two at once", PRODUCE, 9, **produce(talk, topic, first + second))
    plain = batch(b"c")
    talk.ask("one with and one without an id", PRODUCE, 9, **produce(talk, topic, second + plain))
    stored(talk, topic)


@scenario
def partitions_have_sequences_of_their_own(talk: Talk) -> None:
    topic, producer = talk.topic(partitions=2), new_producer(talk)
    for sequence in (0, 1):
        data = batch(b"x", producer_id=producer, producer_epoch=0, base_sequence=sequence)
        talk.ask(f"sequence {sequence} to both", PRODUCE, 9, **produce(talk, topic, {0: data, 1: data}))
    data = batch(b"x", producer_id=producer, producer_epoch=0, base_sequence=2)
    talk.ask("sequence 2 to one", PRODUCE, 9, **produce(talk, topic, {0: data}))
    talk.ask("sequence 2 to both", PRODUCE, 9, **produce(talk, topic, {0: data, 1: data}))


@scenario
def producers_are_described(talk: Talk) -> None:
    topic, api = talk.topic(partitions=2), ApiKey.DESCRIBE_PRODUCERS
    producer = new_producer(talk)
    ask = {"topics": [{"name": topic, "partition_indexes": [0, 1]}]}
    talk.ask("nobody yet", api, 0, **ask)
    send(talk, "first", topic, producer, 0, 0, 3)
    talk.ask("one producer", api, 0, **ask)
    other = new_producer(talk)
    send(talk, "another", topic, other, 2, 0)
    talk.ask("two producers", api, 0, **ask)
    talk.ask("no such partition", api, 0, topics=[{"name": topic, "partition_indexes": [7, -1]}])
    talk.ask("no such topic", api, 0, topics=[{"name": talk.name("missing"), "partition_indexes": [0]}])
    talk.ask("a bad name", api, 0, topics=[{"name": "not a name", "partition_indexes": [0]}])
    talk.ask("no partitions", api, 0, topics=[{"name": topic, "partition_indexes": []}])
    talk.ask("no topics", api, 0, topics=[])
