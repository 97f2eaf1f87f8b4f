"""An open transaction hangs if no coordinator knows it."""

import asyncio
import time
from typing import Any

import pytest

from barnabas.cli.frame.parsing import ToolError
from barnabas.cli.transactions.hanging_transactions import Search, find_hanging
from barnabas.client.admin.topics import PartitionDescription, TopicDescription, TopicListing
from barnabas.client.admin.transactions import ActiveProducer, TransactionDescription, TransactionListing
from barnabas.client.core.topology import TopicPartition
from barnabas.protocol import NULL_UUID, ErrorCode, KafkaError

HOUR_MS = 3_600_000
MINUTES_15_MS = 900_000
ZERO, ONE = TopicPartition("t", 0), TopicPartition("t", 1)


def producer(producer_id: int, *, start: int | None, age_ms: int = HOUR_MS) -> ActiveProducer:
    """The current time; a constant would be too old at the end of a long test run."""
    return ActiveProducer(producer_id, 3, -1, 0, int(time.time() * 1000) - age_ms, start)


class Known:
    """An Admin that returns prepared values."""

    def __init__(self, **producers: list[ActiveProducer] | KafkaError) -> None:
        self.producers = {TopicPartition("t", int(name[1:])): found for name, found in producers.items()}
        self.ids: dict[int, str] = {}
        self.descriptions: dict[str, TransactionDescription | KafkaError] = {}
        self.asked_of: list[int | None] = []

    async def list_topics(self) -> list[TopicListing]:
        return [TopicListing("t", NULL_UUID, False)]

    async def describe_topics(self, names: list[str]) -> list[TopicDescription]:
        if names != ["t"]:
            raise KafkaError(ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, "no such topic")
        partitions = (
            PartitionDescription(0, 1, (1,), (1,)),
            PartitionDescription(1, 2, (2,), (2,)),
        )
        return [TopicDescription("t", NULL_UUID, False, partitions)]

    async def describe_producers(self, partitions: Any, broker_id: int | None) -> dict[TopicPartition, Any]:
        self.asked_of.append(broker_id)
        return {where: self.producers.get(where, []) for where in partitions}

    async def list_transactions(self, *, producer_ids: list[int]) -> list[TransactionListing]:
        return [
            TransactionListing(name, 1, producer_id, "Ongoing")
            for producer_id, name in self.ids.items()
            if producer_id in producer_ids
        ]

    async def describe_transactions(self, ids: Any) -> dict[str, Any]:
        return {name: self.descriptions[name] for name in ids}


def find(admin: Known, search: Search) -> list[tuple[str, ...]]:
    return asyncio.run(find_hanging(admin, search))  # type: ignore[arg-type]


def description(*partitions: TopicPartition) -> TransactionDescription:
    return TransactionDescription(1, 5, 3, "Ongoing", 60_000, 0, partitions)


EVERYWHERE = Search("t", None, None, MINUTES_15_MS)


def test_a_producer_that_no_coordinator_knows_hangs() -> None:
    hanging = producer(5, start=42)
    [row] = find(Known(p0=[hanging]), EVERYWHERE)
    assert row[:7] == ("t", "0", "5", "3", "-1", "42", str(hanging.last_timestamp))
    assert int(row[7]) >= 60  # minutes, until now


@pytest.mark.parametrize(
    "answer", [description(ONE), KafkaError(ErrorCode.TRANSACTIONAL_ID_NOT_FOUND)], ids=["elsewhere", "gone"]
)
def test_a_transaction_hangs_if_its_coordinator_does_not_know_the_partition(answer: Any) -> None:
    admin = Known(p0=[producer(5, start=42)])
    admin.ids, admin.descriptions = {5: "orders"}, {"orders": answer}
    assert [row[:3] for row in find(admin, EVERYWHERE)] == [("t", "0", "5")]


def test_a_transaction_that_its_coordinator_will_end_does_not_hang() -> None:
    admin = Known(p0=[producer(5, start=42)])
    admin.ids, admin.descriptions = {5: "orders"}, {"orders": description(ZERO)}
    assert find(admin, EVERYWHERE) == []


def test_young_transactions_and_idle_producers_do_not_hang() -> None:
    admin = Known(p0=[producer(5, start=42, age_ms=60_000), producer(6, start=None)])
    assert find(admin, EVERYWHERE) == []


def test_the_search_of_a_broker_covers_its_replicas_only() -> None:
    admin = Known(p0=[producer(5, start=1)], p1=[producer(6, start=2)])
    assert [row[1] for row in find(admin, Search(None, None, 2, MINUTES_15_MS))] == ["1"]
    assert admin.asked_of == [2]


def test_one_partition_may_be_named() -> None:
    admin = Known(p0=[producer(5, start=1)], p1=[producer(6, start=2)])
    assert [row[1] for row in find(admin, Search("t", 0, None, MINUTES_15_MS))] == ["0"]


@pytest.mark.parametrize(
    ("search", "problem"),
    [
        (Search("other", None, None, 0), "Failed to describe 1 topics: no such topic"),
        (Search("t", 1, None, 0), "Failed to describe producers of t-1: not here"),
    ],
)
def test_a_failed_search_is_reported(search: Search, problem: str) -> None:
    admin = Known(p1=KafkaError(ErrorCode.NOT_LEADER_OR_FOLLOWER, "not here"))
    with pytest.raises(ToolError, match=problem):
        find(admin, search)
