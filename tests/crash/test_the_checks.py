"""The crash tests' own checks: they notice what they are there for."""

from __future__ import annotations

import pytest

from .test_kill_nine import check
from .writers import RawWriter


def writer() -> RawWriter:
    made = RawWriter(0, "t", 0, acks=1)
    made.acknowledged = {0: 10, 1: 11, 3: 13}
    made.uncertain = {12, 14}
    return made


GOOD = [(0, 10), (1, 11), (2, 12), (3, 13)]


def test_what_was_promised_passes() -> None:
    check(writer(), GOOD)
    check(writer(), [*GOOD, (4, 14)])


@pytest.mark.parametrize(
    ("records", "complaint"),
    [
        (GOOD[:3], "not at their offsets"),
        ([(0, 10), (1, 11), (3, 13)], "not dense"),
        ([(0, 10), (1, 11), (2, 11), (3, 13)], "out of order or twice"),
        ([(0, 10), (1, 13), (2, 12), (3, 11)], "out of order or twice"),
        ([*GOOD, (4, 99)], "nobody sent"),
    ],
)
def test_what_was_not_is_noticed(records: list[tuple[int, int]], complaint: str) -> None:
    with pytest.raises(AssertionError, match=complaint):
        check(writer(), records)
