"""Commands of `pipeline` that change the lake: run, backfill, replay, release, destroy.

In: options. Out: the work, with a progress bar on a terminal.
"""

import argparse
import shutil
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from barnabas.cli.frame.output import Output
from barnabas.cli.frame.parsing import ToolError, UsageError
from barnabas.cli.pipelines.pipeline_file import load
from barnabas.engine.errors import IngestError
from barnabas.engine.lock import LakeIsBusy
from barnabas.engine.places.object_store import NoRecords
from barnabas.engine.places.place import PlaceUnavailable
from barnabas.engine.secrets import SecretError, reveal
from barnabas.engine.session import SessionError
from barnabas.engine.supervisor import Supervisor
from barnabas.pipeline.file.plan import LakeOfAnotherPipeline
from barnabas.pipeline.ingest.results import RewriteResult
from barnabas.pipeline.observe.metrics import NoEndpoint
from barnabas.pipeline.run.start import Progress, run_once, supervise
from barnabas.pipeline.serving.access import open_pipeline_store
from barnabas.pipeline.serving.store.port import StoreError
from barnabas.pipeline.spec.lake_lock import lake_lock
from barnabas.pipeline.spec.model import Pipeline
from barnabas.pipeline.spec.state_folder import logs_folder, state_folder

REFUSED = (
    NoEndpoint,
    LakeIsBusy,
    NoRecords,
    PlaceUnavailable,
    LakeOfAnotherPipeline,
    SessionError,
    StoreError,
    SecretError,
    IngestError,
)


@contextmanager
def errors_as_one_line() -> Iterator[None]:
    """Show errors that a person can fix in one line."""
    try:
        yield
    except REFUSED as error:
        raise ToolError(str(error)) from error
    except OSError as error:
        raise ToolError(f"{error.filename or 'the lake'}: {error.strerror or error}") from error


@contextmanager
def progress_bar(title: str) -> Iterator[Progress]:
    """A progress bar on a terminal; elsewhere a line for each piece."""
    if not sys.stderr.isatty():
        yield progress_lines()
        return
    from rich.console import Console
    from rich.progress import BarColumn, MofNCompleteColumn, SpinnerColumn, TextColumn, TimeElapsedColumn
    from rich.progress import Progress as Bars

    columns = (SpinnerColumn(), TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn())
    with Bars(*columns, TimeElapsedColumn(), console=Console(stderr=True), transient=True) as bars:
        task = bars.add_task(title, total=None)

        def show(what: str, done: int = 0, total: int | None = None) -> None:
            bars.update(task, description=f"{title}: {what}", completed=done, total=total)

        yield show


def progress_lines() -> Progress:
    last = ""

    def say(what: str, done: int = 0, total: int | None = None) -> None:
        nonlocal last
        if what != last:
            print(what, file=sys.stderr, flush=True)
            last = what

    return say


def run(options: argparse.Namespace, out: Output) -> int:
    pipeline = load(options.file)
    if options.once and (options.metrics_port is not None or options.seconds is not None or options.standby):
        raise UsageError("--once ends by itself and takes neither --metrics-port nor --seconds nor --standby")
    with errors_as_one_line():
        if options.once:
            return once(pipeline, out)

        def ready(supervisor: Supervisor) -> None:
            names = ", ".join(child.program.name for child in supervisor.children)
            out.line(f"{pipeline.name}: running {names}; logs in {logs_folder(pipeline)}")
            out.line(f"show its status with: barnabas pipeline status --watch -f {options.file}")
            out.flush()

        if options.standby:
            out.line(f"{pipeline.name}: standing by; it runs here as soon as no other host runs it")
            out.flush()
        supervise(
            pipeline, metrics_port=options.metrics_port, seconds=options.seconds, standby=options.standby,
            ready=ready,
        )  # fmt: skip
    return 0


def once(pipeline: Pipeline, out: Output) -> int:
    started = time.monotonic()
    with progress_bar(pipeline.name) as say:
        done = run_once(pipeline, say)
    for name, reason in done.failed.items():
        out.note(f"{name}: {reason}")
    seconds = time.monotonic() - started
    out.line(f"{pipeline.name}: {len(done.pieces)} done, {len(done.failed)} failed, in {seconds:.1f} s")
    return 1 if done.failed else 0


def backfill(options: argparse.Namespace, out: Output) -> int:
    pipeline = load(options.file)
    check_name(pipeline, "sources", options.source)
    start, end = moment(options.start, "--from"), moment(options.end, "--to")
    if start >= end:
        raise UsageError(f"--from {options.start} is not before --to {options.end}")

    def body(spark: Any) -> RewriteResult:
        from barnabas.pipeline.ingest.rewriting.backfill import backfill as read_again

        return read_again(spark, pipeline, options.source, start, end, confirm=asking(options, out))

    return run_rewrite(pipeline, f"backfill {options.source}", body, out)


def replay(options: argparse.Namespace, out: Output) -> int:
    pipeline = load(options.file)
    check_name(pipeline, "sources", options.source)

    def body(spark: Any) -> RewriteResult:
        from barnabas.pipeline.ingest.rewriting.replay import replay as carry_again

        first, last = options.from_batch, options.to_batch
        confirm = asking(options, out)
        return carry_again(
            spark, pipeline, options.source, first, last, rebuild=options.rebuild, confirm=confirm
        )

    return run_rewrite(pipeline, f"replay {options.source}", body, out)


def release(options: argparse.Namespace, out: Output) -> int:
    pipeline = load(options.file)
    tables = dict.fromkeys(each.name for each in (*pipeline.trusted, *pipeline.staging))
    if options.table not in tables:
        raise UsageError(f"there is no table {options.table}: there are {', '.join(tables)}")

    def body(spark: Any) -> RewriteResult:
        from barnabas.pipeline.ingest.rewriting.release import release as let_in

        return let_in(spark, pipeline, options.table, options.rule)

    return run_rewrite(pipeline, f"release {options.table}", body, out)


def run_rewrite(pipeline: Pipeline, what: str, body: Callable[[Any], RewriteResult], out: Output) -> int:
    from barnabas.pipeline.run.rewriting import rewrite

    with errors_as_one_line():
        done = rewrite(pipeline, what, body, progress_lines())  # a bar would hide a question
    counts = f"{done.rows_in:,} rows in, {done.accepted:,} accepted, {done.quarantined:,} quarantined"
    out.line(f"{what}: {counts}{f', {done.removed:,} removed' if done.removed else ''}")
    for name in done.refined:
        out.line(f"  refined {name} recomputed")
    for name in done.views:
        out.line(f"  view {name} refreshed")
    return 0


def asking(options: argparse.Namespace, out: Output) -> Callable[[Any], bool]:
    """Show what a command would do, and ask before rows are removed that raw cannot bring back."""

    def confirm(preview: Any) -> bool:
        for line in preview.lines():
            out.line(line)
        out.flush()
        if not preview.removed or getattr(options, "yes", False):
            return True
        print(f"Type yes to remove {preview.removed:,} rows: ", end="", flush=True)
        if sys.stdin.readline().strip() == "yes":
            return True
        raise ToolError("nothing was changed")

    return confirm


def check_name(pipeline: Pipeline, part: str, name: str) -> None:
    names = [each.name for each in getattr(pipeline, part)]
    if name not in names:
        raise UsageError(f"there is no {name} in {part}: there are {', '.join(names)}")


def moment(text: str, option: str) -> datetime:
    try:
        found = datetime.fromisoformat(text)
    except ValueError:
        raise UsageError(f"{option} {text}: write a time as 2026-01-31 or 2026-01-31T12:30:00Z") from None
    return found if found.tzinfo is not None else found.replace(tzinfo=UTC)


def destroy(options: argparse.Namespace, out: Output) -> int:
    pipeline = load(options.file)
    lake = pipeline.lake_location
    if not lake.is_local:
        raise ToolError(f"{lake.root} is not on this machine: delete it there")
    root = Path(lake.root)
    if not root.exists():
        out.line(f"{root} does not exist: nothing to delete")
        return 0
    if not state_folder(pipeline).is_dir():
        raise ToolError(f"{root} has no {state_folder(pipeline).name}: it is not the lake of a pipeline")
    with errors_as_one_line(), lake_lock(pipeline, "destroy") as lock:
        if not options.yes and not is_confirmed(root, pipeline):
            out.line("nothing was deleted")
            return 1
        drop_views(pipeline)
        lock.forget_lease()
        shutil.rmtree(root)
    out.line(f"{root}: deleted")
    return 0


def drop_views(pipeline: Pipeline) -> None:
    """Delete the views in a store outside of the lake."""
    if reveal(pipeline.serving.store) == "duckdb":
        return
    store = open_pipeline_store(pipeline)
    try:
        for state in store.states():
            store.drop(state.layout.view)
    finally:
        store.close()


def is_confirmed(root: Path, pipeline: Pipeline) -> bool:
    """Ask; whether the person typed the pipeline's name."""
    size = sum(each.stat().st_size for each in root.rglob("*") if each.is_file())
    print(f"This deletes {root} with all its tables ({size / 1e6:,.1f} MB) and its views.")
    print(f"Type the pipeline's name ({pipeline.name}) to go on: ", end="", flush=True)
    return sys.stdin.readline().strip() == pipeline.name
