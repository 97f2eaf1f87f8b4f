"""Families of samples: what one scrape returns, as text in Prometheus' exposition format.

In: a name, a type, a help text, and (suffix, labels, value) for each sample. Out: lines.
Does not know: where values come from, the network.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field

from barnabas.broker.metrics.kafka_names import label_text

CONTENT_TYPE = "text/plain; version=0.0.4; charset=utf-8"
Labels = dict[str, str]


@dataclass(slots=True)
class Family:
    name: str
    type: str  # counter, gauge or summary
    help: str
    samples: list[tuple[str, Labels, float]] = field(default_factory=list)

    def add(self, value: float, labels: Labels | None = None, suffix: str = "") -> None:
        self.samples.append((suffix, labels or {}, value))

    def lines(self) -> Iterator[str]:
        yield f"# HELP {self.name} {help_text(self.help)}\n"
        yield f"# TYPE {self.name} {self.type}\n"
        for suffix, labels, value in self.samples:
            yield f"{self.name}{suffix}{label_text(labels)} {number_text(value)}\n"


def help_text(text: str) -> str:
    return text.replace("\\", "\\\\").replace("\n", "\\n")


def number_text(value: float) -> str:
    if value != value:
        return "NaN"
    if value in (float("inf"), float("-inf")):
        return "+Inf" if value > 0 else "-Inf"
    return str(int(value)) if isinstance(value, bool) else str(value)  # Prometheus does not parse "False"
