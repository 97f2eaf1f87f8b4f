"""Findings from metrics in Prometheus' text form: a value, or how much a counter grew between two looks.

In: pages of endpoints. Out: findings for `metric` and `metric_increase`, with the labels of each sample.
Only names that rules ask for are kept. Does not know: HTTP.
"""

from __future__ import annotations

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
    """The samples with one of these names. ValueError if the page is not in the format."""
    found: list[Sample] = []
    for family in text_string_to_metric_families(text):
        for sample in family.samples:
            if sample.name in names:
                labels = {**sample.labels, "instance": instance}
                found.append(Sample(sample.name, tuple(sorted(labels.items())), float(sample.value)))
                if len(found) >= SAMPLES_MAX:
                    return found
    return found


class MetricHistory:
    """The last two looks at each endpoint."""

    def __init__(self) -> None:
        self._now: dict[tuple[str, Labels], float] = {}
        self._before: dict[tuple[str, Labels], float] = {}

    def take(self, samples: Collection[Sample]) -> None:
        self._before = self._now
        self._now = {(each.name, each.labels): each.value for each in samples}

    def values(self, name: str) -> list[Finding]:
        return [
            Finding(value, labels, label_text(labels))
            for (found, labels), value in self._now.items()
            if found == name
        ]

    def increases(self, name: str) -> list[Finding]:
        """How much each counter grew. One that is smaller than before began again at zero; one that was not
        seen before is left out, since nobody knows when it grew."""
        found = []
        for key, value in self._now.items():
            before = self._before.get(key)
            if key[0] == name and before is not None:
                grown = value if value < before else value - before
                found.append(Finding(grown, key[1], label_text(key[1])))
        return found


def label_text(labels: Labels) -> str:
    return " ".join(f"{name}={value}" for name, value in labels if value and name != "instance")
