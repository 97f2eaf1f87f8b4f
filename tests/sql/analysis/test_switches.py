"""Parts of the language that a server's settings switch off; values that are no times."""

from __future__ import annotations

import pytest

from barnabas.sql.errors import SqlError
from barnabas.sql.testing import SqlTestDriver

SOURCES = (
    "CREATE STREAM s (k STRING KEY, v INT, a ARRAY<INT>) WITH (KAFKA_TOPIC='s', PARTITIONS=1);"
    "CREATE TABLE t AS SELECT k, COUNT(*) AS n FROM s GROUP BY k;"
)
SWITCHES = [
    ("ksql.insert.into.values.enabled", "INSERT INTO s (k) VALUES ('a');"),
    ("ksql.create.or.replace.enabled", "CREATE OR REPLACE STREAM c AS SELECT * FROM s;"),
    (
        "ksql.suppress.enabled",
        "SELECT k, COUNT(*) FROM s WINDOW TUMBLING (SIZE 1 DAY) GROUP BY k EMIT FINAL;",
    ),
    ("ksql.lambdas.enabled", "SELECT k FROM s WHERE ARRAY_LENGTH(FILTER(a, x => x > 1)) > 0 EMIT CHANGES;"),
    ("ksql.query.pull.limit.clause.enabled", "SELECT * FROM t LIMIT 1;"),
    (
        "ksql.headers.columns.enabled",
        "CREATE STREAM h (v INT, h BYTES HEADER('a')) WITH (KAFKA_TOPIC='s');",
    ),
]


@pytest.mark.parametrize(("setting", "text"), SWITCHES)
def test_a_part_that_is_switched_off_is_refused_with_its_setting(setting: str, text: str) -> None:
    SqlTestDriver(SOURCES).prepare(text)
    driver = SqlTestDriver(SOURCES, settings={setting: "false"})
    with pytest.raises(SqlError, match=f"{setting}=true allows it") as error:
        driver.prepare(text)
    assert error.value.at is not None


@pytest.mark.parametrize(("limit", "kept"), [("2", 2), ("-1", 1003), (None, 1000)])
def test_lists_and_sets_keep_as_many_values_as_their_settings_say(limit: str | None, kept: int) -> None:
    names = ("ksql.functions.collect_list.limit", "ksql.functions.collect_set.limit")
    settings = {} if limit is None else dict.fromkeys(names, limit)
    driver = SqlTestDriver(SOURCES, settings=settings)
    for number in range(1003):
        driver.pipe("S", {"K": "a", "V": number})
    lengths = "ARRAY_LENGTH(COLLECT_LIST(v)), ARRAY_LENGTH(COLLECT_SET(v))"
    rows = driver.push(f"SELECT {lengths} FROM s GROUP BY k EMIT CHANGES;").read()
    assert rows[-1] == [kept, kept]


def test_a_value_that_is_no_time_is_refused_where_rows_get_their_time_from_it() -> None:
    driver = SqlTestDriver(
        "CREATE STREAM s (ts STRING, v INT)"
        " WITH (KAFKA_TOPIC='s', PARTITIONS=1, TIMESTAMP='ts', TIMESTAMP_FORMAT='yyyy-MM-dd');"
    )
    with pytest.raises(SqlError, match=r"Failed to insert a value into TS: .* does not fit the pattern"):
        driver.run("INSERT INTO s VALUES ('yesterday', 1);")
