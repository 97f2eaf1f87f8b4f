"""Each of the 400 names that published dashboards ask for is on a broker's page, on another page, or has a
reason in docs/metrics.md."""

from __future__ import annotations

import fnmatch
import json
from pathlib import Path

import pytest

from broker.metrics.test_kafkas_list import DASHBOARDS, documented

from .other_pages import of_a_worker_of_connect, of_services, of_the_engine, of_the_lag_service

NAMES = 400
BESIDE: dict[str, list[str]] = json.loads((Path(__file__).parent / "dashboard_names_beside.json").read_text())
OF_BROKERS = {name for of in DASHBOARDS.values() for names in of.values() for name in names}
SERVED, REASONS = "Names of dashboards that other pages serve", "Names of dashboards that cannot exist here"


def matching(patterns: list[str], names: set[str]) -> set[str]:
    return {name for name in names if any(fnmatch.fnmatchcase(name, each) for each in patterns)}


@pytest.fixture(scope="module")
def served(tmp_path_factory: pytest.TempPathFactory) -> set[str]:
    engine = of_the_engine(tmp_path_factory.mktemp("engine"))
    return of_a_worker_of_connect() | of_the_lag_service() | of_services() | engine


def test_no_name_is_forgotten() -> None:
    assert len({*OF_BROKERS, *BESIDE}) == NAMES
    assert not OF_BROKERS & set(BESIDE)


def test_names_of_other_pages_are_there_or_have_a_reason(served: set[str]) -> None:
    elsewhere = matching(documented(SERVED), {*BESIDE, *OF_BROKERS})
    reasons = documented(REASONS)
    assert elsewhere - served == set()
    assert set(BESIDE) - elsewhere - matching(reasons, set(BESIDE)) == set()


def test_no_reason_is_given_for_a_name_that_is_served(served: set[str]) -> None:
    assert matching(documented(REASONS), {*BESIDE, *OF_BROKERS}) & served == set()


@pytest.mark.parametrize("table", [SERVED, REASONS])
def test_every_row_is_about_a_name_that_dashboards_ask_for(table: str) -> None:
    for pattern in documented(table):
        assert fnmatch.filter({*BESIDE, *OF_BROKERS}, pattern), f"no dashboard asks for {pattern}"
