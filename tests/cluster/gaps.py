"""How long clients waited for the next success while something was broken, as a table.

In: events of clients, and from when to when a fault was there. Out: the longest gaps of each kind of fault.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable
from dataclasses import dataclass, field

from .load import Events

HEAD = (
    "| fault | times | partition, longest | p99 | record acknowledged, p99 | transactions | classic group "
    "| consumer group |\n| --- | --: | --: | --: | --: | --: | --: | --: |"
)


@dataclass(slots=True)
class Gaps:
    times: dict[str, int] = field(default_factory=lambda: defaultdict(int))
    _gaps: dict[tuple[str, str], list[float]] = field(default_factory=lambda: defaultdict(list))
    _latencies: dict[str, list[float]] = field(default_factory=lambda: defaultdict(list))

    def note(self, fault: str, start: float, end: float, works: Iterable[tuple[str, Events]]) -> None:
        """The longest gap of each series of events while the fault was there, and until all was well."""
        self.times[fault] += 1
        for name, events in works:
            for series, times in list(events.times.items()):
                kind = series if name == "readers" else name
                self._gaps[fault, str(kind)].append(longest(times, start, end))
                if name == "numbers":
                    self._latencies[fault] += [took for at, took in times if start <= at <= end]

    def table(self) -> str:
        lines = [HEAD]
        for fault, times in self.times.items():
            partitions = self._gaps[fault, "numbers"]
            others = (
                shown(max(self._gaps[fault, kind], default=None)) for kind in ("moves", "classic", "consumer")
            )
            cells = (
                fault,
                str(times),
                shown(max(partitions, default=None)),
                shown(quantile(partitions)),
                shown(quantile(self._latencies[fault])),
                *others,
            )
            lines.append(f"| {' | '.join(cells)} |")
        return "\n".join(lines)


def longest(times: list[tuple[float, float]], start: float, end: float) -> float:
    """The longest time without an event that touches the given one."""
    found, before = 0.0, start
    for at, _ in times:
        if at > start and before < end:
            found = max(found, at - before)
        before = at
    return max(found, end - before)


def quantile(values: list[float], share: float = 0.99) -> float | None:
    ordered = sorted(values)
    return ordered[min(int(len(ordered) * share), len(ordered) - 1)] if ordered else None


def shown(seconds: float | None) -> str:
    return "-" if seconds is None else f"{seconds:.2f} s"
