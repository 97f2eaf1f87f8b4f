"""metadata-quorum: describe the leader, voters and observers of the quorum; add and remove a controller."""

import argparse
import time

from barnabas.cli.frame.connecting import (
    add_bootstrap,
    add_bootstrap_controller,
    add_command_config,
    cluster_from,
    is_server_given,
    load_properties,
)
from barnabas.cli.frame.output import Output
from barnabas.cli.frame.parsing import ToolError, ToolParser, UsageError
from barnabas.cli.frame.table import table_lines
from barnabas.client.admin.admin import Admin
from barnabas.client.admin.cluster import EndpointType, Quorum, QuorumReplica
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
    add_bootstrap_controller(parser)
    add_command_config(parser)
    commands = parser.add_subparsers(dest="command", metavar="COMMAND")
    describe = commands.add_parser("describe", help="describe the quorum", description="Describe the quorum.")
    describe.add_argument("--status", action="store_true", help="a short summary")
    describe.add_argument("--replication", action="store_true", help="a line for each replica")
    describe.add_argument("--human-readable", action="store_true", help="times as `5 ms ago`")
    add = commands.add_parser("add-controller", help="make a controller a voter (see --command-config)")
    remove = commands.add_parser("remove-controller", help="make a voter an observer")
    remove.add_argument("-i", "--controller-id", type=int, required=True, metavar="N")
    remove.add_argument("-d", "--controller-directory-id", required=True, metavar="ID")
    for command in (add, remove):
        command.add_argument("--dry-run", action="store_true", help="only say what would change")


async def run(options: argparse.Namespace, out: Output) -> None:
    if options.command is None:
        raise UsageError("too few arguments: one of describe, add-controller, remove-controller is needed")
    if options.bootstrap_controller and is_server_given(options):
        raise UsageError("argument --bootstrap-controller: not allowed with argument --bootstrap-server")
    if options.bootstrap_server is None and options.bootstrap_controller is None:
        raise UsageError("one of the arguments --bootstrap-server --bootstrap-controller is required")
    if options.command == "describe":
        if not (options.status or options.replication):
            raise ToolError("One of --status or --replication must be specified with describe sub-command")
        if options.status and options.human_readable:
            raise ToolError("The option --human-readable is only supported along with --replication")
    lines = {"describe": describe, "add-controller": add_controller, "remove-controller": remove_controller}
    async with cluster_from(options) as cluster:
        for line in await lines[options.command](options, Admin(cluster)):
            out.line(line)


async def describe(options: argparse.Namespace, admin: Admin) -> list[str]:
    quorum = await admin.describe_quorum()
    if options.replication:
        return replication(quorum, options.human_readable)
    kind = EndpointType.CONTROLLER if options.bootstrap_controller else EndpointType.BROKER
    return status(quorum, (await admin.describe_cluster(kind)).cluster_id)


async def add_controller(options: argparse.Namespace, admin: Admin) -> list[str]:
    from barnabas.cli.cluster.new_controller import new_controller

    if options.command_config is None:
        raise ToolError(
            "You must supply the configuration file of the controller you are adding when using "
            "add-controller."
        )
    found = new_controller(load_properties(options.command_config))
    if not options.dry_run:
        await admin.add_voter(found.id, found.directory_id, found.addresses)
    done = "DRY RUN of adding" if options.dry_run else "Added"
    where = ", ".join(map(str, found.addresses))
    directory = uuid.to_text(found.directory_id)
    return [f"{done} controller {found.id} with directory id {directory} and endpoints: {where}"]


async def remove_controller(options: argparse.Namespace, admin: Admin) -> list[str]:
    if options.controller_id < 0:
        raise ToolError(f"Invalid negative --controller-id: {options.controller_id}")
    try:
        directory = uuid.from_text(options.controller_directory_id)
    except ValueError as error:
        raise ToolError(f"Failed to parse --controller-directory-id: {error}") from None
    if not options.dry_run:
        await admin.remove_voter(options.controller_id, directory)
    done = "DRY RUN of removing " if options.dry_run else "Removed "
    shown = uuid.to_text(directory)
    return [f"{done} KRaft controller {options.controller_id} with directory id {shown}"]


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
    rows = []
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
    return table_lines(HEADERS, rows)


def moment(timestamp_ms: int, human: bool) -> str:
    if not human or timestamp_ms < 0:
        return str(timestamp_ms)
    return f"{max(0, int(time.time() * 1000) - timestamp_ms)} ms ago"
