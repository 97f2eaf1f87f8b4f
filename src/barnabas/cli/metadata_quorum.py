"""metadata-quorum: leader, voters and observers of the metadata quorum, and how far behind each is."""

import argparse
import time

from barnabas.cli.connecting import add_bootstrap, add_command_config, cluster_from
from barnabas.cli.output import Output
from barnabas.cli.parsing import ToolError, ToolParser, UsageError
from barnabas.client.admin import Admin
from barnabas.client.cluster_admin import EndpointType, Quorum, QuorumReplica
from barnabas.protocol import NULL_UUID, uuid

EXAMPLES = (
    "--bootstrap-server localhost:9092 describe --status",
    "--bootstrap-server localhost:9092 describe --replication --human-readable",
)
HEADERS = (
    "NodeId",
    "DirectoryId",
    "LogEndOffset",
    "Lag",
    "LastFetchTimestamp",
    "LastCaughtUpTimestamp",
    "Status",
)


def add_arguments(parser: ToolParser) -> None:
    add_bootstrap(parser)
    parser.add_argument("--bootstrap-controller", metavar="HOST:PORT,...", help="controllers to ask instead")
    add_command_config(parser)
    commands = parser.add_subparsers(dest="command", metavar="COMMAND")
    describe = commands.add_parser("describe", help="describe the quorum", description="Describe the quorum.")
    describe.add_argument("--status", action="store_true", help="a short summary")
    describe.add_argument("--replication", action="store_true", help="a line for each replica")
    describe.add_argument("--human-readable", action="store_true", help="times as `5 ms ago`")


async def run(options: argparse.Namespace, out: Output) -> None:
    if options.command is None:
        raise UsageError("too few arguments: use describe --status or describe --replication")
    if options.bootstrap_controller:
        options.bootstrap_server = options.bootstrap_controller
    if options.bootstrap_server is None:
        raise UsageError("one of the arguments --bootstrap-server --bootstrap-controller is required")
    if not (options.status or options.replication):
        raise ToolError("One of --status or --replication must be specified with describe sub-command")
    if options.status and options.human_readable:
        raise ToolError("The option --human-readable is only supported along with --replication")
    kind = EndpointType.CONTROLLER if options.bootstrap_controller else EndpointType.BROKER
    async with cluster_from(options) as cluster:
        admin = Admin(cluster)
        quorum = await admin.describe_quorum()
        if options.replication:
            table = replication(quorum, options.human_readable)
        else:
            table = status(quorum, (await admin.describe_cluster(kind)).cluster_id)
    for line in table:
        out.line(line)


def leader_of(quorum: Quorum) -> QuorumReplica:
    for voter in quorum.voters:
        if voter.id == quorum.leader_id:
            return voter
    raise ToolError("the quorum has no leader at the moment")


def status(quorum: Quorum, cluster_id: str | None) -> list[str]:
    leader = leader_of(quorum)
    last = min(quorum.voters, key=lambda voter: voter.log_end_offset)
    if last is leader:
        lag_ms = 0
    elif min(leader.last_caught_up_timestamp, last.last_caught_up_timestamp) < 0:
        lag_ms = -1
    else:
        lag_ms = leader.last_caught_up_timestamp - last.last_caught_up_timestamp
    rows = {
        "ClusterId": cluster_id,
        "LeaderId": quorum.leader_id,
        "LeaderEpoch": quorum.leader_epoch,
        "HighWatermark": quorum.high_watermark,
        "MaxFollowerLag": leader.log_end_offset - last.log_end_offset,
        "MaxFollowerLagTimeMs": lag_ms,
        "CurrentVoters": replicas_text(quorum, quorum.voters),
        "CurrentObservers": replicas_text(quorum, quorum.observers),
    }
    return [f"{name + ':':<24}{value}" for name, value in rows.items()]


def replicas_text(quorum: Quorum, replicas: tuple[QuorumReplica, ...]) -> str:
    shown = []
    for replica in replicas:
        parts = [f'"id": {replica.id}']
        if replica.directory_id != NULL_UUID:
            parts.append(f'"directoryId": "{uuid.to_text(replica.directory_id)}"')
        endpoints = quorum.endpoints.get(replica.id, ())
        if endpoints:
            parts.append(f'"endpoints": [{", ".join(f"{chr(34)}{each}{chr(34)}" for each in endpoints)}]')
        shown.append("{" + ", ".join(parts) + "}")
    return "[" + ", ".join(shown) + "]"


def replication(quorum: Quorum, human: bool) -> list[str]:
    leader = leader_of(quorum)
    followers = [voter for voter in quorum.voters if voter is not leader]
    kinds = [("Leader", [leader]), ("Follower", followers), ("Observer", quorum.observers)]
    rows = [HEADERS]
    for kind, replicas in kinds:
        for each in replicas:
            rows.append(
                (
                    str(each.id),
                    uuid.to_text(each.directory_id),
                    str(each.log_end_offset),
                    str(leader.log_end_offset - each.log_end_offset),
                    moment(each.last_fetch_timestamp, human),
                    moment(each.last_caught_up_timestamp, human),
                    kind,
                )
            )
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    return ["".join(f"{cell:<{width}}\t" for cell, width in zip(row, widths, strict=True)) for row in rows]


def moment(timestamp_ms: int, human: bool) -> str:
    if not human or timestamp_ms < 0:
        return str(timestamp_ms)
    return f"{max(0, int(time.time() * 1000) - timestamp_ms)} ms ago"
