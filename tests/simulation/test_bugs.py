"""The simulation is able to fail: bugs that are planted are found within a bounded number of seeds."""

import pytest

from barnabas.simulation.histories.catalogue import HISTORIES
from barnabas.simulation.world.history import Verdict, live

from .bugs import Bug, is_badly_planted
from .share_bugs import BUGS

SEEDS_MAX = 60  # what a seed does changes with the code: most bugs are found by one of the first ten


@pytest.mark.parametrize(
    "bug",
    [pytest.param(bug, id=bug.name, marks=[pytest.mark.long] if bug.is_long else []) for bug in BUGS],
)
def test_a_bug_is_found(bug: Bug, monkeypatch: pytest.MonkeyPatch) -> None:
    bug.plant(monkeypatch)

    results = (live(HISTORIES[bug.history], seed) for seed in range(bug.first, bug.first + SEEDS_MAX))

    found = next(result for result in results if result.verdict is not Verdict.GOOD)
    assert not is_badly_planted(found), found.details
