"""Unclean elections remove records that were counted: their counts are taken back, and the report tells it.

Of three nodes, two have a copy of the topic. The follower stops, the leader goes on alone and stops too; then
the follower comes back, and leads without the newest records.
"""

from __future__ import annotations

import asyncio

import pytest
from confluent_kafka import Producer

from audit.conftest import COUNTS
from audit.counted import LATER, T0, counts, ledger_of, wait_for_counts
from barnabas.audit.cluster.remote_counter import RemoteCounter
from barnabas.audit.core.report import Rules, make_report
from barnabas.client.cluster import Cluster as Client
from barnabas.client.core.address import parse_bootstrap
from barnabas.client.core.errors import ClientError
from barnabas.protocol import KafkaError
from barnabas.testing.cluster import Cluster
from barnabas.testing.waiting import wait_until

pytestmark = pytest.mark.timeout(280)
TOPIC = "orders"
OUTSIDE = "mirror/outside"


def produce(bootstrap: str, number: int, first: int) -> None:
    """Each record in a batch of its own."""
    producer = Producer({"bootstrap.servers": bootstrap, "acks": 1, "linger.ms": 0})
    for each in range(number):
        producer.produce(TOPIC, b"v", partition=0, timestamp=T0 + first + each)
        assert producer.flush(60) == 0


def count_outside(bootstrap: str) -> int:
    """Count once, after all partitions, also those of the audit topic, have leaders."""
    found: list[int] = []

    def attempt() -> bool:
        try:
            found.append(count_once(bootstrap))
        except (KafkaError, ClientError):
            return False
        return True

    wait_until(attempt, 60)
    return found[0]


def count_once(bootstrap: str) -> int:
    async def count() -> int:
        async with Client(parse_bootstrap(bootstrap)) as cluster:
            counter = RemoteCounter(cluster, cluster, tier=OUTSIDE, topics=[TOPIC])
            try:
                return await counter.count_all()
            finally:
                await counter.close()

    return asyncio.run(count())


def leader_and_isr(bootstrap: str) -> tuple[int, list[int]]:
    async def look() -> tuple[int, list[int]]:
        async with Client(parse_bootstrap(bootstrap)) as cluster:
            await cluster.topics([TOPIC])
            partition = cluster.topology.topics[TOPIC].partitions[0]
            return partition.leader, sorted(partition.isr)

    return asyncio.run(look())


@pytest.mark.long
def test_counts_of_records_that_an_unclean_election_removes_are_taken_back() -> None:
    with Cluster(combined=3, overrides=COUNTS) as cluster:
        bootstrap = cluster.bootstrap
        cluster.create_topic(TOPIC, 1, 2, {"unclean.leader.election.enable": "true"})
        wait_until(lambda: len(leader_and_isr(bootstrap)[1]) == 2, 30)
        first = leader_and_isr(bootstrap)[0]
        second = next(each for each in leader_and_isr(bootstrap)[1] if each != first)
        produce(bootstrap, 20, 0)
        wait_for_counts(bootstrap, TOPIC, "cluster", {T0: 20})
        assert count_outside(bootstrap) == 20
        cluster[second].kill()
        wait_until(lambda: leader_and_isr(bootstrap)[1] == [first], 60)
        produce(bootstrap, 12, 20)
        wait_for_counts(bootstrap, TOPIC, "cluster", {T0: 32})
        assert count_outside(bootstrap) == 12
        cluster[first].kill()
        cluster[second].start()
        wait_until(lambda: leader_and_isr(bootstrap)[0] == second, 90)
        produce(bootstrap, 5, 100)
        wait_for_counts(bootstrap, TOPIC, "cluster", {T0: 25})
        count_outside(bootstrap)
        assert counts(bootstrap, TOPIC, OUTSIDE) == {T0: 25}
        cluster[first].start()
        wait_until(lambda: len(leader_and_isr(bootstrap)[1]) == 2, 60)
        produce(bootstrap, 30, 200)
        wait_for_counts(bootstrap, TOPIC, "cluster", {T0: 55})
        count_outside(bootstrap)
        assert counts(bootstrap, TOPIC, OUTSIDE) == {T0: 55}
        ledger = ledger_of(bootstrap)
        assert not ledger.conflicts and not list(ledger.gaps())
        notes = make_report(ledger, Rules(), LATER).notes
        assert ledger.lost
        assert [each for each in notes if "then lost in an unclean leader election" in each]
