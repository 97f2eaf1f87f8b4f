"""Starts a worker of Connect from Kafka's property files."""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import TYPE_CHECKING

from barnabas.cli.frame.output import Output
from barnabas.cli.frame.parsing import ToolError, key_values

if TYPE_CHECKING:
    from barnabas.services.settings.listeners import Listener

EXTRA = "connect"


def add_worker_arguments(parser: argparse.ArgumentParser, *, has_files: bool) -> None:
    parser.add_argument("properties", metavar="worker.properties", help="settings of the worker")
    if has_files:
        parser.add_argument(
            "connectors", nargs="*", metavar="connector.properties", help="connectors: properties or JSON"
        )
    parser.add_argument(
        "--override",
        action="append",
        default=[],
        metavar="NAME=VALUE",
        help="a setting that wins over the file's",
    )
    parser.add_argument("--log-level", default="INFO", choices=("DEBUG", "INFO", "WARNING", "ERROR"))
    parser.add_argument("-daemon", action="store_true", help=argparse.SUPPRESS)


def run_worker(options: argparse.Namespace, out: Output, *, is_distributed: bool) -> int:
    if options.daemon:
        raise ToolError("-daemon is not supported: add & behind the command")
    try:
        from barnabas.connect.api import workers
        from barnabas.services.hosting import process
    except ModuleNotFoundError as error:
        raise ToolError(f"{error.name} is not installed: pip install 'barnabas[{EXTRA}]'") from None

    def ready(listeners: tuple[Listener, ...]) -> None:
        out.line(f"The worker is ready: {', '.join(map(str, listeners))}")
        out.flush()

    overrides = key_values(options.override)
    try:
        worker = workers.worker_properties(Path(options.properties), overrides, is_distributed=is_distributed)
        settings = workers.http_settings(worker)
    except ValueError as error:
        raise ToolError(str(error)) from None
    files = [] if is_distributed else [Path(each) for each in options.connectors]
    make = workers.distributed(worker) if is_distributed else workers.standalone(worker, files)
    return process.main(settings, make, on_ready=ready, log_level=options.log_level)
