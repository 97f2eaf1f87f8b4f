"""cluster: print the cluster's id and endpoints, unregister a broker.

`cluster up`, `down` and `status` run a cluster on this machine (see `cluster_up`); Kafka's tool cannot do
that.
"""

import argparse

from barnabas.cli.frame.connecting import cluster_from, default_bootstrap, load_properties
from barnabas.cli.frame.output import Output
from barnabas.cli.frame.parsing import ToolParser, UsageError
from barnabas.cli.node import cluster_up
from barnabas.client.admin.admin import Admin
from barnabas.client.admin.cluster import EndpointType
from barnabas.client.core.topology import Node
from barnabas.protocol import ErrorCode, KafkaError

EXAMPLES = (
    "cluster-id --bootstrap-server localhost:9092",
    "list-endpoints --bootstrap-server localhost:9092",
    "unregister --bootstrap-server localhost:9092 --id 3",
    "up -n 3",
    "status",
    "down --wipe",
)
COLUMN = 10


def add_arguments(parser: ToolParser) -> None:
    commands = parser.add_subparsers(dest="command", metavar="COMMAND")
    for name, summary in (
        ("cluster-id", "print the id of the cluster"),
        ("unregister", "remove a broker that will not come back"),
        ("list-endpoints", "print where brokers or controllers listen"),
    ):
        command = commands.add_parser(name, help=summary, description=summary)
        command.add_argument("-b", "--bootstrap-server", metavar="HOST:PORT,...", help="brokers to ask first")
        command.add_argument("-C", "--bootstrap-controller", metavar="HOST:PORT,...", help="or controllers")
        command.add_argument("-c", "--command-config", metavar="FILE", help="properties of the client")
        command.add_argument("--config", metavar="FILE", help=argparse.SUPPRESS)
        command.set_defaults(fallback=default_bootstrap(parser))
        if name == "unregister":
            command.add_argument("-i", "--id", type=int, required=True, help="the broker's id")
        if name == "list-endpoints":
            command.add_argument(
                "--include-fenced-brokers",
                action="store_true",
                help="show fenced brokers, too",
            )
    if not parser.strict:
        cluster_up.add_commands(commands)


async def run(options: argparse.Namespace, out: Output) -> int:
    if options.command in cluster_up.COMMANDS:
        return await cluster_up.run(options, out)
    if options.command is None:
        raise UsageError("too few arguments: one of cluster-id, unregister, list-endpoints is needed")
    if options.bootstrap_server and options.bootstrap_controller:
        raise UsageError("You cannot specify both --bootstrap-controller and --bootstrap-server.")
    if options.config and options.command_config:
        raise UsageError("--config and --command-config cannot be specified together.")
    by_controller = options.bootstrap_controller is not None
    options.bootstrap_server = options.bootstrap_controller or options.bootstrap_server or options.fallback
    if options.bootstrap_server is None:
        raise UsageError("one of the arguments --bootstrap-server --bootstrap-controller is required")
    kind = EndpointType.CONTROLLER if by_controller else EndpointType.BROKER
    properties = load_properties(options.command_config or options.config)
    async with cluster_from(options, properties) as cluster:
        admin = Admin(cluster)
        if options.command == "unregister":
            return await unregister(admin, options.id, out)
        if options.command == "cluster-id":
            found = (await admin.describe_cluster(kind)).cluster_id
            text = (
                f"Cluster ID: {found}"
                if found
                else "No cluster ID found. The Kafka version is probably too old."
            )
            out.line(text)
            return 0
        fenced = options.include_fenced_brokers
        if fenced and by_controller:
            raise UsageError(
                "The option --include-fenced-brokers is only supported with --bootstrap-server option"
            )
        described = await admin.describe_cluster(kind, fenced=fenced)
    for line in endpoint_lines(described.nodes, kind):
        out.line(line)
    return 0


async def unregister(admin: Admin, broker_id: int, out: Output) -> int:
    try:
        await admin.unregister_broker(broker_id)
    except KafkaError as error:
        if error.code != ErrorCode.UNSUPPORTED_VERSION:
            raise
        out.line("The target cluster does not support the broker unregistration API.")
        return 1
    out.line(f"Broker {broker_id} is no longer registered.")
    return 0


def endpoint_lines(nodes: tuple[Node, ...], kind: EndpointType) -> list[str]:
    """A table in Kafka's columns: the host column is as wide as the longest host, the others are ten wide."""
    width = (
        max([COLUMN, *(len(node.host) for node in nodes)]) if not nodes else max(len(n.host) for n in nodes)
    )
    with_state = kind == EndpointType.BROKER

    def row(node_id: str, host: str, port: str, rack: str, state: str, endpoint: str) -> str:
        cells = [f"{node_id:<{COLUMN}}", f"{host:<{width}}", f"{port:<{COLUMN}}", f"{rack:<{COLUMN}}"]
        if with_state:
            cells.append(f"{state:<{COLUMN}}")
        return " ".join([*cells, f"{endpoint:<15}"])

    return [row("ID", "HOST", "PORT", "RACK", "STATE", "ENDPOINT_TYPE")] + [
        row(
            str(node.id),
            node.host,
            str(node.port),
            node.rack or "null",
            "fenced" if node.fenced else "unfenced",
            kind.name.lower(),
        )
        for node in nodes
    ]
