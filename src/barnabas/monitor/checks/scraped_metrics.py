"""Findings from metrics in Prometheus' text form: a value, or how much a counter grew between two looks.

In: pages of endpoints. Out: findings for `metric` and `metric_increase`, with the labels of each sample.
Only names that rules ask for are kept. Does not know: HTTP.
"""

from __future__ import annotations

import math
from collections.abc import Collection
from dataclasses import dataclass

from prometheus_client.parser import text_string_to_metric_families

from barnabas.monitor.alerts.rule import Finding, Labels

SAMPLES_MAX = 20_000


@dataclass(frozen=True, slots=True)
class Sample:
    name: str
    labels: Labels
    value: float


def samples_of(text: str, names: Collection[str], instance: str) -> list[Sample]:
    """The samples with one of these names, without those that are no number (NaN: nothing was measured).
    ValueError if the page is not in the format."""
    found: list[Sample] = []
    for family in text_string_to_metric_families(text):
        for sample in family.samples:
            if sample.name in names and not math.isnan(sample.value):
                labels = {**sample.labels, "instance": instance}
                found.append(Sample(sample.name, tuple(sorted(labels.items())), float(sample.value)))
                if len(found) >= SAMPLES_MAX:
                    return found
    return found


Values = dict[tuple[str, Labels], float]


class MetricHistory:
    """The last two looks at each endpoint. One that is away for a while keeps its last values, so that what
    its counters grew meanwhile is found when it is back."""

    def __init__(self) -> None:
        self._now: dict[str, Values] = {}
        self._before: dict[str, Values] = {}

    def add(self, instance: str, samples: Collection[Sample]) -> None:
        known = self._now.get(instance)
        if known is not None:
            self._before[instance] = known
        self._now[instance] = {(each.name, each.labels): each.value for each in samples}

    def values(self, name: str, instance: str) -> list[Finding]:
        return [
            Finding(value, labels, label_text(labels))
            for (found, labels), value in self._now.get(instance, {}).items()
            if found == name
        ]

    def increases(self, name: str, instance: str) -> list[Finding]:
        """How much each counter grew. One that is smaller than before began again at zero, one that was not
        there at the look before began at zero. Nobody knows when those of the first look grew."""
        before = self._before.get(instance)
        if before is None:
            return []
        found = []
        for key, value in self._now[instance].items():
            if key[0] == name:
                last = before.get(key, 0.0)
                grown = value if value < last else value - last
                found.append(Finding(grown, key[1], label_text(key[1])))
        return found


def label_text(labels: Labels) -> str:
    return " ".join(f"{name}={value}" for name, value in labels if value and name != "instance")
