"""Running a pipeline: `run` supervises serving, batch and streaming; `run --once` does what is due, and ends.

In: a pipeline. Out: it runs until it is told to stop, or the pieces that were done. Either has the lake for
itself. Does not know: the command line.
"""

from __future__ import annotations

import os
import sys
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Protocol

from barnabas.pipeline.engine.errors import brief
from barnabas.pipeline.engine.lock import SUPERVISES, LakeLock
from barnabas.pipeline.engine.schedule import Job, Schedule
from barnabas.pipeline.engine.secrets import reveal
from barnabas.pipeline.engine.supervisor import Part, Supervisor, when_told
from barnabas.pipeline.engine.timeline import Kind, Recorder, State
from barnabas.pipeline.file import plan
from barnabas.pipeline.file.checks import problems_of
from barnabas.pipeline.file.writing import to_yaml
from barnabas.pipeline.observe import metrics
from barnabas.pipeline.observe.recorder import Diary, utc_now
from barnabas.pipeline.run.work import Say, Work, jobs_of, streaming_sources
from barnabas.pipeline.serving.access import READY_FILE, open_pipeline_store, token_of
from barnabas.pipeline.spec import refined_sql
from barnabas.pipeline.spec.model import Pipeline, by_name
from barnabas.pipeline.spec.state_folder import logs_folder, state_folder

FILE_NAME = "pipeline.yaml"
PARTS = ("serving", "streaming", "batch")
ANEW = ("sql", "keys", "measures", "source", "python")  # fields that make a view or table due at once


class Progress(Protocol):
    """Hears which piece is being done, and how much of it, where that is known."""

    def __call__(self, what: str, done: int = 0, total: int | None = None) -> object: ...


def unheard(what: str, done: int = 0, total: int | None = None) -> None:
    """Progress that nobody watches."""


@dataclass(slots=True)
class Done:
    """What `run --once` did: names of pieces, and what failed with its reason."""

    pieces: list[str] = field(default_factory=list)
    failed: dict[str, str] = field(default_factory=dict)


def run_pipeline(pipeline: Pipeline, *, once: bool = False) -> Done | None:
    """As `barnabas pipeline run` does with a file. ValueError names every problem of the pipeline."""
    problems = problems_of(pipeline)
    if problems:
        raise ValueError("\n".join(map(str, problems)))
    if once:
        return run_once(pipeline)
    supervise(pipeline)
    return None


# -- once ------------------------------------------------------------------------------------------


def run_once(pipeline: Pipeline, say: Progress | None = None) -> Done:
    """Everything that is due, in this process: streaming sources too, up to what they have now."""
    from barnabas.pipeline.engine.session import close
    from barnabas.pipeline.run.session import open_session

    tell = say or unheard
    with LakeLock(state_folder(pipeline), "run --once"):
        changed = plan.apply(pipeline, state_folder(pipeline))
        schedule = Schedule(state_folder(pipeline), jobs_of(pipeline))
        schedule.forget(anew(pipeline, changed))
        tell("starting Spark")
        spark = open_session(pipeline, "once")
        store = open_pipeline_store(pipeline)
        try:
            diary = Diary(pipeline)
            drop_removed(changed, store.drop, diary)
            return all_due(Work(spark, pipeline, store, diary), schedule, tell)
        finally:
            store.close()
            close(spark)


def all_due(work: Work, schedule: Schedule, tell: Progress) -> Done:
    done = Done()

    def piece(kind: Kind, name: str, body: Callable[[Say], object]) -> bool:
        tell(f"{kind} {name}")
        try:
            with work.diary.working(kind, name):
                body(lambda rows, total: tell(f"{kind} {name}", rows, total))
        except Exception as error:  # the rest goes on
            done.failed[f"{kind} {name}"] = brief(error)
            return False
        done.pieces.append(f"{kind} {name}")
        return True

    for source in streaming_sources(work.pipeline):
        piece(Kind.SOURCE, source, lambda say, name=source: work.drain(name, say))  # type: ignore[misc]
    now = utc_now()
    for job in schedule.due(now):
        if piece(Kind(job.kind), job.name, lambda say, job=job: work.do(job, say)):  # type: ignore[misc]
            schedule.done(job, now)
    for view in work.pipeline.views:
        if piece(Kind.VIEW_SPEED, view.name, lambda _, name=view.name: work.catch_up(name)):  # type: ignore[misc]
            work.diary.stand(Kind.VIEW_SPEED, view.name, State.IDLE)
    return done


# -- supervised ------------------------------------------------------------------------------------


def supervise(
    pipeline: Pipeline,
    *,
    metrics_port: int | None = None,
    seconds: float | None = None,
    ready: Callable[[Supervisor], object] | None = None,
) -> None:
    """Until SIGTERM, SIGINT, or so many seconds have passed."""
    with supervised(pipeline, metrics_port) as supervisor:
        if threading.current_thread() is threading.main_thread():
            when_told(supervisor.stop)
        if ready is not None:
            ready(supervisor)
        deadline = None if seconds is None else time.monotonic() + seconds

        def look() -> None:
            if deadline is not None and time.monotonic() > deadline:
                supervisor.stop()

        supervisor.run(look)


@contextmanager
def supervised(pipeline: Pipeline, metrics_port: int | None = None) -> Iterator[Supervisor]:
    """The supervisor of a pipeline whose lake is ours now; nothing was started yet."""
    folder = state_folder(pipeline)
    endpoint: metrics.Endpoint | None = None
    with LakeLock(folder, f"{SUPERVISES}{pipeline.file or pipeline.name}") as lock:
        changed = plan.apply(pipeline, folder)
        Schedule(folder, jobs_of(pipeline)).forget(anew(pipeline, changed))
        diary = Diary(pipeline)
        drop_removed(changed, lambda view: None, diary)
        (folder / READY_FILE).unlink(missing_ok=True)
        if metrics_port is not None:
            host = pipeline.serving.host
            endpoint = metrics.Endpoint(pipeline.name, diary.timeline, host, metrics_port)
        try:
            recorder = Recorder(diary.timeline)
            parts = parts_of(pipeline, written(pipeline))
            yield Supervisor(parts, logs_folder(pipeline), recorder, [lock.descriptor])
        finally:
            if endpoint is not None:
                endpoint.close()


def parts_of(pipeline: Pipeline, file: Path) -> list[Part]:
    """Serving first: the applications hand it their parts, and it ends last."""
    serving = pipeline.serving
    folder = state_folder(pipeline)
    environment = {
        "BARNABAS_SERVING_TOKEN": token_of(pipeline),
        "BARNABAS_SERVING_STORE": reveal(serving.store),
    }
    python = [sys.executable, "-m"]
    command = [*python, "barnabas.pipeline.serving", "--name", pipeline.name, "--folder", str(folder)]
    command += ["--host", serving.host, "--port", str(serving.port or free_port())]
    command += ["--keep-horizons", str(serving.keep_horizons), "--ready", str(folder / READY_FILE)]
    found = [Part("serving", [*command, "--ends-with", str(os.getpid())], environment)]
    if streaming_sources(pipeline) or pipeline.views:
        found.append(Part("streaming", [*python, "barnabas.pipeline.run.streaming_app", str(file)]))
    jobs = jobs_of(pipeline)
    if any(not job.is_once for job in jobs) or Schedule(folder, jobs).due(utc_now()):
        found.append(Part("batch", [*python, "barnabas.pipeline.run.batch_app", str(file)]))
    return found


def free_port() -> int:
    """Fixed for this run, so that the serving process is found again where it was."""
    import socket

    with socket.socket() as found:
        found.bind(("127.0.0.1", 0))
        return int(found.getsockname()[1])


def written(pipeline: Pipeline) -> Path:
    """The file for the applications: its own, or one that says the same as the Python objects."""
    if pipeline.file is not None:
        return pipeline.file
    path = state_folder(pipeline) / FILE_NAME
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(to_yaml(replace(pipeline, lake=pipeline.lake_location.root)))
    return path


# -- what changed since the last run ---------------------------------------------------------------


def anew(pipeline: Pipeline, changes: list[plan.Change]) -> list[str]:
    """Keys of jobs that are due at once, because what they compute is another thing now."""
    kinds = {"views": Kind.VIEW_BATCH, "refined": Kind.REFINED}
    return [
        Job(kinds[change.part], change.name, None).key
        for change in changes
        if change.part in kinds
        and (any(each.field in ANEW for each in change.differences) or is_behind(pipeline, change))
    ]


def is_behind(pipeline: Pipeline, change: plan.Change) -> bool:
    """Whether it is a new table over tables that have rows already."""
    if change.sign is not plan.Sign.CREATE or change.part != "refined":
        return False
    lake = pipeline.lake_location
    inputs = refined_sql.inputs_of(pipeline, by_name(pipeline.refined, change.name)).values()
    return not lake.is_local or any(Path(lake.path(table)).is_dir() for table in inputs)


def drop_removed(changes: list[plan.Change], drop: Callable[[str], object], diary: Diary) -> None:
    """Parts that the file has no longer are shown no longer."""
    kinds = {
        "sources": (Kind.SOURCE,),
        "refined": (Kind.REFINED,),
        "views": (Kind.VIEW_BATCH, Kind.VIEW_SPEED),
    }
    for change in changes:
        if change.sign is plan.Sign.REMOVE and change.part in kinds:
            for kind in kinds[change.part]:
                diary.timeline.forget(kind, change.name)
            if change.part == "views":
                drop(change.name)
