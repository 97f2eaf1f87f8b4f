"""Collects a node's samples for its reporters, in steps.

In: the registry, which MBeans are wanted. Out: a list of samples, and the rates of meters that are shown as a
rate. Runs on the loop, which owns the values; each step is short. Does not know: reporters, time.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, NamedTuple

from barnabas.metrics.object_names import ObjectName, parse_object_name
from barnabas.metrics.samples import Kind, Metric, Sample, Tags

if TYPE_CHECKING:
    from barnabas.metrics.registry import Registry
    from barnabas.runtime.pieces import Steps

SAMPLES_A_STEP = 64
Rates = dict[tuple[Metric, Tags], dict[str, float]]


class Collected(NamedTuple):
    samples: list[Sample]
    rates: Rates


class Selection:
    """The MBeans that reporters get."""

    def __init__(self, include: str, exclude: str, *, with_partitions: bool) -> None:
        """Patterns separated by semicolons. ValueError names a wrong one."""
        self._include = parse_patterns(include)
        self._exclude = parse_patterns(exclude)
        self._with_partitions = with_partitions
        self._known: dict[str, bool] = {}

    def wants(self, metric: Metric) -> bool:
        """False only if no MBean of the metric is wanted."""
        if metric.is_detail and not self._with_partitions:
            return False
        if not self._include:
            return True
        name = parse_object_name(metric.mbean())
        return any(could_match(pattern, name) for pattern in self._include)

    @property
    def looks_at_names(self) -> bool:
        return bool(self._include or self._exclude)

    def wants_sample(self, sample: Sample) -> bool:
        name = parse_object_name(sample.mbean)
        if self._include and not any(pattern.matches(name) for pattern in self._include):
            return False
        return not any(pattern.matches(name) for pattern in self._exclude)


def parse_patterns(text: str) -> Sequence[ObjectName]:
    return [parse_object_name(each.strip()) for each in text.split(";") if each.strip()]


def could_match(pattern: ObjectName, name: ObjectName) -> bool:
    """Whether the pattern may cover MBeans with these keys and further ones."""
    own = {key for key, _ in name.properties}
    known = tuple((key, value) for key, value in pattern.properties if key in own)
    return ObjectName(pattern.domain, known, is_open=True).matches(name)


def collect(registry: Registry, selection: Selection) -> Steps[Collected]:
    samples: list[Sample] = []
    rates: Rates = {}
    is_wanted: Callable[[Sample], bool] | None = selection.wants_sample if selection.looks_at_names else None
    for count, sample in enumerate(registry.samples_and_pauses(selection.wants), 1):
        if sample is None:
            yield
            continue
        if is_wanted is None or is_wanted(sample):
            samples.append(sample)
            metric = sample.metric
            if metric.is_meter and metric.name.endswith("Percent") and isinstance(sample.value, int | float):
                rates[metric, sample.tags] = registry.rates(metric, sample.tags, sample.value)
        if not count % SAMPLES_A_STEP or sample.kind is Kind.HISTOGRAM:
            yield
    return Collected(samples, rates)
