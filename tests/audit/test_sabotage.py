"""Records are lost, repeated and delayed on purpose at each tier, and the audit names the place.

producer (interceptor) → cluster (the broker counts) → mirror/dc2 (counted from outside) → consumer/billing
"""

from __future__ import annotations

import asyncio
import socket
import time
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field

import pytest

from audit.conftest import COUNTS
from audit.counted import WIDTH, ledger_of, wait_for_counts
from barnabas.audit import PRODUCER, AuditCounter, AuditSettings, consumer, mirror
from barnabas.audit.clients.interceptors import AuditConsumer, AuditProducer
from barnabas.audit.cluster.remote_counter import RemoteCounter
from barnabas.audit.core.report import Report, Rules, make_report
from barnabas.client.admin.offsets import OffsetSpec
from barnabas.client.cluster import Cluster
from barnabas.client.consumer import Consumer
from barnabas.client.core.address import parse_bootstrap
from barnabas.client.core.fetching import ConsumerRecord
from barnabas.client.core.topology import TopicPartition
from barnabas.client.producer import Producer
from barnabas.testing import Broker

PARTITIONS = 3
RECORDS = 60
MIRROR, GROUP = mirror("dc2"), consumer("billing")
TIERS = ["cluster", MIRROR, GROUP]
PLACES = [TopicPartition("orders", each) for each in range(PARTITIONS)]


@dataclass
class World:
    """Two clusters with a mirror between them, and a consumer of the first one."""

    first: Broker
    second: Broker
    bucket: int
    damage: dict[str, dict[int, int]] = field(default_factory=dict)  # by tier: how often a record passes

    def passes(self, tier: str, number: int) -> range:
        return range(self.damage.get(tier, {}).get(number, 1))

    def counter(self, tier: str) -> AuditCounter:
        settings = AuditSettings(self.first.bootstrap, window_ms=50, host=f"host-of-{tier}")
        return AuditCounter(settings, tier)

    async def produce(self, numbers: Iterable[int]) -> None:
        """The producer counts every record once, whatever happens to it on its way."""
        with self.counter(PRODUCER) as audit:
            async with (
                Cluster(parse_bootstrap(self.first.bootstrap)) as cluster,
                Producer(cluster) as producer,
            ):
                for number in numbers:
                    stamp = self.bucket + number
                    for _ in self.passes("cluster", number):
                        await producer.send(
                            "orders", str(number).encode(), partition=number % PARTITIONS, timestamp_ms=stamp
                        )
                    audit.count("orders", stamp, number % PARTITIONS)

    async def read(self, audit: AuditCounter | None = None) -> list[ConsumerRecord]:
        async with Cluster(parse_bootstrap(self.first.bootstrap)) as cluster:
            reader = Consumer(cluster, interceptors=[AuditConsumer(audit)] if audit else ())
            await reader.assign_at(PLACES, OffsetSpec.LATEST)
            ends = dict(reader.positions)
            await reader.assign_at(PLACES, OffsetSpec.EARLIEST)
            found: list[ConsumerRecord] = []
            while any(reader.positions[place] < end for place, end in ends.items()):
                found += await reader.poll(1000)
            await reader.close()
            return found

    async def copy(self, *, only_damaged: bool = False) -> None:
        """The mirror, and the counter that looks at the cluster behind it."""
        async with Cluster(parse_bootstrap(self.second.bootstrap)) as there:
            async with Producer(there) as producer:
                for record in await self.read():
                    number = int(record.value or b"")
                    is_damaged = number in self.damage.get(MIRROR, {})
                    for _ in range(1) if only_damaged and is_damaged else self.passes(MIRROR, number):
                        if is_damaged or not only_damaged:
                            await producer.send(
                                "orders",
                                record.value,
                                partition=record.partition,
                                timestamp_ms=record.timestamp,
                            )
            async with Cluster(parse_bootstrap(self.first.bootstrap)) as here:
                counter = RemoteCounter(there, here, tier=MIRROR)
                await counter.count_all()
                await counter.close()

    async def consume(self) -> None:
        with self.counter(GROUP) as audit:
            for record in await self.read():
                for _ in self.passes(GROUP, int(record.value or b"")):
                    audit.count("orders", record.timestamp, record.partition)

    def report(self, rules: Rules | None = None, after_ms: int = 3_600_000) -> Report:
        return make_report(ledger_of(self.first.bootstrap), rules or Rules(), self.bucket + WIDTH + after_ms)


@pytest.fixture
def world() -> Iterator[World]:
    now_ms = int(time.time() * 1000)
    with Broker(overrides=COUNTS) as first, Broker() as second:
        for each in (first, second):
            each.create_topic("orders", PARTITIONS)
        yield World(first, second, now_ms - now_ms % WIDTH)


def run_all(world: World) -> None:
    asyncio.run(world.produce(range(RECORDS)))
    written = RECORDS + sum(times - 1 for times in world.damage.get("cluster", {}).values())
    wait_for_counts(world.first.bootstrap, "orders", "cluster", {world.bucket: written})
    asyncio.run(world.copy())
    asyncio.run(world.consume())


def damages(report: Report) -> list[tuple[str, int, int, tuple[int, ...]]]:
    return [
        (row.tier, row.verdict.missing, row.verdict.extra, row.verdict.partitions) for row in report.alarms
    ]


def test_nothing_is_said_where_nothing_happened(world: World) -> None:
    run_all(world)
    report = world.report()
    assert damages(report) == [] and not report.notes
    assert [(row.tier, row.verdict.state.value) for row in report.rows] == [
        (PRODUCER, "no reference"), ("cluster", "complete"), (MIRROR, "complete"), (GROUP, "complete"),
    ]  # fmt: skip


@pytest.mark.parametrize("tier", TIERS)
def test_lost_and_repeated_records_are_named_with_their_tier_partition_and_host(
    world: World, tier: str
) -> None:
    """Two records of partition 1 are lost, and one of partition 2 comes three times."""
    world.damage = {tier: {4: 0, 7: 0, 8: 3}}
    run_all(world)
    report = world.report()
    row = next(row for row in report.alarms)
    assert len(report.alarms) == 1
    verdict = row.verdict
    assert (row.topic, row.bucket_ms, row.tier) == ("orders", world.bucket, tier)
    assert (verdict.missing, verdict.extra, verdict.partitions) == (2, 2, (1, 2))
    assert row.hosts == (host_of(tier),)


def host_of(tier: str) -> str:
    """The mirrored cluster is counted from this machine."""
    return {"cluster": "broker-1", MIRROR: socket.gethostname()}.get(tier, f"host-of-{tier}")


@pytest.mark.parametrize("tier", TIERS)
def test_delayed_records_are_in_flight_then_missing_then_late(world: World, tier: str) -> None:
    """They arrive after all: the alarm ends, and the bucket stays marked."""
    world.damage = {tier: {4: 0}}
    run_all(world)
    rules = Rules(patience_ms={tier: 60_000})
    states = {after: state_of(world.report(rules, after), tier) for after in (59_000, 60_000)}
    assert states == {59_000: "in flight", 60_000: "missing"}
    if tier == "cluster":
        asyncio.run(resend(world, 4))
        wait_for_counts(world.first.bootstrap, "orders", "cluster", {world.bucket: RECORDS})
    elif tier == MIRROR:
        asyncio.run(world.copy(only_damaged=True))
    else:
        with world.counter(GROUP) as audit:
            audit.count("orders", world.bucket + 4, 4 % PARTITIONS)
    assert state_of(world.report(rules), tier) == "complete"
    # The same counts, had they arrived an hour after the end of the bucket.
    hasty = Rules(patience_ms={tier: -WIDTH - 3_600_000})
    assert state_of(world.report(hasty), tier) == "late"


async def resend(world: World, number: int) -> None:
    async with Cluster(parse_bootstrap(world.first.bootstrap)) as cluster, Producer(cluster) as producer:
        await producer.send(
            "orders", str(number).encode(), partition=number % PARTITIONS, timestamp_ms=world.bucket + number
        )


def state_of(report: Report, tier: str) -> str:
    return next(row.verdict.state.value for row in report.rows if row.tier == tier)


def test_a_producer_that_dies_between_acknowledgement_and_count_is_told(world: World) -> None:
    async def produce() -> None:
        audit = world.counter(PRODUCER)
        async with Cluster(parse_bootstrap(world.first.bootstrap)) as cluster:
            async with Producer(cluster, interceptors=[AuditProducer(audit)]) as producer:
                await producer.send("orders", b"0", partition=0, timestamp_ms=world.bucket)
            assert await asyncio.to_thread(audit.flush)
            async with Producer(cluster) as producer:  # the counts of these die with the process
                await producer.send("orders", b"3", partition=0, timestamp_ms=world.bucket)
        audit._thread = None  # nobody closes it

    asyncio.run(produce())
    wait_for_counts(world.first.bootstrap, "orders", "cluster", {world.bucket: 2})
    report = world.report()
    assert state_of(report, "cluster") == "uncertain" and not report.alarms
    assert [note for note in report.notes if "host-of-producer ended without its last counts" in note]


def test_a_consumer_that_rewinds_is_above_100_percent(world: World) -> None:
    world.damage = {}
    asyncio.run(world.produce(range(6)))
    wait_for_counts(world.first.bootstrap, "orders", "cluster", {world.bucket: 6})
    asyncio.run(world.consume())
    asyncio.run(world.consume())
    row = next(row for row in world.report().alarms)
    assert (row.tier, row.verdict.extra, row.completeness) == (GROUP, 6, "200")
