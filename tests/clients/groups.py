"""Members of groups with confluent-kafka: polled in turns until something is true of them."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from typing import Any

from confluent_kafka import Consumer, KafkaError, KafkaException, Message, TopicPartition

TIMEOUT_S = 40.0
TURN_S = 0.02
PASSING = {
    KafkaError._PARTITION_EOF,
    KafkaError.UNKNOWN_TOPIC_OR_PART,
    KafkaError._MAX_POLL_EXCEEDED,
}
CLASSIC = ("range", "roundrobin", "cooperative-sticky")
EVERY = (*CLASSIC, "consumer")
"""How a group shares: three assignors of clients, and the consumer protocol, where the broker assigns."""


def protocol(way: str) -> dict[str, Any]:
    """The settings for one of `EVERY`."""
    if way == "consumer":
        return {"group.protocol": "consumer"}
    return {"partition.assignment.strategy": way, "session.timeout.ms": 6_000, "heartbeat.interval.ms": 200}


class Member:
    """A consumer of a group: its assignment, how often that changed, what it read and what went wrong."""

    def __init__(self, bootstrap: str, group: str, topics: Sequence[str], way: str, **more: Any) -> None:
        named = {name.replace("_", "."): value for name, value in more.items()}
        self.consumer = Consumer(
            {
                "bootstrap.servers": bootstrap,
                "group.id": group,
                "auto.offset.reset": "earliest",
                "enable.auto.commit": False,
                "topic.metadata.refresh.interval.ms": 1_000,
                **protocol(way),
                **named,
            }
        )
        self.changes = 0
        self.read: list[tuple[str, int, int]] = []
        self.errors: list[KafkaError] = []
        self.consumer.subscribe(list(topics), on_assign=self._assigned, on_revoke=self._revoked)

    def _assigned(self, consumer: Consumer, places: list[TopicPartition]) -> None:
        self.changes += 1

    def _revoked(self, consumer: Consumer, places: list[TopicPartition]) -> None:
        self.changes += 1

    def turn(self) -> None:
        message: Message | None = self.consumer.poll(TURN_S)
        if message is None:
            return
        error = message.error()
        if error is None:
            self.read.append((message.topic(), message.partition(), message.offset()))
        elif error.code() not in PASSING:
            self.errors.append(error)

    @property
    def held(self) -> set[tuple[str, int]]:
        return {(place.topic, place.partition) for place in self.consumer.assignment()}

    def close(self) -> None:
        self.consumer.close()


def wait(members: Sequence[Member], condition: Callable[[], bool], what: str = "") -> None:
    """Everybody polls until the condition holds."""
    deadline = time.monotonic() + TIMEOUT_S
    while not condition():
        for member in members:
            member.turn()
        if time.monotonic() > deadline:
            shown = [sorted(member.held) for member in members]
            raise AssertionError(f"{what}: not in {TIMEOUT_S:.0f} s; {shown}, {[m.errors for m in members]}")


def settle(members: Sequence[Member], turns: int = 20) -> None:
    """Cooperative members may be called to one more rebalance that moves nothing: until none comes."""
    quiet, seen = 0, [member.changes for member in members]
    deadline = time.monotonic() + TIMEOUT_S
    while quiet < turns:
        for member in members:
            member.turn()
        now = [member.changes for member in members]
        quiet, seen = (quiet + 1 if now == seen else 0), now
        assert time.monotonic() < deadline, "the group does not come to rest"


def shares(members: Sequence[Member]) -> list[int]:
    """How many partitions each holds, the most first."""
    return sorted((len(member.held) for member in members), reverse=True)


def disjoint(members: Sequence[Member]) -> bool:
    held = [place for member in members for place in member.held]
    return len(held) == len(set(held))


def committed(bootstrap: str, group: str, places: Sequence[tuple[str, int]]) -> dict[tuple[str, int], int]:
    """The committed offsets of a group, asked by somebody who is no member."""
    reader = Consumer({"bootstrap.servers": bootstrap, "group.id": group})
    try:
        while True:
            try:
                found = reader.committed([TopicPartition(*place) for place in places], timeout=10)
                return {(each.topic, each.partition): each.offset for each in found}
            except KafkaException as error:
                if not error.args[0].retriable():
                    raise
    finally:
        reader.close()
