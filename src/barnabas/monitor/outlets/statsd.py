"""StatsD, plain or with Datadog's tags, over UDP.

In: snapshots. Out: `name:value|g|#label:text` for gauges, `name:growth|c` for counters, under the names that
Prometheus sees. Plain StatsD has no labels: they become parts of the name. Does not know: threads.
"""

from __future__ import annotations

import math
import re
from collections.abc import Iterator, Mapping
from typing import Any

from barnabas.broker.reporters.reporter import Snapshot
from barnabas.monitor.outlets.connections import Datagrams
from barnabas.monitor.outlets.points import Deltas, Point, points, with_labels

NOT_IN_A_TAG = re.compile(r"[,|#\s\x00-\x1f\x7f]")
NOT_IN_A_NAME = re.compile(r"[:|@#,\s.\x00-\x1f\x7f]")


class StatsdOutlet:
    def configure(self, settings: Mapping[str, Any]) -> None:
        self._dialect: str = settings["barnabas.metrics.dialect"]
        self._datagrams = Datagrams(settings["barnabas.statsd.host"], settings["barnabas.statsd.port"])
        self._prefix: str = settings["barnabas.statsd.prefix"]
        self._encode = with_tags if settings["barnabas.statsd.tags"] == "datadog" else without_tags
        self._deltas = Deltas()

    def report(self, snapshot: Snapshot) -> None:
        self._datagrams.send(self._lines(snapshot))

    def _lines(self, snapshot: Snapshot) -> Iterator[bytes]:
        for point in self._deltas.grown(points(snapshot, self._dialect)):
            if math.isfinite(point.value) and (point.value or not point.is_counter):  # no growth
                for line in self._encode(point, snapshot.labels, self._prefix):
                    yield line.encode()

    def close(self) -> None:
        self._datagrams.close()


def with_tags(point: Point, labels: Mapping[str, str], prefix: str) -> Iterator[str]:
    tags = ",".join(
        f"{name}:{NOT_IN_A_TAG.sub('_', text)}" for name, text in with_labels(point, labels).items() if text
    )
    kind = "c" if point.is_counter else "g"
    yield f"{prefix}{point.name}:{number(point.value)}|{kind}" + (f"|#{tags}" if tags else "")


def without_tags(point: Point, labels: Mapping[str, str], prefix: str) -> Iterator[str]:
    parts = [point.name, *with_labels(point, labels).values()]
    name = prefix + ".".join(NOT_IN_A_NAME.sub("_", each) for each in parts if each)
    if point.is_counter:
        yield f"{name}:{number(point.value)}|c"
        return
    if point.value < 0:
        yield f"{name}:0|g"  # a sign means a change of the gauge
    yield f"{name}:{number(point.value)}|g"


def number(value: float) -> str:
    return str(int(value)) if value == int(value) else f"{value:.9g}"
