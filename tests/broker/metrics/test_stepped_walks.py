"""Counts that need a walk over all partitions or descriptors pause on the way: the loop serves others."""

from collections.abc import Generator
from pathlib import Path
from types import SimpleNamespace
from typing import Any

from barnabas.broker.metrics import Metrics
from barnabas.broker.metrics.parts import partition_tables, quota_gauges, replica_gauges
from barnabas.broker.metrics.parts.process_gauges import DESCRIPTORS_A_STEP, open_descriptors
from barnabas.broker.partitions.partitions import Partitions
from barnabas.metrics.exposition import Page


def finished(steps: Generator[None, None, list[int]]) -> tuple[int, list[int]]:
    """The number of pauses, and the result."""
    pauses = 0
    while True:
        try:
            next(steps)
        except StopIteration as done:
            return pauses, done.value
        pauses += 1


def test_descriptors_are_counted_in_steps(tmp_path: Path) -> None:
    for number in range(3 * DESCRIPTORS_A_STEP):
        (tmp_path / str(number)).touch()
    assert finished(open_descriptors(str(tmp_path))) == (3, [3 * DESCRIPTORS_A_STEP])


def test_a_system_without_a_list_of_descriptors_shows_minus_one(tmp_path: Path) -> None:
    assert finished(open_descriptors(str(tmp_path / "none"))) == (0, [-1])


def broker_with(count: int) -> Any:
    """A stand-in with partitions: each second one is led here, each fourth one of those lacks a replica."""
    partitions = Partitions(lambda: Any)
    for index in range(count):
        is_under = index % 8 == 0
        partitions.by_name["t", index] = SimpleNamespace(  # type: ignore[assignment]
            topic="t",
            index=index,
            is_leader=index % 2 == 0,
            replica_count=3,
            min_insync_replicas=2,
            state=SimpleNamespace(isr=[1, 2] if is_under else [1, 2, 3]),
            log=SimpleNamespace(
                producers_loaded=index < 2,
                producers=Producers(1 if index == 0 else -1),
            ),
        )
    return SimpleNamespace(
        partitions=partitions,
        clock=SimpleNamespace(now_ms=lambda: 10**12),
        settings={"transaction.max.timeout.ms": 900_000},
        image=SimpleNamespace(topics=SimpleNamespace(partition=lambda topic, index: None)),
    )


class Producers:
    def __init__(self, begun_ms: int) -> None:
        self._begun_ms = begun_ms

    def __len__(self) -> int:
        return 3

    def oldest_transaction_timestamp(self) -> int:
        return self._begun_ms


def test_one_walk_in_steps_counts_partitions_for_all_gauges() -> None:
    pauses, found = finished(replica_gauges.count(broker_with(320), tuple(replica_gauges.COUNTED)))
    assert pauses == 10
    assert dict(zip(replica_gauges.COUNTED, found, strict=True)) == {
        "LeaderCount": 160,
        "UnderReplicatedPartitions": 40,
        "UnderMinIsrPartitionCount": 0,
        "AtMinIsrPartitionCount": 40,
        "ReassigningPartitions": 0,
        "ProducerIdCount": 6,
        "PartitionsWithLateTransactionsCount": 1,
    }


def test_partitions_that_go_during_a_walk_are_left_out() -> None:
    broker = broker_with(64)
    walk = replica_gauges.count(broker, ("LeaderCount",))
    next(walk)
    for index in range(32, 64):
        del broker.partitions.by_name["t", index]
    assert finished(walk)[1] == [16]


def test_rows_of_partitions_are_made_as_they_are_read() -> None:
    broker = broker_with(64)
    rows = iter(partition_tables.rows(broker))
    assert next(rows)[0] == (("topic", "t"), ("partition", "0"))
    broker.partitions.by_name.clear()  # a scrape is under way, and goes on over what it saw
    assert len(list(rows)) == 63


def test_quotas_of_clients_are_looked_at_one_by_one() -> None:
    looked: list[str] = []

    def look(share: Any) -> float:
        looked.append(share)
        return 1.0

    shares = {("ann", "shop"): "first", ("ann", ""): "second"}
    quotas: Any = SimpleNamespace(produce=SimpleNamespace(shares=lambda: iter(shares.items())), fetch=None)
    rows = iter(quota_gauges.rows(quotas, "produce", look)())
    assert next(rows) == ((("user", "ann"), ("client-id", "shop")), 1.0)
    assert looked == ["first"]
    assert list(quota_gauges.rows(quotas, "fetch", look)()) == []


def test_a_page_pauses_after_each_histogram() -> None:
    """One adds up the buckets of all versions of a request."""
    metrics = Metrics()
    for key in range(30):
        metrics.api(key).observe(1)
    name = "kafka_network_requestmetrics_totaltimems"
    parts = list(Page(metrics.registry, names=[name]).parts())
    assert max(part.count(f"{name}_count{{") for part in parts) == 1
    assert "".join(parts).count(f"{name}_count{{") >= 30
