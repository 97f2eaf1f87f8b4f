"""Commands of `connect` that look at a running cluster: status, tail, explain.

In: the REST address of one worker. Out: tables or JSON. States come from Connect's own API; counts, lag and
plans from each worker that runs tasks (`/barnabas/tasks`). A worker that does not answer is named, and its
tasks are shown without counts. Does not know: tasks.
"""

import argparse
import json
import time
from typing import Any
from urllib.parse import quote, urlsplit

from barnabas.cli.frame.output import Output
from barnabas.cli.frame.parsing import ToolError
from barnabas.cli.frame.service_requests import ask_service
from barnabas.cli.frame.table import table_lines

HEADER = (
    "CONNECTOR", "TASK", "TYPE", "STATE", "WORKER", "ROAD", "IN", "OUT", "PER-SECOND", "LAG", "SNAPSHOT",
    "ERRORS", "LAST-ERROR",
)  # fmt: skip
TITLE = "worker of Connect"
HINT = "; give the REST address of a worker by --url"
WATCHED = ("state", "records_in", "records_out", "lag", "errors", "retries")  # by `tail`
ERROR_CHARS = 80
INTERVAL_S_MIN = 0.1

Rows = list[dict[str, Any]]


def ask(options: argparse.Namespace, url: str, path: str) -> Any:
    return ask_service(url.rstrip("/"), path, TITLE, hint=HINT, user=options.user or "")


def tasks_of(options: argparse.Namespace, out: Output) -> Rows:
    """All tasks of the cluster, or of one connector: states of the API with what workers tell about them."""
    wanted = options.connector
    found = ask(options, options.url, "/connectors?expand=status")
    if wanted is not None and wanted not in found:
        raise ToolError(f"there is no connector {wanted}; there are: {', '.join(sorted(found)) or 'none'}")
    statuses = {name: each["status"] for name, each in found.items() if wanted in (None, name)}
    told: dict[tuple[str, int], dict[str, Any]] = {}
    workers = sorted({task["worker_id"] for status in statuses.values() for task in status["tasks"]})
    for worker in workers:
        url = worker_url(options.url, worker, len(workers) == 1)
        try:
            for each in ask(options, url, "/barnabas/tasks"):
                told[each["connector"], each["task"]] = each
        except ToolError as error:
            out.note(f"{worker} tells nothing about its tasks: {error}")
    rows: Rows = []
    for name, status in sorted(statuses.items()):
        base = {
            "connector": name,
            "type": status.get("type", ""),
            "connector_state": status["connector"]["state"],
        }
        if not status["tasks"] or base["connector_state"] == "FAILED":
            own = status["connector"]
            more = {"worker": own["worker_id"]} if "worker_id" in own else {}
            rows.append({**base, **more, "task": None, "state": own["state"], "trace": own.get("trace", "")})
        for task in status["tasks"]:
            more = told.get((name, task["id"]), {})
            state = {"state": task["state"], "worker": task["worker_id"], "trace": task.get("trace", "")}
            rows.append({**more, **base, "task": task["id"], **state})
    return rows


def worker_url(known: str, worker: str, is_only: bool) -> str:
    """The address of a worker by its id, `host:port`. A single worker is the one that was asked."""
    return known if is_only else f"{urlsplit(known).scheme}://{worker}"


def status(options: argparse.Namespace, out: Output) -> int:
    rows = tasks_of(options, out)
    if options.json:
        for each in rows:
            out.line(json.dumps({name: value for name, value in each.items() if name not in ("plan",)}))
    else:
        for line in table_lines(HEADER, [cells(each) for each in rows]):
            out.line(line)
    return 1 if any(each["state"] == "FAILED" for each in rows) else 0


def cells(row: dict[str, Any]) -> tuple[str, ...]:
    def shown(name: str) -> str:
        value = row.get(name)
        return "-" if value is None or value == "" else str(value)

    rate = row.get("records_per_second")
    return (
        row["connector"],
        shown("task"),
        shown("type"),
        row["state"],
        shown("worker"),
        shown("road"),
        shown("records_in"),
        shown("records_out"),
        "-" if rate is None else f"{rate:.1f}",
        shown("lag"),
        snapshot(row),
        shown("errors"),
        last_error(row)[:ERROR_CHARS] or "-",
    )


def snapshot(row: dict[str, Any]) -> str:
    """How far a snapshot is: `500 of 1000 (50 %)`."""
    done, total = row.get("done"), row.get("total")
    if done is None:
        return "-"
    return str(done) if not total else f"{done} of {total} ({100 * done // total} %)"


def last_error(row: dict[str, Any]) -> str:
    """The last error with the coordinates of its record; of a task that failed, the end of its trace."""
    found = row.get("last_error")
    if found:
        where = ""
        if found.get("topic") is not None:
            where = f" at {found['topic']}-{found['partition']} offset {found['offset']}"
        return f"{found['stage']}{where}: {found['message']}"
    lines = [line for line in (row.get("trace") or "").splitlines() if line.strip()]
    return lines[-1].strip() if lines else ""


def tail(options: argparse.Namespace, out: Output) -> int:
    """Print a line for each task, then one for each task that changed since the last look."""
    if options.interval < INTERVAL_S_MIN:
        raise ToolError(f"--interval {options.interval:g}: give at least {INTERVAL_S_MIN:g} seconds")
    seen: dict[tuple[str, Any], tuple[Any, ...]] = {}
    looks = 0
    while True:
        for each in tasks_of(options, out):
            place = (each["connector"], each["task"])
            now = (*(each.get(name) for name in WATCHED), last_error(each))
            if seen.get(place) != now:
                seen[place] = now
                out.line(line_of(each))
        out.flush()
        looks += 1
        if options.count is not None and looks >= options.count:
            return 0
        time.sleep(options.interval)


def line_of(row: dict[str, Any]) -> str:
    name = row["connector"] if row["task"] is None else f"{row['connector']}-{row['task']}"
    parts = [time.strftime("%H:%M:%S"), name, row["state"]]
    for word, key in (("in", "records_in"), ("out", "records_out"), ("lag", "lag"), ("errors", "errors")):
        if row.get(key) is not None:
            parts.append(f"{word} {row[key]}")
    if row.get("retries"):
        parts.append(f"retries {row['retries']}")
    if row.get("records_per_second"):
        parts.append(f"{row['records_per_second']:.1f}/s")
    if snapshot(row) != "-":
        parts.append(f"snapshot {snapshot(row)}")
    error = last_error(row)
    return "  ".join([*parts, *([error[:ERROR_CHARS]] if error else [])])


def explain(options: argparse.Namespace, out: Output) -> int:
    rows = tasks_of(options, out)
    config = ask(options, options.url, f"/connectors/{quote(options.connector, safe='')}/config")
    if options.json:
        for each in rows:
            out.line(json.dumps({**each, "class": config.get("connector.class")}))
        return 0
    count = sum(each["task"] is not None for each in rows)
    out.line(f"Connector: {options.connector}\tClass: {config.get('connector.class')}\tTasks: {count}")
    for name in sorted(config):
        if name.startswith(("transforms", "key.converter", "value.converter", "spark.", "barnabas.spark.")):
            out.line(f"  {name}={config[name]}")
    for each in rows:
        out.line("")
        place = "Connector" if each["task"] is None else f"Task {each['task']}"
        out.line(f"{place}: {each['state']} on {each.get('worker', '-')}")
        if each["task"] is not None:
            out.line(f"  Rows: {rows_place(each)}")
        if each.get("topics"):
            out.line(f"  Topics: {', '.join(each['topics'])}")
        if error := last_error(each):
            out.line(f"  Last error: {error}")
        if each.get("plan"):
            out.line("  Plan of the last Spark job:")
            for line in each["plan"].splitlines():
                out.line(f"    {line}")
    return 0


def rows_place(row: dict[str, Any]) -> str:
    if row.get("road") == "spark":
        return row.get("places") or "on executors of Spark; no job has ended yet"
    return "in a thread of the worker" if row.get("road") == "thread" else "unknown"
