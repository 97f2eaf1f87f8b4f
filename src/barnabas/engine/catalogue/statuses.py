"""The catalogue's view of an application, its programs and its queries.

Out: values, to and from JSON. All texts and collections are bounded, so that a file of the catalogue stays
small. Does not know: where they are kept.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field, fields
from enum import StrEnum
from typing import Any, Self

ERROR_CHARS_MAX = 500
METRICS_MAX = 1000  # values of a query
PLACES_MAX = 200  # partitions in `offsets`; of more, only their number is kept


class QueryState(StrEnum):
    STARTING = "starting"
    RUNNING = "running"
    IDLE = "idle"  # up to date, waits for new rows or for its schedule
    WAITING = "waiting"  # for a source or a table that does not answer
    FAILED = "failed"
    STOPPED = "stopped"
    LOST = "lost"  # only readers say so: its process has not reported for a while


class ApplicationState(StrEnum):
    RUNNING = "running"
    STOPPED = "stopped"
    LOST = "lost"


@dataclass(slots=True)
class QueryStatus:
    """A query: what it does now, how far it is, what went wrong last. Times are seconds since 1970."""

    query: str
    kind: str = ""
    state: str = QueryState.STARTING
    detail: str = ""
    since: float = 0.0  # of the state
    started: float = 0.0
    batch: int = -1
    batches: int = 0
    rows_in: int = 0
    rows_out: int = 0
    rows_per_second: float = 0.0
    lag: int | None = None  # rows that wait in the source
    delay_s: float | None = None  # age of the newest event
    offsets: Mapping[str, Any] = field(default_factory=dict)
    metrics: Mapping[str, Mapping[str, float]] = field(default_factory=dict)  # by name, then by part
    last_error: str = ""
    last_error_at: float = 0.0
    errors: int = 0

    def data(self) -> dict[str, Any]:
        return asdict(self)

    @classmethod
    def parse(cls, data: Mapping[str, Any]) -> Self:
        return cls(**known(cls, data))


@dataclass(slots=True)
class ProgramStatus:
    """A process of an application, as it reports itself, with its queries."""

    application: str
    program: str
    host: str = ""
    pid: int = 0
    started: float = 0.0
    updated: float = 0.0
    queries: dict[str, QueryStatus] = field(default_factory=dict)
    queries_left_off: int = 0

    def data(self) -> bytes:
        return json.dumps(asdict(self)).encode()

    @classmethod
    def parse(cls, data: bytes) -> Self:
        found = known(cls, json.loads(data))
        queries = {name: QueryStatus.parse(each) for name, each in found.pop("queries", {}).items()}
        return cls(**found, queries=queries)


@dataclass(slots=True)
class ApplicationStatus:
    """An application, as its supervisor reports it."""

    application: str
    kind: str = ""
    state: str = ApplicationState.RUNNING
    host: str = ""
    pid: int = 0
    started: float = 0.0
    updated: float = 0.0
    epoch: int = 0
    logs: str = ""  # folder on the host
    programs: dict[str, dict[str, Any]] = field(default_factory=dict)  # name -> state, detail, pid, restarts

    def data(self) -> bytes:
        return json.dumps(asdict(self)).encode()

    @classmethod
    def parse(cls, data: bytes) -> Self:
        return cls(**known(cls, json.loads(data)))


def known(cls: type, data: Mapping[str, Any]) -> dict[str, Any]:
    """Fields that this version has: another version may have written more."""
    names = {each.name for each in fields(cls)}
    return {name: value for name, value in data.items() if name in names}


def bounded_metrics(metrics: Mapping[str, Mapping[str, float]]) -> dict[str, dict[str, float]]:
    """Metrics of the query's own. If they are too many, those with the most parts become one value."""
    found = {name: dict(each) for name, each in metrics.items()}
    left = sum(map(len, found.values())) - METRICS_MAX
    for name in sorted(found, key=lambda name: -len(found[name])):
        if left <= 0:
            break
        left -= len(found[name]) - 1
        found[name] = {"": together(name, list(found[name].values()))}
    return found


def together(name: str, values: list[float]) -> float:
    """One value for all parts of a metric: what its name means tells how."""
    if name.endswith("_max"):
        return max(values)
    if name.endswith("_min"):
        return min(values)
    return sum(values) / (len(values) if name.endswith(("_avg", "_ratio")) else 1)


def bounded_offsets(offsets: Mapping[str, Any]) -> dict[str, Any]:
    """Offsets by topic and partition, or how many there are if they are too many."""
    count = sum(len(each) if isinstance(each, Mapping) else 1 for each in offsets.values())
    return dict(offsets) if count <= PLACES_MAX else {"partitions": count}
