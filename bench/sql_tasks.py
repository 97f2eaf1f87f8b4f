"""Records of SQL that a task takes in a second of processor time: over columns, and record by record.

In: the number of records. Out: a line for each statement and sub-topology, and one for batches of a windowed
count whose keys have all windows of a day, SQL's default grace. Tasks run in this process, on
state in memory: no broker and no Spark, so the numbers are those of the task's own work.
"""

from __future__ import annotations

import random
import time
from collections.abc import Callable

import orjson
import pyarrow as pa

from barnabas.plans.interpreter import loading as operators
from barnabas.plans.interpreter.records import Record
from barnabas.plans.interpreter.task import Handlers, Task
from barnabas.plans.plan import Plan
from barnabas.plans.stores import MemoryBackend
from barnabas.spark.reading.columns import schema_of
from barnabas.sql.formats.registries import RegistryPlace
from barnabas.sql.running.binding import bound
from barnabas.sql.running.task_logic import MakeSqlLogic
from barnabas.sql.testing import SqlTestDriver
from barnabas.streams.columns.logic import run_by_columns
from barnabas.streams.columns.task import Part
from barnabas.streams.spark.task_records import COLUMNS, in_order

assert operators.OPERATORS
assert MakeSqlLogic  # imported as a worker imports it, with the columns of SQL's nodes
BATCH = 20_000
USERS = 2_000
PAGES = 500
SOURCES = """
CREATE STREAM clicks (user STRING KEY, page STRING, n INT, price DOUBLE)
  WITH (KAFKA_TOPIC='clicks', KEY_FORMAT='KAFKA', VALUE_FORMAT='JSON', PARTITIONS=1);
CREATE TABLE people (id STRING PRIMARY KEY, name STRING)
  WITH (KAFKA_TOPIC='people', KEY_FORMAT='KAFKA', VALUE_FORMAT='JSON', PARTITIONS=1);
"""
STATEMENTS = {
    "projection with WHERE": "CREATE STREAM a AS SELECT user, UCASE(page) AS page, n * 2 AS n, price "
    "FROM clicks WHERE page LIKE '/p%' AND n > 10;",
    "windowed count by key": "CREATE TABLE b AS SELECT user, COUNT(*) AS n FROM clicks "
    "WINDOW TUMBLING (SIZE 1 MINUTE) GROUP BY user;",
    "SUM and AVG by group": "CREATE TABLE c AS SELECT page, SUM(n) AS n, AVG(price) AS price FROM clicks "
    "GROUP BY page;",
    "stream-table join": "CREATE STREAM d AS SELECT clicks.user AS user, page, name FROM clicks "
    "JOIN people ON clicks.user = people.id;",
}
WINDOWS = 1_440  # of a minute: a day
WINDOW_MS = 60_000
KEYS = 200
BATCHES = 10
Given = list[tuple[bytes, bytes, int]]
Taken = list[tuple[str, bytes | None, bytes | None, int]]


def clicks(count: int) -> Given:
    rng = random.Random(1)
    return [
        (
            f"user{rng.randrange(USERS):06}".encode(),
            orjson.dumps(
                {
                    "page": f"/p{rng.randrange(PAGES)}/index.html",
                    "n": rng.randrange(100),
                    "price": rng.randrange(10_000) / 100,
                }
            ),
            number,
        )
        for number in range(count)
    ]


def people() -> Given:
    return [(f"user{each:06}".encode(), orjson.dumps({"name": f"Person {each}"}), 0) for each in range(USERS)]


def part(topic: str, records: Given) -> Part:
    keys, values, times = zip(*records, strict=True)
    count = len(records)
    columns = {
        "key": pa.array(keys, pa.binary()),
        "value": pa.array(values, pa.binary()),
        "offset": pa.array(range(count), pa.int64()),
        "timestamp": pa.array([each * 1000 for each in times]).cast(pa.timestamp("us", tz="UTC")),
        "headers": pa.nulls(count, schema_of(("headers",)).field(0).type),
    }
    arrays = [columns[name] for name in COLUMNS]
    return Part(topic, 0, pa.RecordBatch.from_arrays(arrays, schema=schema_of(COLUMNS)))


def by_records(make: Callable[[], Task], parts: list[Part]) -> Taken:
    found = make().process_batch((topic, Record(*record)) for topic, record in in_order(parts))
    return [(each.topic, each.key, each.value, each.timestamp) for each in found]


def by_columns(make: Callable[[], Task], parts: list[Part]) -> list[pa.Table] | None:
    return run_by_columns(make, parts)


def measured(plan: Plan, number: int, given: dict[str, Given], run: Callable[..., object]) -> float | None:
    """Records a second of processor time; None where the batches cannot run so."""
    backend, sub = MemoryBackend(), plan.subtopologies[number]
    make = lambda: Task(sub, backend, application_id="app", handlers=Handlers())  # noqa: E731
    main = next(topic for topic in sub.source_topics if topic != "people")
    if "people" in sub.source_topics and run(make, [part("people", given["people"])]) is None:
        return None
    records, seconds, count = given[main], 0.0, 0
    for first in range(0, len(records), BATCH):
        batch = [part(main, records[first : first + BATCH])]
        began = time.process_time()
        if run(make, batch) is None:
            return None
        if first:  # the first batch compiles
            seconds += time.process_time() - began
            count += batch[0].records.num_rows
    return count / seconds


def repartitioned(plan: Plan, given: dict[str, Given]) -> dict[str, Given]:
    """What the first sub-topology writes for the others."""
    sub = plan.subtopologies[0]
    make = lambda: Task(sub, MemoryBackend(), application_id="app")  # noqa: E731
    found: dict[str, Given] = {}
    for topic, key, value, moment in by_records(make, [part("clicks", given["clicks"])]):
        assert key is not None and value is not None
        found.setdefault(topic, []).append((key, value, moment))
    return found


def day_of_windows(run: Callable[..., object]) -> float | None:
    """Milliseconds of processor time of a batch with a record for each key, whose windows of a day the store
    has. None where the batches cannot run so."""
    plan = bound(
        SqlTestDriver(SOURCES).prepare(STATEMENTS["windowed count by key"]).work.plan, RegistryPlace()
    )
    backend, sub = MemoryBackend(), plan.subtopologies[0]
    make = lambda: Task(sub, backend, application_id="app", handlers=Handlers())  # noqa: E731
    value = orjson.dumps({"page": "/", "n": 1, "price": 1.0})
    keys = [f"user{each:06}".encode() for each in range(KEYS)]

    def batch(first: int, count: int) -> list[Part]:
        minutes = range(first, first + count)
        return [part("clicks", [(key, value, minute * WINDOW_MS) for minute in minutes for key in keys])]

    for minute in range(0, WINDOWS, 60):
        if run(make, batch(minute, 60)) is None:
            return None
    began = time.process_time()
    for _ in range(BATCHES):
        run(make, batch(WINDOWS - 1, 1))
    return (time.process_time() - began) / BATCHES * 1000


def main(count: int) -> None:
    given = {"clicks": clicks(count), "people": people()}
    for name, text in STATEMENTS.items():
        driver = SqlTestDriver(SOURCES)
        work = driver.prepare(text).work
        plan = bound(work.plan, RegistryPlace())
        if len(plan.subtopologies) > 1:
            given |= repartitioned(plan, given)
        for sub in plan.subtopologies:
            slow = measured(plan, sub.number, given, by_records)
            fast = measured(plan, sub.number, given, by_columns)
            assert slow is not None
            shown = "not over columns" if fast is None else f"{fast:,.0f} over columns ({fast / slow:.1f} x)"
            print(f"{name}, sub-topology {sub.number}: {slow:,.0f} records/s by records, {shown}", flush=True)
    for road, run in (("by records", by_records), ("over columns", by_columns)):
        cost = day_of_windows(run)
        shown = "not so" if cost is None else f"{cost:,.1f} ms a batch of {KEYS} keys"
        print(f"windowed count, {WINDOWS} windows a key, {road}: {shown}", flush=True)
