"""ListOffsets and OffsetForLeaderEpoch: where a partition begins and ends, by time and by epoch."""

from __future__ import annotations

from typing import Any

from barnabas.protocol import ApiKey

from ..requests import batch, produce, versions
from ..talk import Talk, scenario

LIST, EPOCHS = ApiKey.LIST_OFFSETS, ApiKey.OFFSET_FOR_LEADER_EPOCH
SPECIAL = {
    "latest": -1,
    "earliest": -2,
    "max timestamp": -3,
    "earliest local": -4,
    "latest tiered": -5,
    "pending upload": -6,
}


def wanted(topic: str, *timestamps: int, partition: int = 0, **more: Any) -> list[dict[str, Any]]:
    partitions = [{"partition_index": partition, "timestamp": each, **more} for each in timestamps]
    return [{"name": topic, "partitions": partitions}]


@scenario
def every_version_and_every_special_time(talk: Talk) -> None:
    topic, empty = talk.topic(), talk.topic("empty")
    for time_ms in (5_000, 9_000, 3_000):
        talk.silently(ApiKey.PRODUCE, 9, **produce(talk, topic, batch(b"a", b"b", time_ms=time_ms)))
    for version in versions(LIST):
        for name, label in ((topic, "six records"), (empty, "no records")):
            for special, timestamp in SPECIAL.items():
                talk.ask(
                    f"{special} of {label}", LIST, version, replica_id=-1, topics=wanted(name, timestamp)
                )
            for timestamp in (0, 1, 5_000, 5_001, 5_002, 8_999, 9_000, 9_001, 9_002, 2**62):
                talk.ask(
                    f"{timestamp} ms of {label}", LIST, version, replica_id=-1, topics=wanted(name, timestamp)
                )


@scenario
def times_that_mean_nothing(talk: Talk) -> None:
    topic = talk.topic()
    for version in versions(LIST):
        for timestamp in (-7, -8, -100, -(2**63)):
            talk.ask(f"timestamp {timestamp}", LIST, version, replica_id=-1, topics=wanted(topic, timestamp))


@scenario
def places_that_are_not_there(talk: Talk) -> None:
    topic = talk.topic(partitions=2)
    for version in versions(LIST):
        missing = wanted(talk.name("missing"), -1)
        talk.ask("unknown topic", LIST, version, replica_id=-1, topics=missing)
        for partition in (2, -1):
            body = wanted(topic, -1, partition=partition)
            talk.ask(f"partition {partition} of 2", LIST, version, replica_id=-1, topics=body)
        talk.ask("one there, one not", LIST, version, replica_id=-1, topics=wanted(topic, -1) + missing)
        talk.ask("the same partition twice", LIST, version, replica_id=-1, topics=wanted(topic, -1, -2))
        talk.ask("nothing", LIST, version, replica_id=-1, topics=[])
    talk.ask("a bad name", LIST, 7, replica_id=-1, topics=wanted("not a name", -1))


@scenario
def who_asks_and_how(talk: Talk) -> None:
    topic = talk.topic()
    talk.silently(ApiKey.PRODUCE, 9, **produce(talk, topic, batch(b"a", b"b", time_ms=1_000)))
    for version in versions(LIST):
        for replica in (-2, 1, 7):
            talk.ask(f"replica {replica}", LIST, version, replica_id=replica, topics=wanted(topic, -1))
        for level in (0, 1, 2):
            body = wanted(topic, -1)
            talk.ask(f"isolation {level}", LIST, version, replica_id=-1, isolation_level=level, topics=body)
        for epoch in (-1, 0, 1, 50, -2):
            body = wanted(topic, -1, current_leader_epoch=epoch)
            talk.ask(f"current epoch {epoch}", LIST, version, replica_id=-1, topics=body)


@scenario
def compressed_batches_are_looked_into(talk: Talk) -> None:
    for compression in range(5):
        topic = talk.topic(f"c{compression}")
        data = batch(*[b"x"] * 20, time_ms=1_000, compression=compression)
        talk.silently(ApiKey.PRODUCE, 9, **produce(talk, topic, data))
        for timestamp in (1_000, 1_007, 1_019, 1_020, -3):
            talk.ask(
                f"compression {compression}, {timestamp}",
                LIST,
                8,
                replica_id=-1,
                topics=wanted(topic, timestamp),
            )


@scenario
def append_time_is_found_too(talk: Talk) -> None:
    topic = talk.topic(message_timestamp_type="LogAppendTime")
    talk.silently(ApiKey.PRODUCE, 9, **produce(talk, topic, batch(b"a", b"b", b"c", time_ms=1_000)))
    for timestamp in (0, 1_000, -3):
        talk.ask(f"{timestamp}", LIST, 8, replica_id=-1, topics=wanted(topic, timestamp))


@scenario
def epochs_have_ends(talk: Talk) -> None:
    topic = talk.topic(partitions=2)
    talk.silently(ApiKey.PRODUCE, 9, **produce(talk, topic, batch(b"a", b"b")))
    for version in versions(EPOCHS):
        for current in (-1, 0, 3, -5):
            for asked in (-1, 0, 1, 7, -3):
                for partition in (0, 1, 2):
                    one = {"partition": partition, "current_leader_epoch": current, "leader_epoch": asked}
                    label = f"partition {partition}: current epoch {current}, end of {asked}"
                    body = [{"topic": topic, "partitions": [one]}]
                    talk.ask(label, EPOCHS, version, replica_id=-1, topics=body)
        missing = {"partition": 0, "current_leader_epoch": -1, "leader_epoch": 0}
        body = [{"topic": talk.name("missing"), "partitions": [missing]}]
        talk.ask("unknown topic", EPOCHS, version, replica_id=-1, topics=body)
        talk.ask("no topics", EPOCHS, version, replica_id=-1, topics=[])
