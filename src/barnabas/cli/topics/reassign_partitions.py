"""reassign-partitions: move replicas to other brokers or log dirs, and show the progress.

This module sends the requests, in the order of Kafka's tool, and prints its lines. `reassign_plan` has the
plans and their texts.
"""

import argparse
import asyncio
import time
from collections.abc import Collection, Iterable, Mapping, Sequence
from pathlib import Path
from random import Random

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
from barnabas.cli.topics import reassign_plan as plans
from barnabas.client.admin.admin import Admin
from barnabas.client.admin.configs import ConfigResource, ResourceType
from barnabas.client.admin.reassignments import Replica, ReplicaDirs
from barnabas.client.core.cluster import MISSING_TOPIC
from barnabas.client.core.topology import TopicPartition
from barnabas.protocol import ErrorCode, KafkaError

EXAMPLES = (
    "--generate --topics-to-move-json-file topics.json --broker-list 1,2,3",
    "--execute --reassignment-json-file plan.json --throttle 50000000",
    "--verify --reassignment-json-file plan.json",
    "--list",
)
LEADER_RATE = "leader.replication.throttled.rate"
FOLLOWER_RATE = "follower.replication.throttled.rate"
LOG_DIR_RATE = "replica.alter.log.dirs.io.max.bytes.per.second"
LEADER_REPLICAS = "leader.replication.throttled.replicas"
FOLLOWER_REPLICAS = "follower.replication.throttled.replicas"
EXISTING = (
    "Cannot execute because there is an existing partition assignment.  Use --additional to override this "
    "and create a new partition assignment in addition to the existing one. The --additional flag can also "
    "be used to change the throttle by resubmitting the current reassignment."
)
VERIFY_LATER = (
    "Warning: You must run --verify periodically, until the reassignment completes, to ensure the throttle "
    "is removed."
)
RETRY_S = 0.1
TIMEOUT_MS = 10_000
ACTIONS = {
    # action: required options, allowed options
    "generate": (("topics-to-move-json-file", "broker-list"), ("disable-rack-aware",)),
    "execute": (
        ("reassignment-json-file",),
        (
            "additional",
            "throttle",
            "replica-alter-log-dirs-throttle",
            "timeout",
            "disallow-replication-factor-change",
        ),
    ),
    "verify": (("reassignment-json-file",), ("preserve-throttles",)),
    "cancel": (("reassignment-json-file",), ("bootstrap-controller", "preserve-throttles", "timeout")),
    "list": ((), ("bootstrap-controller",)),
}
OPTIONS = (
    "bootstrap-controller",
    "reassignment-json-file",
    "topics-to-move-json-file",
    "broker-list",
    "disable-rack-aware",
    "throttle",
    "replica-alter-log-dirs-throttle",
    "timeout",
    "additional",
    "preserve-throttles",
    "disallow-replication-factor-change",
)


class BareMessage(Exception):
    """An error whose text is printed without `Error:` before it."""


def add_arguments(parser: ToolParser) -> None:
    parser.old_spellings.pop("--broker-list", None)  # in this tool --broker-list is a list of broker ids
    add_bootstrap(parser)
    add_bootstrap_controller(parser)
    add_command_config(parser)
    action = parser.add_argument_group("actions (exactly one)")
    action.add_argument("--generate", action="store_true", help="propose a plan; nothing is changed")
    action.add_argument("--execute", action="store_true", help="start the moves of a plan")
    action.add_argument(
        "--verify",
        action="store_true",
        help="show the progress; remove throttles when all moves are complete",
    )
    action.add_argument("--cancel", action="store_true", help="stop moves and restore the old replicas")
    action.add_argument("--list", action="store_true", help="list active reassignments")
    parser.add_argument("--reassignment-json-file", metavar="FILE", help="a plan, as --generate prints it")
    parser.add_argument(
        "--topics-to-move-json-file", metavar="FILE", help='as in {"topics": [{"topic": "orders"}]}'
    )
    parser.add_argument("--broker-list", metavar="ID,...", help="brokers to spread the topics over")
    parser.add_argument("--disable-rack-aware", action="store_true", help="ignore racks")
    parser.add_argument(
        "--throttle", metavar="BYTES/S", help="limit of the traffic between brokers (default: none)"
    )
    parser.add_argument(
        "--replica-alter-log-dirs-throttle",
        metavar="BYTES/S",
        help="limit of the traffic between log dirs (default: none)",
    )
    parser.add_argument(
        "--timeout",
        metavar="MS",
        help="how long to wait for moves between log dirs to start (default: 10000)",
    )
    parser.add_argument("--additional", action="store_true", help="allow other active reassignments")
    parser.add_argument("--preserve-throttles", action="store_true", help="leave throttles as they are")
    parser.add_argument(
        "--disallow-replication-factor-change",
        action="store_true",
        help="refuse plans that change the number of replicas of a partition",
    )


async def run(options: argparse.Namespace, out: Output) -> int:
    action = check_options(options)
    properties = load_properties(options.command_config)
    try:
        async with cluster_from(options, properties, client_id="reassign-partitions-tool") as cluster:
            await ReassignPartitions(Admin(cluster), out).run(action, options)
    except BareMessage as error:
        out.line(str(error))
        return 1
    except (KafkaError, ToolError) as error:
        if isinstance(error, UsageError):
            raise
        out.line(f"Error: {error.message if isinstance(error, KafkaError) else error}")
        return 1
    return 0


def check_options(options: argparse.Namespace) -> str:
    given = [name for name in ACTIONS if getattr(options, name)]
    if len(given) != 1:
        every = ", ".join(f"--{name}" for name in ACTIONS)
        raise UsageError(f"Command must include exactly one action: {every}")
    [action] = given
    if options.bootstrap_controller is not None and is_server_given(options):
        raise UsageError("Please don't specify both --bootstrap-server and --bootstrap-controller")
    if options.bootstrap_controller is None and options.bootstrap_server is None:
        raise UsageError("Please specify either --bootstrap-server or --bootstrap-controller")
    needed, allowed = ACTIONS[action]
    for name in needed:
        if value_of(options, name) is None:
            raise UsageError(f'Missing required argument "[{name}]"')
    for name in OPTIONS:
        if value_of(options, name) not in (None, False) and name not in needed + allowed:
            raise UsageError(f'Option "[{name}]" can\'t be used with action "[{action}]"')
    return action


def value_of(options: argparse.Namespace, name: str) -> object:
    return getattr(options, name.replace("-", "_"))


def number(options: argparse.Namespace, name: str, default: int) -> int:
    """The value of an option as a number, parsed when it is used, as in Kafka's tool."""
    text = value_of(options, name)
    try:
        return default if text is None else int(str(text))
    except ValueError:
        raise ToolError(f"Cannot parse argument '{text}' of option {name}") from None


def read_text(path: str) -> str:
    try:
        return Path(path).read_text(encoding="utf-8")
    except OSError:
        raise ToolError(f"Unable to read file {path}") from None


class ReassignPartitions:
    def __init__(self, admin: Admin, out: Output) -> None:
        self._admin = admin
        self._out = out

    async def run(self, action: str, options: argparse.Namespace) -> None:
        if action == "generate":
            await self.generate(options)
        elif action == "execute":
            await self.execute(options)
        elif action == "verify":
            await self.verify(
                plans.parse_plan(read_text(options.reassignment_json_file)), options.preserve_throttles
            )
        elif action == "cancel":
            plan = plans.parse_plan(read_text(options.reassignment_json_file))
            await self.cancel(plan, options.preserve_throttles, number(options, "timeout", TIMEOUT_MS))
        else:
            await self.list()

    # -- generate ----------------------------------------------------------------------------------

    async def generate(self, options: argparse.Namespace) -> None:
        text = read_text(options.topics_to_move_json_file)
        wanted = broker_ids(options.broker_list)
        topics = plans.parse_topics(text)
        current = await self._assignment_of(topics)
        described = await self._admin.describe_cluster()
        racks = {
            node.id: None if options.disable_rack_aware else node.rack
            for node in described.nodes
            if node.id in wanted
        }
        if None in racks.values() and any(racks.values()):
            raise ToolError(
                "Not all brokers have rack information. Add --disable-rack-aware in command line to make "
                "replica assignment without rack information."
            )
        proposed = plans.candidates(current, racks, Random())
        text = await self._text_with_dirs(current)
        self._out.line(f"Current partition replica assignment\n{text}\n")
        self._out.line(f"Proposed partition reassignment configuration\n{plans.plan_text(proposed)}")

    async def _assignment_of(self, topics: Collection[str]) -> dict[TopicPartition, tuple[int, ...]]:
        found: dict[TopicPartition, tuple[int, ...]] = {}
        for topic in sorted(topics):
            try:
                [described] = await self._admin.describe_topics([topic])
            except KafkaError as error:
                if error.code in MISSING_TOPIC:
                    raise ToolError(f"Topic {topic} not found.") from None
                raise
            found |= {TopicPartition(topic, each.index): each.replicas for each in described.partitions}
        return found

    async def _text_with_dirs(self, assignment: plans.Assignment) -> str:
        alive = {node.id for node in (await self._admin.describe_cluster()).nodes}
        replicas = [
            Replica(each, where) for where, some in assignment.items() for each in some if each in alive
        ]
        found = await self._admin.replica_log_dirs(replicas)
        return plans.plan_text(
            assignment, {replica: dirs.current for replica, dirs in found.items() if dirs.current is not None}
        )

    # -- execute -----------------------------------------------------------------------------------

    async def execute(self, options: argparse.Namespace) -> None:
        text = read_text(options.reassignment_json_file)
        for name in ("throttle", "replica-alter-log-dirs-throttle", "timeout"):
            number(options, name, -1)  # raises before anything changes
        plan = plans.parse_plan(text)
        plans.check_for_execution(plan)
        proposed = dict(plan.partitions)
        active = await self._admin.reassignments()
        if active and not options.additional:
            raise BareMessage(EXISTING)
        known = {node.id for node in (await self._admin.describe_cluster()).nodes}
        for broker in sorted({broker for replicas in proposed.values() for broker in replicas}):
            if broker not in known:
                raise ToolError(f"Unknown broker id {broker}")
        everything = await self._assignment_of(plan.topics)
        if missing := [where for where in proposed if where not in everything]:
            raise ToolError(f"Unable to find partition: {', '.join(map(str, missing))}")
        current = {where: everything[where] for where in proposed}
        self._out.line(
            f"Current partition replica assignment\n\n{await self._text_with_dirs(current)}\n\n"
            "Save this to use as the --reassignment-json-file option during rollback"
        )
        await self._throttle(options, plan, plans.moves_of(active, proposed, current))
        results = await self._admin.alter_reassignments(
            proposed, allow_factor_change=not options.disallow_replication_factor_change
        )
        if failed := {where: error for where, error in results.items() if error is not None}:
            raise BareMessage(f"Error reassigning partition(s):\n{error_lines(failed)}")
        self._out.line(
            f"Successfully started partition reassignment{plural(proposed)} for {listed(sorted(proposed))}"
        )
        if plan.log_dirs:
            await self._move_dirs(plan.log_dirs, number(options, "timeout", TIMEOUT_MS))

    async def _throttle(self, options: argparse.Namespace, plan: plans.Plan, moves: plans.Moves) -> None:
        between_brokers = number(options, "throttle", -1)
        between_dirs = number(options, "replica-alter-log-dirs-throttle", -1)
        if between_brokers < 0 and between_dirs < 0:
            return
        self._out.line(VERIFY_LATER)
        if between_brokers >= 0:
            leaders, followers = plans.leader_throttles(moves), plans.follower_throttles(moves)
            for topic in sorted(leaders):
                await self._set(
                    ResourceType.TOPIC,
                    topic,
                    {LEADER_REPLICAS: leaders[topic], FOLLOWER_REPLICAS: followers[topic]},
                )
            for broker in plans.brokers_of(moves):
                rate = str(between_brokers)
                await self._set(ResourceType.BROKER, str(broker), {LEADER_RATE: rate, FOLLOWER_RATE: rate})
            self._out.line(f"The inter-broker throttle limit was set to {between_brokers} B/s")
        if between_dirs >= 0:
            for broker in sorted({replica.broker for replica in plan.log_dirs}):
                await self._set(ResourceType.BROKER, str(broker), {LOG_DIR_RATE: str(between_dirs)})
            self._out.line(f"The replica-alter-dir throttle limit was set to {between_dirs} B/s")

    async def _set(self, kind: ResourceType, name: str, values: Mapping[str, str | None]) -> None:
        await self._admin.alter_configs(ConfigResource(kind, name), values)

    async def _move_dirs(self, dirs: Mapping[Replica, str], timeout_ms: int) -> None:
        """Start moves between log dirs; retry while the broker does not have the replica yet."""
        deadline = time.monotonic() + timeout_ms / 1000
        pending = dict(dirs)
        while True:
            results = await self._admin.alter_replica_log_dirs(pending)
            for replica, error in sorted(results.items()):
                if error is None:
                    self._out.line(
                        f"Successfully started moving log directory to {pending.pop(replica)} for replica "
                        f"{replica.where} with broker {replica.broker} "
                    )
                elif error.code is not ErrorCode.REPLICA_NOT_AVAILABLE:
                    raise ToolError(f"Failed to alter dir for {replica}")
            if not pending:
                return
            if time.monotonic() >= deadline:
                raise BareMessage(
                    f"Timed out before log directory move{plural(pending)} could be started for: "
                    f"{listed(sorted(pending))}"
                )
            await asyncio.sleep(RETRY_S)

    # -- verify ------------------------------------------------------------------------------------

    async def verify(self, plan: plans.Plan, preserves: bool) -> None:
        active = await self._admin.reassignments()
        lines = ["Status of partition reassignment:"]
        for where, target in sorted(dict(plan.partitions).items()):
            if where in active:
                lines.append(f"Reassignment of partition {where} is still in progress.")
                continue
            current = list(await self._replicas_of(where))
            if current == target:
                lines.append(f"Reassignment of partition {where} is completed.")
            else:
                lines.append(
                    f"There is no active reassignment of partition {where}, but replica set is "
                    f"{listed(current)} rather than {listed(target)}."
                )
        self._out.line("\n".join(lines))
        moving = False
        if plan.log_dirs:
            found = await self._admin.replica_log_dirs(list(plan.log_dirs))
            for replica, path in sorted(plan.log_dirs.items()):
                text, is_active = dir_state(replica, path, found.get(replica))
                moving = moving or is_active
                self._out.line(text)
        self._out.line()
        if not active and not moving and not preserves:
            await self._clear_throttles(plan)

    async def _replicas_of(self, topic_partition: TopicPartition) -> Sequence[int]:
        try:
            [described] = await self._admin.describe_topics([topic_partition.topic])
        except KafkaError as error:
            if error.code in MISSING_TOPIC:
                return ()
            raise
        return next(
            (each.replicas for each in described.partitions if each.index == topic_partition.partition), ()
        )

    async def _clear_throttles(self, plan: plans.Plan) -> None:
        """Remove the throttles of all brokers: the tool does not know which ones --execute set."""
        brokers = {node.id for node in (await self._admin.describe_cluster()).nodes}
        brokers |= {broker for _, replicas in plan.partitions for broker in replicas}
        self._out.line(
            f"Clearing broker-level throttles on broker{plural(brokers)} {listed(sorted(brokers))}"
        )
        for broker in sorted(brokers):
            none = dict.fromkeys((LEADER_RATE, FOLLOWER_RATE, LOG_DIR_RATE))
            await self._set(ResourceType.BROKER, str(broker), none)
        topics = plan.topics
        self._out.line(f"Clearing topic-level throttles on topic{plural(topics)} {listed(topics)}")
        for topic in topics:
            await self._set(ResourceType.TOPIC, topic, dict.fromkeys((LEADER_REPLICAS, FOLLOWER_REPLICAS)))

    # -- cancel and list ---------------------------------------------------------------------------

    async def cancel(self, plan: plans.Plan, preserves: bool, timeout_ms: int) -> None:
        wanted = {where for where, _ in plan.partitions}
        active = {
            where: each for where, each in (await self._admin.reassignments()).items() if where in wanted
        }
        if active:
            results = await self._admin.alter_reassignments(dict.fromkeys(sorted(active)))
            if failed := {where: error for where, error in results.items() if error is not None}:
                raise BareMessage(
                    f"Error cancelling partition reassignment{plural(failed)} for:\n{error_lines(failed)}"
                )
            self._out.line(
                f"Successfully cancelled partition reassignment{plural(active)} for: {listed(sorted(active))}"
            )
        else:
            self._out.line("None of the specified partition reassignments are active.")
        moving: dict[Replica, str] = {}
        if plan.log_dirs:
            found = await self._admin.replica_log_dirs(list(plan.log_dirs))
            moving = {
                replica: dirs.current
                for replica, dirs in found.items()
                if dirs.future is not None and dirs.current is not None
            }
        if moving:
            await self._move_dirs(moving, timeout_ms)
        else:
            self._out.bytes(
                b"None of the specified partition moves are active."
            )  # without a line end, as Kafka's tool
        if not preserves:
            await self._clear_throttles(plan)

    async def list(self) -> None:
        active = await self._admin.reassignments()
        if not active:
            self._out.line("No partition reassignments found.")
            return
        self._out.line("Current partition reassignments:")
        for where, each in sorted(active.items()):
            adding = f" adding: {listed(each.adding)}." if each.adding else ""
            removing = f" removing: {listed(each.removing)}." if each.removing else ""
            self._out.line(f"{where}: replicas: {listed(each.replicas)}.{adding}{removing}")


def broker_ids(text: str) -> list[int]:
    try:
        found = [int(each) for each in text.split(",")]
    except ValueError:
        bad = next(each for each in text.split(",") if not each.lstrip("-").isdigit())
        raise ToolError(f'For input string: "{bad}"') from None
    if twice := plans.repeated(found):
        raise ToolError(f"Broker list contains duplicate entries: [{', '.join(map(str, twice))}]")
    return found


def dir_state(replica: Replica, target: str, dirs: ReplicaDirs | None) -> tuple[str, bool]:
    """The line about the move of a replica to another log dir, and whether the move is under way."""
    where, broker = replica.where, replica.broker
    if dirs is None:
        return f"Partition {where} cannot be found in any live log directory on broker {broker}.", True
    if dirs.current is None:
        return (
            f"Partition {where} is not found in any live log dir on broker {broker}. There is likely an "
            "offline log directory on the broker.",
            True,
        )
    if dirs.future is None:
        if dirs.current == target:
            return f"Reassignment of replica {replica} completed successfully.", False
        return (
            f"Partition {where} on broker {broker} is not being moved from log dir {dirs.current} to "
            f"{target}.",
            False,
        )
    if dirs.future == target:
        return f"Reassignment of replica {replica} is still in progress.", True
    return (
        f"Partition {where} on broker {broker} is being moved to log dir {dirs.future} instead of {target}.",
        True,
    )


def plural(things: Collection[object]) -> str:
    return "" if len(things) == 1 else "s"


def listed(things: Iterable[object]) -> str:
    return ",".join(map(str, things))


def error_lines(failed: Mapping[TopicPartition, KafkaError]) -> str:
    return "\n".join(f"{where}: {error.message}" for where, error in sorted(failed.items()))
