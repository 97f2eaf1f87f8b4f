"""Transactions as their coordinator sees them: ids, epochs, partitions, ends, in every version."""

from __future__ import annotations

from barnabas.protocol import ApiKey

from ..requests import versions
from ..talk import Talk, scenario
from ..transactional import TRANSACTION, Producer, transactional_id

INIT, ADD, OFFSETS, END = (
    ApiKey.INIT_PRODUCER_ID,
    ApiKey.ADD_PARTITIONS_TO_TXN,
    ApiKey.ADD_OFFSETS_TO_TXN,
    ApiKey.END_TXN,
)


@scenario
def coordinators_are_found(talk: Talk) -> None:
    name = transactional_id(talk)
    for version in versions(ApiKey.FIND_COORDINATOR):
        if version < 1:
            continue
        if version < 4:
            talk.ask("of a transaction", ApiKey.FIND_COORDINATOR, version, key=name, key_type=TRANSACTION)
            talk.ask("of no id", ApiKey.FIND_COORDINATOR, version, key="", key_type=TRANSACTION)
        else:
            keys = {"coordinator_keys": [name, talk.name("other")], "key_type": TRANSACTION}
            talk.ask("of two transactions", ApiKey.FIND_COORDINATOR, version, **keys)
            talk.ask(
                "of no id", ApiKey.FIND_COORDINATOR, version, coordinator_keys=[""], key_type=TRANSACTION
            )


@scenario
def every_version_begins_and_ends(talk: Talk) -> None:
    topic, name = talk.topic(partitions=2), transactional_id(talk)
    producer = Producer(talk, name)
    for version in versions(INIT):
        producer.init("starts", version)
    for version in versions(ADD):
        producer.add("adds", {topic: [0]}, version)
        producer.add("adds two", {topic: [0, 1]}, version)
        producer.end("commits what it added", version=min(version, 4))
        producer.described()
    for version in versions(OFFSETS):
        talk.ask("offsets", OFFSETS, version, **producer.who(group_id=talk.name("group")))
        producer.described()
        producer.end("aborts", commit=False, version=min(version, 4))
    for version in versions(END):
        producer.add("adds", {topic: [0]}, 4 if version >= 5 else 3)
        producer.end("commits", version=version)
        producer.add("adds", {topic: [1]}, 4 if version >= 5 else 3)
        producer.end("aborts", commit=False, version=version)
        producer.described()


@scenario
def producers_fence_each_other(talk: Talk) -> None:
    topic, name = talk.topic(), transactional_id(talk)
    one, two = Producer(talk, name, "one"), Producer(talk, name, "two")
    one.init()
    two.init()
    for version in versions(ADD):
        one.add("adds", {topic: [0]}, version)
    for version in versions(OFFSETS):
        talk.ask("one adds offsets", OFFSETS, version, **one.who(group_id="g"))
    for version in versions(END):
        one.end("commits", version=version)
        one.end("aborts", commit=False, version=version)
    for version in range(3, versions(INIT)[-1] + 1):
        one.recover(version=version)
    two.add("adds", {topic: [0]})
    one.init("comes again")
    one.init("comes again")
    two.end("commits")
    one.add("adds", {topic: [0]}, 4)
    two.init("comes again")
    two.init("comes again")
    one.end("commits", version=5)
    one.described()


@scenario
def producers_of_both_flows_fence_each_other(talk: Talk) -> None:
    topic = talk.topic()
    for commit in (True, False):
        name = transactional_id(talk, f"id-{commit}")
        newer, older = Producer(talk, name, "newer"), Producer(talk, name, "older")
        newer.init()
        older.init()
        older.add("adds", {topic: [0]})
        older.end("ends its transaction", commit)
        newer.end("was fenced, and ends the same", commit, version=5)
        newer.end("was fenced, and ends otherwise", not commit, version=5, producer_epoch=0)
        older.described()


@scenario
def producers_recover(talk: Talk) -> None:
    """KIP-360: a producer that lost an answer says who it is."""
    name = transactional_id(talk)
    producer = Producer(talk, name)
    producer.recover("knows of an id that nobody has", producer_id=12_345_678, producer_epoch=3)
    producer.recover()
    first = producer.epoch
    producer.recover("asks again with the epoch of before", producer_epoch=first - 1)
    producer.recover("goes on")
    producer.recover("asks with an epoch that is too old", producer_epoch=first - 1)
    producer.recover("asks with an epoch of the future", producer_epoch=first + 7)
    producer.recover("has another id", producer_id=12_345_678)
    producer.recover("has no epoch", producer_epoch=-1)
    producer.recover("has no id", producer_id=-1)
    producer.recover("has id -2", producer_id=-2)
    producer.recover("has epoch -2", producer_epoch=-2)
    producer.described()


@scenario
def recovery_with_a_transaction_open(talk: Talk) -> None:
    topic, name = talk.topic(), transactional_id(talk)
    producer = Producer(talk, name)
    producer.init()
    producer.add("adds", {topic: [0]})
    producer.recover("has another id", producer_id=12_345_678)
    producer.recover("comes in the middle")
    producer.recover("comes again")
    producer.described()
    producer.add("adds", {topic: [0]}, 4)
    producer.recover("comes with an old epoch", producer_epoch=0)
    producer.described()


@scenario
def ends_are_asked_for_again(talk: Talk) -> None:
    topic, name = talk.topic(), transactional_id(talk)
    producer = Producer(talk, name)
    producer.init()
    producer.end("commits nothing")
    producer.end("aborts nothing", commit=False)
    producer.end("commits nothing", version=5)
    producer.end("aborts nothing", commit=False, version=5)
    for commit in (True, False):
        producer.add("adds", {topic: [0]})
        producer.end("ends", commit=commit)
        producer.end("ends again", commit=commit)
        producer.end("ends otherwise", commit=not commit)
    for commit in (True, False):
        producer.add("adds", {topic: [0]}, 4)
        before = producer.epoch
        producer.end("ends", commit=commit, version=5)
        producer.end("ends again", commit=commit, version=5, producer_epoch=before)
        producer.end("ends otherwise", commit=not commit, version=5, producer_epoch=before)
        producer.end("ends again, the old way", commit=commit, version=4, producer_epoch=before)
        producer.end("commits the next one, which is empty", version=5)
        producer.end("aborts the next one, which is empty", commit=False, version=5)
        producer.described()


@scenario
def partitions_are_verified(talk: Talk) -> None:
    """As brokers ask it for others."""
    topic, other, name = talk.topic(partitions=2), talk.topic("other"), transactional_id(talk)
    producer = Producer(talk, name)
    producer.init()
    for version in (4, 5):
        producer.add("verifies before it adds", {topic: [0]}, version, verify_only=True)
        producer.add("adds", {topic: [0]}, version)
        producer.add("verifies", {topic: [0, 1], other: [0]}, version, verify_only=True)
        producer.add("verifies with another id", {topic: [0]}, version, verify_only=True, producer_id=77)
        producer.add(
            "verifies with another epoch", {topic: [0]}, version, verify_only=True, producer_epoch=77
        )
        producer.add("verifies what does not exist", {topic: [0, 7]}, version, verify_only=True)
        producer.end("commits", version=4)
        producer.add("verifies after the end", {topic: [0]}, version, verify_only=True)


@scenario
def brokers_ask_for_many(talk: Talk) -> None:
    topic = talk.topic(partitions=3)
    one = Producer(talk, transactional_id(talk, "one"), "one")
    two = Producer(talk, transactional_id(talk, "two"), "two")
    one.init()
    two.init()
    where = [{"name": topic, "partitions": [0, 1]}]
    for version in (4, 5):
        both = [one.who(topics=where), two.who(topics=where, producer_epoch=9)]
        talk.ask("one right, one wrong", ADD, version, transactions=both)
        both = [one.who(topics=where, verify_only=True), two.who(topics=where, verify_only=True)]
        talk.ask("both verify", ADD, version, transactions=both)
        unknown = one.who(topics=where, transactional_id=talk.name("unknown"))
        talk.ask("one that nobody knows", ADD, version, transactions=[unknown, two.who(topics=where)])
        missing = [{"name": topic, "partitions": [2, 8]}]
        talk.ask("one with a missing partition", ADD, version, transactions=[one.who(topics=missing)])
    one.described()
    two.described()
    one.end()
    two.end()
