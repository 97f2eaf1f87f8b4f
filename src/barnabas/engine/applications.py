"""Applications: named sets of programs that one host at a time runs, with state beside the data.

In: an application. Out: it runs until it is stopped, here or from any host through the catalogue. The same
code runs pipelines and every other application on Spark:

    standby ── lease acquired ──> prepare, check plans ──> supervised programs ──> stopped, lease released
       ^                                                        │
       └───────────── another host took the lease over ─────────┘

A stop lets each program finish its current batch and commit it, then frees the lease, so that the next host
takes over at once. Does not know: what the programs do.
"""

from __future__ import annotations

import os
import socket
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import NamedTuple

from barnabas.engine.catalogue.catalogue import Catalogue, application_file
from barnabas.engine.catalogue.statuses import ApplicationState, ApplicationStatus
from barnabas.engine.checkpoints import leases_of
from barnabas.engine.lease import Timing
from barnabas.engine.lease_records import FolderRecords, ObjectRecords, Records
from barnabas.engine.lock import SUPERVISES, LakeIsBusy, LakeLock
from barnabas.engine.places.place import FILE_URL, Place, PlaceUnavailable
from barnabas.engine.supervisor import STOP_S_MAX, Program, Supervisor, on_stop_signal
from barnabas.engine.timeline import BestEffortTimeline, Timeline
from barnabas.engine.upgrades import Judge, QueryPlan, continue_plans, refuse_all

LOGS = "logs"
REPORT_S = 5.0  # between two reports of the supervisor, unless something changed
LOOK_S = 1.0

# Prepares a run under the lease; what it yields are the programs.
Prepare = Callable[[], AbstractContextManager[Sequence[Program]]]


@dataclass(frozen=True, slots=True, kw_only=True)
class Application:
    """Description of an application for the engine.

    `place` is beside the data and seen by all hosts. `folder` is of this machine: file lock, logs, timeline.
    `plans` and `judge` decide whether the state of an earlier version may be continued (`upgrades`)."""

    name: str
    kind: str
    place: Place
    folder: Path
    prepare: Prepare
    lock: Callable[..., LakeLock]
    plans: Sequence[QueryPlan] = ()
    judge: Judge = refuse_all
    stop_s: float = STOP_S_MAX


def lease_of(
    place: Place, application: str, settings: dict[str, str] | None = None
) -> FolderRecords | ObjectRecords:
    """The lease of an application, beside its data."""
    root = leases_of(place.root, application)
    if "://" not in root or root.startswith(FILE_URL):
        return FolderRecords(Path(root.removeprefix(FILE_URL)))
    return ObjectRecords(root, settings)


def own_lock(
    folder: Path, name: str, records: Records, timing: Timing | None = None
) -> Callable[..., LakeLock]:
    """The lock of an application with a lease of its own: for `Application.lock`."""

    def make(*, waits: bool, is_stopping: Callable[[], bool]) -> LakeLock:
        what = f"{SUPERVISES}{name}"
        return LakeLock(folder, what, records, waits=waits, is_stopping=is_stopping, timing=timing)

    return make


def run_application(
    application: Application,
    *,
    standby: bool = False,
    seconds: float | None = None,
    ready: Callable[[Supervisor], object] | None = None,
    stopping: threading.Event | None = None,
) -> None:
    """Run until SIGTERM or SIGINT, until `stopping` is set or `seconds` have passed, or until somebody stops
    it through the catalogue. `standby`: while another host runs it, wait, and take over when it dies."""
    stopping = stopping or threading.Event()
    deadline = None if seconds is None else time.monotonic() + seconds
    if threading.current_thread() is threading.main_thread():
        on_stop_signal(stopping.set)

    def is_stopping() -> bool:
        return stopping.is_set() or (deadline is not None and time.monotonic() > deadline)

    catalogue = Catalogue(application.place)
    while not is_stopping():
        if standby and is_stop_wanted(catalogue, application.name):
            stopping.wait(LOOK_S)
            continue
        try:
            with supervised(application, waits=standby, is_stopping=is_stopping) as running:
                if ready is not None:
                    ready(running.supervisor)
                running.run(is_stopping)
                is_over = running.is_done or (running.report.is_stop_wanted and not standby)
                if is_over or is_stopping():
                    return
        except StopRequested:
            continue
        except LakeIsBusy:
            if not (standby and is_stopping()):
                raise
        if not standby:
            raise LakeIsBusy(f"another host has taken {application.name} over: this run has ended")


class StopRequested(Exception):
    """Somebody wants the application to be stopped, so a host that stands by does not run it."""


class Running(NamedTuple):
    """An application whose lease this process holds."""

    supervisor: Supervisor
    report: ApplicationReport

    @property
    def is_done(self) -> bool:
        """Whether all programs have ended by themselves."""
        return all(child.is_done for child in self.supervisor.children)

    def run(self, is_stopping: Callable[[], bool]) -> None:
        """Supervise the programs until they are to stop, here or through the catalogue."""
        supervisor, report = self
        supervisor.run(lambda: supervisor.stop() if is_stopping() or report.is_stop_wanted else None)


@contextmanager
def supervised(
    application: Application,
    *,
    waits: bool = False,
    is_stopping: Callable[[], bool] = lambda: False,
) -> Iterator[Running]:
    """Take the lease, check the plans, prepare the programs and make their supervisor; it has started nothing
    yet. At the end everything is stopped and the lease is free. A host that `waits` respects the wish that
    the application be stopped (StopRequested), any other ends the wish."""
    catalogue = Catalogue(application.place)
    with application.lock(waits=waits, is_stopping=is_stopping) as lock:
        if not waits:
            catalogue.clear_stop(application.name)
        elif is_stop_wanted(catalogue, application.name):
            raise StopRequested(application.name)
        continue_plans(application.place, application.name, application.plans, application.judge)
        with application.prepare() as programs:
            timeline = BestEffortTimeline(Timeline(application.folder))
            logs = application.folder / LOGS
            supervisor = Supervisor(programs, logs, timeline, [lock.descriptor], application.stop_s)
            lock.on_lost = supervisor.lose
            if lock.is_lost:
                supervisor.lose()
            report = ApplicationReport(application, catalogue, supervisor, lock.epoch)
            try:
                yield Running(supervisor, report)
            finally:
                report.close()


def is_stop_wanted(catalogue: Catalogue, name: str) -> bool:
    try:
        return catalogue.is_stop_wanted(name)
    except PlaceUnavailable:
        return False  # the next look may succeed


class ApplicationReport:
    """Reports the programs to the catalogue, and looks there for a request to stop. A thread of its own does
    it: a place that does not answer must not delay restarts."""

    def __init__(
        self, application: Application, catalogue: Catalogue, supervisor: Supervisor, epoch: int
    ) -> None:
        self._catalogue = catalogue
        self._supervisor = supervisor
        now = time.time()
        self._status = ApplicationStatus(
            application.name,
            application.kind,
            ApplicationState.RUNNING,
            socket.gethostname(),
            os.getpid(),
            now,
            now,
            epoch,
            str(application.folder / LOGS),
        )
        self.is_stop_wanted = False
        self._closing = threading.Event()
        self._thread = threading.Thread(target=self._run, name="application-report", daemon=True)
        self._thread.start()

    def _run(self) -> None:
        written, last = 0.0, self._programs()
        while True:
            now, programs = time.time(), self._programs()
            if programs != last or now - written >= REPORT_S:
                self._write(programs)
                written, last = now, programs
            if self._closing.wait(LOOK_S):
                return
            self.is_stop_wanted = is_stop_wanted(self._catalogue, self._status.application)

    def _programs(self) -> dict[str, dict[str, object]]:
        return {
            child.program.name: {
                "state": str(child.state),
                "detail": child.detail,
                "pid": child.pid or 0,
                "restarts": child.restarts,
            }
            for child in self._supervisor.children
        }

    def _write(self, programs: dict[str, dict[str, object]]) -> None:
        self._status.programs = programs
        self._status.updated = time.time()
        try:
            name = application_file(self._status.application)
            self._catalogue.place.write(name, self._status.data())
        except PlaceUnavailable:
            return

    def close(self) -> None:
        self._closing.set()
        self._thread.join()
        if not self._supervisor.has_lost:  # else the next holder writes
            self._status.state = ApplicationState.STOPPED
            self._write(self._programs())
