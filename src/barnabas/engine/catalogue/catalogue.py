"""Reads the catalogue: all applications of a place, their programs and queries, from any host.

In: a place. Out: statuses, and requests to stop. Files of one application are in `catalogue/<application>/`:
one of its supervisor, one of each program, and one with the wanted state. Each has one writer.
Does not know: Spark.
"""

from __future__ import annotations

import json
import time
from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from typing import Any

from barnabas.engine.catalogue.statuses import (
    ApplicationState,
    ApplicationStatus,
    ProgramStatus,
    QueryState,
    QueryStatus,
)
from barnabas.engine.places.place import Place

FOLDER = "catalogue"
APPLICATION = "application.json"
WANTED = "wanted.json"
PROGRAMS = "programs"
LOST_S = 60.0  # a writer that has not reported for so long is called lost
ENDED = (QueryState.STOPPED, QueryState.LOST)


@dataclass(slots=True)
class ApplicationEntry:
    """Everything that the catalogue has of one application."""

    status: ApplicationStatus
    programs: list[ProgramStatus] = field(default_factory=list)
    wanted: dict[str, Any] = field(default_factory=dict)

    @property
    def name(self) -> str:
        return self.status.application

    def queries(self) -> Iterator[tuple[ProgramStatus, QueryStatus]]:
        for program in self.programs:
            for query in program.queries.values():
                yield program, query

    def restarts_of(self, program: str) -> int:
        return int(self.status.programs.get(program, {}).get("restarts", 0))


class Catalogue:
    """The catalogue of one place."""

    def __init__(self, place: Place) -> None:
        self.place = place

    def applications(self, now: float | None = None) -> list[ApplicationEntry]:
        names = {name.split("/")[1] for name in self.place.names(f"{FOLDER}/") if name.count("/") >= 2}
        found = (self.application(name, now) for name in sorted(names))
        return [each for each in found if each is not None]

    def application(self, name: str, now: float | None = None) -> ApplicationEntry | None:
        """None if there is no such application. Statuses that nobody has updated for LOST_S are `lost`."""
        now = time.time() if now is None else now
        programs: list[ProgramStatus] = []
        for each in self.place.names(f"{FOLDER}/{name}/{PROGRAMS}/"):
            data = self.place.read(each)
            if data is not None:
                programs.append(ProgramStatus.parse(data))
        data = self.place.read(application_file(name))
        if data is None and not programs:
            return None
        status = ApplicationStatus(name) if data is None else ApplicationStatus.parse(data)
        entry = ApplicationEntry(status, programs, self.wanted(name))
        mark_lost(entry, now)
        return entry

    # -- what people want --------------------------------------------------------------------------

    def wanted(self, name: str) -> dict[str, Any]:
        data = self.place.read(wanted_file(name))
        return {} if data is None else dict(json.loads(data))

    def is_stop_wanted(self, name: str) -> bool:
        return self.wanted(name).get("state") == ApplicationState.STOPPED

    def request_stop(self, name: str, by: str) -> None:
        """Ask the application to stop on whatever host it runs; hosts that stand by do not take over."""
        body = {"state": ApplicationState.STOPPED, "by": by, "at": time.time()}
        self.place.write(wanted_file(name), json.dumps(body).encode())

    def clear_stop(self, name: str) -> None:
        self.place.delete(wanted_file(name))

    def forget(self, name: str) -> None:
        """Remove an application that does not run any more."""
        self.place.delete_all(f"{FOLDER}/{name}")


def application_file(name: str) -> str:
    return f"{FOLDER}/{name}/{APPLICATION}"


def wanted_file(name: str) -> str:
    return f"{FOLDER}/{name}/{WANTED}"


def program_file(application: str, program: str) -> str:
    return f"{FOLDER}/{application}/{PROGRAMS}/{program}.json"


def mark_lost(entry: ApplicationEntry, now: float) -> None:
    """Writers that were killed cannot say so: a status that stands still for LOST_S is `lost`."""
    status = entry.status
    if status.updated and status.state == ApplicationState.RUNNING and now - status.updated > LOST_S:
        entry.status = replace(status, state=ApplicationState.LOST)
    for program in entry.programs:
        if now - program.updated <= LOST_S:
            continue
        for query in program.queries.values():
            if query.state not in ENDED:
                query.state = QueryState.LOST
