"""Findings from metrics in Prometheus' text form: a value, or how much a counter grew between two looks.

In: pages of endpoints. Out: findings for `metric`, `metric_increase` and `metric_peers`, with the labels of
each sample.
Only names that rules ask for are kept. Does not know: HTTP.
"""

from __future__ import annotations

import math
from collections.abc import Collection
from dataclasses import dataclass
from statistics import median

from prometheus_client.parser import text_string_to_metric_families

from barnabas.monitor.alerts.rule import Finding, Labels, number_text

SAMPLES_MAX = 20_000
PEERS_MIN = 2  # with one other endpoint nobody knows which of the two is odd
INSTANCE = "instance"


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
                labels = {**sample.labels, INSTANCE: instance}
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

    def peers(self, name: str, instances: Collection[str]) -> list[Finding]:
        """How many times as large each sample is as the median of the same samples of other endpoints, with
        the sample as the subject. Samples that fewer than two others have are left out."""
        alike: dict[Labels, list[tuple[Labels, float]]] = {}
        for instance in instances:
            for (found, labels), value in self._now.get(instance, {}).items():
                if found == name:
                    shared = tuple(each for each in labels if each[0] != INSTANCE)
                    alike.setdefault(shared, []).append((labels, value))
        findings = []
        for same in alike.values():
            for labels, value in same if len(same) > PEERS_MIN else ():
                usual = median(other for place, other in same if place != labels)
                if usual > 0:
                    detail = f"{number_text(value)}, others have {number_text(usual)}"
                    findings.append(Finding(value / usual, labels, detail, subject=value))
        return findings


def label_text(labels: Labels) -> str:
    return " ".join(f"{name}={value}" for name, value in labels if value and name != INSTANCE)
