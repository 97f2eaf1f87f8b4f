"""Jars for tables of a lake: fetched for Spark SQL, not for persistent queries."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from barnabas.spark import jars
from barnabas.sql.running import runner
from barnabas.sql.running.runner import Runner
from barnabas.sql.running.settings import SPARK_SQL, EngineSettings


@pytest.fixture
def begun(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> list[tuple[str, ...]]:
    """The sets of jars that sessions began with; the cache of jars is empty."""
    found: list[tuple[str, ...]] = []
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))

    def session(settings: Any, *, sets: tuple[str, ...], name: str) -> object:
        found.append(sets)
        return object()

    monkeypatch.setattr(runner, "session", session)
    return found


@pytest.fixture
def fetched(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    names: list[str] = []

    def fetch(name: str) -> list[Path]:
        names.append(name)
        return []

    monkeypatch.setattr(jars, "jars", fetch)
    return names


def made(tmp_path: Path) -> Runner:
    given = {"bootstrap.servers": "127.0.0.1:1", "state.dir": str(tmp_path), SPARK_SQL: "true"}
    return Runner(EngineSettings.of(given), log_topic=None)


def test_a_persistent_query_fetches_nothing(
    tmp_path: Path, begun: list[tuple[str, ...]], fetched: list[str]
) -> None:
    queries = made(tmp_path)
    queries.session()
    assert (begun, fetched) == ([()], [])
    queries.session(reads_lakes=True)
    queries.session(reads_lakes=True)
    assert (begun, fetched) == ([()], ["delta"])


def test_spark_sql_that_comes_first_begins_the_session_with_its_jars(
    tmp_path: Path, begun: list[tuple[str, ...]], fetched: list[str]
) -> None:
    made(tmp_path).session(reads_lakes=True)
    assert (begun, fetched) == ([("delta",)], ["delta"])


def test_jars_that_are_here_are_taken(
    tmp_path: Path, begun: list[tuple[str, ...]], fetched: list[str]
) -> None:
    for jar in jars.SETS["delta"]:
        jars.place(jar).parent.mkdir(parents=True, exist_ok=True)
        jars.place(jar).touch()
    made(tmp_path).session()
    assert begun == [("delta",)]
