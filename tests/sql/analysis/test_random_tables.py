"""Random changes of tables: results of joins, filters and groups are those of the tables as they are."""

from __future__ import annotations

import random
from collections import Counter
from typing import Any

import pytest

from barnabas.sql.testing import SqlTestDriver

STATEMENTS = """
CREATE TABLE t (id INT PRIMARY KEY, ref INT, v INT) WITH (KAFKA_TOPIC='t', VALUE_FORMAT='JSON', PARTITIONS=1);
CREATE TABLE u (id INT PRIMARY KEY, w INT) WITH (KAFKA_TOPIC='u', VALUE_FORMAT='JSON', PARTITIONS=1);
CREATE TABLE inner_ AS SELECT t.id AS id, v, w FROM t JOIN u ON t.id = u.id;
CREATE TABLE left_ AS SELECT t.id AS id, v, w FROM t LEFT JOIN u ON t.id = u.id;
CREATE TABLE full_ AS SELECT ROWKEY AS id, v, w FROM t FULL JOIN u ON t.id = u.id;
CREATE TABLE foreign_ AS SELECT t.id AS id, v, w FROM t JOIN u ON t.ref = u.id;
CREATE TABLE foreign_left AS SELECT t.id AS id, v, w FROM t LEFT JOIN u ON t.ref = u.id;
CREATE TABLE foreign_some AS SELECT t.id AS id, v, w FROM t JOIN u ON t.ref = u.id WHERE w > 7;
CREATE TABLE foreign_groups AS
  SELECT w, COUNT(*) AS n FROM t JOIN u ON t.ref = u.id GROUP BY w HAVING COUNT(*) > 0;
CREATE TABLE some AS SELECT id, v + 1 AS v FROM t WHERE v > 2;
CREATE TABLE groups AS SELECT ref, COUNT(*) AS n, SUM(v) AS s, COLLECT_LIST(v) AS l FROM t GROUP BY ref;
CREATE TABLE large AS SELECT ref, COUNT(*) AS n FROM t GROUP BY ref HAVING COUNT(*) > 1;
"""


@pytest.mark.parametrize("seed", range(4))
def test_results_follow_from_the_tables(seed: int) -> None:
    chance = random.Random(seed)
    driver = SqlTestDriver(STATEMENTS)
    t: dict[int, dict[str, Any]] = {}
    u: dict[int, dict[str, Any]] = {}
    groups: set[int] = set()
    for moment in range(60):
        name, rows = chance.choice((("T", t), ("U", u)))
        key = chance.randrange(5)
        if chance.random() < 0.25:
            rows.pop(key, None)
            driver.pipe(name, {"ID": key}, tombstone=True, timestamp=moment)
            continue
        value = {"REF": chance.choice((None, 0, 1, 2)), "V": chance.choice((None, 1, 2, 3, 4))}
        row = value if name == "T" else {"W": chance.choice((None, 7, 8))}
        rows[key] = row
        if name == "T" and row["REF"] is not None:
            groups.add(row["REF"])
        driver.pipe(name, {"ID": key, **row}, timestamp=moment)

    def joined(one: dict[str, Any] | None, two: dict[str, Any] | None) -> dict[str, Any]:
        return {"V": None if one is None else one["V"], "W": None if two is None else two["W"]}

    assert driver.table("INNER_") == {(k,): joined(t[k], u[k]) for k in t if k in u}
    assert driver.table("LEFT_") == {(k,): joined(t[k], u.get(k)) for k in t}
    assert driver.table("FULL_") == {(k,): joined(t.get(k), u.get(k)) for k in {*t, *u}}
    assert driver.table("FOREIGN_") == {(k,): joined(t[k], u[t[k]["REF"]]) for k in t if t[k]["REF"] in u}
    assert driver.table("FOREIGN_LEFT") == {(k,): joined(t[k], u.get(t[k]["REF"])) for k in t}
    referred = {k: joined(t[k], u[t[k]["REF"]]) for k in t if t[k]["REF"] in u}
    assert driver.table("FOREIGN_SOME") == {(k,): row for k, row in referred.items() if (row["W"] or 0) > 7}
    by_w = Counter(row["W"] for row in referred.values() if row["W"] is not None)
    assert driver.table("FOREIGN_GROUPS") == {(w,): {"N": n} for w, n in by_w.items()}
    assert driver.table("SOME") == {(k,): {"V": t[k]["V"] + 1} for k in t if (t[k]["V"] or 0) > 2}
    counted = {}
    for group in groups:
        values = [row["V"] for row in t.values() if row["REF"] == group]
        counted[group] = (len(values), sum(v or 0 for v in values), sorted(values, key=str))
    found = driver.table("GROUPS")
    assert {k: (r["N"], r["S"], sorted(r["L"], key=str)) for (k,), r in found.items()} == counted
    assert driver.table("LARGE") == {(k,): {"N": c[0]} for k, c in counted.items() if c[0] > 1}
    assert driver.problems == [] or all("null" in getattr(p, "cause", "") for p in driver.problems)
