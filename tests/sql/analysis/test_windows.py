"""Windows: boundaries, grace, sessions, EMIT FINAL, windowed sources."""

from __future__ import annotations

import pytest

from barnabas.sql.errors import SqlError
from barnabas.sql.testing import SqlTestDriver

CLICKS = "CREATE STREAM clicks (who VARCHAR KEY, n INT) WITH (KAFKA_TOPIC='clicks', PARTITIONS=1);"


def driver_of(window: str, rest: str = "") -> SqlTestDriver:
    return SqlTestDriver(
        CLICKS,
        f"CREATE TABLE t AS SELECT who, COUNT(*) AS n, WINDOWSTART AS ws FROM clicks WINDOW {window}"
        f" GROUP BY who {rest};",
    )


def click(driver: SqlTestDriver, *seconds: int, who: str = "a") -> None:
    for second in seconds:
        driver.pipe("CLICKS", {"WHO": who, "N": second}, timestamp=second * 1000)


def test_tumbling_windows_count_and_wait_for_the_grace() -> None:
    driver = driver_of("TUMBLING (SIZE 10 SECONDS, GRACE PERIOD 5 SECONDS)")
    click(driver, 1, 9, 10, 14, 3, 15, 4)
    assert driver.table("T") == {
        (("a",), 0, 10_000): {"N": 3, "WS": 0},
        (("a",), 10_000, 20_000): {"N": 3, "WS": 10_000},
    }


def test_the_default_grace_is_a_day_from_the_start() -> None:
    driver = driver_of("TUMBLING (SIZE 1 HOUR)")
    click(driver, 0, 24 * 3600 - 1, 1, 24 * 3600, 2)
    assert driver.table("T")[(("a",), 0, 3_600_000)] == {"N": 2, "WS": 0}


def test_hopping_windows_overlap() -> None:
    driver = driver_of("HOPPING (SIZE 10 SECONDS, ADVANCE BY 5 SECONDS)")
    click(driver, 12)
    assert [key[1:] for key in driver.table("T")] == [(5_000, 15_000), (10_000, 20_000)]


def test_sessions_merge_and_leave_tombstones() -> None:
    driver = driver_of("SESSION (5 SECONDS)")
    click(driver, 0, 8, 4)
    assert driver.table("T") == {(("a",), 0, 8_000): {"N": 3, "WS": 0}}
    assert [row.value is None for row in driver.rows("T")].count(True) == 2


def test_emit_final_gives_one_row_a_window() -> None:
    driver = driver_of("TUMBLING (SIZE 10 SECONDS, GRACE PERIOD 0 SECONDS)", "EMIT FINAL")
    click(driver, 1, 2)
    assert driver.rows("T") == []
    click(driver, 11)
    [row] = driver.rows("T")
    assert (row.value, row.window) == ({"N": 2, "WS": 0}, (0, 10_000))


def test_windowed_sources_have_bounds_and_group_again() -> None:
    driver = driver_of("TUMBLING (SIZE 10 SECONDS)")
    driver.run(
        "CREATE STREAM w (who VARCHAR KEY, n BIGINT)"
        " WITH (KAFKA_TOPIC='T', WINDOW_TYPE='TUMBLING', WINDOW_SIZE='10 SECONDS');"
        "CREATE TABLE totals AS SELECT who, SUM(n) AS total FROM w GROUP BY who;"
    )
    push = driver.push("SELECT * FROM w EMIT CHANGES;")
    click(driver, 1, 12)
    assert push.read() == [["a", 0, 10_000, 1], ["a", 10_000, 20_000, 1]]
    assert driver.table("TOTALS") == {("a",): {"TOTAL": 2}}
    assert driver.pull("SELECT who, WINDOWSTART, n FROM t WHERE who = 'a' AND WINDOWSTART >= 10000;") == [
        ["a", 10_000, 1]
    ]


@pytest.mark.parametrize(
    ("query", "message"),
    [
        ("SELECT who, COUNT(*) FROM clicks WINDOW TUMBLING (SIZE 1 HOUR)", "requires a GROUP BY clause"),
        ("SELECT who FROM clicks WINDOW TUMBLING (SIZE 1 HOUR)", "WINDOW clause requires a GROUP BY"),
        (
            "SELECT who, COUNT(*) FROM clicks WINDOW TUMBLING (SIZE 1 HOUR, RETENTION 1 HOUR) GROUP BY who",
            "The retention of a window must be at least",
        ),
        ("SELECT who, COUNT(*) FROM clicks GROUP BY who EMIT FINAL", "only supported for windowed"),
        (
            "SELECT who, COUNT(*) FROM clicks WINDOW HOPPING (SIZE 1 SECOND, ADVANCE BY 2 SECONDS)"
            " GROUP BY who",
            "cannot advance by 2000 ms",
        ),
    ],
)
def test_windows_that_cannot_be(query: str, message: str) -> None:
    with pytest.raises(SqlError) as error:
        SqlTestDriver(CLICKS).prepare(f"CREATE TABLE t AS {query};")
    assert message in error.value.message


@pytest.mark.parametrize(
    ("window", "kept_ms"),
    [
        ("TUMBLING (SIZE 1 HOUR)", 86_400_000),
        ("TUMBLING (SIZE 1 HOUR, RETENTION 7 DAYS)", 7 * 86_400_000),
        ("HOPPING (SIZE 1 HOUR, ADVANCE BY 1 MINUTE, GRACE PERIOD 1 MINUTE)", 3_660_000),
        ("SESSION (1 HOUR, RETENTION 2 DAYS, GRACE PERIOD 1 HOUR)", 2 * 86_400_000),
    ],
)
def test_the_store_and_the_table_keep_windows_for_their_retention(window: str, kept_ms: int) -> None:
    prepared = SqlTestDriver(CLICKS).prepare(
        f"CREATE TABLE t AS SELECT who, COUNT(*) AS n FROM clicks WINDOW {window} GROUP BY who;"
    )
    [store] = prepared.work.plan.stores.values()
    assert store.retention_ms == kept_ms
    assert prepared.work.sink.window.retention_ms == kept_ms
