"""COUNT(*) alone: numbers over columns, with the state of earlier versions too."""

from __future__ import annotations

import struct

import pytest
from tests.sql.columns.roads import Roads, plan_of
from tests.streams.columns.batches import Given, part

from barnabas.plans.interpreter.records import Record
from barnabas.plans.interpreter.state.pages import KEYED, PAGED, Chunks
from barnabas.streams.columns import aggregates
from barnabas.streams.columns.logic import run_by_columns

CLICKS = """CREATE STREAM clicks (user STRING KEY, page STRING)
  WITH (KAFKA_TOPIC='clicks', KEY_FORMAT='KAFKA', VALUE_FORMAT='JSON', PARTITIONS=1);"""
COUNTS = {
    "windows": "CREATE TABLE t AS SELECT user, COUNT(*) AS n, WINDOWSTART AS s FROM clicks "
    "WINDOW HOPPING (SIZE 1 MINUTE, ADVANCE BY 20 SECONDS) GROUP BY user;",
    "groups": "CREATE TABLE t AS SELECT user, COUNT(*) AS n FROM clicks GROUP BY user;",
}
HAVING = "CREATE TABLE t AS SELECT user, COUNT(*) AS n FROM clicks GROUP BY user HAVING COUNT(*) > 2;"
TWO = struct.Struct(">qq")


def batch(number: int) -> list[Given]:
    return [(b"user %d" % (each % 3), b'{"page":"/"}', 15_000 * each + 60_000 * number) for each in range(20)]


@pytest.mark.parametrize("name", COUNTS)
def test_no_state_is_a_python_object(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(aggregates, "adding", lambda aggregate: None)
    roads = Roads(plan_of(CLICKS, COUNTS[name]))
    for number in range(4):
        roads.run([part("clicks", batch(number))])
    roads.check(is_stateless=False)


def test_having_is_the_same_on_both_roads() -> None:
    roads = Roads(plan_of(CLICKS, HAVING))
    for number in range(4):
        roads.run([part("clicks", batch(number))])
    roads.check(is_stateless=False)


@pytest.mark.parametrize("name", COUNTS)
@pytest.mark.parametrize("count", [5, 123456])  # as text the second one is of eight bytes
def test_counts_of_earlier_versions_go_on(name: str, count: int) -> None:
    """They kept a list of one state as JSON: the batch that meets one runs record by record."""
    roads = Roads(plan_of(CLICKS, COUNTS[name]))
    roads.run([part("clicks", batch(0))])
    old = b"[%d]" % count
    for side in (roads.records, roads.columns):
        for place, page in side.backend.pages.items():
            if place[1].startswith(PAGED):
                some = [(start, time, old) for start, time, _ in Chunks.read(TWO, page)]
                side.backend.pages[place] = Chunks.write(TWO, iter(some))
            elif place[1].startswith(KEYED):
                side.backend.pages[place] = page[:8] + old
    again = [part("clicks", batch(0))]
    assert run_by_columns(roads.columns.task, again) is None
    task = roads.records.task()
    outputs = task.process_batch(("clicks", Record(*each)) for each in batch(0))
    changes = [each.value for each in outputs if each.topic.endswith("changelog")]
    assert min(int.from_bytes(each or b"", "big") for each in changes) > count
    assert all(len(each or b"") == 8 for each in changes)


@pytest.mark.parametrize("name", COUNTS)
def test_plans_of_counts_travel_to_executors(name: str) -> None:
    from pyspark import cloudpickle

    assert cloudpickle.loads(cloudpickle.dumps(plan_of(CLICKS, COUNTS[name]))).subtopologies  # type: ignore[no-untyped-call]
