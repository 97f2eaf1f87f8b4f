"""Measures of a task's batch: phases, ages of records, restored records; on request nodes and stores."""

from __future__ import annotations

import time
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from barnabas.metrics.recent import Recent, Values
from barnabas.plans.interpreter.records import Message
from barnabas.plans.plan import Plan
from barnabas.streams import StreamsBuilder
from barnabas.streams.columns.task import Part
from barnabas.streams.spark.batch_measures import Accesses, Ages, ages_of
from barnabas.streams.spark.measured_state import MeasuredStateFile
from barnabas.streams.spark.task_metrics import TaskMetrics
from barnabas.streams.spark.task_port import TaskId, TaskResult
from barnabas.testing.broker import Broker

from .local import KEEPS_OLD_RECORDS, LocalApplication

STREAM = "kafka_streams_stream_"


@pytest.fixture(scope="module")
def broker() -> Iterator[Broker]:
    with Broker(overrides=KEEPS_OLD_RECORDS) as broker:
        yield broker


class Passing:
    def init(self, context: Any) -> None:
        self.context = context

    def process(self, record: Message) -> None:
        self.context.forward(record)


def words(name: str, *, by_records: bool) -> Plan:
    """Counts of words; with a processor of the user's they run record by record."""
    builder = StreamsBuilder(name)
    stream = builder.stream(f"{name}-lines", key=str, value=str).filter(lambda key, value: value != "no")
    counts: Any = stream.group_by_key().count(store="counts").to_stream()
    if by_records:
        counts = counts.process(Passing)
    counts.to(f"{name}-counts", key=str, value=int)
    return builder.build()


@pytest.mark.parametrize("by_records", [False, True])
def test_a_batch_tells_its_phases_nodes_and_stores(
    broker: Broker, tmp_path: Path, *, by_records: bool
) -> None:
    name = f"measured-{by_records}"
    now_ms = int(time.time() * 1000)
    with LocalApplication(broker, words(name, by_records=by_records), tmp_path) as application:
        application.settings = replace(application.settings, measures_details=True)
        application.create(f"{name}-lines", f"{name}-counts", partitions=1)
        for _ in range(2):
            application.produce(
                f"{name}-lines", [("a", "1", now_ms), ("b", "no", now_ms - 9000), ("a", "2", now_ms)]
            )
            application.run()
    [query] = application.queries
    found = query.metrics.snapshot()
    assert found[f"{STREAM}thread_metrics_task_created_total"] == {"": 1}
    assert found[f"{STREAM}thread_metrics_task_closed"] == {"": 0}
    for phase in ("poll", "process", "commit"):
        assert 0 < found[f"{STREAM}thread_metrics_{phase}_latency_max"][""] < 30_000
        assert 0 < found[f"{STREAM}thread_metrics_{phase}_ratio"][""] < 1
    assert found[f"{STREAM}thread_metrics_poll_records_avg"] == {"": 3}
    assert found[f"{STREAM}task_metrics_active_process_ratio"] == {"0_0": 1}
    age = f"{STREAM}processor_node_metrics_record_e2e_latency_"
    assert 9000 <= found[f"{age}max"]["0_0 source"] < found[f"{age}max"]["0_0 terminal"] < 60_000
    least, mean, most = (found[f"{age}{which}"]["0_0 source"] for which in ("min", "avg", "max"))
    assert least < mean < most
    nodes = found[f"{STREAM}processor_node_metrics_process_total"]
    counts = {name.split(" ")[1].rstrip("-0123456789"): count for name, count in nodes.items()}
    assert (counts["KSTREAM-SOURCE"], counts["KSTREAM-FILTER"]) == (3, 3)
    assert ("KSTREAM-PROCESSOR" in counts) is by_records
    [aggregated] = [count for name, count in counts.items() if "AGGREGATE" in name]
    assert aggregated == 2, "one record does not pass the filter"
    assert found[f"{STREAM}processor_node_metrics_process"] == nodes
    state = f"{STREAM}state_metrics_"
    for kind in ("get", "put"):
        mean, largest = (found[f"{state}{kind}_latency_{which}"]["0_0 counts"] for which in ("avg", "max"))
        assert largest >= mean > 0
        assert "0_0 counts" in found[f"{state}{kind}_rate"]
    assert found[f"{state}flush_latency_avg"]["0_0"] > 0
    assert found[f"{STREAM}record_cache_metrics_hit_ratio_max"]["0_0 counts"] == 1  # the second batch's page


def test_details_are_not_measured_unless_they_are_asked_for(broker: Broker, tmp_path: Path) -> None:
    with LocalApplication(broker, words("plain", by_records=False), tmp_path) as application:
        application.create("plain-lines", "plain-counts", partitions=1)
        application.produce("plain-lines", [("a", "1", 1000)])
        application.run()
    found = application.queries[0].metrics.snapshot()
    details = f"{STREAM}state_metrics_get", f"{STREAM}record_cache"
    assert not [name for name in found if name.startswith(details)]
    assert found[f"{STREAM}processor_node_metrics_process"] == {"0_0": 1}


def test_restored_records_are_counted_with_their_time(broker: Broker, tmp_path: Path) -> None:
    with LocalApplication(broker, words("lost", by_records=False), tmp_path / "a") as application:
        application.create("lost-lines", "lost-counts", partitions=1)
        application.produce("lost-lines", [(str(number), "1", 1000) for number in range(50)])
        application.run()
        application.produce("lost-lines", [("1", "1", 1000)])
        application.run(tmp_path / "b")  # where no state is
    found = application.queries[0].metrics.snapshot()
    assert found[f"{STREAM}task_metrics_restore_total"] == {"0_0": 50}
    assert found[f"{STREAM}state_metrics_restore_latency_max"]["0_0"] > 0


def test_ages_are_those_of_all_records_of_a_batch() -> None:
    def part(*times_us: int) -> Part:
        times = pa.array(times_us, pa.timestamp("us", tz="UTC"))
        return Part("t", 0, pa.RecordBatch.from_pydict({"timestamp": times}))

    assert ages_of([part()], 10.0) is None
    found = ages_of([part(9_000_000, 9_900_000), part(4_000_000), part()], 10.0)
    assert found == pytest.approx(Ages(7100.0, 3, 100.0, 6000.0))
    assert found is not None
    assert found.after(0.5) == pytest.approx(Ages(8600.0, 3, 600.0, 6500.0))


def test_a_measured_file_gives_what_another_gives(tmp_path: Path) -> None:
    state = MeasuredStateFile(tmp_path / "0_0.sqlite")
    state.put_many("s", iter([(b"a", b"1"), (b"b", b"2")]))
    state.put("s", b"c", b"3")
    state.delete("s", b"b")
    assert state.get_many("s", [b"a", b"b", b"x"]) == [b"1", None, None]
    assert state.get("s", b"c") == b"3"
    assert list(state.range("s", None, None)) == [(b"a", b"1"), (b"c", b"3")]
    assert state.get_many("s", []) == []
    [(store, found)] = state.pop_measures().items()
    assert store == "s" and found.hits == 3
    pages = {kind: each.pages for kind, each in found.accesses.items()}
    assert pages == {"put": 3, "delete": 1, "get": 4, "range": 1}
    assert all(0 < each.largest_ns <= each.total_ns for each in found.accesses.values())
    assert state.pop_measures() == {}
    state.close()


def test_the_slowest_page_is_that_of_the_slowest_call() -> None:
    found = Accesses().plus(10, 1000).plus(1, 500)
    assert found == Accesses(11, 1500, 500.0)


def test_recent_values_are_those_of_the_last_minute() -> None:
    recent = Recent()
    assert (recent.mean(5.0), recent.largest(5.0)) == (None, None)
    recent.observe(10, 5.0)
    recent.add(Values(60, 3, 10, 30), 20.0)
    assert (recent.mean(20.0), recent.smallest(34.9), recent.largest(34.9)) == (17.5, 10, 30)
    recent.observe(4, 36.0)
    assert (recent.smallest(50.0), recent.largest(50.0)) == (4, 30)
    assert (recent.mean(66.0), recent.largest(66.0)) == (4, 4)
    assert recent.mean(200.0) is None


def test_values_of_a_quiet_query_fall_to_zero() -> None:
    now = [0.0]
    metrics = TaskMetrics(lambda: now[0])
    metrics.add(TaskResult(TaskId(0, 0), records=100, seconds=1.0))
    assert metrics.snapshot()[f"{STREAM}task_metrics_process_latency_avg"] == {"0_0": 1e7}
    for _ in range(40):
        now[0] += 2.0
        found = metrics.snapshot()
    assert found[f"{STREAM}task_metrics_process_latency_avg"] == {"0_0": 0.0}
    assert found[f"{STREAM}task_metrics_process_rate"] == {"0_0": 0.0}
    assert found[f"{STREAM}task_metrics_process_total"] == {"0_0": 100.0}
