"""Which connection to a leader a partition is fetched over."""

from __future__ import annotations

from collections import Counter
from types import SimpleNamespace
from typing import Any

from barnabas.broker.replicas.following import COUNT, Following, fetcher_number


def test_partitions_are_spread_over_fetchers_as_kafka_spreads_them() -> None:
    # Utils.abs(31 * "orders".hashCode() + partition) % fetchers, with "orders".hashCode() of -1008770331
    assert [fetcher_number("orders", index, 4) for index in range(4)] == [
        abs((31 * -1008770331 + index + 2**31) % 2**32 - 2**31) % 4 for index in range(4)
    ]
    assert Counter(fetcher_number("many", index, 4) for index in range(1000)) == dict.fromkeys(range(4), 250)


def test_one_fetcher_gets_all_partitions() -> None:
    assert {fetcher_number("orders", index, 1) for index in range(100)} == {0}


def test_a_stopping_broker_fetches_from_no_leader() -> None:
    """The metadata changes meanwhile; a fetch would then bring records for a closed log."""
    settings = {COUNT: 1, "replication.quota.window.num": 11, "replication.quota.window.size.seconds": 1}
    dynamic = SimpleNamespace(on_change=lambda names, told: None)
    broker: Any = SimpleNamespace(settings=settings, dynamic=dynamic)
    partition: Any = SimpleNamespace(topic="orders", topic_id=b"t" * 16, index=0)
    following = Following(broker, broker)

    following.close()
    following.follow(partition, leader_id=2, leader_epoch=7)

    assert following.fetcher_count == following.partition_count == 0
