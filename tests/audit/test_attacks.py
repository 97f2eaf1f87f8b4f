"""Random damage at every tier, on topics of every kind: the verdicts are compared with the truth.

A world is drawn from a seed: topics with and without LogAppendTime, batches of many codecs, transactions of
which some are aborted, timestamps at the edges of buckets, in the past, in the future and none, tombstones,
records without keys, deleted records. Brokers count or somebody outside. Then a mirror and a consumer lose,
repeat, change and misdirect records. A false alarm fails as a missed loss does.
"""

from __future__ import annotations

import asyncio
import random
from collections import Counter, defaultdict
from collections.abc import Iterator
from dataclasses import dataclass, field

import pytest
from confluent_kafka import Producer

from audit.conftest import COUNTS
from audit.counted import T0, WIDTH, ledger_of
from audit.test_clients import create
from barnabas.audit import PRODUCER, AuditCounter, AuditSettings, consumer
from barnabas.audit.cluster.remote_counter import RemoteCounter
from barnabas.audit.core.batch_counts import Opens
from barnabas.audit.core.buckets import bucket_of
from barnabas.audit.core.report import Rules, alarm_text, make_report
from barnabas.client.admin.admin import Admin
from barnabas.client.admin.offsets import OffsetSpec
from barnabas.client.cluster import Cluster
from barnabas.client.consumer import Consumer, ConsumerSettings
from barnabas.client.core.address import parse_bootstrap
from barnabas.client.core.fetching import ConsumerRecord
from barnabas.client.core.topology import TopicPartition
from barnabas.testing import Broker
from barnabas.testing.waiting import wait_until

PARTITIONS = 2
CODECS = ("none", "gzip", "lz4", "zstd", "snappy")
NEVER = 4_000_000_000_000
FUTURE = T0 + 20_000 * WIDTH
GROUP = consumer("billing")
Place = tuple[str, int, int]  # topic, bucket, partition


@dataclass
class World:
    """What was written, and what each tier saw."""

    bootstrap: str
    dice: random.Random
    topics: dict[str, bool] = field(default_factory=dict)  # with LogAppendTime
    aborted: Counter[str] = field(default_factory=Counter)
    failures: list[object] = field(default_factory=list)

    def timestamp(self) -> int:
        edge = T0 + self.dice.randrange(4) * WIDTH
        return self.dice.choice(
            [
                edge, edge - 1, edge + WIDTH - 1, edge + self.dice.randrange(WIDTH),
                edge + self.dice.randrange(2_000), 1, 5, FUTURE, FUTURE + self.dice.randrange(2 * WIDTH),
            ]
        )  # fmt: skip

    def produce(self, audit: AuditCounter, name: str) -> None:
        """Some flushes of one producer; its batches are not in the order of their timestamps."""
        dice = self.dice
        config: dict[str, object] = {
            "bootstrap.servers": self.bootstrap,
            "compression.type": dice.choice(CODECS),
            "linger.ms": 20,
            "batch.num.messages": dice.choice([1, 7, 10_000]),
            "enable.idempotence": dice.random() < 0.5,
        }
        is_transactional = dice.random() < 0.5
        if is_transactional:
            config |= {"transactional.id": f"{name}-{dice.random()}", "enable.idempotence": True}
        producer = Producer(config)
        if is_transactional:
            producer.init_transactions()
        for _ in range(dice.randrange(1, 5)):
            counts = audit.in_transaction() if is_transactional else audit
            is_commit = not is_transactional or dice.random() < 0.6
            if is_transactional:
                producer.begin_transaction()
            near = self.timestamp()

            def acknowledged(error: object, message: object, counts: object = counts) -> None:
                if error is not None:
                    self.failures.append(error)
                stamp = message.timestamp()[1]  # type: ignore[attr-defined]
                content = audit.content(message.key(), message.value(), stamp)  # type: ignore[attr-defined]
                counts.count(name, stamp, message.partition(), content=content)  # type: ignore[attr-defined]

            sent = dice.randrange(1, 40)
            for number in range(sent):
                # Records of a batch are near each other, and up to some seconds out of order.
                stamp = near if dice.random() < 0.7 else max(near + dice.randrange(-4_000, 4_000), 1)
                producer.produce(
                    name,
                    None if dice.random() < 0.1 else b"%d-%d" % (number, dice.randrange(10**9)),
                    None if dice.random() < 0.3 else b"k%d" % dice.randrange(5),
                    partition=dice.randrange(PARTITIONS),
                    timestamp=stamp,
                    on_delivery=acknowledged,
                )
            assert producer.flush(60) == 0
            if not is_transactional:
                continue
            if is_commit:
                producer.commit_transaction()
                counts.commit()  # type: ignore[union-attr]
            else:
                producer.abort_transaction()
                counts.abort()  # type: ignore[union-attr]
                self.aborted[name] += sent
        assert not self.failures

    async def read(self) -> list[ConsumerRecord]:
        """All committed records."""
        async with Cluster(parse_bootstrap(self.bootstrap)) as cluster:
            reader = Consumer(cluster, ConsumerSettings(read_committed=True))
            places = [TopicPartition(name, each) for name in self.topics for each in range(PARTITIONS)]
            ends = await settled(cluster, places)
            await reader.assign_at(places, OffsetSpec.EARLIEST)
            found: list[ConsumerRecord] = []
            while any(reader.positions[place] < ends[place] for place in places):
                found += await reader.poll(1_000)
            await reader.close()
            return found

    def damage(self, audit: AuditCounter, records: list[ConsumerRecord]) -> dict[Place, list[int]]:
        """A consumer that loses, repeats, changes and misdirects. Returns what is missing, too many, and
        other in each place."""
        dice = self.dice
        truth: dict[Place, list[int]] = defaultdict(lambda: [0, 0])
        changed: set[Place] = set()
        for record in records:
            place = (record.topic, bucket_of(record.timestamp), record.partition)
            times, topic, value = 1, record.topic, record.value
            match dice.randrange(60):
                case 0:
                    times = 0
                case 1:
                    times = 2
                case 2:
                    topic = dice.choice(list(self.topics))
                case 3:
                    value = (value or b"") + b"x"
                    changed.add(place)
            for _ in range(times):
                audit.count(
                    topic, record.timestamp, record.partition,
                    content=audit.content(record.key, value, record.timestamp),
                )  # fmt: skip
            truth[place][0] += 1
            truth[topic, place[1], place[2]][1] += times
            if times != 1 or topic != record.topic:
                changed |= {place, (topic, *place[1:])}
        return {
            place: [max(0, was - seen), max(0, seen - was), int(was == seen and place in changed)]
            for place, (was, seen) in truth.items()
        }


async def settled(cluster: Cluster, places: list[TopicPartition]) -> dict[TopicPartition, int]:
    """Where logs end, when all markers of transactions are written: a commit does not wait for them."""
    while True:
        wanted = dict.fromkeys(places, OffsetSpec.LATEST)
        ends = [
            {place: each.offset for place, each in found.items()}  # type: ignore[union-attr]
            for found in [
                await Admin(cluster).list_offsets(wanted, read_committed=is_committed)
                for is_committed in (False, True)
            ]
        ]
        if ends[0] == ends[1]:
            return ends[0]
        await asyncio.sleep(0.1)


@pytest.fixture(scope="module")
def contents() -> Iterator[Broker]:
    with Broker(overrides={**COUNTS, "barnabas.audit.counts.read": "contents"}) as broker:
        yield broker


def check(world: World, names: list[str], *, wait: bool, has_sums: bool = True) -> None:
    """Nothing is wrong before the damage, and exactly the damage is told after it."""
    bootstrap, dice = world.bootstrap, world.dice
    with AuditCounter(AuditSettings(bootstrap, sums=True), PRODUCER) as audit:
        for name in names:
            is_append_time = dice.random() < 0.25
            create(
                bootstrap, name, PARTITIONS, retention_ms="-1",
                **({"message_timestamp_type": "LogAppendTime"} if is_append_time else {}),
            )  # fmt: skip
            world.topics[name] = is_append_time
            for _ in range(2):
                world.produce(audit, name)
    records = asyncio.run(world.read())
    truth: Counter[tuple[str, int]] = Counter((each.topic, bucket_of(each.timestamp)) for each in records)
    if wait:
        wanted = (truth, +world.aborted)
        wait_until(lambda: counted(world) == wanted, 60, lambda: f"{counted(world)} instead of {wanted}")
    else:
        asyncio.run(count_outside(bootstrap, names))
    with AuditCounter(AuditSettings(bootstrap, sums=True), consumer("fine")) as audit:
        for each in records:
            content = audit.content(each.key, each.value, each.timestamp)
            audit.count(each.topic, each.timestamp, each.partition, content=content)
    ledger = ledger_of(bootstrap)
    report = make_report(ledger, Rules(), NEVER)
    mine = [row for row in report.rows if row.topic in world.topics]
    wrong = [alarm_text(row) for row in mine if row.verdict.state.is_wrong]
    assert not wrong, (wrong, report.notes)
    assert {row.verdict.state.value for row in mine} <= {"no reference", "complete", "late"}
    assert counted(world) == (truth, +world.aborted)

    with AuditCounter(AuditSettings(bootstrap, sums=True), GROUP) as audit:
        damaged = world.damage(audit, records)
    expected: dict[tuple[str, int], list[int]] = {}
    for (topic, bucket, _), numbers in damaged.items():
        whole = expected.setdefault((topic, bucket), [0, 0, 0])
        whole[:] = [mine + other for mine, other in zip(whole, numbers, strict=True)]
    rows = make_report(ledger_of(bootstrap), Rules(), NEVER).rows
    found = {
        (row.topic, row.bucket_ms): (row.verdict.missing, row.verdict.extra, row.verdict.state.value)
        for row in rows
        if row.topic in world.topics and row.tier == GROUP
    }
    for (topic, bucket), (missing, extra, others) in expected.items():
        if bucket < min(each for name, each in found if name == topic):
            continue  # the tier began later: it counted nothing of this bucket
        state = (
            "missing and duplicated" if missing and extra else "missing" if missing
            else "duplicated" if extra else "different" if others and has_sums else ""
        )  # fmt: skip
        seen = found[topic, bucket]
        assert seen[:2] == (missing, extra), (topic, bucket)
        assert seen[2] == state or (not state and seen[2] in ("complete", "late")), (
            topic,
            bucket,
            seen,
            state,
        )


def counted(world: World) -> tuple[Counter[tuple[str, int]], Counter[str]]:
    """What the cluster's counts say: records by topic and bucket, and aborted ones by topic."""
    records: Counter[tuple[str, int]] = Counter()
    aborted: Counter[str] = Counter()
    for (name, bucket), column in ledger_of(world.bootstrap).columns.items():
        if name in world.topics and "cluster" in column:
            records[name, bucket] += column["cluster"].total.counted
            aborted[name] += column["cluster"].total.aborted
    return +records, +aborted


async def count_outside(bootstrap: str, names: list[str]) -> None:
    async with Cluster(parse_bootstrap(bootstrap)) as cluster:
        counter = RemoteCounter(cluster, cluster, tier="cluster", topics=names, opens=Opens.CONTENTS)
        await counter.count_all()
        await counter.close()


SEEDS = [1, *(pytest.param(seed, marks=pytest.mark.long) for seed in range(2, 12))]


@pytest.mark.parametrize("seed", SEEDS)
def test_brokers_that_count_contents_see_exactly_the_damage(contents: Broker, seed: int) -> None:
    names = [f"damaged-{seed}-{number}" for number in range(3)]
    check(World(contents.bootstrap, random.Random(seed)), names, wait=True)


@pytest.mark.parametrize("seed", SEEDS)
def test_brokers_that_count_headers_see_exactly_the_numbers(counting: Broker, seed: int) -> None:
    names = [f"headers-{seed}-{number}" for number in range(3)]
    check(World(counting.bootstrap, random.Random(200 + seed)), names, wait=True, has_sums=False)


@pytest.mark.parametrize("seed", SEEDS)
def test_a_counter_outside_sees_exactly_the_damage(broker: str, seed: int) -> None:
    names = [f"outside-{seed}-{number}" for number in range(3)]
    check(World(broker, random.Random(100 + seed)), names, wait=False)
