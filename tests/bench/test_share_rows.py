"""A tiny round of the rows about share groups on our broker alone."""

from __future__ import annotations

import pytest
from bench.rounds import Comparison

from bench import loads

NAMES = [*(f"share-consume-{size}" for size in (1, 10, 50)), "share-latency-p99", "share-memory"]


@pytest.mark.long
def test_every_row_has_a_value() -> None:
    found = Comparison(loads.TINY, 1, lambda _: None, alone="barnabas").run(NAMES)
    assert sorted(result.row.name for result in found) == sorted(NAMES)
    assert all(len(result.ours) == 1 and result.ours[0] > 0 for result in found)
