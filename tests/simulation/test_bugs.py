"""The simulation is able to fail: bugs that are planted are found within a bounded number of seeds."""

import pytest

from barnabas.simulation.histories.catalogue import HISTORIES
from barnabas.simulation.history import Verdict, live

from .bugs import BUGS, Bug

SEEDS_MAX = 60  # what a seed does changes with the code: most bugs are found by one of the first ten


@pytest.mark.parametrize("bug", BUGS, ids=lambda bug: bug.name)
def test_a_bug_is_found(bug: Bug, monkeypatch: pytest.MonkeyPatch) -> None:
    bug.plant(monkeypatch)

    verdicts = (
        live(HISTORIES[bug.history], seed).verdict for seed in range(bug.first, bug.first + SEEDS_MAX)
    )

    assert any(verdict is not Verdict.GOOD for verdict in verdicts)
