"""alerts: evaluate rules and tell people; show alerts and their history; silence them.

serve      run the alert service in the foreground
list       alerts that fire now
history    what began and ended, newest last
silences   silences that hold; silence and unsilence begin and end one
rules      the rules in force, with what to look at, and those that look at nothing
test       send a test alert to the targets of a file
"""

from __future__ import annotations

import argparse
import getpass
import json
import os
import time
from collections.abc import Callable, Mapping, Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import Any
from urllib.parse import urlencode

from barnabas.cli.frame.connecting import BOOTSTRAP_VARIABLE, DEFAULT_BOOTSTRAP
from barnabas.cli.frame.output import Output
from barnabas.cli.frame.parsing import ToolError, ToolParser, UsageError, check_bootstrap, key_values
from barnabas.cli.frame.service_requests import ask_service
from barnabas.cli.frame.table import table_lines

PORT = 8095
URL = f"http://localhost:{PORT}"
EXAMPLES = (
    "serve --bootstrap-server localhost:9092",
    "serve alerts.yaml",
    "list",
    "history --limit 20",
    'silence alertname=UnderReplicatedPartitions --for 2h --comment "disk of broker 2 is replaced"',
    "unsilence 7f0c1a52-6c1d-4d0e-9a1a-0e4f6f1f4d11",
    "rules --file alerts.yaml",
    "rules --service http://localhost:8095",
    "test --file alerts.yaml --target ops-mail",
)


def add_arguments(parser: ToolParser) -> None:
    commands = parser.add_subparsers(dest="command", metavar="COMMAND")
    serve = commands.add_parser("serve", help="run the alert service in the foreground")
    serve.add_argument("file", nargs="?", metavar="alerts.yaml", help="clusters, rules, targets, maintenance")
    serve.add_argument(
        "--bootstrap-server", metavar="HOST:PORT,...", help="brokers, if the file names no clusters"
    )
    serve.add_argument("--port", type=int, metavar="N", help=f"port to listen on (default: {PORT})")
    serve.add_argument("--override", action="append", default=[], metavar="NAME=VALUE", help="a setting")
    serve.add_argument("--log-level", default="INFO", choices=("DEBUG", "INFO", "WARNING", "ERROR"))
    for name, text in (
        ("list", "alerts that fire now"),
        ("history", "what began and ended, newest last"),
        ("silences", "silences that hold or will"),
        ("silence", "begin a silence"),
        ("unsilence", "end a silence"),
    ):
        command = commands.add_parser(name, help=text)
        command.add_argument(
            "--service", metavar="URL", default=URL, help=f"the alert service (default: {URL})"
        )
        command.add_argument("--json", action="store_true", help="print JSON")
        if name == "history":
            command.add_argument("--limit", type=int, default=50, metavar="N")
        elif name == "silence":
            command.add_argument("matchers", nargs="+", metavar="NAME=VALUE", help="also != =~ !~")
            command.add_argument(
                "--for", dest="lasts", default="1h", metavar="TIME", help="30m, 2h, 7d (default: 1h)"
            )
            command.add_argument("--comment", default="", metavar="TEXT")
        elif name == "unsilence":
            command.add_argument("ids", nargs="+", metavar="ID")
    rules = commands.add_parser("rules", help="the rules in force")
    places = rules.add_mutually_exclusive_group()
    places.add_argument("--file", metavar="alerts.yaml", help="those of a file (default: the default rules)")
    places.add_argument("--service", metavar="URL", help="those of a service, and what it cannot look at")
    rules.add_argument("--json", action="store_true", help="print JSON")
    test = commands.add_parser("test", help="send a test alert to the targets of a file")
    test.add_argument("--file", required=True, metavar="alerts.yaml")
    test.add_argument("--target", action="append", metavar="NAME", help="only this one; may be repeated")


def run(options: argparse.Namespace, out: Output) -> int:
    if options.command is None:
        raise UsageError(
            "a command is missing: serve, list, history, silences, silence, unsilence, rules or test"
        )
    try:
        return COMMANDS[options.command](options, out)
    except ModuleNotFoundError as error:
        raise ToolError(f"{error.name} is not installed: pip install 'barnabas[alerts]'") from None


def serve(options: argparse.Namespace, out: Output) -> int:
    from barnabas.services.hosting import process
    from barnabas.services.settings.loading import load_settings

    make = process.service_maker("alerts")
    given = {"bootstrap.servers": os.environ.get(BOOTSTRAP_VARIABLE, DEFAULT_BOOTSTRAP)}
    if options.bootstrap_server is not None:
        check_bootstrap(options.bootstrap_server)
        given["bootstrap.servers"] = options.bootstrap_server
    if options.file is not None:
        given["alerts.file"] = options.file

    def ready(listeners: tuple[object, ...]) -> None:
        out.line(f"The alert service is ready: {', '.join(map(str, listeners))}")
        out.flush()

    try:
        settings = load_settings("alerts", None, {**given, **key_values(options.override)})
        if options.port is not None:
            settings = settings.listening_on([settings.listeners[0]._replace(port=options.port)])
    except ValueError as error:  # a setting that is wrong
        raise ToolError(str(error)) from None
    return process.main(settings, make, on_ready=ready, log_level=options.log_level)


def show_alerts(options: argparse.Namespace, out: Output) -> int:
    found = ask(options, "/api/v2/alerts")
    if options.json:
        out.line(json.dumps(found, indent=2))
        return 0
    if not found:
        out.line("No alert fires.")
    for alert in sorted(found, key=lambda each: (each["labels"]["severity"], each["startsAt"])):
        labels, notes, silenced = alert["labels"], alert["annotations"], alert["status"]["silencedBy"]
        mark = f" (silenced by {', '.join(silenced)})" if silenced else ""
        out.line(f"{labels['severity']}  {labels['alertname']}: {notes['summary']}{mark}")
        out.line(f"    since    {alert['startsAt']}")
        out.line(f"    look at  {notes['look_at']}")
        out.line(f"    run      {notes['command']}")
    return 0


def show_history(options: argparse.Namespace, out: Output) -> int:
    found = ask(options, f"/api/v1/history?{urlencode({'limit': options.limit})}")
    if options.json:
        out.line(json.dumps(found, indent=2))
        return 0
    rows = [
        (moment(each["time_ms"]), each["state"], each["severity"], each["rule"], each["summary"])
        for each in found
    ]
    show_table(out, ("TIME", "STATE", "SEVERITY", "RULE", "SUMMARY"), rows)
    return 0


def show_silences(options: argparse.Namespace, out: Output) -> int:
    found = ask(options, "/api/v2/silences")
    if options.json:
        out.line(json.dumps(found, indent=2))
        return 0
    rows = [
        (
            each["id"],
            each["status"]["state"],
            each["endsAt"],
            " ".join(matcher_text(one) for one in each["matchers"]),
            each["createdBy"],
            each["comment"],
        )
        for each in found
    ]
    show_table(out, ("ID", "STATE", "ENDS", "MATCHERS", "BY", "COMMENT"), rows)
    return 0


def show_table(out: Output, header: tuple[str, ...], rows: Sequence[tuple[str, ...]]) -> None:
    for line in table_lines(header, rows):
        out.line(line.rstrip())


def matcher_text(matcher: Mapping[str, Any]) -> str:
    operator = (
        ("=~" if matcher["isRegex"] else "=") if matcher["isEqual"] else "!~" if matcher["isRegex"] else "!="
    )
    return f"{matcher['name']}{operator}{matcher['value']}"


def begin_silence(options: argparse.Namespace, out: Output) -> int:
    from barnabas.monitor.alert_service.durations import seconds
    from barnabas.monitor.alerts.silences import parse_matcher

    try:
        matchers = [parse_matcher(each) for each in options.matchers]
        lasts_s = seconds(options.lasts)
    except ValueError as error:
        raise ToolError(str(error)) from None
    now_s = time.time()
    body = {
        "matchers": [
            {"name": each.name, "value": each.value, "isRegex": each.is_regex, "isEqual": each.is_equal}
            for each in matchers
        ],
        "startsAt": datetime.fromtimestamp(now_s, UTC).isoformat(),
        "endsAt": datetime.fromtimestamp(now_s + lasts_s, UTC).isoformat(),
        "createdBy": getpass.getuser(),
        "comment": options.comment,
    }
    found = ask(options, "/api/v2/silences", "POST", body)
    out.line(json.dumps(found) if options.json else found["silenceID"])
    return 0


def end_silences(options: argparse.Namespace, out: Output) -> int:
    for each in options.ids:
        ask(options, f"/api/v2/silence/{each}", "DELETE")
    return 0


def show_rules(options: argparse.Namespace, out: Output) -> int:
    found = ask(options, "/api/v1/rules") if options.service is not None else rules_of(options.file)
    if options.json:
        out.line(json.dumps(found, indent=2))
        return 0
    rows = []
    for rule in found:
        limit = f"> {rule['above']:g}" if rule["above"] is not None else f"< {rule['below']:g}"
        condition = f"{rule['check']} {limit}"
        rows.append((rule["name"], rule["severity"], condition, f"{rule['for_s']:g} s", rule["look_at"]))
    show_table(out, ("RULE", "SEVERITY", "CONDITION", "FOR", "LOOK AT"), rows)
    problems = [(rule["name"], rule["problem"]) for rule in found if rule["problem"]]
    if problems:
        out.line("")
        show_table(out, ("RULE", "PROBLEM"), problems)
    return 0


def rules_of(path: str | None) -> list[dict[str, Any]]:
    from barnabas.monitor.alert_service.idle_rules import why_idle

    file = file_of(path)
    return [
        {name: getattr(rule, name) for name in rule.__slots__} | {"problem": why_idle(rule, file)}
        for rule in file.rules
    ]


def send_test(options: argparse.Namespace, out: Output) -> int:
    from barnabas.monitor.alerts.notices import Notice
    from barnabas.monitor.alerts.states import Alert, State
    from barnabas.monitor.targets.target import DeliveryFailed

    file = file_of(options.file)
    if not file.targets:
        raise ToolError(f"{options.file} has no targets")
    names = options.target or list(file.targets)
    for name in names:
        if name not in file.targets:
            raise ToolError(f"no target is called {name}; known: {', '.join(file.targets)}")
    now_ms = time.time_ns() // 1_000_000
    labels = (("cluster", file.clusters[0].name if file.clusters else "test"),)
    failures = 0
    for name in names:
        alert = Alert(
            "TestAlert",
            State.FIRING,
            "info",
            labels,
            1.0,
            f"this is a test of the target {name}: nothing is wrong",
            "nothing: somebody ran `barnabas alerts test`",
            "barnabas alerts list",
            now_ms,
            now_ms,
        )
        try:
            file.targets[name].deliver(Notice(name, (("alertname", "TestAlert"),), (alert,), ()))
        except DeliveryFailed as error:
            failures += 1
            out.line(f"{name}: failed: {error}")
        else:
            out.line(f"{name}: accepted")
    return 1 if failures else 0


def file_of(path: str | None) -> Any:
    from barnabas.monitor.alert_service.burrow_alerts import read_any
    from barnabas.monitor.alert_service.file import alerts_file
    from barnabas.settings.errors import SettingsError

    try:
        return read_any(Path(path)) if path is not None else alerts_file({}, "defaults")
    except SettingsError as error:
        raise ToolError(str(error)) from None


def ask(options: argparse.Namespace, path: str, method: str = "GET", body: Any = None) -> Any:
    url = options.service.rstrip("/")
    hint = "; start `barnabas alerts serve`"
    return ask_service(url, path, "alert service", method=method, body=body, hint=hint)


def moment(time_ms: int) -> str:
    return datetime.fromtimestamp(time_ms / 1000).astimezone().isoformat(" ", "seconds")


COMMANDS: Mapping[str, Callable[[argparse.Namespace, Output], int]] = {
    "serve": serve,
    "list": show_alerts,
    "history": show_history,
    "silences": show_silences,
    "silence": begin_silence,
    "unsilence": end_silences,
    "rules": show_rules,
    "test": send_test,
}
