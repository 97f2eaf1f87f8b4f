"""WriteTxnMarkers: ends of transactions, wanted by a coordinator, or by somebody who says so."""

from __future__ import annotations

from barnabas.protocol import ApiKey

from ..requests import versions
from ..talk import Talk, scenario
from ..transacting import Transacting, look, write_marker

API = ApiKey.WRITE_TXN_MARKERS


@scenario
def of_transactions_that_are_open(talk: Talk) -> None:
    for version in versions(API):
        for transaction_version in (0, 1, 2) if version >= 2 else (0,):
            for commit in (True, False):
                name = f"v{version}-{transaction_version}-{commit}"
                topic, producer = talk.topic(name), Transacting(talk, name)
                producer.write(topic, b"x")
                epochs = producer.epoch + (transaction_version == 2)
                fields = {"version": version, "transaction_version": transaction_version, "commit": commit}
                write_marker(talk, "ends it", producer.producer_id, epochs, {topic: [0]}, **fields)
                look(talk, f"{name} over", topic)
                write_marker(talk, "again", producer.producer_id, epochs, {topic: [0]}, **fields)
                look(talk, f"{name} over twice", topic, is_quick=True)


@scenario
def with_wrong_epochs(talk: Talk) -> None:
    for transaction_version in (0, 1, 2):
        topic = talk.topic(f"v{transaction_version}")
        Transacting(talk, f"v{transaction_version}")
        producer = Transacting(talk, f"v{transaction_version}")  # has an epoch of 1
        producer.write(topic, b"x")
        epoch, who = producer.epoch, producer.producer_id
        fields = {"transaction_version": transaction_version}
        for label, epochs in (
            ("older", epoch - 1),
            ("the same", epoch),
            ("newer", epoch + 1),
            ("older", epoch),
        ):
            write_marker(talk, f"{label} epoch", who, epochs, {topic: [0]}, **fields)
            look(talk, f"after {label}", topic, is_quick=True)
        write_marker(talk, "epoch -1", who, -1, {topic: [0]}, **fields)
        write_marker(talk, "the largest epoch", who, 32767, {topic: [0]}, **fields)
        write_marker(talk, "again the largest", who, 32767, {topic: [0]}, **fields)
        look(talk, "in the end", topic, is_quick=True)


@scenario
def of_coordinators_that_were_replaced(talk: Talk) -> None:
    topic = talk.topic()
    for n, coordinator_epoch in enumerate((0, 5, 4, 5, 6, -1, 2**31 - 1)):
        label = f"coordinator epoch {coordinator_epoch}"
        fields = {"coordinator_epoch": coordinator_epoch}
        write_marker(talk, label, 77_777, n, {topic: [0]}, **fields)
    look(talk, "in the end", topic, is_quick=True)


@scenario
def for_strangers_and_strange_places(talk: Talk) -> None:
    topic, missing = talk.topic(partitions=2), talk.name("missing")
    for version in versions(API):
        talk.ask("no markers", API, version, markers=[])
        fields = {"version": version}
        write_marker(talk, "a producer that nobody knows", 88_888, 0, {topic: [0]}, **fields)
        write_marker(talk, "no partitions", 88_888, 0, {topic: []}, **fields)
        write_marker(talk, "no topics", 88_888, 0, {}, **fields)
        write_marker(talk, "a partition that is not there", 88_888, 0, {topic: [9]}, **fields)
        write_marker(talk, "some that are there", 88_888, 0, {topic: [0, 9, 1], missing: [0]}, **fields)
        markers = [
            {
                "producer_id": producer,
                "producer_epoch": 3,
                "transaction_result": True,
                "topics": [{"name": topic, "partition_indexes": indexes}],
                "coordinator_epoch": 0,
            }
            for producer, indexes in ((5_001, [0]), (5_002, [0, 1]), (5_001, [1]))
        ]
        talk.ask("several producers", API, version, markers=markers)
    look(talk, "in the end", topic, is_quick=True)


@scenario
def where_the_broker_stamps_records(talk: Talk) -> None:
    topic = talk.topic(message_timestamp_type="LogAppendTime", compression_type="gzip")
    producer = Transacting(talk)
    producer.write(topic, b"x" * 100)
    producer.end(commit=False, topics=(topic,))
    look(talk, "in the end", topic, is_quick=True)
