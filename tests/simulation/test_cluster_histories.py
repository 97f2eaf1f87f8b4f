"""Seeds of histories of a cluster, and bugs of clusters that are found. `make test-long` tries a few hundred
seeds, `make simulate HISTORY=cluster SEEDS=N` as many as one likes."""

import os
import subprocess
import sys
from typing import Any

import pytest

from barnabas.simulation.histories.catalogue import CLUSTER_HISTORIES
from barnabas.simulation.world.history import Verdict, live

from .bugs import is_badly_planted
from .cluster_bugs import ClusterBug
from .share_bugs import CLUSTER_BUGS

SEEDS = {
    "cluster-records": 140,
    "cluster-groups": 80,
    "cluster-transactions": 80,
    "cluster-logins": 40,
    "cluster-registry": 40,
    "cluster-streams": 40,
    "cluster-shares": 80,
}
AT_ONCE = 3  # seeds of a test; the first of each kind is alone
SEEDS_MAX = 20  # of a bug: most are found by the first
REPLAYED = "cluster-records", 3

# Seeds that once found a bug; what they do changes with the code, and they may find another one.
REMEMBERED = [
    ("cluster-records", 22),
    ("cluster-records", 16),
    ("cluster-records", 163),
    ("cluster-records", 40070),
    ("cluster-groups", 30092),
    ("cluster-transactions", 30092),
    ("cluster-records", 301208),
    ("cluster-transactions", 300488),
    ("cluster-transactions", 300968),
    ("cluster-transactions", 301263),
    ("cluster-transactions", 500040),
    ("cluster-groups", 910530),
    ("cluster-groups", 910857),
    ("cluster-records", 923247),
    ("cluster-registry", 910125),
    ("cluster-logins", 447),
    ("cluster-shares", 346),
    ("cluster-shares", 647),
    ("cluster-shares", 744),
    ("cluster-shares", 1000237),
    ("cluster-shares", 1000332),
    ("cluster-shares", 1201300),
    ("cluster-streams", 33),
]


@pytest.mark.timeout(600)  # ten seconds, where nothing else runs
@pytest.mark.parametrize(
    ("name", "first", "count"),
    [
        # `make test` lives through a seed of each kind below, in its own process.
        pytest.param(name, 0, 1, marks=[] if name == REPLAYED[0] else [pytest.mark.long])
        for name in SEEDS
    ]
    + [
        pytest.param(name, first, AT_ONCE, marks=pytest.mark.long)
        for name, seeds in SEEDS.items()
        for first in range(1, seeds, AT_ONCE)
    ],
)
def test_seeds_of_a_cluster_are_good(name: str, first: int, count: int) -> None:
    """In a process of their own, whose exit status `make simulate` shows too."""
    words = f"--history {name} --first {first} --seeds {count} --no-shrink".split()
    told = subprocess.run(
        [sys.executable, "-m", "barnabas.simulation", *words], capture_output=True, text=True, check=False
    )

    assert told.returncode == 0, told.stdout + told.stderr
    assert f"'{name} good': {count}" in told.stdout


def remembered() -> list[Any]:
    """`make test` lives through the first of each kind."""
    firsts = dict(reversed(REMEMBERED))
    return [
        pytest.param(name, seed, marks=[] if firsts[name] == seed else [pytest.mark.long])
        for name, seed in REMEMBERED
    ]


@pytest.mark.parametrize(("name", "seed"), remembered())
def test_a_seed_that_found_a_bug_finds_it_no_more(name: str, seed: int) -> None:
    result = live(CLUSTER_HISTORIES[name], seed)

    assert result.verdict is Verdict.GOOD, f"{result}\n{result.details}"


def test_another_process_lives_through_the_same_history_of_a_cluster() -> None:
    name, seed = REPLAYED
    program = (
        "from barnabas.simulation.histories.catalogue import CLUSTER_HISTORIES\n"
        "from barnabas.simulation.world.history import live\n"
        f"print(live(CLUSTER_HISTORIES[{name!r}], {seed}).trace_hash)"
    )
    told = subprocess.run(
        [sys.executable, "-c", program],
        env={**os.environ, "PYTHONHASHSEED": "4711"},
        capture_output=True,
        text=True,
        check=True,
    )

    assert told.stdout.strip() == live(CLUSTER_HISTORIES[name], seed).trace_hash


@pytest.mark.parametrize(
    "bug",
    [pytest.param(bug, id=bug.name, marks=[pytest.mark.long] if bug.is_long else []) for bug in CLUSTER_BUGS],
)
def test_a_bug_of_a_cluster_is_found(bug: ClusterBug, monkeypatch: pytest.MonkeyPatch) -> None:
    bug.plant(monkeypatch)

    results = (live(bug.make, seed) for seed in range(bug.first, bug.first + SEEDS_MAX))

    found = next(result for result in results if result.verdict is not Verdict.GOOD)
    assert not is_badly_planted(found), found.details
