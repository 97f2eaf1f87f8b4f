"""Points and their growth, compared with a model."""

from __future__ import annotations

from collections.abc import Iterator

from hypothesis import given
from hypothesis import strategies as st

from barnabas.broker.reporters.collecting import Selection, collect
from barnabas.broker.reporters.reporter import Snapshot
from barnabas.metrics import Kind, Metric, Registry, Sample, metric_of
from barnabas.metrics.exposition import Page
from barnabas.metrics.histogram import Histogram, snapshot_of
from barnabas.monitor.outlets.points import Deltas, Point, points
from barnabas.runtime.pieces import at_once

steps = st.lists(
    st.dictionaries(st.sampled_from("abc"), st.integers(0, 5), max_size=3), min_size=1, max_size=8
)


@given(steps)
def test_growth_adds_up_to_what_was_counted_after_the_first_report(growth: list[dict[str, int]]) -> None:
    totals: dict[str, float] = {}
    deltas, sums = Deltas(), dict.fromkeys("abc", 0.0)
    first: dict[str, float] = {}
    for number, each in enumerate(growth):
        for name, grown in each.items():
            totals[name] = totals.get(name, 0) + grown
        if not number:
            first = dict(totals)
        for point in deltas.grown(Point(name, {}, value, True, "") for name, value in totals.items()):
            assert point.value >= 0
            sums[point.name] += point.value
    assert sums == {name: totals.get(name, 0) - first.get(name, 0) for name in "abc"}


def test_a_counter_that_fell_counts_from_zero() -> None:
    deltas = Deltas()

    def grown(value: float) -> float:
        [point] = deltas.grown(iter([Point("n", {}, value, True, "")]))
        return point.value

    assert [grown(10), grown(15), grown(4)] == [0, 5, 4]


def registry() -> Registry:
    found = Registry()
    found.add(
        metric_of("kafka.server", "BrokerTopicMetrics", "BytesInPerSec", Kind.COUNTER, "Bytes."),
        lambda: [((), 7), ((("topic", "t"),), 7)],
    )
    found.add(
        metric_of("kafka.server", "raft-metrics", "current-state", Kind.TEXT, "Role."),
        lambda: [((), "leader")],
    )
    times = Histogram()
    times.observe(5)
    found.add(
        metric_of("kafka.network", "RequestMetrics", "TotalTimeMs", Kind.HISTOGRAM, "Time."),
        lambda: [((("request", "Produce"),), snapshot_of((times,), 1.0))],
    )
    found.add(
        metric_of(
            "kafka.server", "KafkaRequestHandlerPool", "RequestHandlerAvgIdlePercent", Kind.COUNTER, "Idle."
        ),
        lambda: [((), 0)],
    )
    return found


def test_points_have_the_names_and_labels_of_the_prometheus_page_in_every_dialect() -> None:
    source = registry()
    collected = at_once(collect(source, Selection("", "", with_partitions=True)))
    snapshot = Snapshot(0.0, 0.0, collected.samples, collected.rates)
    for dialect in ("jmx", "strimzi", "confluent"):
        lines = "".join(Page(source, dialect).parts()).splitlines()
        on_the_page = {line.rpartition(" ")[0] for line in lines if not line.startswith("#")}
        ours = {series(each) for each in points(snapshot, dialect)}
        assert on_the_page <= ours
        assert {each for each in ours - on_the_page if "_sum" not in each} == set()


def series(point: Point) -> str:
    labels = ",".join(f'{name}="{value}"' for name, value in point.labels.items())
    return f"{point.name}{{{labels}}}" if labels else point.name


def names(include: str, exclude: str = "") -> list[str]:
    def details() -> Iterator[tuple[tuple[tuple[str, str], ...], int]]:
        yield (("topic", "t"), ("partition", "0")), 1

    source = registry()
    source.add(Metric("kafka.log", "Log", "Size", "Value", Kind.GAUGE, "", is_detail=True), details)
    found = at_once(collect(source, Selection(include, exclude, with_partitions="Log" in include)))
    return [Sample.mbean.fget(each) for each in found.samples]  # type: ignore[attr-defined]


def test_a_selection_takes_patterns_of_mbeans() -> None:
    assert names("kafka.server:type=BrokerTopicMetrics,*") == [
        "kafka.server:type=BrokerTopicMetrics,name=BytesInPerSec",
        "kafka.server:type=BrokerTopicMetrics,name=BytesInPerSec,topic=t",
    ]
    assert names("kafka.server:type=BrokerTopicMetrics,*", "*:topic=*,*") == [
        "kafka.server:type=BrokerTopicMetrics,name=BytesInPerSec"
    ]
    assert names("kafka.*:type=Log,*") == ["kafka.log:type=Log,name=Size,topic=t,partition=0"]
    assert names("kafka.network:*; kafka.log:*") == [
        "kafka.network:type=RequestMetrics,name=TotalTimeMs,request=Produce"
    ]
