"""Histories in which all fetches of consumers and followers are served in pieces of one partition."""

from __future__ import annotations

import pytest

from barnabas.simulation.histories.catalogue import ALL_HISTORIES
from barnabas.simulation.world.history import Verdict, live
from broker.fetches_in_pieces import in_pieces

__all__ = ["in_pieces"]


@pytest.mark.usefixtures("in_pieces")
@pytest.mark.parametrize(
    ("name", "seed"),
    [
        ("records", 0),
        ("cluster-records", 0),
        pytest.param("cluster-transactions", 0, marks=pytest.mark.long),
        pytest.param("cluster-groups", 0, marks=pytest.mark.long),
    ],
)
def test_histories_with_fetches_in_pieces_are_good(name: str, seed: int) -> None:
    result = live(ALL_HISTORIES[name], seed)

    assert result.verdict is Verdict.GOOD, f"{result}\n{result.details}"
