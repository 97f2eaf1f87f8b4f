"""`pipeline query`: print the rows and the freshness of a view. The store filters and sorts them.

In: options; the serving process if it runs, else the store. Out: a table, or JSON.
"""

import argparse
import json
import sys
from collections.abc import Iterable, Sequence
from typing import Any

from barnabas.cli.frame.output import Output
from barnabas.cli.frame.parsing import ToolError, UsageError
from barnabas.cli.pipelines.pipeline_file import load
from barnabas.pipeline.observe.plots import shown_seconds
from barnabas.pipeline.serving.access import ViewQueries, open_queries
from barnabas.pipeline.serving.http.client import ServingError
from barnabas.pipeline.serving.store.port import StoreError, UnknownView
from barnabas.pipeline.serving.store.query import BadRequest

PLAIN_WIDTH = 160


def query(options: argparse.Namespace, out: Output) -> int:
    pipeline = load(options.file)
    if options.view is not None and options.sql is not None:
        raise UsageError("give a view or --sql, not both")
    try:
        with open_queries(pipeline) as serving:
            if options.view is None and options.sql is None:
                return list_views(serving, options, out)
            answer = run_query(serving, options)
    except (ServingError, StoreError, UnknownView, BadRequest) as error:
        raise ToolError(str(error)) from error
    if options.json:
        out.line(json.dumps(answer))
        return 0
    columns = [column["name"] for column in answer["columns"]]
    show(columns, ([row[name] for name in columns] for row in answer["rows"]))
    for line in freshness_lines(answer["freshness"]):
        out.line(line)
    if answer["more"]:
        out.note(f"there are more than {answer['row_count']} rows: --limit shows more")
    return 0


def run_query(serving: ViewQueries, options: argparse.Namespace) -> Any:
    if options.sql is not None:
        return serving.sql(options.sql, options.as_of)
    parameters = [("filter", each) for each in options.filter]
    for name in ("order", "limit", "as_of"):
        value = getattr(options, name)
        if value is not None:
            parameters.append((name, str(value)))
    return serving.query(options.view, parameters)


def list_views(serving: ViewQueries, options: argparse.Namespace, out: Output) -> int:
    found = serving.views()
    if options.json:
        out.line(json.dumps(found))
        return 0
    if not found:
        out.note("no view was computed yet: `barnabas pipeline run` computes them")
        return 0
    rows = (
        [
            view["name"],
            view["rows"],
            ", ".join(column["name"] for column in view["columns"]),
            shown_seconds(view["freshness"]["age_seconds"]),
        ]
        for view in found
    )
    show(("view", "rows", "columns", "complete up to, ago"), rows)
    return 0


def show(columns: Sequence[str], rows: Iterable[Sequence[Any]]) -> None:
    from rich.console import Console
    from rich.table import Table
    from rich.text import Text

    listed = [list(row) for row in rows]
    table = Table(box=None, padding=(0, 2, 0, 0), header_style="bold")
    for place, name in enumerate(columns):
        values = [row[place] for row in listed if row[place] is not None]
        are_numbers = bool(values) and all(isinstance(value, (int, float)) for value in values)
        table.add_column(name, justify="right" if are_numbers else "left", overflow="fold")
    for row in listed:
        table.add_row(*(Text(shown(value)) for value in row))
    width = None if sys.stdout.isatty() else PLAIN_WIDTH
    Console(file=sys.stdout, width=width, highlight=False).print(table)


def shown(value: Any) -> str:
    if value is None:
        return ""
    if isinstance(value, bool):
        return str(value).lower()
    if isinstance(value, float):
        return f"{value:,.2f}"
    return f"{value:,}" if isinstance(value, int) else str(value)


def freshness_lines(freshness: Any) -> list[str]:
    """A line for each view that an answer comes from."""
    found = freshness if isinstance(freshness, list) else [freshness]
    return [
        f"{each['view']}: complete up to {shown_seconds(each['age_seconds'])} ago; horizon at version"
        f" {each['horizon']['version']}, speed layer at {each['speed']['version']}"
        for each in found
    ]
