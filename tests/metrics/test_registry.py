"""The registry: what is registered is read under its key, lazily, with the attributes of Kafka's MBeans."""

from collections.abc import Generator, Iterator
from math import exp

import pytest

from barnabas.metrics import Histogram, Kind, Registry, metric_of
from barnabas.metrics.exposition import Page
from barnabas.metrics.rates import TICK_S
from barnabas.metrics.registry import METERS_MAX, ROWS_A_PART, ROWS_WITH_RATES

SIZE = metric_of("kafka.log", "Log", "Size", Kind.GAUGE, "Bytes of a log.", is_detail=True)
END = metric_of("kafka.log", "Log", "LogEndOffset", Kind.GAUGE, "The next offset.", is_detail=True)
LEADER = metric_of("kafka.server", "raft-metrics", "current-leader", Kind.GAUGE, "The leader.")
BYTES = metric_of("kafka.server", "BrokerTopicMetrics", "BytesInPerSec", Kind.COUNTER, "Bytes.")


class Clock:
    def __init__(self) -> None:
        self.now_s = 100.0

    def __call__(self) -> float:
        return self.now_s


def test_a_sample_knows_its_key_and_the_name_of_its_mbean() -> None:
    registry = Registry()
    registry.add(SIZE, lambda: [({"topic": "t", "partition": "0"}, 7)])
    registry.add(LEADER, lambda: [((), 3)])
    size, leader = registry.samples()
    assert (size.domain, size.type, size.name, size.attribute, size.kind) == (
        "kafka.log", "Log", "Size", "Value", Kind.GAUGE,
    )  # fmt: skip
    assert size.tags == (("topic", "t"), ("partition", "0"))
    assert (size.mbean, size.value, size.help) == (
        "kafka.log:type=Log,name=Size,topic=t,partition=0", 7, "Bytes of a log.",
    )  # fmt: skip
    assert (leader.mbean, leader.attribute) == ("kafka.server:type=raft-metrics", "current-leader")
    assert registry.attributes(leader) == {"current-leader": 3}


def test_values_of_tags_are_quoted_where_jmx_needs_it() -> None:
    assert SIZE.mbean((("logDirectory", "/a=b"),)) == 'kafka.log:type=Log,name=Size,logDirectory="/a=b"'


def test_a_table_looks_its_rows_up_once_for_all_columns() -> None:
    registry, looks = Registry(), []

    def rows() -> list[tuple[tuple[tuple[str, str], ...], int]]:
        looks.append(1)
        return [((("partition", str(index)),), index) for index in range(3)]

    registry.add_table([(SIZE, lambda index: index * 10), (END, lambda index: index)], rows)
    found = [(sample.name, sample.value) for sample in registry.samples()]
    assert found == [
        (name, index * factor) for name, factor in (("Size", 10), ("LogEndOffset", 1)) for index in range(3)
    ]
    assert looks == [1]
    list(registry.samples(lambda metric: metric.name == "Size"))
    assert looks == [1, 1]


def test_a_walk_looks_nothing_up_before_it_is_needed() -> None:
    registry = Registry()

    def never() -> list[tuple[tuple[tuple[str, str], ...], int]]:
        raise AssertionError("looked up")

    registry.add(LEADER, lambda: [((), 1)])
    registry.add(SIZE, never)
    walk = registry.samples()
    assert next(walk).value == 1
    walk.close()


def test_rows_of_a_table_are_made_as_they_are_read() -> None:
    registry, made = Registry(), []

    def rows() -> Iterator[tuple[tuple[tuple[str, str], ...], int]]:
        for index in range(10 * ROWS_A_PART):
            made.append(index)
            yield (("partition", str(index)),), index

    registry.add_table([(SIZE, lambda index: index), (END, lambda index: -index)], rows)
    samples = registry.samples()
    next(samples)
    assert len(made) == ROWS_A_PART
    values = [sample.value for sample in samples]
    assert values == [*range(1, 10 * ROWS_A_PART), *(-index for index in range(10 * ROWS_A_PART))]
    assert len(made) == 10 * ROWS_A_PART


def test_a_walk_counts_in_steps_once_for_all_its_metrics() -> None:
    registry, begun = Registry(), []

    def count() -> Generator[None, None, list[int]]:
        begun.append(1)
        for _ in range(5):
            yield
        return [3, 4]

    registry.add_walk([LEADER, END], count)
    found = list(registry.samples_and_pauses())
    assert found[:5] == [None] * 5
    assert [sample.value for sample in found[5:] if sample is not None] == [3, 4]
    assert len(found) == 7
    assert begun == [1]
    assert [sample.value for sample in registry.samples()] == [3, 4]
    pauses = [part for part in Page(registry).parts() if not part]
    assert len(pauses) == 5
    assert "kafka_server_raft_metrics_current_leader 3\n" in "".join(Page(registry).parts())


def test_a_walk_for_one_metric_does_not_read_the_others() -> None:
    registry = Registry()

    def count() -> Generator[None, None, list[int]]:
        yield
        return [3, 4]

    registry.add_walk([LEADER, END], count)
    [sample] = registry.samples(lambda metric: metric is END)
    assert sample.value == 4
    assert registry.metrics == [LEADER, END]


def test_a_meter_has_the_attributes_of_kafkas() -> None:
    clock = Clock()
    registry, count = Registry(clock), [0]
    registry.add(BYTES, lambda: [((), count[0])])
    for _ in range(12):  # a minute of 10 a second, and ticks
        clock.now_s += TICK_S
        count[0] += 50
        for _ in registry.tick():
            pass
    [sample] = registry.samples()
    found = registry.attributes(sample)
    assert found["Count"] == 600
    assert (found["EventType"], found["RateUnit"]) == ("bytes", "SECONDS")
    assert found["MeanRate"] == pytest.approx(10)
    assert found["OneMinuteRate"] == found["FifteenMinuteRate"] == pytest.approx(10)
    clock.now_s += 60  # a minute of silence
    found = registry.attributes(sample)
    assert found["MeanRate"] == pytest.approx(5)
    assert found["OneMinuteRate"] == pytest.approx(10 * exp(-1))
    assert found["FifteenMinuteRate"] == pytest.approx(10 * exp(-1 / 15))


def test_rates_are_bounded_and_those_of_deleted_topics_forgotten() -> None:
    topics = 10_000
    registry = Registry(Clock())
    for number in range(METERS_MAX // ROWS_WITH_RATES + 1):
        metric = metric_of(
            "kafka.server", "BrokerTopicMetrics", f"{number}PerSec", Kind.COUNTER, "Something."
        )
        registry.add(metric, lambda: [((("topic", str(index)),), index) for index in range(topics)])
    list(registry.tick())
    assert len(registry._rates) == METERS_MAX
    topics = 3
    list(registry.tick())
    list(registry.tick())
    assert len(registry._rates) == 3 * (METERS_MAX // ROWS_WITH_RATES + 1)


def test_a_histogram_has_the_attributes_of_kafkas() -> None:
    registry, histogram = Registry(), Histogram()
    histogram.observe(5)
    metric = metric_of("kafka.network", "RequestMetrics", "TotalTimeMs", Kind.HISTOGRAM, "Time.")
    registry.add(metric, lambda: [((("request", "Produce"),), histogram.snapshot())])
    [sample] = registry.samples()
    found = registry.attributes(sample)
    assert set(found) == {
        "50thPercentile", "75thPercentile", "95thPercentile", "98thPercentile", "99thPercentile",
        "999thPercentile", "Count", "Max", "Mean", "Min", "StdDev",
    }  # fmt: skip
    assert (found["Count"], found["Mean"], found["999thPercentile"]) == (1, 5, 5)


def test_a_rate_that_a_reader_asks_for_survives_the_ticks_of_registered_meters() -> None:
    """The total of some rates is no metric: Kafka shows `append-records-rate` alone."""
    clock = Clock()
    registry = Registry(clock)
    alone = metric_of("kafka.server", "raft-metrics", "append-records-total", Kind.COUNTER, "Records.")
    clock.now_s += 1_000
    registry.rates(alone, (), 0)
    for _ in range(120):  # ten minutes of 4 records a second
        clock.now_s += TICK_S
        list(registry.tick())
    for count in range(0, 2_400, 20):
        clock.now_s += TICK_S
        list(registry.tick())
        rate = registry.rates(alone, (), count)["OneMinuteRate"]
    assert rate == pytest.approx(4, rel=0.01)
    clock.now_s += 1_000
    list(registry.tick())
    assert not registry._rates


def test_ticks_that_overlap_both_forget_a_rate_that_is_gone() -> None:
    clock, rows = Clock(), [((("topic", "t"),), 1.0)]
    registry = Registry(clock)
    registry.add(BYTES, lambda: list(rows))
    list(registry.tick())
    assert len(registry._rates) == 1
    rows.clear()
    clock.now_s += 10_000
    first, second = registry.tick(), registry.tick()
    next(first)
    next(second)
    for tick in (first, second):
        list(tick)
    assert registry._rates == {}


@pytest.mark.parametrize(
    ("name", "unit"),
    [
        ("BytesInPerSec", "bytes"),
        ("MessagesInPerSec", "messages"),
        ("TotalFetchRequestsPerSec", "requests"),
        ("IsrShrinksPerSec", "shrinks"),
        ("UncleanLeaderElectionsPerSec", "elections"),
        ("RequestHandlerAvgIdlePercent", "percent"),
        ("cleaner-io", "bytes"),
        ("SlowCallbacksPerSec", "events"),
    ],
)
def test_a_meter_says_what_it_counts_as_kafkas_does(name: str, unit: str) -> None:
    metric = metric_of("kafka.server", "Any", name, Kind.COUNTER, "Something.")
    registry = Registry()
    registry.add(metric, lambda: [((), 1)])
    [sample] = registry.samples()
    assert registry.attributes(sample)["EventType"] == unit


def test_a_timer_has_rates_beside_its_percentiles() -> None:
    clock = Clock()
    registry, syncs = Registry(clock), Histogram()
    timer = metric_of("kafka.log", "LogFlushStats", "LogFlushRateAndTimeMs", Kind.HISTOGRAM, "Syncs.")
    registry.add(timer, lambda: [((), syncs.snapshot())])
    for _ in range(60):
        syncs.observe_many(3, 10)
        clock.now_s += TICK_S
        [sample] = registry.samples()
        found = registry.attributes(sample)
    assert found["OneMinuteRate"] == pytest.approx(2, rel=0.01)
    assert (found["EventType"], found["RateUnit"], found["LatencyUnit"]) == (
        "calls",
        "SECONDS",
        "MILLISECONDS",
    )
    assert (found["Count"], found["99thPercentile"]) == (600, 3)
