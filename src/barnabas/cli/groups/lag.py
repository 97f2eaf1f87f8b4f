"""lag: show the consumer lag of groups, in records and in time, once or repeatedly; serve it over HTTP.

In: group ids (default: all groups). Out: a line for each partition and a total for each group, the largest
lag first. With --watch the table refreshes on a terminal; elsewhere each look prints the time and the lines.
Lag is read from the brokers, or with --service from a lag service, which `serve` runs in the foreground.
"""

import argparse
import asyncio
import sys
from collections.abc import AsyncIterator, Awaitable, Iterator
from contextlib import asynccontextmanager
from datetime import datetime
from math import inf
from typing import TYPE_CHECKING

from barnabas.cli.frame.connecting import add_bootstrap, add_command_config, cluster_from
from barnabas.cli.frame.output import Output, end_when_reader_closes
from barnabas.cli.frame.parsing import ToolError, ToolParser
from barnabas.cli.groups.lag_serve import add_serve_arguments, run_serve
from barnabas.cli.groups.lag_sources import BrokerLag, LagSource, Look, ServiceLag
from barnabas.client.core.errors import Unreachable
from barnabas.monitor.alerts.wording import visible
from barnabas.monitor.lag.forecast import Forecast, Outlook, RetentionRisk
from barnabas.monitor.lag.group_lag import GroupLag, PartitionLag

if TYPE_CHECKING:
    from rich.table import Table

PREFIX = "Error: "
SERVE = "serve"
NEEDS_ARGUMENTS = False
EXAMPLES = (
    "--group readers",
    "--watch",
    "--group readers --group writers --watch 0.5",
    "--watch --forecast --service http://localhost:8000",
    "serve --bootstrap-server localhost:9092 --port 8000",
    "serve clusters.yaml --override metrics.dialects=kafka_exporter,lag_exporter",
)
WATCH_S = 2.0
WATCH_S_MIN = 0.1
MISSING = "-"
COLUMNS = ("GROUP", "TOPIC", "PARTITION", "CURRENT", "END", "LAG", "TIME-LAG", "MEMBER")
NUMBERS = ("PARTITION", "CURRENT", "END", "LAG", "TIME-LAG")
UNITS_MS = (("d", 86_400_000), ("h", 3_600_000), ("m", 60_000), ("s", 1_000), ("ms", 1))

Row = tuple[str, ...]


def add_arguments(parser: ToolParser) -> None:
    add_bootstrap(parser)
    add_command_config(parser)
    parser.add_argument(
        "--group", action="append", metavar="ID", help="a group; may be repeated (default: all)"
    )
    parser.add_argument(
        "--watch",
        nargs="?",
        type=float,
        const=WATCH_S,
        metavar="SECONDS",
        help=f"repeat after this many seconds (default: {WATCH_S:g})",
    )
    parser.add_argument("--count", type=int, metavar="N", help="with --watch: stop after N repetitions")
    parser.add_argument(
        "--forecast",
        action="store_true",
        help="say when groups are caught up, and when retention overtakes them; needs --watch or --service",
    )
    parser.add_argument("--service", metavar="URL", help="ask a lag service in place of the brokers")
    parser.add_argument("--cluster", metavar="NAME", help="with --service: one of its clusters")
    commands = parser.add_subparsers(dest="command", metavar="COMMAND")
    serve = commands.add_parser(SERVE, help="run the lag service in the foreground")
    add_serve_arguments(serve)


def run(options: argparse.Namespace, out: Output) -> Awaitable[None] | int:
    if options.command == SERVE:
        return run_serve(options, out)
    return show(options, out)


async def show(options: argparse.Namespace, out: Output) -> None:
    if options.watch is not None and not options.watch >= WATCH_S_MIN:
        raise ToolError(f"--watch {options.watch:g}: give at least {WATCH_S_MIN:g} seconds")
    if options.count is not None and (options.watch is None or options.count < 1):
        raise ToolError("--count needs --watch, and a number of at least 1")
    if options.forecast and options.watch is None and options.service is None:
        raise ToolError("--forecast needs --watch or --service: one look has no history")
    async with source_of(options) as source:
        if options.watch is None:
            for line in lines(await source.look(options.group)):
                out.line(line)
        elif sys.stdout.isatty():
            await watch_on_terminal(options, source)
        else:
            with end_when_reader_closes():
                await watch_in_lines(options, source, out)


@asynccontextmanager
async def source_of(options: argparse.Namespace) -> AsyncIterator[LagSource]:
    if options.service is not None:
        yield ServiceLag(options.service, options.cluster, with_forecasts=options.forecast)
        return
    async with cluster_from(options) as cluster:
        yield BrokerLag(cluster, with_forecasts=options.forecast)


async def watch_in_lines(options: argparse.Namespace, source: LagSource, out: Output) -> None:
    looks = 0
    while True:
        try:
            look = await source.look(options.group)
        except Unreachable as error:
            out.note(str(error))
        else:
            out.line(datetime.now().astimezone().isoformat(" ", "seconds"))
            for line in lines(look):
                out.line(line)
            out.line()
            out.flush()
        looks += 1
        if looks >= (options.count or inf):
            return
        await asyncio.sleep(options.watch)


async def watch_on_terminal(options: argparse.Namespace, source: LagSource) -> None:
    from rich.live import Live

    looks = 0
    problem = ""
    look = Look([])
    with Live(terminal_table(look, problem), auto_refresh=False) as live:
        while True:
            try:
                look, problem = await source.look(options.group), ""
            except Unreachable as error:
                problem = str(error)
            live.update(terminal_table(look, problem), refresh=True)
            looks += 1
            if looks >= (options.count or inf):
                return
            await asyncio.sleep(options.watch)


def terminal_table(look: Look, problem: str) -> "Table":
    """The table for a terminal; rows with small lags come last and are cut if the screen is too small."""
    from rich.table import Table
    from rich.text import Text

    table = Table(caption=problem or f"{datetime.now():%H:%M:%S}", box=None, pad_edge=False)
    for name in COLUMNS:
        if name in NUMBERS:
            table.add_column(name, justify="right", no_wrap=True)
        else:  # this column shrinks first on a narrow screen
            table.add_column(name, overflow="ellipsis")
    for group in look.groups:
        table.add_row(*map(Text, total_row(group)), style="bold")  # names may look like markup
        if group.group_id in look.forecasts:
            forecast = look.forecasts[group.group_id]
            told = (visible(group.group_id), forecast_text(forecast))
            table.add_row(*map(Text, told), style=forecast_style(forecast))
        for partition in group.partitions:
            row = partition_row(group, partition)
            table.add_row(*map(Text, row), style="dim" if partition.lag == 0 else "")
    return table


def lines(look: Look) -> Iterator[str]:
    rows: list[Row] = [COLUMNS]
    for group in look.groups:
        rows += [partition_row(group, partition) for partition in group.partitions]
        rows.append(total_row(group))
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    for row in rows:
        yield "  ".join(f"{cell:<{width}}" for cell, width in zip(row, widths, strict=True)).rstrip()
    for group_id, forecast in look.forecasts.items():
        yield f"{visible(group_id)}: {forecast_text(forecast)}"


def partition_row(group: GroupLag, partition: PartitionLag) -> Row:
    return (
        visible(group.group_id),
        partition.where.topic,
        str(partition.where.partition),
        number(partition.current),
        number(partition.end),
        number(partition.lag),
        duration(partition.age_ms),
        visible(partition.member or MISSING),
    )


def total_row(group: GroupLag) -> Row:
    return (
        visible(group.group_id),
        "(total)",
        str(len(group.partitions)),
        "",
        "",
        str(group.lag),
        duration(group.age_ms),
        group.state,
    )


def forecast_text(forecast: Forecast) -> str:
    """One line: `catching up, caught up in 3m5s (high trust): why`, and what retention does, if it
    matters."""
    text = str(forecast.outlook)
    if forecast.outlook is Outlook.CATCHING_UP and forecast.caught_up_s is not None:
        text += f", caught up in {duration(round(forecast.caught_up_s * 1000))}"
    if forecast.outlook is not Outlook.CAUGHT_UP:
        text += f" ({forecast.trust} trust): {forecast.caught_up_reason}"
    if forecast.danger is RetentionRisk.OVERTAKEN:
        text += f"; retention has overtaken it: {forecast.overtaken_reason}"
    elif forecast.danger is RetentionRisk.OVERTAKES and forecast.overtaken_s is not None:
        when = duration(round(forecast.overtaken_s * 1000))
        text += f"; retention overtakes it in {when}: {forecast.overtaken_reason}"
    return text


def forecast_style(forecast: Forecast) -> str:
    return "red" if forecast.danger in (RetentionRisk.OVERTAKES, RetentionRisk.OVERTAKEN) else "dim"


def number(value: int | None) -> str:
    return MISSING if value is None else str(value)


def duration(span_ms: int | None) -> str:
    """A duration in at most two units: `4d2h`, `3m5s`, `12s`, `350ms`."""
    if span_ms is None:
        return MISSING
    if span_ms == 0:
        return "0"
    for index, (unit, length_ms) in enumerate(UNITS_MS):
        if span_ms >= length_ms:
            whole, rest = divmod(span_ms, length_ms)
            if unit in ("s", "ms"):
                return f"{whole}{unit}"
            smaller, smaller_ms = UNITS_MS[index + 1]
            part = rest // smaller_ms
            return f"{whole}{unit}{part}{smaller}" if part else f"{whole}{unit}"
    return MISSING
