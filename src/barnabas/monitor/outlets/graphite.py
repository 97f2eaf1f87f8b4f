"""Graphite: values as lines of text or as pickles over TCP.

In: snapshots. Out, for each value, a path such as
`PREFIX.CLUSTER.NODE.kafka.server.BrokerTopicMetrics.BytesInPerSec.TOPIC.Count`: the parts of the MBean's
name, the values of its tags, the attribute. With `barnabas.graphite.tags` the path is the name that
Prometheus sees, followed by `;label=value`. Does not know: threads. A receiver that is away raises OSError.
"""

from __future__ import annotations

import math
import pickle
import re
import struct
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from barnabas.broker.reporters.reporter import Snapshot
from barnabas.metrics.histogram import Snapshot as HistogramSnapshot
from barnabas.metrics.samples import Sample
from barnabas.monitor.outlets.connections import TcpConnection
from barnabas.monitor.outlets.points import points, with_labels

NOT_IN_A_PART = re.compile(r"[^A-Za-z0-9_\-]")
NOT_IN_A_TAG = re.compile(r"[;~\s\x00-\x1f\x7f]")
PICKLES_A_MESSAGE = 500
LINES_A_WRITE = 500
PICKLE_PROTOCOL = 2  # the newest that Graphite's receivers read

Value = tuple[str, float]


class GraphiteOutlet:
    def configure(self, settings: Mapping[str, Any]) -> None:
        self._dialect: str = settings["barnabas.metrics.dialect"]
        self._connection = TcpConnection(
            settings["barnabas.graphite.host"], settings["barnabas.graphite.port"]
        )
        self._prefix: str = settings["barnabas.graphite.prefix"]
        self._is_pickled = settings["barnabas.graphite.protocol"] == "pickle"
        self._has_tags: bool = settings["barnabas.graphite.tags"]

    def report(self, snapshot: Snapshot) -> None:
        prefix = self._prefix
        named = tagged(snapshot, prefix, self._dialect) if self._has_tags else paths(snapshot, prefix)
        values = ((path, value) for path, value in named if math.isfinite(value))
        time_s = int(snapshot.time_s)
        encode = pickled if self._is_pickled else as_lines
        for batch in batches(values, PICKLES_A_MESSAGE if self._is_pickled else LINES_A_WRITE):
            self._connection.send(encode(batch, time_s))

    def close(self) -> None:
        self._connection.close()


def paths(snapshot: Snapshot, prefix: str) -> Iterator[Value]:
    """Values by the parts of their MBean's name."""
    front = ".".join((*parts_of(prefix), *(part(each) for each in snapshot.labels.values() if each)))
    for sample in snapshot.samples:
        path = f"{front}.{path_of(sample)}" if front else path_of(sample)
        value = sample.value
        if isinstance(value, HistogramSnapshot):
            for attribute, number in value.attributes().items():
                yield f"{path}.{attribute}", number
        elif not isinstance(value, str):
            yield f"{path}.{part(sample.attribute)}" if sample.attribute else path, float(value)


def path_of(sample: Sample) -> str:
    parts = [sample.domain.replace("-", "_"), part(sample.type), part(sample.name)]
    parts += [part(value) for _, value in sample.tags]
    return ".".join(each for each in parts if each)


def part(text: str) -> str:
    """A part of a path: dots and blanks would begin another one."""
    return NOT_IN_A_PART.sub("_", text)


def parts_of(prefix: str) -> list[str]:
    """A prefix may have several parts, such as `production.kafka`."""
    return [part(each) for each in prefix.split(".") if each]


def tagged(snapshot: Snapshot, prefix: str, dialect: str) -> Iterator[Value]:
    front = "".join(f"{each}." for each in parts_of(prefix))
    for point in points(snapshot, dialect):
        labels = with_labels(point, snapshot.labels)
        tags = "".join(
            f";{name}={NOT_IN_A_TAG.sub('_', text)}" for name, text in sorted(labels.items()) if text
        )
        yield f"{front}{point.name}{tags}", point.value


def as_lines(values: Sequence[Value], time_s: int) -> bytes:
    return "".join(f"{path} {value:.17g} {time_s}\n" for path, value in values).encode()


def pickled(values: Sequence[Value], time_s: int) -> bytes:
    data = pickle.dumps([(path, (time_s, value)) for path, value in values], protocol=PICKLE_PROTOCOL)
    return struct.pack("!L", len(data)) + data


def batches(values: Iterator[Value], size: int) -> Iterator[list[Value]]:
    batch: list[Value] = []
    for value in values:
        batch.append(value)
        if len(batch) == size:
            yield batch
            batch = []
    if batch:
        yield batch
