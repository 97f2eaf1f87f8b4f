"""Commands of `engine` that only look: list, describe, logs, metrics.

In: options. Out: tables as Kafka's tools print them, JSON, lines of logs, metrics.
"""

import argparse
import json
import socket
import sys
import time
from collections.abc import Iterator
from dataclasses import asdict
from pathlib import Path
from typing import Any

from barnabas.cli.engine.engine_place import catalogue_of, entry_of, errors_as_one_line
from barnabas.cli.frame.output import Output
from barnabas.cli.frame.parsing import ToolError
from barnabas.cli.frame.table import table_lines
from barnabas.engine.catalogue.catalogue import ApplicationEntry, Catalogue
from barnabas.engine.catalogue.statuses import ProgramStatus, QueryStatus

HEADER = (
    "APPLICATION", "PROGRAM", "QUERY", "STATE", "BATCH", "ROWS-IN", "ROWS-OUT", "LAG", "RESTARTS", "HOST",
    "SINCE", "LAST-ERROR",
)  # fmt: skip
ERROR_CHARS = 60
TAIL_BYTES_MAX = 4 << 20
WATCH_S_MIN = 0.5


def list_all(options: argparse.Namespace, out: Output) -> int:
    catalogue = catalogue_of(options)
    if options.watch is not None and options.watch < WATCH_S_MIN:
        raise ToolError(f"--watch {options.watch:g}: give at least {WATCH_S_MIN:g} seconds")
    while True:
        with errors_as_one_line():
            entries = catalogue.applications()
        if options.watch is not None and sys.stdout.isatty():
            out.line("\x1b[H\x1b[2J")
        if options.json:
            for each in (row for entry in entries for row in rows_as_json(entry)):
                out.line(json.dumps(each))
        else:
            for line in table_lines(HEADER, [row for entry in entries for row in rows_of(entry)]):
                out.line(line)
        out.flush()
        if options.watch is None:
            return 0
        time.sleep(options.watch)


def rows_of(entry: ApplicationEntry) -> Iterator[tuple[str, ...]]:
    """A row for each query; one for an application without any."""
    found = list(entry.queries())
    for program, query in found:
        yield (
            entry.name,
            program.program,
            query.query,
            query.state,
            str(query.batch) if query.batch >= 0 else "-",
            str(query.rows_in),
            str(query.rows_out),
            "-" if query.lag is None else str(query.lag),
            str(entry.restarts_of(program.program)),
            program.host,
            moment(query.since),
            query.last_error[:ERROR_CHARS] or "-",
        )
    if not found:
        status = entry.status
        yield (entry.name, "-", "-", status.state, *("-",) * 5, status.host, moment(status.updated), "-")


def rows_as_json(entry: ApplicationEntry) -> Iterator[dict[str, Any]]:
    status = entry.status
    base = {"application": entry.name, "kind": status.kind, "application_state": status.state}
    for program, query in entry.queries():
        yield {**base, **of_query(entry, program, query)}
    if not entry.programs:
        yield base


def of_query(entry: ApplicationEntry, program: ProgramStatus, query: QueryStatus) -> dict[str, Any]:
    return {
        "program": program.program,
        "host": program.host,
        "pid": program.pid,
        "restarts": entry.restarts_of(program.program),
        "updated": program.updated,
        **query.data(),
    }


def moment(at: float) -> str:
    return time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime(at)) if at else "-"


def describe(options: argparse.Namespace, out: Output) -> int:
    entry = entry_of(catalogue_of(options), options.application)
    if options.json:
        out.line(
            json.dumps(
                {
                    **asdict(entry.status),
                    "wanted": entry.wanted,
                    "queries": [of_query(entry, program, query) for program, query in entry.queries()],
                }
            )
        )
        return 0
    status = entry.status
    out.line(f"Application: {entry.name}\tKind: {status.kind}\tState: {status.state}\tHost: {status.host}")
    out.line(
        f"Pid: {status.pid}\tStarted: {moment(status.started)}\tEpoch: {status.epoch}\tLogs: {status.logs}"
    )
    if entry.wanted:
        by, at = entry.wanted.get("by", "?"), moment(entry.wanted.get("at", 0.0))
        out.line(f"Wanted: {entry.wanted.get('state')}\tBy: {by}\tSince: {at}")
    for name, each in status.programs.items():
        detail = f"\tDetail: {each['detail']}" if each.get("detail") else ""
        state, pid, restarts = each["state"], each["pid"], each["restarts"]
        out.line(f"  Program: {name}\tState: {state}\tPid: {pid}\tRestarts: {restarts}{detail}")
    for program, query in entry.queries():
        for line in query_lines(program, query):
            out.line(line)
    return 0


def query_lines(program: ProgramStatus, query: QueryStatus) -> Iterator[str]:
    detail = f" ({query.detail})" if query.detail else ""
    yield f"  Query: {query.query}\tProgram: {program.program}\tState: {query.state}{detail}"
    lag = "-" if query.lag is None else f"{query.lag}"
    delay = "-" if query.delay_s is None else f"{query.delay_s:.1f} s"
    yield (
        f"    Batch: {query.batch}\tBatches: {query.batches}\tRows in: {query.rows_in}"
        f"\tRows out: {query.rows_out}\tRows/s: {query.rows_per_second:.0f}\tLag: {lag}\tDelay: {delay}"
    )
    if query.offsets:
        yield f"    Offsets: {json.dumps(query.offsets)}"
    if query.last_error:
        yield f"    Last error: {query.last_error} ({moment(query.last_error_at)}, {query.errors} in all)"


def logs(options: argparse.Namespace, out: Output) -> int:
    entry = entry_of(catalogue_of(options), options.application)
    status = entry.status
    folder = Path(status.logs)
    if status.host != socket.gethostname() or not folder.is_dir():
        raise ToolError(f"the logs of {entry.name} are on host {status.host}, in {status.logs}")
    paths = sorted(path for path in folder.glob("*.log") if not path.name.endswith(".old.log"))
    if options.program:
        paths = [path for path in paths if path.stem == options.program]
        if not paths:
            raise ToolError(f"{entry.name} has no program {options.program}: {', '.join(status.programs)}")
    for path in paths:
        if len(paths) > 1:
            out.line(f"==> {path} <==")
        for line in last_lines(path, options.lines):
            out.line(line)
    return 0


def last_lines(path: Path, count: int) -> list[str]:
    with path.open("rb") as file:
        file.seek(max(0, path.stat().st_size - TAIL_BYTES_MAX))
        lines = file.read().decode(errors="replace").splitlines()
    return lines[-count:] if count > 0 else []


def metrics(options: argparse.Namespace, out: Output) -> int:
    from barnabas.engine.catalogue.metrics import Endpoint, metrics_text

    catalogue: Catalogue = catalogue_of(options)
    if options.port is None:
        with errors_as_one_line():
            out.line(metrics_text(catalogue).rstrip("\n"))
        return 0
    endpoint = Endpoint(catalogue, options.host, options.port)
    out.line(f"metrics of {catalogue.place.root} at http://{options.host}:{endpoint.port}/metrics")
    out.flush()
    try:
        while True:
            time.sleep(3600)
    finally:
        endpoint.close()
