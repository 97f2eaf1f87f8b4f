"""Functions of the user: by decorator, by folder, in statements, on tables, and when they raise."""

from __future__ import annotations

import pickle
from collections.abc import Iterator
from pathlib import Path

import pytest

from barnabas.plans.interpreter.records import Problem
from barnabas.sql.errors import SqlError
from barnabas.sql.functions import user
from barnabas.sql.functions.registry import row_named
from barnabas.sql.functions.user import aggregate_function, load_folder, scalar, table_function
from barnabas.sql.testing import SqlTestDriver

S = "CREATE STREAM s (k INT KEY, v INT, w VARCHAR) WITH (KAFKA_TOPIC='s', PARTITIONS=1);"


@pytest.fixture(autouse=True)
def only_own_functions(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    monkeypatch.setattr(user.USER_FUNCTIONS, "by_name", {})
    yield


def test_functions_of_all_kinds_work_in_statements() -> None:
    @scalar("(STRING, INT) -> STRING")
    def repeated(text: str, times: int) -> str:
        return text * times

    @scalar
    def half(value: float) -> float:
        return value / 2

    @table_function("(STRING) -> STRING")
    def letters(text: str) -> list[str]:
        return list(text)

    @aggregate_function("(INT) -> BIGINT")
    class Product:
        def initial(self) -> int:
            return 1

        def add(self, state: int, value: int) -> int:
            return state * value

        def merge(self, one: int, two: int) -> int:
            return one * two

        def result(self, state: int) -> int:
            return state

    driver = SqlTestDriver(
        S,
        "CREATE STREAM x AS SELECT k, REPEATED(w, v) AS r, HALF(v) AS h FROM s;"
        "CREATE STREAM y AS SELECT k, LETTERS(w) AS l FROM s;"
        "CREATE TABLE z AS SELECT k, PRODUCT(v) AS p FROM s GROUP BY k;",
    )
    driver.pipe("S", {"K": 1, "V": 3, "W": "ab"})
    driver.pipe("S", {"K": 1, "V": 4})
    assert driver.values("X") == [{"K": 1, "R": "ababab", "H": 1.5}, {"K": 1, "R": None, "H": 2.0}]
    assert [row["L"] for row in driver.values("Y") if row] == ["a", "b"]
    assert driver.table("Z") == {(1,): {"P": 12}}


def test_one_that_raises_is_null_and_is_told_with_the_place() -> None:
    @scalar("(INT) -> INT")
    def picky(value: int) -> int:
        raise RuntimeError(f"not {value}")

    driver = SqlTestDriver(S, "CREATE STREAM x AS SELECT k, PICKY(v) AS p, w FROM s;")
    driver.pipe("S", {"K": 1, "V": 3, "W": "a"}, timestamp=9)
    assert driver.values("X") == [{"K": 1, "P": None, "W": "a"}]
    [problem] = driver.problems
    assert isinstance(problem, Problem) and problem.cause == "RuntimeError: not 3"
    assert (problem.topic, problem.offset, problem.timestamp) == ("s", 0, 9)


def test_a_folder_of_functions_is_loaded_and_found_again(tmp_path: Path) -> None:
    (tmp_path / "good.py").write_text(
        "from barnabas.sql.functions.user import scalar\n\n@scalar\ndef plus_one(n: int) -> int:\n"
        '    """One more."""\n    return n + 1\n'
    )
    (tmp_path / "bad.py").write_text("import nothing_of_this_name\n")
    [problem] = load_folder(tmp_path)
    assert problem.startswith("bad.py: ModuleNotFoundError")
    [function] = user.USER_FUNCTIONS.named("PLUS_ONE")
    assert (function.signature, function.what) == ("(BIGINT) -> BIGINT", "One more.")
    assert (row_named("plus_one").kind, row_named("PLUS_ONE").signatures) == (
        "scalar",
        ("PLUS_ONE(BIGINT) -> BIGINT",),
    )
    user.LIVE.clear()
    assert pickle.loads(pickle.dumps(function)).code()(4) == 5


def test_a_function_without_types_is_refused() -> None:
    with pytest.raises(SqlError, match="needs annotations"):

        @scalar
        def untyped(a, b):  # type: ignore[no-untyped-def]
            return a
