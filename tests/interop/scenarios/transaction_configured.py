"""Transactions on a node with settings of its own (`CONFIGURED` in comparing.py): time runs out."""

from __future__ import annotations

import time

from barnabas.protocol import ApiKey

from ..talk import Talk, scenario
from ..transactional import READY_TIMEOUT_S, Producer, transactional_id

INIT, OFFSETS = ApiKey.INIT_PRODUCER_ID, ApiKey.ADD_OFFSETS_TO_TXN


@scenario
def timeouts_have_a_bound(talk: Talk) -> None:
    """`transaction.max.timeout.ms` is 20000."""
    producer = Producer(talk, transactional_id(talk))
    for timeout_ms in (19_999, 20_000, 20_001, 900_000):
        producer.init(f"wants {timeout_ms} ms", transaction_timeout_ms=timeout_ms)
    producer.described()


@scenario
def two_phases(talk: Talk) -> None:
    """KIP-939: version 6 is served on this node, and transactions may be open for as long as it takes."""
    topic = talk.topic()
    producer = Producer(talk, transactional_id(talk))
    for what, fields in {
        "is an ordinary one": {},
        "keeps a prepared transaction": {"keep_prepared_txn": True},
        "takes part in two phases": {"enable2_pc": True},
        "takes part in two phases with a timeout": {"enable2_pc": True, "transaction_timeout_ms": 2**31 - 1},
        "takes part in two phases and keeps": {"enable2_pc": True, "keep_prepared_txn": True},
        "has no timeout": {"transaction_timeout_ms": 0},
        "takes part in two phases without a timeout": {"enable2_pc": True, "transaction_timeout_ms": -1},
    }.items():
        producer.init(what, 6, **({"transaction_timeout_ms": 15_000} | fields))
        producer.described()
    producer.add("adds", {topic: [0]}, 4)
    other = Producer(talk, producer.name, "other")
    other.init("takes over", 6, transaction_timeout_ms=15_000, keep_prepared_txn=True)
    other.init("takes over", 6, transaction_timeout_ms=15_000)
    other.init("takes over", 6, transaction_timeout_ms=15_000)
    other.described()
    talk.frame("a version that nobody knows", bytes([0, 0, 0, 10, 0, INIT, 0, 7, 0, 0, 0, 1, 255, 255]))
    fields = {"transactional_id": None, "transaction_timeout_ms": 15_000}
    talk.ask("without a name", INIT, 6, **fields)
    talk.ask("without a name, in two phases", INIT, 6, **fields, enable2_pc=True)
    talk.ask("without a name, kept", INIT, 6, **fields, keep_prepared_txn=True)


@scenario
def names_have_a_bound(talk: Talk) -> None:
    """`message.max.bytes` is 2000: what does not fit into the log is refused, and nothing else suffers."""
    topic = talk.topic()
    other = Producer(talk, transactional_id(talk, "other"), "other")
    other.init(transaction_timeout_ms=15_000)
    long = Producer(talk, talk.name("long").ljust(2_500, "x"), "long name")
    long.init(transaction_timeout_ms=15_000)
    long.init("starts again", transaction_timeout_ms=15_000)
    other.add("adds", {topic: [0]})
    size = 2_000 - 12 - 61 - 64 - len(topic)  # a record that says nothing of partitions may just fit
    for length in range(size - 40, size + 41, 8):
        almost = Producer(talk, talk.name("a").ljust(length, "x"), f"name of {length}")
        if almost.init(transaction_timeout_ms=15_000)["error_code"] == "NONE":
            almost.add("adds", {topic: [0]})
            almost.end()
    other.end()


@scenario
def open_for_too_long(talk: Talk) -> None:
    """A transaction is aborted at the next look after its timeout, and its producer is fenced."""
    topic = talk.topic(partitions=2)
    producer = Producer(talk, transactional_id(talk))
    producer.init(transaction_timeout_ms=300)
    producer.add("adds", {topic: [0, 1]})
    producer.wait_for_state("CompleteAbort")
    producer.described("was aborted")
    producer.add("goes on", {topic: [0]})
    producer.add("goes on", {topic: [0]}, 1)
    producer.add("goes on", {topic: [0]}, 4)
    producer.add("asks whether it is in", {topic: [0]}, 4, verify_only=True)
    talk.ask("offsets", OFFSETS, 3, **producer.who(group_id="g"))
    producer.end("commits")
    producer.end("aborts", commit=False)
    producer.end("aborts", commit=False, version=1)
    producer.recover(transaction_timeout_ms=300)
    producer.described()


@scenario
def open_for_too_long_in_the_newer_flow(talk: Talk) -> None:
    topic = talk.topic()
    producer = Producer(talk, transactional_id(talk))
    producer.init(transaction_timeout_ms=300)
    producer.add("adds", {topic: [0]}, 4)
    producer.wait_for_state("CompleteAbort")
    producer.end("commits", version=5)
    producer.end("aborts", commit=False, version=5)
    producer.add("begins the next one", {topic: [0]}, 4)
    producer.end("commits", version=5)
    producer.described()


@scenario
def silent_for_too_long(talk: Talk) -> None:
    """`transactional.id.expiration.ms` is 5000: the id is forgotten, and its producer with it."""
    topic = talk.topic()
    producer = Producer(talk, transactional_id(talk))
    other = Producer(talk, talk.name("other"), "other")
    producer.init(transaction_timeout_ms=15_000)
    other.init(transaction_timeout_ms=15_000)
    other.add("adds", {topic: [0]})
    wait_until_forgotten(producer)
    producer.described("was forgotten")
    other.described("has a transaction open")
    producer.add("adds", {topic: [0]})
    producer.end("commits")
    producer.end("aborts", commit=False, version=5)
    producer.recover("has a new id", transaction_timeout_ms=15_000)
    producer.recover(transaction_timeout_ms=15_000)
    producer.described()
    other.end("commits")


def wait_until_forgotten(producer: Producer) -> None:
    deadline = time.monotonic() + READY_TIMEOUT_S
    while producer.state():
        assert time.monotonic() < deadline, f"{producer.name} is not forgotten"
        time.sleep(0.05)
