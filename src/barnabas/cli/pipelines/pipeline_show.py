"""Commands of `pipeline` that do not change the lake: init, validate, schema, plan, status, lineage, report.

In: options. Out: lines, tables, pages. None of them starts Spark.
"""

import argparse
import json
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from barnabas.cli.frame.output import Output
from barnabas.cli.frame.parsing import ToolError
from barnabas.cli.pipelines.pipeline_file import load
from barnabas.pipeline.file import plan as planning
from barnabas.pipeline.file.plan_costs import costs
from barnabas.pipeline.file.template import TEMPLATE
from barnabas.pipeline.file.update_notes import update_lines
from barnabas.pipeline.lineage.graph import Column, Graph
from barnabas.pipeline.lineage.pipeline_graph import graph_of
from barnabas.pipeline.observe import lineage_picture, report_facts
from barnabas.pipeline.observe import report as reporting
from barnabas.pipeline.observe.other_hosts import runner_elsewhere, timeline_of
from barnabas.pipeline.observe.status import status_lines, table
from barnabas.pipeline.spec.model import Pipeline
from barnabas.pipeline.spec.state_folder import state_folder

PICTURE = "lineage.html"
WATCH_S_MIN = 0.1
PLAIN_WIDTH = 180
COLOURS = {"+": "green", "~": "yellow", "-": "red", "!": "yellow"}


def init(options: argparse.Namespace, out: Output) -> int:
    path = Path(options.file)
    if path.exists() and not options.force:
        raise ToolError(f"{path} exists already: --force replaces it")
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(TEMPLATE)
    out.line(f"{path}: written. Change it, then: barnabas pipeline plan -f {path}")
    return 0


def validate(options: argparse.Namespace, out: Output) -> int:
    pipeline = load(options.file)
    counts = [
        (len(pipeline.sources), "source"),
        (len(pipeline.staging) + len(pipeline.trusted) + len(pipeline.refined), "table"),
        (len(pipeline.views), "view"),
    ]
    shown = ", ".join(f"{number} {name}{'' if number == 1 else 's'}" for number, name in counts)
    out.line(f"{options.file}: no problems: {shown}")
    return 0


def schema(options: argparse.Namespace, out: Output) -> int:
    from barnabas.pipeline.file.shape import json_schema

    out.line(json.dumps(json_schema(), indent=2, ensure_ascii=False))
    return 0


def plan(options: argparse.Namespace, out: Output) -> int:
    pipeline = load(options.file)
    folder = state_folder(pipeline)
    try:
        found = planning.changes(planning.read_applied(folder), planning.described(pipeline))
    except planning.LakeOfAnotherPipeline as error:
        raise ToolError(str(error)) from error
    lines = [f"{pipeline.name}: lake {pipeline.lake_location.root}", "", *planning.lines(found)]
    lines += costs(pipeline)
    if notes := update_lines(pipeline):
        lines += ["", *notes]
    if not sys.stdout.isatty():
        for line in lines:
            out.line(line)
        return 0
    from rich.console import Console
    from rich.text import Text

    console = Console(highlight=False)
    for line in lines:
        console.print(Text(line, style=COLOURS.get(line.lstrip()[:1], "")), soft_wrap=True)
    return 0


def status(options: argparse.Namespace, out: Output) -> int:
    pipeline = load(options.file)
    timeline = timeline_of(pipeline)
    if options.watch is not None and options.watch < WATCH_S_MIN:
        raise ToolError(f"--watch {options.watch:g}: give at least {WATCH_S_MIN:g} seconds")
    if options.json:
        for line in status_lines(timeline):
            out.line(json.dumps(line.as_json()))
        return 0
    from rich.console import Console
    from rich.live import Live

    console = Console(file=sys.stdout, width=None if sys.stdout.isatty() else PLAIN_WIDTH, highlight=False)
    if options.watch is None or not sys.stdout.isatty():
        console.print(table(pipeline.name, timeline, runner_elsewhere(pipeline)))
        return 0
    first = table(pipeline.name, timeline, runner_elsewhere(pipeline))
    with Live(first, console=console, auto_refresh=False, screen=True) as live:
        while True:
            time.sleep(options.watch)
            shown = table(pipeline.name, timeline_of(pipeline), runner_elsewhere(pipeline))
            live.update(shown, refresh=True)


def lineage(options: argparse.Namespace, out: Output) -> int:
    pipeline = load(options.file)
    graph = graph_of(pipeline)
    if options.events:
        for event in written_events(pipeline, graph):
            out.line(json.dumps(event))
        return 0
    for line in column_lines(graph, options.column) if options.column else lineage_lines(graph):
        out.line(line)
    path = Path(options.output or PICTURE)
    if options.column is None or options.output:
        drawn = lineage_picture.svg_file(graph) if path.suffix == ".svg" else lineage_picture.page(graph)
        path.write_text(drawn)
        out.note(f"{path}: the picture")
    return 0


def lineage_lines(graph: Graph) -> Iterator[str]:
    for node in graph.nodes.values():
        origin = f" <- {', '.join(node.inputs)}" if node.inputs else f"    {node.namespace} {node.dataset}"
        yield f"{node.key}{origin}"
        for column, origins in node.origins.items():
            if node.zone in ("refined", "view"):
                places = [f"{each.column.node}.{each.column.name} ({each.use.lower()})" for each in origins]
                yield f"    {column} <- {', '.join(places) or 'rows'}"


def column_lines(graph: Graph, text: str) -> list[str]:
    key, _, name = text.rpartition(".")
    node = graph.nodes.get(key)
    if node is None or name not in node.columns:
        known = ", ".join(node.columns) if node is not None else ", ".join(graph.nodes)
        raise ToolError(f"there is no {text}: there are {known}")
    return [f"{each.node}.{each.name}" for each in graph.sources_of(Column(key, name))]


def written_events(pipeline: Pipeline, graph: Graph) -> Iterator[dict[str, Any]]:
    """Events of the runs; if there was none, events from the file alone."""
    from barnabas.pipeline.lineage.log import EventLog

    found = False
    for event in EventLog(state_folder(pipeline)).events():
        found = True
        yield event
    if not found:
        from barnabas.pipeline.lineage.openlineage import declared

        yield from declared(graph, time.time())


def report(options: argparse.Namespace, out: Output) -> int:
    pipeline = load(options.file)
    path = Path(options.output)
    path.write_text(reporting.page(report_facts.facts_of(pipeline, report_facts.views_of(pipeline))))
    out.line(f"{path}: written")
    return 0
