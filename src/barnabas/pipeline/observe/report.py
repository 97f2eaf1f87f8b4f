"""The report: one self-contained HTML page with plots, for light and dark.

In: `Facts` about a pipeline: timeline, states, views, sizes, quarantine, lineage. Out: the page. Every
number comes from the timeline or the lake. Does not know: where the facts come from
(`observe.report_facts`), Spark.
"""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from html import escape
from typing import Any

from barnabas.engine.timeline import CurrentState, Entry, Kind, State, Total
from barnabas.pipeline.observe import plots
from barnabas.pipeline.observe.report_style import STYLE

ROWS_MAX = 20
MOMENT = re.compile(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d[\d.]*Z?")
FAILURES_MAX = 12
TONES = (Kind.REFINED, Kind.VIEW_BATCH, Kind.VIEW_SPEED, Kind.MAINTENANCE, Kind.COMMAND)
WORST_FIRST = (State.FAILED, State.WAITING, State.STARTING, State.RUNNING, State.IDLE, State.STOPPED)


@dataclass(frozen=True, slots=True)
class ViewFacts:
    """A served view: columns, some rows, the number of rows, and its freshness."""

    name: str
    columns: Sequence[str]
    rows: Sequence[Sequence[Any]]
    total: int
    freshness: str


@dataclass(frozen=True, slots=True)
class TableFacts:
    """Size and version of a table of the lake."""

    zone: str
    name: str
    rows: int | None
    files: int
    size_bytes: int
    version: int | None


@dataclass(frozen=True, slots=True)
class Facts:
    pipeline: str
    lake: str
    now: float
    entries: Sequence[Entry] = ()
    totals: Sequence[Total] = ()
    states: Sequence[CurrentState] = ()
    views: Sequence[ViewFacts] = ()
    tables: Sequence[TableFacts] = ()
    quarantine: Mapping[tuple[str, str], int] = field(default_factory=dict)  # (table, rule) -> rows
    lineage_svg: str = ""


def page(facts: Facts) -> str:
    at = datetime.fromtimestamp(facts.now, UTC).strftime("%Y-%m-%d %H:%M:%S UTC")
    sections = (
        cards(facts),
        states(facts.states, facts.now),
        sources(facts),
        views(facts.views),
        over_time(facts),
        quarantine(facts.quarantine),
        zones(facts.tables),
        lineage(facts.lineage_svg),
        failures(facts.entries),
    )
    return (
        '<!doctype html><html lang="en"><head><meta charset="utf-8">'
        '<meta name="viewport" content="width=device-width, initial-scale=1">'
        '<meta name="color-scheme" content="light dark">'
        f"<title>{escape(facts.pipeline)}: report</title><style>{STYLE}</style></head><body><main>"
        f"<header><h1>{escape(facts.pipeline)}</h1>"
        f"<p>{at} · lake <code>{escape(facts.lake)}</code></p></header>"
        + "".join(sections)
        + "<footer>Written by <code>barnabas pipeline report</code>. Times are UTC; point at a mark for its"
        " value.</footer></main></body></html>\n"
    )


def cards(facts: Facts) -> str:
    found = [total for total in facts.totals if total.kind == Kind.SOURCE]
    rows_in = sum(total.rows_in for total in found)
    quarantined = sum(total.quarantined for total in found)
    delays = [entry.delay_s for entry in facts.entries if entry.kind == Kind.VIEW_SPEED and entry.delay_s > 0]
    shown = [
        ("rows in", plots.short(rows_in), plots.shown_bytes(sum(total.bytes_in for total in found))),
        (
            "accepted",
            plots.short(sum(t.rows_out for t in found)),
            share(sum(t.rows_out for t in found), rows_in),
        ),
        ("duplicates", plots.short(sum(t.duplicates for t in found)), "kept in raw, counted once"),
        ("quarantined", plots.short(quarantined), share(quarantined, rows_in)),
        ("views", str(len(facts.views)), f"{sum(view.total for view in facts.views):,} rows served"),
    ]
    if delays:
        middle = sorted(delays)[len(delays) // 2]
        shown.append(("event to view", plots.shown_seconds(middle), "median of the speed layer"))
    cells = "".join(
        f'<div class="card"><span>{name}</span><strong>{value}</strong><em>{note}</em></div>'
        for name, value, note in shown
    )
    return f'<section class="cards">{cells}</section>'


def share(part: float, whole: float) -> str:
    return f"{100 * part / whole:.1f} % of all" if whole else "nothing came yet"


def states(found: Sequence[CurrentState], now: float) -> str:
    if not found:
        return ""
    ordered = sorted(found, key=lambda each: (worst(each.state), each.kind, each.name))
    rows = "".join(
        f"<tr><td>{escape(each.kind)}</td><td>{escape(each.name)}</td>"
        f'<td><span class="state {escape(each.state)}">{escape(each.state)}</span></td>'
        f"<td class='tight'>{plots.shown_seconds(max(0.0, now - each.since))}</td>"
        f"<td>{escape(each.detail)}</td></tr>"
        for each in ordered
    )
    head = "<tr><th>kind</th><th>name</th><th>state</th><th>for</th><th></th></tr>"
    return f"<section><h2>Now</h2><div class='wide'><table>{head}{rows}</table></div></section>"


def worst(state: str) -> int:
    return WORST_FIRST.index(State(state)) if state in set(State) else len(WORST_FIRST)


def sources(facts: Facts) -> str:
    found = [total for total in facts.totals if total.kind == Kind.SOURCE]
    if not found:
        return ""
    bars = plots.stacked(
        "what became of the rows of each source",
        [
            (
                total.name,
                (
                    ("accepted", total.rows_out, "var(--good)"),
                    ("duplicates", total.duplicates, "var(--c4)"),
                    ("quarantined", total.quarantined, "var(--bad)"),
                ),
            )
            for total in found
        ],
    )
    key = legend([("accepted", "var(--good)"), ("duplicates", "var(--c4)"), ("quarantined", "var(--bad)")])
    rows = "".join(source_row(total) for total in found)
    names = ("source", "batches", "rows", "accepted", "duplicates", "quarantined", "late", "size")
    head = "".join(f"<th>{name}</th>" for name in (*names, "rows/s", "lag"))
    return (
        f"<section><h2>Sources</h2>{key}{bars}"
        f"<div class='wide'><table class='numbers'><tr>{head}</tr>{rows}</table></div></section>"
    )


def source_row(total: Total) -> str:
    cells = (
        f"{total.runs - total.failures:,}",
        f"{total.rows_in:,}",
        f"{total.rows_out:,}",
        f"{total.duplicates:,}",
        f"{total.quarantined:,}",
        f"{total.late:,}",
        plots.shown_bytes(total.bytes_in),
        plots.short(total.velocity),
        f"{total.last.lag:,}" if total.last else "",
    )
    return f"<tr><td>{escape(total.name)}</td>" + "".join(f"<td>{cell}</td>" for cell in cells) + "</tr>"


def legend(entries: Sequence[tuple[str, str]]) -> str:
    marks = "".join(
        f'<span><i style="background:{colour}"></i>{escape(name)}</span>' for name, colour in entries
    )
    return f'<p class="legend">{marks}</p>'


def over_time(facts: Facts) -> str:
    by_part: dict[tuple[str, str], list[Entry]] = defaultdict(list)
    for entry in facts.entries:
        by_part[entry.kind, entry.name].append(entry)
    names = [name for kind, name in by_part if kind == Kind.SOURCE]
    colours = {name: number for number, name in enumerate(sorted(names))}
    good = {
        name: [entry for entry in by_part[Kind.SOURCE, name] if not entry.error] for name in sorted(names)
    }

    def figure(title: str, plot: str, series: Sequence[plots.Series] = ()) -> str:
        own = legend([(each.name, f"var(--c{each.colour % plots.COLOURS})") for each in series])
        shown = f"<figcaption>{title}</figcaption>{own if series else ''}{plot}"
        return f"<figure>{shown}</figure>" if plot else ""

    def per_source(label: str, value: Any, shown: Any = plots.short) -> str:
        series = [
            plots.Series(name, [(entry.ended, value(entry)) for entry in found], colours[name])
            for name, found in good.items()
        ]
        return plots.lines(label, series, shown)

    speed = [
        plots.Series(name, [(e.ended, e.delay_s) for e in found if e.delay_s > 0], number + 3)
        for number, ((kind, name), found) in enumerate(sorted(by_part.items()))
        if kind == Kind.VIEW_SPEED
    ]
    strips = [
        plots.Strip(
            f"{name}, {kind.removeprefix('view ')}" if kind != Kind.SOURCE else name,
            [bar(each) for each in found],
            colours[name] if kind == Kind.SOURCE else len(names) + TONES.index(kind) if kind in TONES else 7,
        )
        for (kind, name), found in sorted(by_part.items())
        if kind != Kind.PROCESS
    ]
    figures = (
        figure("Rows in each batch", per_source("rows in each batch", lambda entry: float(entry.rows_in)))
        + figure("Seconds a batch took", per_source("seconds", lambda e: e.seconds, plots.shown_seconds))
        + figure("Rows waiting in the source", per_source("lag", lambda entry: float(entry.lag)))
        + figure("Age of what a view shows", plots.lines("age", speed, plots.shown_seconds), speed)
        + figure("When everything ran", plots.strips("runs", strips))
    )
    if not figures:
        return ""
    key = legend([(name, f"var(--c{colours[name] % plots.COLOURS})") for name in sorted(names)])
    return f"<section><h2>Over time</h2>{key}{figures}</section>"


def bar(entry: Entry) -> plots.Bar:
    title = (
        f"{entry.name} {entry.run}: {entry.rows_in:,} rows in {plots.shown_seconds(entry.seconds)}"
        f" at {plots.clock(entry.started)}{f', failed: {entry.error}' if entry.error else ''}"
    )
    return plots.Bar(entry.started, entry.ended, title, bool(entry.error))


def views(found: Sequence[ViewFacts]) -> str:
    if not found:
        return ""
    parts = []
    for view in found:
        first = view.rows[0] if view.rows else [None] * len(view.columns)
        head = "".join(
            f"<th{' class=number' if is_number(value) else ''}>{escape(name)}</th>"
            for name, value in zip(view.columns, first, strict=True)
        )
        rows = "".join(
            "<tr>" + "".join(cell(value) for value in row) + "</tr>" for row in view.rows[:ROWS_MAX]
        )
        more = f"<p class='quiet'>{view.total - ROWS_MAX:,} more</p>" if view.total > ROWS_MAX else ""
        parts.append(
            f"<article><h3>{escape(view.name)}</h3><p class='quiet'>{escape(view.freshness)}</p>"
            f"<div class='wide'><table><tr>{head}</tr>{rows}</table></div>{more}</article>"
        )
    return f"<section><h2>Views</h2><div class='grid'>{''.join(parts)}</div></section>"


def is_number(value: Any) -> bool:
    return isinstance(value, (int, float)) and not isinstance(value, bool)


def cell(value: Any) -> str:
    if isinstance(value, bool) or value is None:
        return f"<td>{'' if value is None else str(value).lower()}</td>"
    if isinstance(value, int):
        return f'<td class="number">{value:,}</td>'
    if isinstance(value, float):
        return f'<td class="number">{value:,.2f}</td>'
    text = str(value)
    if MOMENT.fullmatch(text):
        return f"<td class='tight' title='{text}'>{text[:10]} {text[11:19]}</td>"
    return f"<td>{escape(text)}</td>"


def quarantine(found: Mapping[tuple[str, str], int]) -> str:
    if not found:
        return ""
    most = max(found.values())
    rows = "".join(
        f"<tr><td>{escape(table)}</td><td>{escape(rule)}</td><td class='number'>{count:,}</td>"
        f'<td class="meter"><i style="width:{100 * count / most:.1f}%"></i></td></tr>'
        for (table, rule), count in sorted(found.items(), key=lambda item: (-item[1], item[0]))[:ROWS_MAX]
    )
    return (
        "<section><h2>Quarantine</h2><p class='quiet'>Rows that broke a rule. After a fix, "
        "<code>barnabas pipeline release</code> sends those that pass back in.</p><div class='wide'><table>"
        f"<tr><th>table</th><th>rule</th><th>rows</th><th></th></tr>{rows}</table></div></section>"
    )


def zones(found: Sequence[TableFacts]) -> str:
    if not found:
        return ""
    rows = "".join(
        f"<tr><td>{escape(each.zone)}</td><td>{escape(each.name)}</td>"
        f"<td>{'' if each.rows is None else f'{each.rows:,}'}</td><td>{each.files:,}</td>"
        f"<td>{plots.shown_bytes(each.size_bytes)}</td>"
        f"<td>{'' if each.version is None else each.version}</td></tr>"
        for each in found
    )
    head = "".join(f"<th>{name}</th>" for name in ("zone", "table", "rows", "files", "size", "version"))
    return (
        "<section><h2>The lake</h2><div class='wide'>"
        f"<table class='numbers two'><tr>{head}</tr>{rows}</table></div></section>"
    )


def lineage(svg: str) -> str:
    return f"<section><h2>Lineage</h2><div class='wide'>{svg}</div></section>" if svg else ""


def failures(entries: Sequence[Entry]) -> str:
    found = [entry for entry in entries if entry.error][-FAILURES_MAX:]
    if not found:
        return ""
    rows = "".join(
        f"<tr><td>{plots.clock(entry.ended)}</td><td>{escape(entry.kind)}</td><td>{escape(entry.name)}</td>"
        f"<td>{escape(entry.error)}</td></tr>"
        for entry in reversed(found)
    )
    head = "<tr><th>at</th><th>kind</th><th>name</th><th>what happened</th></tr>"
    return f"<section><h2>Failures</h2><div class='wide'><table>{head}{rows}</table></div></section>"
