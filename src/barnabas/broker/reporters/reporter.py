"""A reporter: gets a node's metrics and sends them somewhere. `metric.reporters` names those of a node.

A reporter of one's own is a class with `report(snapshot)`:

    class Printer:
        def report(self, snapshot):
            for each in snapshot.samples:
                print(snapshot.time_s, each.mbean, each.attribute, each.value)

The other methods of `Reporter` are optional. All are called in the reporter's own thread, one at a time, so
they may wait; what they raise is logged once a minute. Does not know: formats, sockets.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Protocol

from barnabas.metrics.samples import Sample

if TYPE_CHECKING:
    from barnabas.broker.reporters.collecting import Rates
    from barnabas.broker.tracing.spans import Span


@dataclass(frozen=True, slots=True)
class Snapshot:
    """All values of a node at one time."""

    time_s: float
    started_s: float  # when counters began at 0
    samples: Sequence[Sample]
    rates: Rates = field(default_factory=dict)  # of meters that are shown as a rate
    labels: Mapping[str, str] = field(default_factory=dict)  # cluster, node, and those of the settings


class Reporter(Protocol):
    def report(self, snapshot: Snapshot) -> None:
        """Send the values. Called every `barnabas.outlets.interval.ms`; late snapshots are dropped."""


class WithSettings(Protocol):
    def configure(self, settings: Mapping[str, Any]) -> None:
        """Get the node's settings: typed values of known names, texts of unknown ones. Called first, on the
        loop: do not wait here. ValueError says that a setting is wrong; then the reporter is not used."""


class WithSpans(Protocol):
    def export_spans(self, spans: Sequence[Span], labels: Mapping[str, str]) -> None:
        """Send the spans of traced requests."""


class WithEnd(Protocol):
    def close(self) -> None:
        """Release sockets and files."""
