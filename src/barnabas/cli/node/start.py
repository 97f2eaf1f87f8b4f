"""start: run a node in the foreground, from a `server.properties`, from flags, or with defaults only.

Without a file the node is a quorum of one, listens on this machine only and keeps its data in `--data`; it
formats an empty folder. With a file, the file's settings apply; `--override` wins over both. `--brokers N`
starts N nodes, each in a process of its own; it ends when one of them ends, or on a signal. `--with` starts
the schema registry and the REST proxy beside them.
"""

import argparse
from pathlib import Path
from typing import TYPE_CHECKING

from barnabas.cli.frame.output import Output
from barnabas.cli.frame.parsing import ToolError, key_values
from barnabas.runtime import garbage
from barnabas.runtime.tcp_ports import free_ports
from barnabas.settings.one_machine import one_node_properties

if TYPE_CHECKING:
    from barnabas.broker.node import Node

EXAMPLES = (
    "",
    "--data ./data --port 9092",
    "config/server.properties --override log.retention.hours=24",
    "--brokers 3 --data ./data --port 9092",
    "--with registry,rest --override rest.api.v2.enable=false",
)
NEEDS_ARGUMENTS = False
DEFAULT_DATA = "data"
DEFAULT_PORT = 9092


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("properties", nargs="?", metavar="server.properties", help="settings of the node")
    parser.add_argument("--data", metavar="DIR", help=f"folder for the data (default: {DEFAULT_DATA})")
    parser.add_argument(
        "--port", type=int, metavar="N", help=f"port for clients on 127.0.0.1 (default: {DEFAULT_PORT})"
    )
    parser.add_argument(
        "--brokers", type=int, metavar="N", help="several brokers on this host, at ports that follow --port"
    )
    parser.add_argument("--metrics-port", type=int, metavar="N", help="serve Prometheus metrics on this port")
    parser.add_argument(
        "--with",
        dest="services",
        metavar="registry,rest",
        help="services to run beside the broker; their settings: --override registry.NAME=VALUE",
    )
    parser.add_argument(
        "--override",
        action="append",
        default=[],
        metavar="NAME=VALUE",
        help="a setting that wins over the file's",
    )
    parser.add_argument("--log-level", default="INFO", choices=("DEBUG", "INFO", "WARNING", "ERROR"))
    parser.add_argument("--log-dir", metavar="DIR", help="write log lines to files there, split as Kafka's")
    parser.add_argument("-daemon", action="store_true", help=argparse.SUPPRESS)


def run(options: argparse.Namespace, out: Output) -> int:
    garbage.collect_rarely()
    from barnabas.broker.process import main

    if options.daemon:
        raise ToolError("-daemon is not supported: use `barnabas start ... &`, or a service manager")

    if options.brokers is not None and options.log_dir is not None:
        raise ToolError("--log-dir is for one node; give each node a file with its own barnabas.logs.dir")
    if options.brokers is not None:
        from barnabas.cli.node import start_several

        return start_several.run(options, out)

    def ready(node: "Node") -> None:
        out.line(f"Barnabas is ready: bootstrap.servers={node.bootstrap}")
        out.line(f"  try: barnabas topics --create --topic hello --bootstrap-server {node.bootstrap}")
        out.line(f"  data in {', '.join(node.settings.log_dirs)}; stop with Ctrl-C or `barnabas stop`")
        out.flush()

    given = key_values(options.override)
    beside = None
    if options.services is not None:
        from barnabas.cli.node.service_processes import parse_services, run_beside, split_overrides

        given, others = split_overrides(given)
        beside = run_beside(parse_services(options.services), others, options.log_level)
    return main(
        properties(options, given),
        format_empty=True,
        on_ready=ready,
        beside=beside,
        log_level=options.log_level,
    )


def properties(options: argparse.Namespace, given: dict[str, str]) -> dict[str, str]:
    """The settings of the node, from the options."""
    found = from_file(Path(options.properties)) if options.properties else {}
    if not options.properties and "listeners" not in given:
        found = one_node_properties(options.port or DEFAULT_PORT, free_ports(1)[0])
        found["log.dirs"] = DEFAULT_DATA
    elif options.port is not None:
        raise ToolError("--port cannot be used with a properties file or with --override listeners=...")
    if options.data is not None:
        found["log.dirs"] = options.data
    if options.metrics_port is not None:
        found["barnabas.metrics.port"] = str(options.metrics_port)
    if options.log_dir is not None:
        found["barnabas.logs.dir"] = options.log_dir
    return resolve({**found, **given})


def resolve(settings: dict[str, str]) -> dict[str, str]:
    """Replace ${env:NAME}, ${file:PATH:KEY} and ${directory:PATH:NAME} as `config.providers` says."""
    if "config.providers" not in settings:
        return settings
    import os

    from barnabas.settings import providers

    return dict(providers.resolve(settings, os.environ, lambda path: Path(path).read_text(encoding="utf-8")))


def from_file(path: Path) -> dict[str, str]:
    from barnabas.settings.properties import parse

    try:
        return parse(path.read_text(encoding="utf-8"))
    except UnicodeDecodeError:
        raise ToolError(f"{path} is not a text file") from None
