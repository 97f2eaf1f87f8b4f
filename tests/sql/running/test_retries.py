"""When a query that failed starts again."""

from __future__ import annotations

from barnabas.sql.analysis.work import QueryWork, WorkKind
from barnabas.sql.running.queries import RunningQuery
from sql.running.works import COUNT, ID, pulled, rows_of, source


def query() -> RunningQuery:
    prepared = pulled(rows_of(source("T", "topic", ID, COUNT, is_table=True)))
    return RunningQuery(prepared, QueryWork(WorkKind.PERSISTENT))


def waits(made: RunningQuery, lived_s: float, now: float) -> float:
    made.began = now - lived_s
    made.fail("the brokers do not answer", now, 15_000, 900_000)
    return made.retry_at - now


def test_each_failure_in_a_row_doubles_the_time() -> None:
    made = query()
    assert [waits(made, 1.0, 1000.0 * each) for each in range(8)] == [15, 30, 60, 120, 240, 480, 900, 900]


def test_short_outages_in_months_wait_as_the_first_one() -> None:
    made = query()
    month = 30 * 86_400.0
    assert [waits(made, month, month * each) for each in range(1, 12)] == [15.0] * 11
