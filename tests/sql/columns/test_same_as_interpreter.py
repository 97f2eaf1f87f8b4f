"""Random statements over random batches: columns write what the interpreter writes, keep its pages, and put
its lines into the processing log."""

from __future__ import annotations

import random
from typing import Any

import pytest
from tests.sql.columns.roads import plan_of, run_all
from tests.sql.columns.statements import Expressions, delimited, records, source, value

from barnabas.sql.errors import SqlError


def seeds(few: int, many: int) -> list[Any]:
    return [pytest.param(each, marks=() if each < few else pytest.mark.long) for each in range(many)]


def projection(rng: random.Random, *, nested: bool, decimals: bool, form: str) -> str:
    made = Expressions(rng, nested=nested, decimals=decimals)
    items = [f"{made.of(rng.choice(made.kinds()))} AS c{n}" for n in range(rng.randint(1, 5))]
    where = f" WHERE {made.of('bool')}" if rng.random() < 0.7 else ""
    by = ""
    key = "k"
    if rng.random() < 0.3:
        key = made.of(rng.choice(("int", "text")), 2)
        by, key = f" PARTITION BY {key}", f"{key} AS new_key"
    return (
        f"CREATE STREAM r WITH (VALUE_FORMAT='{form}') AS SELECT {key}, {', '.join(items)} FROM s{where}{by};"
    )


def check(seed: str, statement: Any, given: str, make: Any, *, is_stateless: bool, batches: int = 3) -> None:
    rng = random.Random(seed)
    for _ in range(20):
        text = statement(rng)
        try:
            plan = plan_of(given, text)
        except SqlError:
            continue  # a statement that no road runs
        break
    else:
        raise AssertionError(f"no statement of {seed} can be analyzed")
    some = [records(rng, rng.randint(1, 60), make, start=200_000 * n) for n in range(batches)]
    try:
        run_all(plan, "s", some, is_stateless=is_stateless)
    except AssertionError as error:
        raise AssertionError(f"{text}\n{error}") from error


@pytest.mark.parametrize("seed", seeds(16, 300))
def test_projections_of_json(seed: int) -> None:
    decimals, nested = seed % 4 == 0, seed % 4 < 3
    check(
        f"json {seed}",
        lambda rng: projection(
            rng, nested=nested, decimals=decimals, form=rng.choice(("JSON", "JSON", "DELIMITED"))
        ),
        source("JSON", nested=nested, decimals=decimals),
        value,
        is_stateless=True,
    )


@pytest.mark.parametrize("seed", seeds(6, 80))
def test_projections_of_delimited(seed: int) -> None:
    check(
        f"delimited {seed}",
        lambda rng: projection(rng, nested=False, decimals=False, form=rng.choice(("JSON", "DELIMITED"))),
        source("DELIMITED", nested=False, decimals=False),
        delimited,
        is_stateless=True,
    )


def aggregation(rng: random.Random, *, decimals: bool) -> str:
    made = Expressions(rng, nested=False, decimals=False)
    pool = [
        "COUNT(*)",
        f"COUNT({made.of('text', 2)})",
        f"SUM({made.of(rng.choice(('int', 'long', 'real')), 2)})",
        f"AVG({made.of(rng.choice(('int', 'real')), 2)})",
        f"MIN({made.of(rng.choice(('int', 'real', 'text')), 2)})",
        f"MAX({made.of(rng.choice(('long', 'real', 'text')), 2)})",
        f"LATEST_BY_OFFSET({made.of(rng.choice(('int', 'text', 'bool')), 2)})",
        f"EARLIEST_BY_OFFSET({made.of(rng.choice(('real', 'text')), 2)})",
        "TOPK(i, 2)",
        "COLLECT_LIST(t)",
        "COLLECT_LIST(d)",
        "COLLECT_SET(t)",
        "COLLECT_SET(b)",
        "COLLECT_SET(d)",
        "TOPK(d, 3)",
        "TOPK(t, 2)",
        "TOPK(b, t, 2)",
        "TOPKDISTINCT(i, 2)",
        "COUNT_DISTINCT(t)",
        "COUNT_DISTINCT(b)",
        "COUNT_DISTINCT(d)",
        "EARLIEST_BY_OFFSET(i, 3)",
        "LATEST_BY_OFFSET(b, 2, false)",
        "STDDEV_SAMPLE(i)",
        "SUM(m)" if decimals else "SUM(d)",
        "HISTOGRAM(t)",
        "LATEST_BY_OFFSET(t, 2)",
    ]
    items = [f"{each} AS c{n}" for n, each in enumerate(rng.sample(pool, rng.randint(1, 4)))]
    group = rng.choice(("k", "t", "i", made.of("text", 2), "k, t"))
    keys = [f"{each} AS g{n}" for n, each in enumerate(group.split(", ") if group == "k, t" else [group])]
    window = rng.choice(
        ("", "", " WINDOW TUMBLING (SIZE 1 MINUTE)",
         " WINDOW HOPPING (SIZE 1 MINUTE, ADVANCE BY 20 SECONDS, GRACE PERIOD 30 SECONDS)")
    )  # fmt: skip
    where = f" WHERE {made.of('bool', 2)}" if rng.random() < 0.4 else ""
    having = " HAVING COUNT(*) > 1 AND COUNT(*) < 5" if rng.random() < 0.4 else ""
    columns = ", ".join((*keys, *items))
    return (
        f"CREATE TABLE r WITH (KEY_FORMAT='JSON') AS SELECT {columns} FROM s{window}{where} "
        f"GROUP BY {group}{having};"
    )


@pytest.mark.parametrize("seed", seeds(12, 200))
def test_aggregations(seed: int) -> None:
    decimals = seed % 4 == 0
    check(
        f"groups {seed}",
        lambda rng: aggregation(rng, decimals=decimals),
        source("JSON", decimals=decimals),
        value,
        is_stateless=False,
        batches=4,
    )
