"""A stream joined with a table, times from a column, and what EXPLAIN says of roads."""

from __future__ import annotations

import random

import orjson
import pytest
from tests.sql.columns.roads import Roads, plan_of
from tests.streams.columns.batches import Given, part

from barnabas.sql.running.queries import road_of
from barnabas.sql.testing import SqlTestDriver

CLICKS = (
    "CREATE STREAM c (k STRING KEY, v INT, moment BIGINT) "
    "WITH (KAFKA_TOPIC='c', VALUE_FORMAT='JSON', PARTITIONS=1{more});"
)
USERS = (
    "CREATE TABLE u (id STRING PRIMARY KEY, name STRING) "
    "WITH (KAFKA_TOPIC='u', VALUE_FORMAT='JSON', PARTITIONS=1);"
)


def rows(rng: random.Random, count: int, start: int, *, is_table: bool) -> list[Given]:
    found: list[Given] = []
    for number in range(count):
        key = rng.choice((None, b"a", b"b", b"c", b"", b"\xff"))
        value: bytes | None = orjson.dumps(
            {"name": rng.choice(("x", "Ü", None, 3))}
            if is_table
            else {"v": rng.choice((1, 2, None, "x")), "moment": rng.randrange(10_000)}
        )
        found.append((key, None if rng.random() < 0.2 else value, start + number + rng.choice((0, 7))))
    return found


@pytest.mark.parametrize("kind", ["JOIN", "LEFT JOIN"])
@pytest.mark.parametrize("seed", range(4))
def test_a_stream_finds_the_rows_that_were_there(kind: str, seed: int) -> None:
    rng = random.Random(f"{kind} {seed}")
    text = (
        "CREATE STREAM r AS SELECT c.k AS k, c.v / 2 AS half, UCASE(u.name) AS name, u.ROWTIME AS since "
        f"FROM c {kind} u ON c.k = u.id WHERE u.name IS NULL OR u.name <> 'q';"
    )
    roads = Roads(plan_of(CLICKS.format(more=""), USERS, text))
    for batch in range(5):
        given = [
            part(topic, rows(rng, rng.randint(1, 30), 50 * batch, is_table=topic == "u"))
            for topic in ("u", "c")
            if rng.random() < 0.8
        ]
        if given:
            roads.run(given)
    assert roads.records.written
    roads.check(is_stateless=True)


@pytest.mark.parametrize("seed", range(2))
def test_rows_without_a_key_pass_the_repartition_topic_of_a_left_join(seed: int) -> None:
    rng = random.Random(seed)
    text = "CREATE STREAM r AS SELECT u.id AS id, c.v, u.name FROM c LEFT JOIN u ON TRIM(c.k) = u.id;"
    plan = plan_of(CLICKS.format(more=""), USERS, text)
    before = next(each for each in plan.subtopologies if each.source_topics == ("c",))
    [moved] = plan.repartition_topics
    first = Roads(plan, before.number)
    written = first.run([part("c", rows(rng, 60, 0, is_table=False))])
    first.check(is_stateless=True)
    second = Roads(plan, 1 - before.number)
    given = [(key, value, time) for _, key, value, time in written]
    results = second.run([part("u", rows(rng, 9, 0, is_table=True)), part(moved.name, given)])
    second.check(is_stateless=True)
    assert any(key is None for _, key, _, _ in results)


@pytest.mark.parametrize("seed", range(2))
def test_records_have_the_time_of_a_column(seed: int) -> None:
    source = CLICKS.format(more=", TIMESTAMP='moment'")
    text = "CREATE TABLE r AS SELECT k, COUNT(*) AS n FROM c WINDOW TUMBLING (SIZE 1 SECOND) GROUP BY k;"
    roads = Roads(plan_of(source, text))
    rng = random.Random(seed)
    for batch in range(3):
        given = [each for each in rows(rng, 40, 50 * batch, is_table=False) if each[1] is not None]
        roads.run([part("c", given)])
    roads.check(is_stateless=False)


@pytest.mark.parametrize(
    ("text", "said"),
    [
        (
            "CREATE STREAM r AS SELECT k, v + 1 AS v FROM c;",
            "(Source, Filter, MapValues, Sink): over columns",
        ),
        (
            "CREATE STREAM r AS SELECT k, EXP(v * 1.5E0) AS v FROM c;",
            "KSTREAM-MAPVALUES-0000000002: Python for each value: EXP of (DOUBLE) has no form over columns",
        ),
        (
            "CREATE TABLE r AS SELECT k, COUNT(*) AS n FROM c WINDOW SESSION (5 SECONDS) GROUP BY k;",
            "KSTREAM-AGGREGATE-0000000003: windows by records, or final results",
        ),
        ("SELECT k, v FROM c EMIT CHANGES;", "record by record, in the server's process"),
    ],
)
def test_an_explanation_names_the_road_and_why(text: str, said: str) -> None:
    driver = SqlTestDriver(CLICKS.format(more=""))
    assert said in road_of(driver.prepare(text).work)
