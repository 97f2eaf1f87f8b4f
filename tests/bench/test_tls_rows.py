"""A tiny round of the rows through TLS on our broker alone."""

from __future__ import annotations

import pytest
from bench.rounds import Comparison

from bench import generator, loads

NAMES = ["tls-produce-880k", "tls-produce-15k", "tls-fetch", "tls-connections"]


@pytest.mark.long
def test_every_row_has_a_value() -> None:
    comparison = Comparison(loads.TINY, 1, lambda _: None, alone="barnabas")
    found = comparison.run(NAMES)
    if any("libssl-dev" in reason or "without TLS" in reason for reason in comparison.failures.values()):
        pytest.skip(f"{generator.name()} was compiled without OpenSSL")
    assert [result.row.name for result in found] == NAMES
    assert all(len(result.ours) == 1 and result.ours[0] > 0 for result in found)
