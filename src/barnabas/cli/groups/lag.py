"""lag: show the consumer lag of groups, in records and in time, once or repeatedly.

In: group ids (default: all groups). Out: a line for each partition and a total for each group, the largest
lag first. With --watch the table refreshes on a terminal; elsewhere each look prints the time and the lines.
"""

import argparse
import asyncio
import sys
import time
from collections.abc import Iterator, Sequence
from datetime import datetime
from math import inf
from typing import TYPE_CHECKING

from barnabas.cli.frame.connecting import add_bootstrap, add_command_config, cluster_from
from barnabas.cli.frame.output import Output, end_when_reader_closes
from barnabas.cli.frame.parsing import ToolError, ToolParser
from barnabas.client.admin.admin import Admin
from barnabas.client.core.errors import Unreachable
from barnabas.client.group_lag import GroupLag, LagReader, PartitionLag

if TYPE_CHECKING:
    from rich.table import Table

PREFIX = "Error: "
NEEDS_ARGUMENTS = False
EXAMPLES = ("--group readers", "--watch", "--group readers --group writers --watch 0.5")
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


async def run(options: argparse.Namespace, out: Output) -> None:
    if options.watch is not None and not options.watch >= WATCH_S_MIN:
        raise ToolError(f"--watch {options.watch:g}: give at least {WATCH_S_MIN:g} seconds")
    if options.count is not None and (options.watch is None or options.count < 1):
        raise ToolError("--count needs --watch, and a number of at least 1")
    async with cluster_from(options) as cluster:
        reader = LagReader(Admin(cluster))
        if options.watch is None:
            groups = await reader.read(options.group, now_ms())
            for line in lines(groups):
                out.line(line)
        elif sys.stdout.isatty():
            await watch_on_terminal(options, reader)
        else:
            with end_when_reader_closes():
                await watch_in_lines(options, reader, out)


def now_ms() -> int:
    return int(time.time() * 1000)


async def watch_in_lines(options: argparse.Namespace, reader: LagReader, out: Output) -> None:
    looks = 0
    while True:
        try:
            groups = await reader.read(options.group, now_ms())
        except Unreachable as error:
            out.note(str(error))
        else:
            out.line(datetime.now().astimezone().isoformat(" ", "seconds"))
            for line in lines(groups):
                out.line(line)
            out.line()
            out.flush()
        looks += 1
        if looks >= (options.count or inf):
            return
        await asyncio.sleep(options.watch)


async def watch_on_terminal(options: argparse.Namespace, reader: LagReader) -> None:
    from rich.live import Live

    looks = 0
    problem = ""
    groups: list[GroupLag] = []
    with Live(terminal_table(groups, problem), auto_refresh=False) as live:
        while True:
            try:
                groups, problem = await reader.read(options.group, now_ms()), ""
            except Unreachable as error:
                problem = str(error)
            live.update(terminal_table(groups, problem), refresh=True)
            looks += 1
            if looks >= (options.count or inf):
                return
            await asyncio.sleep(options.watch)


def terminal_table(groups: Sequence[GroupLag], problem: str) -> "Table":
    """The table for a terminal; rows with small lags come last and are cut if the screen is too small."""
    from rich.table import Table

    table = Table(caption=problem or f"{datetime.now():%H:%M:%S}", box=None, pad_edge=False)
    for name in COLUMNS:
        if name in NUMBERS:
            table.add_column(name, justify="right", no_wrap=True)
        else:  # this column shrinks first on a narrow screen
            table.add_column(name, overflow="ellipsis")
    for group in groups:
        table.add_row(*total_row(group), style="bold")
        for partition in group.partitions:
            table.add_row(*partition_row(group, partition), style="dim" if partition.lag == 0 else "")
    return table


def lines(groups: Sequence[GroupLag]) -> Iterator[str]:
    rows: list[Row] = [COLUMNS]
    for group in groups:
        rows += [partition_row(group, partition) for partition in group.partitions]
        rows.append(total_row(group))
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    for row in rows:
        yield "  ".join(f"{cell:<{width}}" for cell, width in zip(row, widths, strict=True)).rstrip()


def partition_row(group: GroupLag, partition: PartitionLag) -> Row:
    return (
        group.group_id,
        partition.where.topic,
        str(partition.where.partition),
        number(partition.current),
        number(partition.end),
        number(partition.lag),
        duration(partition.age_ms),
        partition.member or MISSING,
    )


def total_row(group: GroupLag) -> Row:
    return (
        group.group_id,
        "(total)",
        str(len(group.partitions)),
        "",
        "",
        str(group.lag),
        duration(group.age_ms),
        group.state,
    )


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
