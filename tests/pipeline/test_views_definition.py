"""A view's SQL is checked before Spark starts: what cannot be merged is refused, with what to write
instead."""

from __future__ import annotations

from collections.abc import Mapping

import pytest

from barnabas.pipeline.spec.model import View
from barnabas.pipeline.views.definition import DefinitionError, define, problems_of
from barnabas.pipeline.views.sql import render
from pipeline.views_model import MEASURES, SQL


def view(sql: str, keys: str = "shop", measures: Mapping[str, str] | None = None) -> View:
    return View(
        name="v", source="trusted.orders", sql=sql, keys=keys.split(), measures=measures or {"n": "count"}
    )


@pytest.mark.parametrize(
    ("sql", "keys", "measures"),
    [
        (SQL, "shop", MEASURES),
        ("SELECT shop, count(*) AS n FROM trusted.orders GROUP BY 1", "shop", {"n": "count"}),
        (
            "SELECT upper(shop) AS shop, count(*) AS n FROM orders GROUP BY upper(shop)",
            "shop",
            {"n": "count"},
        ),
        (
            "SELECT date_trunc('day', at) AS day, count(*) AS n FROM orders o GROUP BY day",
            "day",
            {"n": "count"},
        ),
        ("SELECT count(*) AS n FROM orders", "", {"n": "count"}),
        ("SELECT shop, count(*) AS n FROM orders GROUP BY ALL", "shop", {"n": "count"}),
        (
            "WITH o AS (SELECT * FROM orders WHERE a > 0) SELECT shop, count(*) AS n FROM o GROUP BY shop",
            "shop",
            {"n": "count"},
        ),
        (
            """SELECT c.land AS shop, count(*) AS n FROM orders o LEFT JOIN customers c ON o.c = c.id
            GROUP BY c.land""",
            "shop",
            {"n": "count"},
        ),
        (
            """SELECT shop, coalesce(sum(a) - 2 * sum(b) / 3, 0) AS n, count_if(a > 1) AS m,
            sum(a) FILTER (WHERE b > 1) AS o FROM orders GROUP BY shop""",
            "shop",
            {"n": "sum", "m": "count", "o": "sum"},
        ),
        (
            "SELECT shop, approx_count_distinct(a) AS n, count(DISTINCT a, b) AS m FROM orders GROUP BY shop",
            "shop",
            {"n": "distinct", "m": "distinct", "share": "n / nullif(m, 0)"},
        ),
        (
            """SELECT window.start AS begun, window(at, '1 hour').end AS ended, count(*) AS n FROM orders
            GROUP BY window(at, '1 hour')""",
            "begun ended",
            {"n": "count", "share": "n / sum(n) OVER ()"},
        ),
        (
            """SELECT shop, avg(a) AS m, stddev(a) AS s, sum(a) / sum(b) AS n,
            lag(count(*)) OVER (ORDER BY shop) AS before FROM orders GROUP BY shop
            HAVING max(a) > 3 AND m < 4 AND n > 1""",
            "shop",
            {"m": "avg", "s": "stddev", "n": "computed", "before": "computed"},
        ),
    ],
)
def test_views_that_merge_are_accepted(sql: str, keys: str, measures: Mapping[str, str]) -> None:
    assert problems_of(view(sql, keys, measures)) == []


@pytest.mark.parametrize(
    ("sql", "measures", "sentence"),
    [
        ("SELECT shop, avg(a) AS n FROM orders GROUP BY shop", {"n": "sum"}, "do not add up"),
        ("SELECT shop, count(DISTINCT a) AS n FROM orders GROUP BY shop", {"n": "count"}, "do not add up"),
        ("SELECT shop, sum(a) / sum(b) AS n FROM orders GROUP BY shop", {"n": "sum"}, "do not add up"),
        ("SELECT shop, sum(a) * sum(b) AS n FROM orders GROUP BY shop", {"n": "sum"}, "do not add up"),
        ("SELECT shop, round(sum(a)) AS n FROM orders GROUP BY shop", {"n": "sum"}, "do not add up"),
        ("SELECT shop, sum(a) + 1 AS n FROM orders GROUP BY shop", {"n": "sum"}, "do not add up"),
        ("SELECT shop, coalesce(sum(a), 5) AS n FROM orders GROUP BY shop", {"n": "sum"}, "do not add up"),
        ("SELECT shop, max(a) AS n FROM orders GROUP BY shop", {"n": "min"}, "it is min(…), not MAX(a)"),
        (
            "SELECT shop, count(a) AS n FROM orders GROUP BY shop",
            {"n": "distinct"},
            "it is count(DISTINCT …)",
        ),
        ("SELECT shop, first(a) AS n FROM orders GROUP BY shop", {"n": "last"}, "it is max_by(value, time)"),
        ("SELECT shop, last(a) AS n FROM orders GROUP BY shop", {"n": "last"}, "declares no event_time"),
        ("SELECT shop, count(*) AS n FROM orders GROUP BY shop HAVING m > 1", {"n": "count"}, "HAVING: m is"),
        (
            "SELECT shop, count(*) AS n FROM orders GROUP BY shop HAVING count(DISTINCT a) > 1",
            {"n": "count"},
            "make it a measure of its own",
        ),
        (
            "SELECT shop, count(*) AS n FROM orders GROUP BY shop, window(at, '1 hour')",
            {"n": "count"},
            "make window.start or window.end a key",
        ),
        (
            "SELECT shop, max(a) AS n FROM orders GROUP BY shop",
            {"n": "avg"},
            "so it is avg(…), not MAX(a)",
        ),
        (
            "SELECT shop, percentile(a, 0.5) AS n FROM orders GROUP BY shop",
            {"n": "computed"},
            "cannot",
        ),
        ("SELECT shop, count(*) AS n FROM orders GROUP BY shop LIMIT 3", {"n": "count"}, "LIMIT"),
        ("SELECT shop, count(*) AS n FROM orders GROUP BY shop ORDER BY n", {"n": "count"}, "ORDER"),
        ("SELECT DISTINCT shop, count(*) AS n FROM orders GROUP BY shop", {"n": "count"}, "DISTINCT"),
        ("SELECT shop, count(*) FROM orders GROUP BY shop", {"n": "count"}, "needs a name"),
        ("SELECT * FROM orders", {"n": "count"}, "needs a name"),
        ("SELECT shop, count(*) AS m FROM orders GROUP BY shop", {"n": "count"}, "gives no column n"),
        (
            "SELECT shop, a, count(*) AS n FROM orders GROUP BY shop, a",
            {"n": "count"},
            "groups by a, which is not a key",
        ),
        (
            "SELECT shop, count(*) AS n FROM orders GROUP BY a",
            {"n": "count"},
            "does not group by the key shop",
        ),
        ("SELECT shop, count(*) AS n FROM orders", {"n": "count"}, "GROUP BY shop"),
        ("SELECT shop, count(*) AS n FROM orders GROUP BY CUBE (shop)", {"n": "count"}, "CUBE"),
        ("SELECT shop, count(*) AS n FROM x GROUP BY shop", {"n": "count"}, "trusted.orders 0 times"),
        ("SELECT shop, count(*) AS n FROM orders, orders o GROUP BY shop", {"n": "count"}, "2 times"),
        (
            "WITH o AS (SELECT * FROM orders) SELECT a.shop, count(*) AS n FROM o a JOIN o b GROUP BY a.shop",
            {"n": "count"},
            "o is used 2 times",
        ),
        (
            "SELECT shop, count(*) AS n FROM (SELECT shop FROM orders GROUP BY shop) GROUP BY shop",
            {"n": "count"},
            "aggregated twice",
        ),
        (
            "SELECT shop, count(*) AS n FROM shops WHERE shop IN (SELECT shop FROM orders) GROUP BY shop",
            {"n": "count"},
            "stands in a condition",
        ),
        (
            "SELECT shop, count(*) AS n FROM shops LEFT JOIN orders USING (shop) GROUP BY shop",
            {"n": "count"},
            "LEFT JOIN gives rows that are not rows of orders",
        ),
        (
            "SELECT shop, count(*) AS n FROM orders FULL JOIN shops USING (shop) GROUP BY shop",
            {"n": "count"},
            "FULL JOIN gives rows",
        ),
        (
            "SELECT shop, count(*) AS n FROM orders WHERE at < now() GROUP BY shop",
            {"n": "count"},
            "each time",
        ),
        ("SELECT shop, sum(sum(a)) OVER () AS n FROM orders GROUP BY shop", {"n": "sum"}, "window functions"),
        (
            "SELECT shop, count(*) AS n FROM orders GROUP BY shop",
            {"n": "count", "x": "n / m"},
            "m is not a measure",
        ),
        (
            "SELECT shop, count(*) AS n FROM orders GROUP BY shop",
            {"n": "count", "x": "sum(n)"},
            "cannot stand",
        ),
        (
            "SELECT shop, count(*) AS n FROM orders GROUP BY shop",
            {"n": "typical"},
            "typical is not a measure",
        ),
        (
            "SELECT shop, count(*) AS shop2 FROM orders GROUP BY shop",
            {"shop": "count"},
            "a key and a measure",
        ),
        (
            "SELECT shop, count(*) AS `n n` FROM orders GROUP BY shop",
            {"n n": "count"},
            "is not a name of a column",
        ),
        ("SELECT shop FROM orders GROUP BY shop; SELECT 1", {"n": "count"}, "one SELECT"),
        ("SELECT shop FROM orders UNION SELECT 1", {"n": "count"}, "one SELECT"),
        ("SELECT (", {"n": "count"}, "cannot be read"),
    ],
)
def test_sql_that_cannot_be_merged_is_refused_with_a_reason(
    sql: str, measures: Mapping[str, str], sentence: str
) -> None:
    problems = problems_of(view(sql, "shop", measures))
    assert any(sentence in problem for problem in problems), problems


def test_all_problems_of_a_view_are_listed() -> None:
    sql = "SELECT shop, avg(a) AS n, max(b) AS m FROM orders GROUP BY shop ORDER BY 1"
    with pytest.raises(DefinitionError) as error:
        define(view(sql, "shop", {"n": "sum", "m": "min"}))
    lines = str(error.value).splitlines()
    assert len(lines) == 3 and all(line.startswith("view v: ") for line in lines)


def test_last_values_go_by_the_event_time_of_their_table() -> None:
    sql = "SELECT shop, last(status) FILTER (WHERE amount > 0) AS status FROM orders GROUP BY shop"
    definition = define(view(sql, "shop", {"status": "last"}), "at")
    text = render(definition, {"orders": "rows", "trusted.orders": "rows"})
    assert "MAX_BY(status, STRUCT(`at`, status)) FILTER(WHERE amount > 0) AS `status`" in text
    assert "MAX(`at`) FILTER(WHERE amount > 0) AS `_at_status`" in text


def test_tables_that_are_looked_up_are_known() -> None:
    sql = """SELECT c.land AS shop, count(*) AS n FROM orders o JOIN refined.customers c ON o.c = c.id
        LEFT JOIN lands USING (land) GROUP BY c.land"""
    assert set(define(view(sql)).lookups) == {"refined.customers", "lands"}
