"""`make demo`: the whole platform in a minute, with its own broker, database and shop.

In: a folder to write to, how long. Out: views on the terminal, a report and a picture of the lineage in
the folder. All processes that it started have ended when it ends.
"""

from __future__ import annotations

import argparse
import os
import shutil
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

from rich.console import Console
from rich.live import Live
from rich.table import Table

from barnabas.engine.delta.log import table_version
from barnabas.engine.supervisor import Supervisor, on_stop_signal
from barnabas.engine.timeline import Kind, Timeline
from barnabas.pipeline.demo.generator import Shop
from barnabas.pipeline.demo.java import NoJava, ensure_java
from barnabas.pipeline.demo.services import TOPICS, Broker, Database, Feeder, open_database
from barnabas.pipeline.demo.shop_file import TEXT
from barnabas.pipeline.file.reading import read_pipeline
from barnabas.pipeline.lineage.pipeline_graph import graph_of
from barnabas.pipeline.observe import lineage_picture, report
from barnabas.pipeline.observe.report_facts import facts_of, views_of
from barnabas.pipeline.observe.status import table
from barnabas.pipeline.run.start import supervised
from barnabas.pipeline.serving.access import open_queries
from barnabas.pipeline.serving.http.client import ServingError
from barnabas.pipeline.spec.model import Pipeline
from barnabas.pipeline.spec.state_folder import state_folder

MARK = ".barnabas-demo"
SECONDS = 60.0
SETTLE_S_MAX = 120.0  # for the last records
START_S_MAX = 240.0
PER_SECOND = 150
SAY_EVERY_S = 10.0
WIDTH = 150


def prepared(folder: Path) -> Path:
    """An empty folder. That of an earlier demo is emptied; any other is refused."""
    if folder.exists() and any(folder.iterdir()):
        if not (folder / MARK).exists():
            raise SystemExit(f"{folder} is not empty and not from a demo: choose another --folder")
        shutil.rmtree(folder)
    folder.mkdir(parents=True, exist_ok=True)
    folder.chmod(0o755)  # PostgreSQL may have to run as another user
    (folder / MARK).touch()
    return folder.absolute()


def written(folder: Path, broker: Broker, database: Database) -> Pipeline:
    """Write the file; its secrets are in the environment."""
    os.environ["SHOP_BROKER"] = broker.bootstrap
    os.environ["SHOP_DATABASE"] = database.url
    os.environ["SHOP_USER"] = database.user
    os.environ["SHOP_PASSWORD"] = database.password
    path = folder / "pipeline.yaml"
    path.write_text(TEXT.replace("port: 8088", "port: 0"))
    return read_pipeline(path)


class Clock:
    """Ends the demo: `seconds` after the first batch, when all records are in the views."""

    def __init__(self, pipeline: Pipeline, seconds: float, feeder: Feeder, supervisor: Supervisor) -> None:
        self._pipeline = pipeline
        self._seconds = seconds
        self._timeline = Timeline(state_folder(pipeline))
        self._feeder = feeder
        self._supervisor = supervisor
        self._began = time.monotonic()
        self._first: float | None = None
        self._fed_until: float | None = None

    def look(self) -> None:
        now = time.monotonic()
        if self._first is None:
            if self._rows():
                self._first = now
            elif now - self._began > START_S_MAX:
                self._supervisor.stop()
        elif self._fed_until is None:
            if now - self._first > self._seconds:
                self._feeder.stop()
                self._fed_until = now
        elif now - self._fed_until > SETTLE_S_MAX or self._is_settled():
            self._supervisor.stop()

    def _rows(self) -> int:
        """Rows that were read from the topics."""
        totals = self._timeline.totals()
        return sum(each.rows_in for each in totals if each.kind == Kind.SOURCE and each.name in TOPICS)

    def _is_settled(self) -> bool:
        """Whether all sent records were read, and every view is at the last version of its table."""
        if self._rows() < self._feeder.sent:
            return False
        lake = self._pipeline.lake_location
        tables = {view.name: Path(lake.path(view.table)) for view in self._pipeline.views}
        try:
            with open_queries(self._pipeline) as serving:
                seen = {each["name"]: each["freshness"]["speed"]["version"] for each in serving.views()}
        except ServingError:
            return False  # the serving process is restarting
        return all(seen.get(name) == table_version(folder) for name, folder in tables.items())


def run(pipeline: Pipeline, feeder: Feeder, seconds: float, console: Console) -> None:
    timeline = Timeline(state_folder(pipeline))
    with supervised(pipeline) as supervisor:
        on_stop_signal(supervisor.stop)
        clock = Clock(pipeline, seconds, feeder, supervisor)
        every_second = every(1.0, clock.look, lambda: None)
        if console.is_terminal:
            with Live(console=console, refresh_per_second=2, transient=True) as live:
                shown = every(0.5, lambda: live.update(table(pipeline.name, timeline)), every_second)
                supervisor.run(shown)
        else:
            supervisor.run(every(SAY_EVERY_S, lambda: say_progress(timeline, console), every_second))


def every(seconds: float, then: Callable[[], object], always: Callable[[], object]) -> Callable[[], None]:
    due = time.monotonic()

    def look() -> None:
        nonlocal due
        always()
        if time.monotonic() >= due:
            due = time.monotonic() + seconds
            then()

    return look


def say_progress(timeline: Timeline, console: Console) -> None:
    rows = sum(total.rows_in for total in timeline.totals() if total.kind == Kind.SOURCE)
    states = ", ".join(f"{each.name} {each.state}" for each in timeline.states() if each.kind == Kind.PROCESS)
    console.print(f"{rows:,} rows through the zones ({states})")


def show_views(views: list[report.ViewFacts], console: Console) -> None:
    for view in views:
        shown = Table(title=view.name, title_justify="left", caption=view.freshness, caption_justify="left")
        first = view.rows[0] if view.rows else [None] * len(view.columns)
        for name, value in zip(view.columns, first, strict=True):
            shown.add_column(name, justify="right" if report.is_number(value) else "left")
        for row in view.rows[:10]:
            shown.add_row(*map(cell, row))
        console.print(shown)


def cell(value: Any) -> str:
    if isinstance(value, float):
        return f"{value:,.2f}"
    return f"{value:,}" if isinstance(value, int) else str(value)


def main(arguments: list[str]) -> int:
    parser = argparse.ArgumentParser(prog="python -m barnabas.pipeline.demo", description=__doc__)
    parser.add_argument("--folder", type=Path, default=Path("demo"), help="where to write (demo)")
    parser.add_argument("--seconds", type=float, default=SECONDS, help=f"how long ({SECONDS:g})")
    parser.add_argument("--rate", type=int, default=PER_SECOND, help=f"events a second ({PER_SECOND})")
    options = parser.parse_args(arguments)
    console = Console(width=None if sys.stdout.isatty() else WIDTH, highlight=False)
    try:
        ensure_java(console.print)
    except NoJava as error:
        console.print(str(error))
        return 1
    folder = prepared(options.folder)
    shop = Shop(seed=7)
    broker = Broker(folder / "broker")
    database: Database | None = None
    try:
        broker.start()
        database = open_database(folder, shop)
        console.print(f"a broker at {broker.bootstrap}, customers in {database.kind}")
        pipeline = written(folder, broker, database)
        feeder = Feeder(broker.bootstrap, shop, options.rate)
        feeder.create_topics()
        feeder.start()
        console.print(f"running {folder / 'pipeline.yaml'}; Spark starts, then it runs {options.seconds:g} s")
        run(pipeline, feeder, options.seconds, console)
        feeder.stop()
    finally:
        if database is not None:
            database.stop()
        broker.stop()
    return told(pipeline, shop, feeder.sent, folder, console)


def told(pipeline: Pipeline, shop: Shop, sent: int, folder: Path, console: Console) -> int:
    """Show views and report; 0 if raw has all records that were sent."""
    views = views_of(pipeline)
    show_views(views, console)
    facts = facts_of(pipeline, views)
    (folder / "report.html").write_text(report.page(facts))
    (folder / "lineage.html").write_text(lineage_picture.page(graph_of(pipeline)))
    made = ", ".join(f"{count} {name}" for name, count in sorted(shop.counts.items()))
    raw = sum(each.rows or 0 for each in facts.tables if each.zone == "raw" and each.name != "customers")
    console.print(f"made: {made}")
    console.print(f"sent {sent:,} records to the topics; raw has {raw:,} of them")
    console.print(f"report:  {folder / 'report.html'}\nlineage: {folder / 'lineage.html'}", soft_wrap=True)
    return 0 if views and raw == sent else 1


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
