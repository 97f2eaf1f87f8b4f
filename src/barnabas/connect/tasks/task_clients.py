"""Clients of a task as metrics see them: those of its thread, and those of its pieces on executors.

In: clients, counts that executors report. Out: `Traffic` by client. A task that is a Spark job has one client
of a kind for readers, as in Kafka: counts of all processes together. Does not know: Spark, names of metrics.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import asdict, fields
from typing import NamedTuple, Protocol

from barnabas.client.core.traffic import Traffic

Counts = Mapping[str, int]  # a `Traffic` as it travels
NAMES = tuple(each.name for each in fields(Traffic))


class HasTraffic(Protocol):
    @property
    def traffic(self) -> Traffic: ...


class TaskClient(NamedTuple):
    """A client of a task, for metrics."""

    kind: str  # producer or consumer
    client_id: str
    client: HasTraffic


class ExecutorClients:
    """The clients of one kind that pieces of a job have on executors."""

    def __init__(self) -> None:
        self._total = Traffic()

    def add(self, pieces: Iterable[tuple[object, Counts]]) -> None:
        """Count the pieces of a batch, each with the process that it ran in. Connections that are open are
        those of the last batch, once for each process."""
        found, is_open = Traffic(), dict[object, int]()
        for process, counts in pieces:
            each = Traffic(**{name: int(counts.get(name, 0)) for name in NAMES})
            is_open[process] = max(is_open.get(process, 0), each.connections)
            found += each
        total = self._total + found
        total.connections = sum(is_open.values())
        self._total = total

    @property
    def traffic(self) -> Traffic:
        return self._total


class Together:
    """Several clients that are one for readers."""

    def __init__(self, *clients: HasTraffic) -> None:
        self._clients = clients

    @property
    def traffic(self) -> Traffic:
        found = Traffic()
        for each in self._clients:
            found += each.traffic
        return found


def grown(before: Traffic, after: Traffic) -> dict[str, int]:
    """Counts of a client between two moments; connections as they are at the second one."""
    first, last = asdict(before), asdict(after)
    return {name: last[name] - (0 if name == "connections" else first[name]) for name in NAMES}
