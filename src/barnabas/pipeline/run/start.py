"""Starts a pipeline: `run` supervises serving, streaming and batch; `run --once` does what is due, and ends.

In: a pipeline. Out: it runs until it is stopped, or the pieces that were done. Both hold the lake's lock.
Does not know: the command line.
"""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Protocol

from barnabas.engine import applications
from barnabas.engine.applications import Application, run_application
from barnabas.engine.catalogue.catalogue import Catalogue
from barnabas.engine.errors import brief
from barnabas.engine.handover.run_copy import copied
from barnabas.engine.lock import SUPERVISES, LakeLock
from barnabas.engine.schedule import Job, Schedule
from barnabas.engine.secrets import reveal, revealed
from barnabas.engine.supervisor import Program, Supervisor
from barnabas.engine.timeline import Kind, State
from barnabas.pipeline.file import plan
from barnabas.pipeline.file.checks import problems_of
from barnabas.pipeline.file.writing import to_yaml
from barnabas.pipeline.ingest.fenced_tables import fence_tables
from barnabas.pipeline.observe import metrics
from barnabas.pipeline.observe.recorder import RunRecorder, utc_now
from barnabas.pipeline.run.program import reporting
from barnabas.pipeline.run.worker import RowProgress, Worker, jobs_of, streaming_sources
from barnabas.pipeline.serving.access import (
    READY_FILE,
    beside_file,
    limits_of,
    open_pipeline_store,
    token_of,
)
from barnabas.pipeline.spec import refined_sql
from barnabas.pipeline.spec.lake_lock import lake_lock, state_place
from barnabas.pipeline.spec.model import Pipeline, by_name
from barnabas.pipeline.spec.run_copies import run_copy
from barnabas.pipeline.spec.state_folder import state_folder
from barnabas.pipeline.views.part_files import lake_settings

FILE_NAME = "pipeline.yaml"
PROGRAMS = ("serving", "streaming", "batch")
ONCE = "once"
STORE_OF_MACHINE = "duckdb"
APPLICATION_KIND = "pipeline"
SILENT_S_MAX = 300.0  # a Spark application that gives no sign of life for so long is restarted
FIELDS_OF_RESULT = (
    "sql",
    "keys",
    "measures",
    "source",
    "python",
)  # a change of these makes a view or table due at once


class Progress(Protocol):
    """Called with the piece being done, and how much of it is done, if known."""

    def __call__(self, what: str, done: int = 0, total: int | None = None) -> object: ...


def no_progress(what: str, done: int = 0, total: int | None = None) -> None:
    """Ignore progress."""


@dataclass(slots=True)
class OnceResult:
    """Result of `run --once`: names of pieces, and reasons of those that failed."""

    pieces: list[str] = field(default_factory=list)
    failed: dict[str, str] = field(default_factory=dict)


def run_pipeline(pipeline: Pipeline, *, once: bool = False) -> OnceResult | None:
    """As `barnabas pipeline run` does with a file. ValueError names every problem of the pipeline."""
    problems = problems_of(pipeline)
    if problems:
        raise ValueError("\n".join(map(str, problems)))
    if once:
        return run_once(pipeline)
    supervise(pipeline)
    return None


# -- once ------------------------------------------------------------------------------------------


def run_once(pipeline: Pipeline, say: Progress | None = None) -> OnceResult:
    """Do everything that is due, in this process. Streaming sources are read up to what they have now."""
    from barnabas.engine.session import close
    from barnabas.pipeline.run.session import open_session

    tell = say or no_progress
    with lake_lock(pipeline, "run --once"), copied_run(pipeline) as took_over:
        changed = plan.apply(pipeline, state_folder(pipeline))
        schedule = Schedule(state_folder(pipeline), jobs_of(pipeline))
        schedule.make_due(due_at_once(pipeline, changed, took_over=took_over))
        tell("starting Spark")
        spark = open_session(pipeline, ONCE)
        store = open_pipeline_store(pipeline)
        try:
            fence_tables(spark, pipeline)
            with reporting(pipeline, ONCE) as reporter:
                recorder = RunRecorder(pipeline, reporter)
                drop_removed(changed, store.drop, recorder)
                return do_all_due(Worker(spark, pipeline, store, recorder), schedule, tell)
        finally:
            store.close()
            close(spark)


def do_all_due(worker: Worker, schedule: Schedule, tell: Progress) -> OnceResult:
    done = OnceResult()

    def piece(kind: Kind, name: str, body: Callable[[RowProgress], object]) -> bool:
        tell(f"{kind} {name}")
        try:
            with worker.recorder.working(kind, name):
                body(lambda rows, total: tell(f"{kind} {name}", rows, total))
        except Exception as error:  # the other pieces go on
            done.failed[f"{kind} {name}"] = brief(error)
            return False
        done.pieces.append(f"{kind} {name}")
        return True

    for source in streaming_sources(worker.pipeline):
        piece(Kind.SOURCE, source, lambda say, name=source: worker.drain(name, say))  # type: ignore[misc]
    now = utc_now()
    for job in schedule.due(now):
        if piece(Kind(job.kind), job.name, lambda say, job=job: worker.do(job, say)):  # type: ignore[misc]
            schedule.done(job, now)
    for view in worker.pipeline.views:
        if piece(Kind.VIEW_SPEED, view.name, lambda _, name=view.name: worker.catch_up(name)):  # type: ignore[misc]
            worker.recorder.set_state(Kind.VIEW_SPEED, view.name, State.IDLE)
    return done


# -- supervised ------------------------------------------------------------------------------------


def application_of(pipeline: Pipeline, metrics_port: int | None = None) -> Application:
    """The pipeline as an application of the engine. The lake's lease keeps hosts apart, so that commands that
    rewrite tables are kept apart from it, too."""

    def lock(*, waits: bool, is_stopping: Callable[[], bool]) -> LakeLock:
        what = f"{SUPERVISES}{pipeline.file or pipeline.name}"
        return lake_lock(pipeline, what, waits=waits, is_stopping=is_stopping)

    return Application(
        name=pipeline.name,
        kind=APPLICATION_KIND,
        place=state_place(pipeline),
        folder=state_folder(pipeline),
        prepare=lambda: prepared(pipeline, metrics_port),
        lock=lock,
    )


def supervise(
    pipeline: Pipeline,
    *,
    metrics_port: int | None = None,
    seconds: float | None = None,
    standby: bool = False,
    ready: Callable[[Supervisor], object] | None = None,
) -> None:
    """Run until SIGTERM, SIGINT, until `seconds` have passed, or until it is stopped through the catalogue.
    `standby`: while another host runs the pipeline, wait, and take over when it stops or dies."""
    run_application(application_of(pipeline, metrics_port), seconds=seconds, standby=standby, ready=ready)


@contextmanager
def supervised(pipeline: Pipeline) -> Iterator[Supervisor]:
    """Lock the lake and make the supervisor; it has started nothing yet."""
    with applications.supervised(application_of(pipeline)) as running:
        yield running.supervisor


@contextmanager
def prepared(pipeline: Pipeline, metrics_port: int | None = None) -> Iterator[list[Program]]:
    """Apply the pipeline's file under the lock of the lake; the programs of the run."""
    with copied_run(pipeline) as took_over, prepared_here(pipeline, metrics_port, took_over) as programs:
        yield programs


@contextmanager
def copied_run(pipeline: Pipeline) -> Iterator[bool]:
    """Take over what the last run left in the lake, and keep this run's copy there; whether the last run was
    another machine's."""
    copy = run_copy(pipeline)
    if copy is None:
        yield False
        return
    with copied(copy):
        yield copy.took_over


@contextmanager
def prepared_here(pipeline: Pipeline, metrics_port: int | None, took_over: bool) -> Iterator[list[Program]]:
    folder = state_folder(pipeline)
    endpoint: metrics.Endpoint | None = None
    changed = plan.apply(pipeline, folder)
    Schedule(folder, jobs_of(pipeline)).make_due(due_at_once(pipeline, changed, took_over=took_over))
    recorder = RunRecorder(pipeline)
    drop_removed(changed, lambda view: None, recorder)
    (folder / READY_FILE).unlink(missing_ok=True)
    if metrics_port is not None:
        host = pipeline.serving.host
        catalogue = Catalogue(state_place(pipeline))
        endpoint = metrics.Endpoint(pipeline.name, recorder.timeline, host, metrics_port, catalogue)
    try:
        yield programs_of(pipeline, file_for_applications(pipeline))
    finally:
        if endpoint is not None:
            endpoint.close()


def programs_of(pipeline: Pipeline, file: Path) -> list[Program]:
    """The programs of a run. The applications write to serving until they end, so it outlives them."""
    serving = pipeline.serving
    folder = state_folder(pipeline)
    environment = {
        "BARNABAS_SERVING_TOKEN": token_of(pipeline),
        "BARNABAS_SERVING_STORE": reveal(serving.store),
        "BARNABAS_SERVING_GUESTS": guests_of(pipeline),
        "BARNABAS_SERVING_LAKE": json.dumps(lake_settings(pipeline)),
    }
    python = [sys.executable, "-m"]
    command = [*python, "barnabas.pipeline.serving", "--name", pipeline.name, "--folder", str(folder)]
    command += ["--host", serving.host, "--port", str(serving.port or free_port())]
    if serving.certificate:
        command += ["--certificate", str(beside_file(pipeline, serving.certificate))]
        command += ["--private-key", str(beside_file(pipeline, serving.private_key))]
    command += ["--plaintext"] if serving.plaintext else []
    limits = limits_of(pipeline)
    command += ["--lake", pipeline.lake_location.root, "--memory-bytes", str(limits.memory_bytes_max)]
    command += ["--threads", str(limits.threads), "--temp-folder", limits.temp_folder]
    command += ["--keep-horizons", str(serving.keep_horizons), "--ready", str(folder / READY_FILE)]
    command += ["--ends-with", str(os.getpid())]
    found = [Program("serving", command, environment, outlives=True)]
    if streaming_sources(pipeline) or pipeline.views:
        command = [*python, "barnabas.pipeline.run.streaming_app", str(file)]
        found.append(Program("streaming", command, silent_s_max=SILENT_S_MAX))
    jobs = jobs_of(pipeline)
    if any(not job.is_once for job in jobs) or Schedule(folder, jobs).due(utc_now()):
        command = [*python, "barnabas.pipeline.run.batch_app", str(file)]
        found.append(Program("batch", command, silent_s_max=SILENT_S_MAX))
    return found


def guests_of(pipeline: Pipeline) -> str:
    """The users who may ask the serving process, as JSON for its environment. The applications may always."""
    serving = pipeline.serving
    if not serving.is_guarded:
        return ""
    tokens = [token_of(pipeline), *(reveal(each) for each in serving.tokens)]
    return json.dumps({"tokens": tokens, "users": revealed(serving.users)})


def free_port() -> int:
    """A free port, kept for the whole run, so that a restarted serving process has the same URL."""
    import socket

    with socket.socket() as found:
        found.bind(("127.0.0.1", 0))
        return int(found.getsockname()[1])


def file_for_applications(pipeline: Pipeline) -> Path:
    """The file for the applications: that of the pipeline, or one written from the Python objects."""
    if pipeline.file is not None:
        return pipeline.file
    path = state_folder(pipeline) / FILE_NAME
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(to_yaml(replace(pipeline, lake=pipeline.lake_location.root)))
    return path


# -- what changed since the last run ---------------------------------------------------------------


def due_at_once(pipeline: Pipeline, changes: list[plan.Change], *, took_over: bool = False) -> list[str]:
    """Keys of jobs that are due at once, because their result is defined differently now. A machine that
    took over computes views that its own store does not have as the last machine's had them."""
    kinds = {"views": Kind.VIEW_BATCH, "refined": Kind.REFINED}
    has_own_store = reveal(pipeline.serving.store).partition(":")[0] == STORE_OF_MACHINE
    views = pipeline.views if took_over and has_own_store else ()
    return [Job(Kind.VIEW_BATCH, view.name, None).key for view in views] + [
        Job(kinds[change.section], change.name, None).key
        for change in changes
        if change.section in kinds
        and (
            any(each.field in FIELDS_OF_RESULT for each in change.differences) or is_behind(pipeline, change)
        )
    ]


def is_behind(pipeline: Pipeline, change: plan.Change) -> bool:
    """Whether it is a new refined table over tables that have rows already."""
    if change.sign is not plan.Sign.CREATE or change.section != "refined":
        return False
    lake = pipeline.lake_location
    inputs = refined_sql.inputs_of(pipeline, by_name(pipeline.refined, change.name)).values()
    return not lake.is_local or any(Path(lake.path(table)).is_dir() for table in inputs)


def drop_removed(changes: list[plan.Change], drop: Callable[[str], object], recorder: RunRecorder) -> None:
    """Delete the states, and the views, of what the file does not have any more."""
    kinds = {
        "sources": (Kind.SOURCE,),
        "refined": (Kind.REFINED,),
        "views": (Kind.VIEW_BATCH, Kind.VIEW_SPEED),
    }
    for change in changes:
        if change.sign is plan.Sign.REMOVE and change.section in kinds:
            for kind in kinds[change.section]:
                recorder.timeline.forget(kind, change.name)
            if change.section == "views":
                drop(change.name)
