"""`lag serve`: runs the lag service in the foreground.

In: a settings file (properties, YAML or Burrow's TOML), flags. Out: the exit status. `--override` wins over
flags, flags over the file.
"""

from __future__ import annotations

import argparse
import os
from pathlib import Path
from typing import TYPE_CHECKING

from barnabas.cli.frame.connecting import is_server_given, load_properties
from barnabas.cli.frame.output import Output
from barnabas.cli.frame.parsing import ToolError, ToolParser, check_bootstrap, key_values

if TYPE_CHECKING:
    from barnabas.services.settings.listeners import Listener

SERVICE = "lag"
PORT = 8000
PARENT_VARIABLE = "BARNABAS_SERVICE_PARENT"  # the process id with which the service ends


def add_serve_arguments(parser: ToolParser) -> None:
    parser.add_argument(
        "settings", nargs="?", metavar="FILE", help="settings: .properties, .yaml or Burrow's .toml"
    )
    parser.add_argument("--port", type=int, metavar="N", help=f"port to listen on (default: {PORT})")
    parser.add_argument(
        "--override",
        action="append",
        default=[],
        metavar="NAME=VALUE",
        help="a setting that wins over the file's",
    )
    parser.add_argument("--log-level", default="INFO", choices=("DEBUG", "INFO", "WARNING", "ERROR"))


def run_serve(options: argparse.Namespace, out: Output) -> int:
    try:
        from barnabas.monitor.lag_service.settings_file import read_settings
        from barnabas.services.hosting import process
        from barnabas.services.settings.loading import load_settings

        make = process.service_maker(SERVICE)
    except ModuleNotFoundError as error:
        raise ToolError(f"{error.name} is not installed: pip install 'barnabas[lag]'") from None

    def ready(listeners: tuple[Listener, ...]) -> None:
        out.line(f"The lag service is ready: {', '.join(map(str, listeners))}")
        out.flush()

    try:
        given, notes = read_settings(Path(options.settings)) if options.settings else ({}, [])
        for note in notes:
            out.note(note)
        given |= flags(options, has_clusters=any(each.endswith("bootstrap.servers") for each in given))
        settings = load_settings(SERVICE, None, {**given, **key_values(options.override)})
        if options.port is not None:
            if len(settings.listeners) > 1:
                raise ToolError("--port cannot be used with several listeners: set --override listeners=...")
            settings = settings.listening_on([settings.listeners[0]._replace(port=options.port)])
    except ValueError as error:  # a setting that is wrong
        raise ToolError(str(error)) from None
    parent = int(os.environ.get(PARENT_VARIABLE, "0"))
    return process.main(settings, make, on_ready=ready, log_level=options.log_level, parent=parent)


def flags(options: argparse.Namespace, *, has_clusters: bool) -> dict[str, str]:
    """The cluster that the command line names; the usual address if neither it nor the file names one."""
    if has_clusters and not is_server_given(options):
        return {}
    check_bootstrap(options.bootstrap_server)
    name = options.cluster or "local"
    found = {f"cluster.{name}.{key}": value for key, value in load_properties(options.command_config).items()}
    return {**found, f"cluster.{name}.bootstrap.servers": options.bootstrap_server}
