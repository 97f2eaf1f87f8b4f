"""The status of a pipeline: each source, view, table and process, its state, and its last run.

In: the timeline and the holder of the lock. Out: a table for a terminal, plain rows for programs.
Does not know: how the terminal is refreshed.
"""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any

from barnabas.engine.lock import holder, is_held
from barnabas.engine.timeline import CurrentState, Entry, Kind, State, Timeline, Total
from barnabas.pipeline.observe.plots import short, shown_bytes, shown_seconds

if TYPE_CHECKING:
    from rich.console import Group

COLOURS = {
    State.RUNNING: "green",
    State.IDLE: "green",
    State.FAILED: "red",
    State.WAITING: "yellow",
    State.STARTING: "yellow",
    State.STOPPED: "dim",
}
ORDER = tuple(Kind)
SPARKS = "▁▂▃▄▅▆▇█"
SPARK_RUNS = 16
RECENT_S = 60.0


@dataclass(frozen=True, slots=True)
class Line:
    """One line of the status."""

    kind: str
    name: str
    state: str
    detail: str
    since: float
    total: Total | None
    recent: Sequence[Entry]

    @property
    def last(self) -> Entry | None:
        return self.total.last if self.total is not None else None

    def as_json(self) -> dict[str, Any]:
        found: dict[str, Any] = {"kind": self.kind, "name": self.name, "state": self.state}
        if self.detail:
            found["detail"] = self.detail
        if self.total is not None:
            total = self.total
            found |= {
                "runs": total.runs,
                "failures": total.failures,
                "rows_in": total.rows_in,
                "rows_out": total.rows_out,
                "duplicates": total.duplicates,
                "quarantined": total.quarantined,
                "late": total.late,
                "bytes": total.bytes_in,
            }
        if self.last is not None:
            at = datetime.fromtimestamp(self.last.ended, UTC).isoformat(timespec="milliseconds")
            found |= {"last_run": at, "seconds": round(self.last.seconds, 3), "lag": self.last.lag}
            found |= {"delay_s": round(self.last.delay_s, 3), "velocity": round(self.last.velocity, 1)}
        return found


def status_lines(timeline: Timeline) -> list[Line]:
    """One line for each name in the timeline, by kind and name."""
    states = {(each.kind, each.name): each for each in timeline.states()}
    totals = {(each.kind, each.name): each for each in timeline.totals()}
    found = []
    for kind, name in sorted(states.keys() | totals.keys(), key=place):
        standing = states.get((kind, name), CurrentState(kind, name, "", "", 0.0))
        recent = timeline.entries(kind, name, limit=SPARK_RUNS)
        detail, since = standing.detail, standing.since
        found.append(Line(kind, name, standing.state, detail, since, totals.get((kind, name)), recent))
    return found


def place(key: tuple[str, str]) -> tuple[int, str]:
    kind, name = key
    return (ORDER.index(Kind(kind)) if kind in set(ORDER) else len(ORDER), name)


def table(pipeline: str, timeline: Timeline, elsewhere: str = "") -> Group:
    """A table for `rich`: a heading, the lines, and details of states. `elsewhere` says which other host runs
    the pipeline."""
    from rich.console import Group
    from rich.markup import escape
    from rich.table import Table
    from rich.text import Text

    folder = timeline.path.parent
    held = holder(folder) if is_held(folder) else None
    heading = Text(
        f"{pipeline}: " + (f"run by {held or elsewhere}" if held or elsewhere else "not running"),
        style="bold",
    )
    shown = Table(box=None, padding=(0, 2, 0, 0))
    numbers = ("runs", "rows", "accepted", "twice", "refused", "size", "last took", "rows/s", "lag", "ago")
    for name in ("", "part", "state"):
        shown.add_column(name)
    for name in numbers:
        shown.add_column(name, justify="right")
    shown.add_column("last runs")
    now = time.time()
    wrong = []
    before = ""
    for line in status_lines(timeline):
        colour = COLOURS.get(State(line.state), "") if line.state in set(State) else "dim"
        state = Text(line.state, style=colour)
        shown.add_row(line.kind if line.kind != before else "", line.name, state, *cells(line, now))
        before = line.kind
        if line.detail:
            wrong.append(f"[{colour}]{line.state}[/] {escape(line.name)}: {escape(line.detail)}")
    return Group(heading, shown, *(Text.from_markup(each) for each in wrong))


def cells(line: Line, now: float) -> list[str]:
    total, last = line.total, line.last
    if total is None or last is None:
        return [""] * 11
    is_source = line.kind == Kind.SOURCE
    return [
        f"{total.runs:,}",
        short(total.rows_in),
        short(total.rows_out),
        short(total.duplicates) if is_source else "",
        short(total.quarantined) if is_source else "",
        shown_bytes(total.bytes_in) if is_source else "",
        shown_seconds(last.seconds),
        short(last.velocity),
        f"{last.lag:,}" if is_source else "",
        shown_seconds(max(0.0, now - last.ended)),
        sparks([entry.rows_in for entry in line.recent]),
    ]


def sparks(values: Sequence[float]) -> str:
    """Values as a row of small bars."""
    most = max(values, default=0)
    if most <= 0:
        return ""
    return "".join(SPARKS[min(len(SPARKS) - 1, int(value / most * (len(SPARKS) - 1)))] for value in values)
