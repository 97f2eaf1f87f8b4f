"""Which connection to a leader a partition is fetched over."""

from __future__ import annotations

from collections import Counter

from barnabas.broker.following import fetcher_number


def test_partitions_are_spread_over_fetchers_as_kafka_spreads_them() -> None:
    # Utils.abs(31 * "orders".hashCode() + partition) % fetchers, with "orders".hashCode() of -1008770331
    assert [fetcher_number("orders", index, 4) for index in range(4)] == [
        abs((31 * -1008770331 + index + 2**31) % 2**32 - 2**31) % 4 for index in range(4)
    ]
    assert Counter(fetcher_number("many", index, 4) for index in range(1000)) == dict.fromkeys(range(4), 250)


def test_one_fetcher_has_all() -> None:
    assert {fetcher_number("orders", index, 1) for index in range(100)} == {0}
