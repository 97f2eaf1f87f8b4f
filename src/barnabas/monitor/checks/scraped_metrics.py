"""Findings from metrics in Prometheus' text form: a value, or how much a counter grew between two looks.

In: pages of endpoints. Out: findings for `metric`, `metric_increase` and `metric_peers`, with the labels of
each sample.
Only names that rules ask for are kept. Does not know: HTTP.
"""

from __future__ import annotations

import math
from collections import deque
from collections.abc import Collection
from dataclasses import dataclass
from itertools import pairwise
from statistics import median

from prometheus_client.parser import text_string_to_metric_families

from barnabas.monitor.alerts.rule import Finding, Labels, number_text

SAMPLES_MAX = 20_000
LOOKS_MAX = 1_000  # at an endpoint
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
    """The looks at each endpoint: the last two, and as many more as the longest span needs. One that is away
    for a while keeps its last values, so that what its counters grew meanwhile is found when it is back."""

    def __init__(self, span_s_max: float = 0.0) -> None:
        self._span_ms_max = span_s_max * 1000
        self._looks: dict[str, deque[tuple[int, Values]]] = {}

    def add(self, instance: str, samples: Collection[Sample], now_ms: int) -> None:
        looks = self._looks.setdefault(instance, deque(maxlen=LOOKS_MAX))
        looks.append((now_ms, {(each.name, each.labels): each.value for each in samples}))
        while len(looks) > 2 and looks[1][0] <= now_ms - self._span_ms_max:
            looks.popleft()

    def values(self, name: str, instance: str) -> list[Finding]:
        return [
            Finding(value, labels, label_text(labels))
            for (found, labels), value in self._newest(instance).items()
            if found == name
        ]

    def increases(self, name: str, instance: str, span_s: float = 0.0) -> list[Finding]:
        """How much each counter grew since the last look, or in a span. One that is smaller than before began
        again at zero, one that was not there at the look before began at zero. Nobody knows when those of the
        first look grew."""
        looks = list(self._looks.get(instance, ()))
        steps = [
            (before, after)
            for (_, before), (at_ms, after) in pairwise(looks)
            if at_ms > looks[-1][0] - span_s * 1000 or after is looks[-1][1]
        ]
        if not steps:
            return []
        findings = []
        for key in self._newest(instance):
            if key[0] == name:
                grown = sum(growth(before.get(key, 0.0), after.get(key, 0.0)) for before, after in steps)
                findings.append(Finding(grown, key[1], label_text(key[1])))
        return findings

    def _newest(self, instance: str) -> Values:
        looks = self._looks.get(instance)
        return looks[-1][1] if looks else {}

    def peers(self, name: str, instances: Collection[str]) -> list[Finding]:
        """How many times as large each sample is as the median of the same samples of other endpoints, with
        the sample as the subject. Samples that fewer than two others have are left out."""
        alike: dict[Labels, list[tuple[Labels, float]]] = {}
        for instance in instances:
            for (found, labels), value in self._newest(instance).items():
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


def growth(before: float, after: float) -> float:
    return after if after < before else after - before


def label_text(labels: Labels) -> str:
    return " ".join(f"{name}={value}" for name, value in labels if value and name != INSTANCE)
