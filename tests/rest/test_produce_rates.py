"""Bounds of all produce requests together."""

from __future__ import annotations

import pytest

from barnabas.rest.produce_rates import ProduceRates
from barnabas.services.errors import ApiError


class Clock:
    def __init__(self) -> None:
        self.now = 0.0

    def __call__(self) -> float:
        return self.now


def taken(rates: ProduceRates, count: int, size: int) -> tuple[int, set[int]]:
    """How many records pass, and the codes of those that do not."""
    passed, codes = 0, set()
    for _ in range(count):
        try:
            rates.spend(size)
            passed += 1
        except ApiError as error:
            assert error.status == 429
            codes.add(error.code)
    return passed, codes


def test_without_bounds_everything_passes() -> None:
    assert taken(ProduceRates(), 10_000, 1_000) == (10_000, set())


@pytest.mark.parametrize(
    ("records", "octets", "size", "expected", "code"),
    [(10, 0, 5, 10, 429001), (0, 100, 5, 20, 429003), (10, 20, 5, 4, 429003)],
)
def test_a_burst_of_a_second_passes_and_then_the_rate(
    records: int, octets: int, size: int, expected: int, code: int
) -> None:
    clock = Clock()
    rates = ProduceRates(records, octets, clock)
    assert taken(rates, 100, size) == (expected, {code})
    clock.now = 0.5
    assert taken(rates, 100, size) == (expected // 2, {code})
