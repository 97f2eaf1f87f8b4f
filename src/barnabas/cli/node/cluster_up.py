"""`cluster up`, `down` and `status`: run a cluster for development on this machine.

`up` creates the folder of the cluster if it is missing and starts all nodes that do not run. `down` stops the
nodes, and with `--wipe` removes their data. `status` asks every node.
"""

from __future__ import annotations

import argparse
import time
from pathlib import Path

from barnabas.cli.frame.output import Output
from barnabas.cli.frame.parsing import ToolError, ToolParser, key_values
from barnabas.cli.node.local_cluster import LocalCluster, LocalNode
from barnabas.cli.node.local_security import CLIENT_PROPERTIES, MECHANISMS, LocalSecurity
from barnabas.client.admin.admin import Admin
from barnabas.client.cluster import Cluster
from barnabas.client.core.address import Address, parse_bootstrap
from barnabas.client.core.errors import ClientError
from barnabas.protocol import KafkaError
from barnabas.security.clients.client_security import PLAINTEXT, ClientSecurity, client_security

COMMANDS = {
    "up": "start a cluster on this machine",
    "down": "stop it",
    "status": "show which of its nodes run",
}
DEFAULT_FOLDER = "cluster"
DEFAULT_PORT = 9092
READY_S = 60.0
STOP_S = 30.0
POLL_S = 0.1
ASK_MS = 2_000.0


def add_commands(commands: argparse._SubParsersAction[ToolParser]) -> None:
    for name, summary in COMMANDS.items():
        command = commands.add_parser(name, help=summary, description=summary)
        command.add_argument(
            "--data", default=DEFAULT_FOLDER, metavar="DIR", help=f"its folder (default: {DEFAULT_FOLDER})"
        )
        if name == "up":
            command.add_argument("-n", "--nodes", type=int, metavar="N", help="how many nodes (default: 3)")
            command.add_argument(
                "--port",
                type=int,
                metavar="N",
                help=f"port of the first node, others follow (default: {DEFAULT_PORT}; 0: any free ports)",
            )
            command.add_argument(
                "--override",
                action="append",
                default=[],
                metavar="NAME=VALUE",
                help="a setting of every node; has an effect when the cluster is created",
            )
            command.add_argument(
                "--tls",
                action="store_true",
                help="make certificates, and encrypt all connections; has an effect when it is created",
            )
            command.add_argument(
                "--sasl",
                choices=sorted(MECHANISMS),
                help="let clients and nodes log in; has an effect when the cluster is created",
            )
            command.add_argument(
                "--acls",
                action="store_true",
                help="allow only what ACLs and roles allow; needs --sasl; has an effect when it is created",
            )
        if name == "down":
            command.add_argument("--wipe", action="store_true", help="remove its data")


async def run(options: argparse.Namespace, out: Output) -> int:
    cluster = LocalCluster(Path(options.data))
    if options.command == "up":
        return await up(cluster, options, out)
    if not cluster.exists:
        raise ToolError(f"there is no cluster in {cluster.folder}: `barnabas cluster up` creates one")
    if options.command == "down":
        return down(cluster, options, out)
    return await status(cluster, out)


async def up(cluster: LocalCluster, options: argparse.Namespace, out: Output) -> int:
    if not cluster.exists:
        port = DEFAULT_PORT if options.port is None else options.port
        if options.acls and options.sasl is None:
            raise ToolError("--acls needs --sasl plain or --sasl scram: ACLs are about users that log in")
        security = LocalSecurity.of(tls=options.tls, sasl=options.sasl, acls=options.acls)
        count = 3 if options.nodes is None else options.nodes
        cluster.make(count, port, key_values(options.override), security)
    elif options.nodes not in (None, len(cluster.nodes)):
        raise ToolError(f"the cluster in {cluster.folder} has {len(cluster.nodes)} nodes")
    secured = client_security(cluster.client_properties)
    children = {node.id: node.spawn(detached=True) for node in cluster.nodes if node.pid is None}
    deadline = time.monotonic() + READY_S
    waiting = list(cluster.nodes)
    while waiting:
        waiting = [node for node in waiting if not await is_in_service(node, secured)]
        for node in waiting:
            child = children.get(node.id)  # /proc has no command line of a new process yet
            if node.pid is None if child is None else child.poll() is not None:
                raise ToolError(f"node {node.id} did not start:\n{node.last_lines()}")
        if waiting and time.monotonic() > deadline:
            listed = ", ".join(str(node.id) for node in waiting)
            raise ToolError(f"not ready after {READY_S:g} s: {listed}; see output.log in their folders")
        if waiting:
            time.sleep(POLL_S)
    out.line(f"The cluster is ready: bootstrap.servers={cluster.bootstrap}")
    if secured is not PLAINTEXT:
        path = cluster.folder / CLIENT_PROPERTIES
        out.line(f"  it needs {secured.protocol}: give tools and clients the properties in {path},")
        out.line(f"  as in `barnabas topics --list --command-config {path} --bootstrap-server ...`")
    out.line(f"  data in {cluster.folder}; stop with `barnabas cluster down --data {cluster.folder}`")
    return 0


def down(cluster: LocalCluster, options: argparse.Namespace, out: Output) -> int:
    running = [node for node in cluster.nodes if node.pid is not None]
    for node in cluster.stop(STOP_S):
        out.note(f"node {node.id} did not stop within {STOP_S:g} s and was killed")
    out.line(f"Stopped {len(running)} of {len(cluster.nodes)} nodes.")
    if options.wipe:
        cluster.remove()
        out.line(f"Removed the data in {cluster.folder}.")
    return 0


async def status(cluster: LocalCluster, out: Output) -> int:
    secured = client_security(cluster.client_properties)
    controller = await active_controller(cluster, secured)
    all_in_service = True
    for node in cluster.nodes:
        in_service = await is_in_service(node, secured)
        all_in_service = all_in_service and in_service
        state = "in service" if in_service else "starting, or fenced" if node.pid else "down"
        marks = " (active controller)" if node.id == controller else ""
        pid = f"pid {node.pid}" if node.pid else "-"
        out.line(f"node {node.id}  {node.address:<22} {node.roles:<18} {pid:<12} {state}{marks}")
    return 0 if all_in_service else 1


async def is_in_service(node: LocalNode, secured: ClientSecurity) -> bool:
    """Whether this broker describes itself as an unfenced member of the cluster."""
    if node.pid is None:
        return False
    try:
        async with client_of(parse_bootstrap(node.address), secured) as client:
            described = await Admin(client).describe_cluster()
            return any(each.id == node.id and not each.fenced for each in described.nodes)
    except (ClientError, KafkaError):
        return False


async def active_controller(cluster: LocalCluster, secured: ClientSecurity) -> int:
    """The node that leads the quorum; -1 if no node knows."""
    for node in cluster.nodes:
        if node.pid is not None:
            try:
                async with client_of(parse_bootstrap(node.address), secured) as client:
                    return (await Admin(client).describe_quorum()).leader_id
            except (ClientError, KafkaError):
                continue
    return -1


def client_of(addresses: list[Address], secured: ClientSecurity) -> Cluster:
    return Cluster(
        addresses,
        connect_timeout_ms=ASK_MS,
        request_timeout_ms=ASK_MS,
        api_timeout_ms=ASK_MS,
        security=secured,
    )
