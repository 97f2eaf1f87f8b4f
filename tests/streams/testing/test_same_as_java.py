"""Topologies of the DSL give what Kafka Streams 4.3.1 gives, record by record, with the same description."""

import json
from pathlib import Path

import pytest
from tests.streams.testing import oracle
from tests.streams.testing.topologies import TOPOLOGIES, plan_of

from barnabas.plans.description import describe

RECORDED = json.loads(oracle.RECORDED.read_text())


@pytest.mark.parametrize("name", TOPOLOGIES)
def test_recorded_results_are_the_same(name: str) -> None:
    recorded = RECORDED[name]
    for step, java, ours in zip(
        recorded["steps"], recorded["results"], oracle.run_ours(name, recorded["steps"]), strict=True
    ):
        assert ours == java, f"after {step}"


# Kafka Streams keeps no store for a table that nothing looks up, and lists some stores in another order.
DESCRIBED_OTHERWISE = {"table_filter", "table_stored_filter", "table_three", "to_table"}


@pytest.mark.parametrize("name", sorted(TOPOLOGIES.keys() - DESCRIBED_OTHERWISE))
def test_descriptions_are_the_same(name: str) -> None:
    assert describe(plan_of(name)).rstrip().splitlines() == "\n".join(RECORDED[name]["text"]).splitlines()


@pytest.mark.long
@pytest.mark.parametrize("seed", range(100, 104))
def test_results_of_java_are_the_same(seed: int, tmp_path: Path) -> None:
    if reason := oracle.missing():
        pytest.skip(reason)
    cases = {name: oracle.steps(name, seed, 300) for name in TOPOLOGIES}
    java = oracle.run_java(cases, tmp_path)
    for name, steps in cases.items():
        assert oracle.run_ours(name, steps) == java[name]["results"], name
