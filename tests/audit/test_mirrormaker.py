"""Apache's MirrorMaker 2 fills a cluster: the audit compares it with the cluster that it reads.

It renames topics, keeps partitions, timestamps, keys, values and headers. Brokers of ours count their
clusters, and a counter outside looks at others, such as Apache Kafka.
"""

from __future__ import annotations

import asyncio
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
from confluent_kafka import Consumer, Producer, TopicPartition

from audit.conftest import COUNTS
from audit.counted import LATER, T0, WIDTH, ledger_of, wait_for_counts
from barnabas.audit.cluster.remote_counter import RemoteCounter
from barnabas.audit.core.batch_counts import Opens
from barnabas.audit.core.report import Report, make_report
from barnabas.audit.report.rules_file import rules_of
from barnabas.client.cluster import Cluster
from barnabas.client.core.address import parse_bootstrap
from barnabas.testing import Broker, maven
from barnabas.testing.waiting import wait_until

pytestmark = [pytest.mark.timeout(280), pytest.mark.long]
NAME, JARS = "apache-mirror-4.3.1", ("org.apache.kafka:connect-mirror:4.3.1", "org.slf4j:slf4j-simple:1.7.36")
MIRROR = "mirror/dc2"
RULES = {"tiers": {MIRROR: {"reference": "cluster", "topics": {"dc1.orders": "orders"}}}}
RECORDS = 300
CONTENTS = {**COUNTS, "barnabas.audit.counts.read": "contents"}


@contextmanager
def mirror_maker(folder: Path, source: str, target: str, topics: str) -> Iterator[None]:
    """One process, as its users start it."""
    reason = maven.missing(NAME, JARS)
    if reason is not None:
        pytest.skip(reason)
    jars = maven.fetch(NAME, JARS)
    path = folder / "mm2.properties"
    path.write_text(
        f"clusters=dc1,dc2\ndc1.bootstrap.servers={source}\ndc2.bootstrap.servers={target}\n"
        f"dc1->dc2.enabled=true\ndc1->dc2.topics={topics}\ndc2->dc1.enabled=false\n"
        "replication.factor=1\ncheckpoints.topic.replication.factor=1\nheartbeats.topic.replication.factor=1\n"
        "offset-syncs.topic.replication.factor=1\noffset.storage.replication.factor=1\n"
        "status.storage.replication.factor=1\nconfig.storage.replication.factor=1\n"
        "sync.topic.acls.enabled=false\nemit.heartbeats.enabled=false\nemit.checkpoints.enabled=false\n"
        "refresh.topics.interval.seconds=5\nscheduled.rebalance.max.delay.ms=0\ntasks.max=2\n"
        "consumer.auto.offset.reset=earliest\n"
    )
    log = (folder / "mm2.log").open("wb")
    command = ["java", "-Xmx400m", "-XX:TieredStopAtLevel=1", "-cp", f"{jars}/*"]
    command += ["org.apache.kafka.connect.mirror.MirrorMaker", str(path)]
    process = subprocess.Popen(command, stdout=log, stderr=log)
    try:
        yield
    finally:
        process.terminate()
        process.wait(60)
        log.close()


def produce(bootstrap: str) -> None:
    producer = Producer({"bootstrap.servers": bootstrap, "compression.type": "lz4"})
    for number in range(RECORDS):
        producer.produce(
            "orders",
            None if number % 10 == 0 else b"v%d" % number,
            None if number % 3 else b"k%d" % (number % 7),
            partition=number % 3,
            timestamp=T0 + WIDTH * (number % 2) + number,
            headers=[("origin", b"shop"), ("number", b"%d" % number)],
        )
    assert producer.flush(30) == 0


def count_second(first: str, second: str) -> int:
    async def count() -> None:
        async with (
            Cluster(parse_bootstrap(second)) as there,
            Cluster(parse_bootstrap(first)) as here,
        ):
            counter = RemoteCounter(there, here, tier=MIRROR, topics=["dc1.orders"], opens=Opens.CONTENTS)
            try:
                await counter.count_all()
            finally:
                await counter.close()

    asyncio.run(count())
    return mirrored(first)


def mirrored(bootstrap: str) -> int:
    """Records that the mirrored cluster has, as the audit topic tells."""
    return sum(
        column[MIRROR].total.counted
        for (name, _), column in ledger_of(bootstrap).columns.items()
        if name == "dc1.orders" and MIRROR in column
    )


def report(bootstrap: str) -> Report:
    return make_report(ledger_of(bootstrap), rules_of(RULES), LATER + 10 * 365 * 86_400_000)


def check_headers(bootstrap: str) -> None:
    """The mirror keeps headers, so records can be followed through it."""
    reader = Consumer({"bootstrap.servers": bootstrap, "group.id": "g"})
    reader.assign([TopicPartition("dc1.orders", 1, 0)])
    message = reader.poll(30)
    assert message is not None and message.error() is None
    assert message.headers() == [("origin", b"shop"), ("number", b"1")]
    reader.close()


def test_a_cluster_that_mirrormaker_fills_is_compared_with_its_source(tmp_path: Path) -> None:
    """The first cluster counts itself. The second one is counted from outside."""
    with Broker(overrides=CONTENTS) as first, Broker() as second:
        first.create_topic("orders", 3)
        produce(first.bootstrap)
        wait_for_counts(first.bootstrap, "orders", "cluster", {T0: 150, T0 + WIDTH: 150})
        with mirror_maker(tmp_path, first.bootstrap, second.bootstrap, "orders"):
            wait_until(lambda: count_second(first.bootstrap, second.bootstrap) >= RECORDS, 150)
        check_headers(second.bootstrap)
        rows = [row for row in report(first.bootstrap).rows if row.tier == MIRROR]
        assert [(row.topic, row.verdict.expected, row.verdict.seen) for row in rows] == [
            ("dc1.orders", 150, 150)
        ] * 2
        assert {row.verdict.state.value for row in rows} <= {"complete", "late"}, "sums of contents agree too"
        producer = Producer({"bootstrap.servers": second.bootstrap})
        producer.produce("dc1.orders", b"extra", partition=2, timestamp=T0 + 4)
        assert producer.flush(30) == 0
        count_second(first.bootstrap, second.bootstrap)
        [row] = report(first.bootstrap).alarms
        assert (row.tier, row.verdict.extra, row.verdict.partitions) == (MIRROR, 1, (2,))


@pytest.mark.java
def test_mirrormaker_between_apache_kafka_and_ours_is_counted_from_outside(
    tmp_path: Path, apache_kafka: object
) -> None:
    source = apache_kafka.bootstrap  # type: ignore[attr-defined]
    with Broker(overrides={**CONTENTS, "barnabas.audit.counts.tier": MIRROR}) as second:
        apache_kafka.create_topic("orders", 3, {"retention.ms": "-1"})  # type: ignore[attr-defined]
        produce(source)

        async def count_source() -> int:
            async with (
                Cluster(parse_bootstrap(source)) as there,
                Cluster(parse_bootstrap(second.bootstrap)) as here,
            ):
                counter = RemoteCounter(there, here, tier="cluster", topics=["orders"], opens=Opens.CONTENTS)
                try:
                    return await counter.count_all()
                finally:
                    await counter.close()

        assert asyncio.run(count_source()) == RECORDS
        with mirror_maker(tmp_path, source, second.bootstrap, "orders"):
            wait_until(lambda: mirrored(second.bootstrap) >= RECORDS, 150)
        found = report(second.bootstrap)
        rows = [row for row in found.rows if row.topic == "dc1.orders"]
        assert {(row.tier, row.references) for row in rows} == {(MIRROR, ("cluster",))}
        assert {row.verdict.state.value for row in rows} <= {"complete", "late"} and len(rows) == 2
        assert not found.alarms
