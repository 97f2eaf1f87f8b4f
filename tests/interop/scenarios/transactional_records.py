"""Records of transactions on a partition: which are taken in, and who sees them."""

from __future__ import annotations

from barnabas.protocol import ApiKey

from ..requests import batch, fetch, produce, versions
from ..talk import Talk, scenario
from ..transacting import ADD, Transacting, look

PRODUCE = ApiKey.PRODUCE
FIRST = 3  # version of Produce


@scenario
def committed_and_aborted(talk: Talk) -> None:
    for is_new in (True, False):
        topic = talk.topic(f"topic-{is_new}")
        producer = Transacting(talk, f"id-{is_new}", is_new=is_new)
        producer.write(topic, b"a", b"b")
        look(talk, "open", topic)
        producer.end(commit=True, topics=(topic,))
        look(talk, "committed", topic)
        producer.write(topic, b"c")
        producer.write(topic, b"d")
        producer.end(commit=False, topics=(topic,))
        look(talk, "aborted", topic)
        producer.write(topic, b"e")
        look(talk, "open again", topic)
        producer.end(commit=True, topics=(topic,))
        look(talk, "in the end", topic)
        look(talk, "from the middle", topic, offset=4)


@scenario
def transactions_side_by_side(talk: Talk) -> None:
    topic = talk.topic()
    one, two, three = (Transacting(talk, name) for name in ("one", "two", "three"))
    one.write(topic, b"one")
    two.write(topic, b"two")
    talk.silently(PRODUCE, 12, **produce(talk, topic, batch(b"plain")))
    three.write(topic, b"three")
    look(talk, "three open", topic)
    two.end(commit=False, topics=(topic,))
    three.end(commit=True, topics=(topic,))
    one.write(topic, b"one more")
    look(talk, "the first open still", topic, is_quick=True)
    one.end(commit=False, topics=(topic,))
    look(talk, "none open", topic)
    for offset in range(9):
        asked = {topic: [{"fetch_offset": offset}]}
        talk.ask(f"from {offset}", ApiKey.FETCH, 12, **fetch(talk, asked, isolation_level=1))


@scenario
def over_segments(talk: Talk) -> None:
    """Each batch begins a segment of its own: aborted transactions are found in later ones."""
    topic = talk.topic(segment_bytes="1048576", segment_ms="3600000")
    old_ms = 1_700_000_000_000
    one, two = Transacting(talk, "one"), Transacting(talk, "two")
    for turn, producer in enumerate((one, two, one, two)):
        data = producer.batch(topic, b"x", time_ms=old_ms + turn * 7_200_000)
        body = produce(talk, topic, data, transactional_id=producer.id)
        talk.ask(f"batch {turn}", PRODUCE, 12, **body)
    one.end(commit=False, topics=(topic,))
    look(talk, "one aborted", topic)
    two.end(commit=False, topics=(topic,))
    for offset in range(6):
        look(talk, f"both aborted, from {offset}", topic, offset=offset)


@scenario
def without_being_added(talk: Talk) -> None:
    """Older producers add their partitions first: a batch for another one is refused."""
    topic = talk.topic(partitions=2)
    for version in range(FIRST, 12):
        producer = Transacting(talk, f"id-{version}", is_new=False)
        producer.send("no transaction at all", topic, b"x", version=version)
        producer.sequences.clear()
        producer.add(topic, 1)
        producer.send("another partition was added", topic, b"x", version=version)
        producer.sequences.clear()
        producer.send("the one that was added", topic, b"x", partition=1, version=version)
        producer.send("and again", topic, b"y", partition=1, version=version)
        both = {n: producer.batch(topic, b"z", partition=n) for n in (0, 1)}
        body = produce(talk, topic, both, transactional_id=producer.id)
        talk.ask("both", PRODUCE, version, **body)
        producer.end(commit=False, topics=(topic,), partitions=2)
        producer.send("after the end", topic, b"x", partition=1, version=version)


@scenario
def added_by_being_written_to(talk: Talk) -> None:
    topic = talk.topic(partitions=3)
    for version in (12, 13):
        producer = Transacting(talk, f"id-{version}")
        both = {n: producer.batch(topic, b"z", partition=n) for n in (0, 1)}
        talk.ask("two", PRODUCE, version, **produce(talk, topic, both, transactional_id=producer.id))
        third = {n: producer.batch(topic, b"z", partition=n) for n in (1, 2)}
        talk.ask("one more", PRODUCE, version, **produce(talk, topic, third, transactional_id=producer.id))
        states = talk.silently(ApiKey.DESCRIBE_TRANSACTIONS, 0, transactional_ids=[producer.id])
        talk.note("partitions of the transaction", states["transaction_states"][0]["topics"])
        producer.end(commit=True, topics=(topic,), partitions=3)
        missing = talk.name("missing")
        body = produce(talk, missing, producer.batch(missing, b"x"), transactional_id=producer.id)
        talk.ask("a topic that is not there", PRODUCE, version, **body)
        body = produce(talk, topic, {9: producer.batch(topic, b"x")}, transactional_id=producer.id)
        talk.ask("a partition that is not there", PRODUCE, version, **body)
        states = talk.silently(ApiKey.DESCRIBE_TRANSACTIONS, 0, transactional_ids=[producer.id])
        talk.note("state", states["transaction_states"][0]["transaction_state"])


@scenario
def by_the_wrong_producer(talk: Talk) -> None:
    topic = talk.topic()
    for version in (9, 11, 12):
        is_new = version >= 12
        producer = Transacting(talk, f"id-{version}", is_new=is_new)
        known = {"version": version, "base_sequence": 0}
        if not is_new:
            producer.add(topic, 0)
        producer.send("an older epoch", topic, b"x", producer_epoch=producer.epoch - 1, **known)
        producer.send("a newer epoch", topic, b"x", producer_epoch=producer.epoch + 1, **known)
        producer.send("another id", topic, b"x", producer_id=producer.producer_id + 500, **known)
        producer.send("an id that nobody has", topic, b"x", transactional_id=talk.name("nobody"), **known)
        producer.send("an empty id", topic, b"x", transactional_id="", **known)
        producer.send("no id", topic, b"x", transactional_id=None, **known)
        producer.send("the right one", topic, b"x", **known)
        producer.send(
            "outside of its transaction", topic, b"x", version=version, base_sequence=1, transactional=False
        )
        producer.send(
            "no id, while it is open", topic, b"x", version=version, base_sequence=1, transactional_id=None
        )
        producer.end(commit=False, topics=(topic,))
    look(talk, "in the end", topic)


@scenario
def sequences_in_transactions(talk: Talk) -> None:
    topic = talk.topic()
    for is_new in (True, False):
        producer = Transacting(talk, f"id-{is_new}", is_new=is_new)
        if not is_new:
            producer.add(topic, 0)
        producer.send("starts at five", topic, b"x", base_sequence=5)
        producer.send("starts at zero", topic, b"x", base_sequence=0)
        producer.send("a gap", topic, b"x", base_sequence=2)
        producer.send("the same again", topic, b"x", base_sequence=0)
        producer.send("next", topic, b"x", base_sequence=1)
        producer.end(commit=True, topics=(topic,))
        if not is_new:
            producer.add(topic, 0)
        producer.send("after the end, further on", topic, b"x", base_sequence=2)
        producer.send("after the end, from zero", topic, b"x", base_sequence=0)
        producer.send("the last of the one before", topic, b"x", base_sequence=1)
    look(talk, "in the end", topic)


@scenario
def of_several_producers_in_one_request(talk: Talk) -> None:
    topic = talk.topic(partitions=3)
    one, two = Transacting(talk, "one"), Transacting(talk, "two")
    batches = {0: one.batch(topic, b"a"), 1: two.batch(topic, b"b", partition=1)}
    talk.ask("two producers", PRODUCE, 12, **produce(talk, topic, batches, transactional_id=one.id))
    batches = {0: one.batch(topic, b"a", base_sequence=0), 1: batch(b"plain")}
    talk.ask("one, and a plain batch", PRODUCE, 12, **produce(talk, topic, batches, transactional_id=one.id))
    batches = {1: batch(b"plain"), 0: one.batch(topic, b"a", base_sequence=1)}
    talk.ask("the same without an id", PRODUCE, 12, **produce(talk, topic, batches))
    talk.ask(
        "only plain ones with an id",
        PRODUCE,
        12,
        **produce(talk, topic, {2: batch(b"p")}, transactional_id=one.id),
    )
    look(talk, "in the end", topic)


@scenario
def fenced_by_another_of_the_same_id(talk: Talk) -> None:
    topic = talk.topic()
    for is_new in (True, False):
        old = Transacting(talk, f"id-{is_new}", is_new=is_new)
        old.write(topic, b"old")
        new = Transacting(talk, f"id-{is_new}", is_new=is_new)
        old.send("the old one goes on", topic, b"x")
        new.write(topic, b"new")
        old.send("the old one, while the new one writes", topic, b"y")
        new.end(commit=True, topics=(topic,))
        old.send("the old one, after all", topic, b"z")
        look(talk, "in the end", topic)


@scenario
def verified_by_other_brokers(talk: Talk) -> None:
    """AddPartitionsToTxn as brokers speak it: to look a partition up, without adding it."""
    topic = talk.topic(partitions=2)
    producer = Transacting(talk, is_new=False)
    for version in versions(ADD)[4:]:
        for label, add in (("nothing added", False), ("one added", True)):
            if add:
                producer.add(topic, 0)
            wanted = {
                "transactional_id": producer.id,
                **producer.who(),
                "verify_only": True,
                "topics": [{"name": topic, "partitions": [0, 1]}],
            }
            talk.ask(label, ADD, version, transactions=[wanted])
        producer.end(commit=False)
