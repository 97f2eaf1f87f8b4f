"""Leaders come and go while records are produced: each record is counted once all the same."""

from __future__ import annotations

import pytest
from confluent_kafka import Producer

from audit.conftest import COUNTS
from audit.counted import T0, ledger_of, wait_for_counts
from barnabas.testing.cluster import Cluster

PARTITIONS = 6
pytestmark = pytest.mark.timeout(280)


@pytest.mark.long
def test_records_are_counted_once_while_brokers_are_killed_and_paused() -> None:
    """Others lead the partitions of a killed broker; a paused one wakes up as an old leader."""
    with Cluster(combined=3, overrides=COUNTS) as cluster:
        cluster.create_topic("orders", PARTITIONS, 3)
        # librdkafka sends what a paused broker got to its new leader when this time is over, 60 s by default.
        patience = {"enable.idempotence": True, "socket.timeout.ms": 10_000}
        producer = Producer({"bootstrap.servers": cluster.bootstrap, **patience})
        produced = 0

        def produce(number: int) -> None:
            nonlocal produced
            for each in range(number):
                producer.produce("orders", b"v", partition=each % PARTITIONS, timestamp=T0 + each)
            assert producer.flush(60) == 0
            produced += number

        produce(600)
        wait_for_counts(cluster.bootstrap, "orders", "cluster", {T0: produced})
        for node, disturb in ((1, "kill"), (2, "pause")):
            produce(300)
            getattr(cluster[node], disturb)()
            produce(300)
            if disturb == "kill":
                cluster[node].start()
            else:
                cluster[node].resume()
            produce(300)
            wait_for_counts(cluster.bootstrap, "orders", "cluster", {T0: produced})
        ledger = ledger_of(cluster.bootstrap)
        assert not ledger.conflicts and not list(ledger.gaps()) and not ledger.expired
        hosts = ledger.columns["orders", T0]["cluster"].hosts
        assert len(hosts) > 1, "several brokers have counted"
