"""Rates of counts that are looked at now and then."""

from __future__ import annotations

from barnabas.metrics.growth import Growth


def test_a_rate_covers_the_last_half_minute() -> None:
    growth = Growth({"records": 100.0}, 0.0)
    assert growth.rates({"records": 100.0}, 0.0) == {"records": 0.0}
    assert growth.rates({"records": 150.0}, 10.0) == {"records": 5.0}
    for second in range(20, 100, 10):
        rates = growth.rates({"records": 150.0 + second}, float(second))
    assert rates == {"records": 1.0}


def test_a_count_that_is_new_began_at_zero_and_one_that_began_again_has_no_rate() -> None:
    growth = Growth({"old": 50.0}, 0.0)
    assert growth.rates({"old": 10.0, "new": 20.0}, 10.0) == {"old": 0.0, "new": 2.0}


def test_readers_that_come_often_do_not_shorten_the_window() -> None:
    growth = Growth({"records": 0.0}, 0.0)
    for tenth in range(1000):
        rates = growth.rates({"records": tenth * 3.0}, tenth / 10)
    assert 29.0 < rates["records"] < 31.0
