"""Starts a service in the foreground, from its properties file, from flags, or with defaults only.

In: options. Out: the exit status. `--override` wins over flags, flags over the file. A process that starts
the service as its child passes properties in an environment variable, so that no process list shows them.
"""

from __future__ import annotations

import argparse
import json
import os
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from barnabas.cli.frame.connecting import BOOTSTRAP_VARIABLE, DEFAULT_BOOTSTRAP
from barnabas.cli.frame.output import Output
from barnabas.cli.frame.parsing import ToolError, check_bootstrap, key_values

if TYPE_CHECKING:
    from barnabas.services.settings.listeners import Listener

PROPERTIES_VARIABLE = "BARNABAS_SERVICE_PROPERTIES"  # JSON: properties that win over flags
PARENT_VARIABLE = "BARNABAS_SERVICE_PARENT"  # the process id with which the service ends


@dataclass(frozen=True, slots=True)
class StartedService:
    """A service as the command line knows it."""

    name: str  # of the package and of the command
    title: str
    file: str
    port: int
    bootstrap: str  # the setting with the brokers
    extra: str  # of pyproject.toml, with the packages that the service needs
    registry: str | None = None  # the setting with the schema registry
    command: str = ""  # where it is not `<name> start`


REGISTRY = StartedService(
    "registry",
    "schema registry",
    "schema-registry.properties",
    8081,
    "kafkastore.bootstrap.servers",
    "registry",
)
REST = StartedService(
    "rest",
    "REST proxy",
    "kafka-rest.properties",
    8082,
    "bootstrap.servers",
    "rest",
    "schema.registry.url",
)
SQL = StartedService(
    "sql",
    "SQL server",
    "ksql-server.properties",
    8088,
    "bootstrap.servers",
    "sql",
    "ksql.schema.registry.url",
    "sql server",
)


def add_start_arguments(parser: argparse.ArgumentParser, service: StartedService) -> None:
    parser.add_argument(
        "properties", nargs="?", metavar=service.file, help=f"settings of the {service.title}"
    )
    add_start_options(parser, service)


def add_start_options(
    parser: argparse.ArgumentParser | argparse._ArgumentGroup, service: StartedService
) -> None:
    parser.add_argument(
        "--bootstrap-server",
        metavar="HOST:PORT,...",
        help=f"brokers to ask first (default: ${BOOTSTRAP_VARIABLE}, else {DEFAULT_BOOTSTRAP})",
    )
    if service.registry is not None:
        parser.add_argument("--registry-url", metavar="URL", help="the schema registry")
    parser.add_argument("--port", type=int, metavar="N", help=f"port to listen on (default: {service.port})")
    parser.add_argument(
        "--override",
        action="append",
        default=[],
        metavar="NAME=VALUE",
        help="a setting that wins over the file's",
    )
    parser.add_argument("--log-level", default="INFO", choices=("DEBUG", "INFO", "WARNING", "ERROR"))
    parser.add_argument("-daemon", action="store_true", help=argparse.SUPPRESS)


def run_start(options: argparse.Namespace, out: Output, service: StartedService) -> int:
    if options.daemon:
        raise ToolError(
            f"-daemon is not supported: use `barnabas {service.command or f'{service.name} start'} ... &`"
        )
    if options.bootstrap_server is not None:
        check_bootstrap(options.bootstrap_server)
    try:
        from barnabas.services.hosting import process
        from barnabas.services.settings.loading import load_settings

        make = process.service_maker(service.name)
    except ModuleNotFoundError as error:
        raise ToolError(f"{error.name} is not installed: pip install 'barnabas[{service.extra}]'") from None

    def ready(listeners: tuple[Listener, ...]) -> None:
        out.line(f"The {service.title} is ready: {', '.join(map(str, listeners))}")
        out.flush()

    given = overrides(options, service, dict(os.environ))
    file = Path(options.properties) if options.properties else None
    try:
        settings = load_settings(
            service.name,
            file,
            given,
            {service.bootstrap: os.environ.get(BOOTSTRAP_VARIABLE, DEFAULT_BOOTSTRAP)},
        )
        if options.port is not None:
            settings = settings.listening_on(with_port(settings.listeners, options.port))
    except ValueError as error:  # a setting that is wrong
        raise ToolError(str(error)) from None
    return process.main(
        settings,
        make,
        on_ready=ready,
        log_level=options.log_level,
        parent=int(os.environ.get(PARENT_VARIABLE, "0")),
    )


def overrides(
    options: argparse.Namespace, service: StartedService, environ: dict[str, str]
) -> dict[str, str]:
    found: dict[str, str] = {}
    if options.bootstrap_server is not None:
        found[service.bootstrap] = options.bootstrap_server
    if service.registry is not None and options.registry_url is not None:
        found[service.registry] = options.registry_url
    return {**found, **key_values(options.override), **json.loads(environ.get(PROPERTIES_VARIABLE, "{}"))}


def with_port(listeners: tuple[Listener, ...], port: int) -> list[Listener]:
    if len(listeners) > 1:
        raise ToolError("--port cannot be used with several listeners: set --override listeners=...")
    return [listeners[0]._replace(port=port)]
