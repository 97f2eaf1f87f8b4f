"""Points: samples of a node under the names that the Prometheus endpoint gives them.

In: a snapshot, a dialect of names. Out: one point for each number: a name, labels, a value, whether it only
grows. A histogram becomes a point for each quantile and its count and sum; a text becomes 1 with the text as
a label. So a value has the same name and labels on every way to a dashboard.
Does not know: formats.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import NamedTuple

from barnabas.broker.reporters.reporter import Snapshot
from barnabas.metrics.dialects import COUNTER, DEFAULT, DIALECTS, Dialect, Shape
from barnabas.metrics.exposition import QUANTILES
from barnabas.metrics.histogram import Snapshot as HistogramSnapshot
from barnabas.metrics.samples import Metric, Tags

Labels = dict[str, str]
Series = tuple[str, tuple[tuple[str, str], ...]]
SERIES_MAX = 1_000_000  # that `Deltas` remembers


class Point(NamedTuple):
    name: str
    labels: Labels
    value: float
    is_counter: bool  # it only grows while the node runs
    help: str


def points(snapshot: Snapshot, dialect: str = DEFAULT) -> Iterator[Point]:
    rules = DIALECTS[dialect]
    shapes: dict[Metric, Shape] = {}
    for metric, tags, value in snapshot.samples:
        shape = shapes.get(metric)
        if shape is None:
            shape = shapes[metric] = rules.shape(metric)
        labels = labels_of(rules, shape, tags)
        if isinstance(value, HistogramSnapshot):
            yield from of_histogram(shape, metric, labels, value)
        elif isinstance(value, str) or shape.text_label:
            yield Point(
                shape.name, {**labels, (shape.text_label or "value"): str(value)}, 1, False, metric.help
            )
        elif shape.rate:
            rates = snapshot.rates.get((metric, tags))
            if rates is not None:
                yield Point(shape.name, labels, rates[shape.rate], False, metric.help)
        else:
            is_counter = shape.type == COUNTER or metric.attribute == "Count"
            yield Point(shape.name, labels, float(value), is_counter, metric.help)


def labels_of(rules: Dialect, shape: Shape, tags: Tags) -> Labels:
    return {rules.label(name): value for name, value in (*tags, *shape.extra)}


def of_histogram(shape: Shape, metric: Metric, labels: Labels, value: HistogramSnapshot) -> Iterator[Point]:
    for quantile, found in zip(QUANTILES, value.percentiles, strict=True):
        yield Point(shape.name, {**labels, "quantile": quantile}, found, False, metric.help)
    yield Point(shape.count_name or f"{shape.name}_count", labels, value.count, True, metric.help)
    yield Point(f"{shape.name}_sum", labels, value.sum, True, metric.help)


class Deltas:
    """How much counters grew between two reports, for receivers that add up what they get.

    The first report of a series counts nothing if the reporter begins with it, because the node may run for
    long; a series that appears later began at 0. A counter that fell was started anew.
    """

    def __init__(self) -> None:
        self._last: dict[Series, float] = {}
        self._is_first = True

    def grown(self, given: Iterator[Point]) -> Iterator[Point]:
        """The points, counters as their growth."""
        before = self._last
        now: dict[Series, float] = {}
        for point in given:
            if not point.is_counter:
                yield point
                continue
            key = point.name, tuple(point.labels.items())
            last = before.get(key, point.value if self._is_first else 0.0)
            if len(now) < SERIES_MAX:
                now[key] = point.value
            yield point._replace(value=point.value - last if point.value >= last else point.value)
        self._last, self._is_first = now, False


def with_labels(point: Point, labels: Mapping[str, str]) -> Labels:
    """The labels of a point and those of the node; the point's own win."""
    return {**labels, **point.labels}
