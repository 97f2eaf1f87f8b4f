"""Some seeds of every history of a cluster, and bugs of clusters that are found; `make simulate
HISTORY=cluster SEEDS=N` tries more of them."""

import os
import subprocess
import sys

import pytest

from barnabas.simulation.histories.catalogue import CLUSTER_HISTORIES
from barnabas.simulation.history import Verdict, live

from .cluster_bugs import CLUSTER_BUGS, ClusterBug

SEEDS = {"cluster-records": range(14), "cluster-groups": range(6), "cluster-transactions": range(8)}
SEEDS_MAX = 8
REPLAYED = "cluster-records", 3

# Seeds that once found a bug; what they do changes with the code, and they may find another one.
REMEMBERED = [("cluster-records", 22), ("cluster-records", 16), ("cluster-records", 163)]


@pytest.mark.parametrize(("name", "seed"), [(name, seed) for name, seeds in SEEDS.items() for seed in seeds])
def test_a_seed_of_a_cluster_is_good(name: str, seed: int) -> None:
    result = live(CLUSTER_HISTORIES[name], seed)

    assert result.verdict is Verdict.GOOD, f"{result}\n{result.details}"


@pytest.mark.parametrize(("name", "seed"), REMEMBERED)
def test_a_seed_that_found_a_bug_finds_it_no_more(name: str, seed: int) -> None:
    result = live(CLUSTER_HISTORIES[name], seed)

    assert result.verdict is Verdict.GOOD, f"{result}\n{result.details}"


def test_another_process_lives_through_the_same_history_of_a_cluster() -> None:
    name, seed = REPLAYED
    program = (
        "from barnabas.simulation.histories.catalogue import CLUSTER_HISTORIES\n"
        "from barnabas.simulation.history import live\n"
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


@pytest.mark.parametrize("bug", CLUSTER_BUGS, ids=lambda bug: bug.name)
def test_a_bug_of_a_cluster_is_found(bug: ClusterBug, monkeypatch: pytest.MonkeyPatch) -> None:
    bug.plant(monkeypatch)

    verdicts = (live(bug.make, seed).verdict for seed in range(SEEDS_MAX))

    assert any(verdict is not Verdict.GOOD for verdict in verdicts)
