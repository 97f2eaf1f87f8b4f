"""CloudWatch's embedded metric format: JSON lines that CloudWatch turns into metrics.

In: snapshots. Out: one line for each set of labels, with up to a hundred metrics, to standard output, a file,
or the CloudWatch agent's TCP port. Counters are sent as their growth, since CloudWatch adds up what it gets.
Does not know: threads, AWS.
"""

from __future__ import annotations

import json
import math
import sys
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any, Protocol
from urllib.parse import urlsplit

from barnabas.broker.reporters.reporter import Snapshot
from barnabas.monitor.outlets.connections import TcpConnection
from barnabas.monitor.outlets.points import Deltas, Point, points, with_labels

METRICS_A_LINE = 100  # the format's limit
DIMENSIONS_MAX = 30  # the format's limit
DIMENSION_CHARS_MAX = 1024  # the format's limit
BLANK = "(blank)"
AGENT_PORT = 25888
TARGETS = "stdout, file:PATH, or tcp://HOST:PORT"


class Target(Protocol):
    def send(self, data: bytes) -> None: ...
    def close(self) -> None: ...


class StandardOutput:
    def send(self, data: bytes) -> None:
        sys.stdout.buffer.write(data)
        sys.stdout.buffer.flush()

    def close(self) -> None:
        return


class AppendedFile:
    """Opened for each report, so that it may be rotated."""

    def __init__(self, path: Path) -> None:
        self._path = path

    def send(self, data: bytes) -> None:
        with self._path.open("ab") as file:
            file.write(data)

    def close(self) -> None:
        return


class CloudWatchOutlet:
    def configure(self, settings: Mapping[str, Any]) -> None:
        self._dialect: str = settings["barnabas.metrics.dialect"]
        text: str = settings["barnabas.cloudwatch.target"]
        self._target = target_of(text)
        self._namespace: str = settings["barnabas.cloudwatch.namespace"]
        # The agent needs the name of the log group; readers of standard output and files have their own.
        self._group: str | None = settings["barnabas.cloudwatch.log.group"] if "tcp:" in text else None
        self._deltas = Deltas()

    def report(self, snapshot: Snapshot) -> None:
        grown = self._deltas.grown(points(snapshot, self._dialect))
        lines = documents(grown, snapshot, self._namespace, self._group)
        self._target.send(
            b"".join(json.dumps(each, separators=(",", ":")).encode() + b"\n" for each in lines)
        )

    def close(self) -> None:
        self._target.close()


def target_of(text: str) -> Target:
    if text == "stdout":
        return StandardOutput()
    if text.startswith("file:") and len(text) > len("file:"):
        return AppendedFile(Path(text.removeprefix("file:").removeprefix("//")))
    address = urlsplit(text)
    if address.scheme == "tcp" and address.hostname:
        return TcpConnection(address.hostname, address.port or AGENT_PORT)
    raise ValueError(f"barnabas.cloudwatch.target={text}: allowed are {TARGETS}")


def documents(
    given: Iterator[Point], snapshot: Snapshot, namespace: str, group: str | None
) -> Iterator[dict[str, object]]:
    by_labels: dict[tuple[tuple[str, str], ...], list[Point]] = {}
    for point in given:
        if not math.isfinite(point.value):
            continue
        labels = tuple(sorted((k, dimension(v)) for k, v in with_labels(point, snapshot.labels).items() if v))
        by_labels.setdefault(labels[:DIMENSIONS_MAX], []).append(point)
    for labels, found in by_labels.items():
        for start in range(0, len(found), METRICS_A_LINE):
            yield document(
                found[start : start + METRICS_A_LINE], dict(labels), snapshot.time_s, namespace, group
            )


def dimension(text: str) -> str:
    """CloudWatch takes ASCII without control characters, and drops the values of others."""
    if not (text.isascii() and text.isprintable()):
        text = text.encode("ascii", "backslashreplace").decode()
        text = "".join(each if each.isprintable() else f"\\x{ord(each):02x}" for each in text)
    return text[:DIMENSION_CHARS_MAX] if text.strip() else BLANK


def document(
    found: list[Point], labels: dict[str, str], time_s: float, namespace: str, group: str | None
) -> dict[str, object]:
    head: dict[str, object] = {
        "Timestamp": int(time_s * 1000),
        "CloudWatchMetrics": [
            {
                "Namespace": namespace,
                "Dimensions": [list(labels)],
                "Metrics": [{"Name": each.name, "Unit": unit_of(each)} for each in found],
            }
        ],
    }
    if group is not None:
        head["LogGroupName"] = group
    return {"_aws": head, **labels, **{each.name: each.value for each in found}}


def unit_of(point: Point) -> str:
    """CloudWatch's word for the unit."""
    name = point.name
    if "bytes" in name and "rate" not in name:
        return "Bytes"
    if name.endswith(("ms", "_ms_sum")):
        return "Milliseconds"
    return "Count" if point.is_counter else "None"
