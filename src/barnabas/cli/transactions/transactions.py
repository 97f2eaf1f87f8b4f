"""transactions: list and describe transactions, find and abort hanging ones, terminate those of an id."""

import argparse
import time
from collections.abc import Sequence

from barnabas.cli.frame.connecting import add_bootstrap, add_command_config, cluster_from
from barnabas.cli.frame.output import Output
from barnabas.cli.frame.parsing import ToolError, ToolParser, UsageError
from barnabas.cli.frame.table import table_lines
from barnabas.cli.transactions.hanging_transactions import HEADERS as HANGING_HEADERS
from barnabas.cli.transactions.hanging_transactions import Search, find_hanging
from barnabas.client.admin.admin import Admin
from barnabas.client.admin.transactions import NO_DURATION, AbortedTransaction
from barnabas.client.core.errors import ClientError
from barnabas.client.core.topology import TopicPartition
from barnabas.protocol import ErrorCode, KafkaError

EXAMPLES = (
    "list",
    "list --duration-filter 60000 --transactional-id-pattern 'orders-.*'",
    "describe --transactional-id orders-1",
    "describe-producers --topic orders --partition 0",
    "find-hanging --broker-id 1",
    "abort --topic orders --partition 0 --start-offset 42",
    "forceTerminateTransaction --transactionalId orders-1",
)
COMMANDS = ("list", "describe", "describe-producers", "abort", "find-hanging", "forceTerminateTransaction")
NO_TRANSACTION_NAMED = (
    "The transaction to abort must be identified either with --start-offset (for brokers on 3.0 or above) or "
    "with --producer-id, --producer-epoch, and --coordinator-epoch (for older brokers)"
)


def add_arguments(parser: ToolParser) -> None:
    add_bootstrap(parser)
    add_command_config(parser)
    parser.add_argument("-v", dest="version", action="store_true", help=argparse.SUPPRESS)
    commands = parser.add_subparsers(dest="command", metavar="COMMAND")
    listing = commands.add_parser("list", help="list transactions")
    listing.add_argument(
        "--duration-filter", type=int, metavar="MS", help="only transactions that run longer (below 0: all)"
    )
    listing.add_argument(
        "--transactional-id-pattern", metavar="REGEX", help="only ids that match the whole expression"
    )
    describe = commands.add_parser("describe", help="describe the transaction of an id")
    describe.add_argument("--transactional-id", required=True, metavar="ID")
    producers = commands.add_parser("describe-producers", help="describe the producers of a partition")
    producers.add_argument("--broker-id", type=int, metavar="N", help="ask this replica, not the leader")
    abort = commands.add_parser("abort", help="abort a hanging transaction on a partition")
    for command in (producers, abort):
        command.add_argument("--topic", required=True)
        command.add_argument("--partition", required=True, type=int, metavar="N")
    abort.add_argument("--start-offset", type=int, metavar="N", help="where the transaction starts")
    old = abort.add_argument_group("brokers older than 3.0 need all of these instead")
    for name in ("--producer-id", "--producer-epoch", "--coordinator-epoch"):
        old.add_argument(name, type=int, metavar="N")
    hanging = commands.add_parser("find-hanging", help="find transactions that no coordinator will end")
    hanging.add_argument("--broker-id", type=int, metavar="N", help="search the replicas of this broker")
    hanging.add_argument("--topic", help="search this topic")
    hanging.add_argument("--partition", type=int, metavar="N", help="search this partition of --topic")
    hanging.add_argument(
        "--max-transaction-timeout",
        type=int,
        default=15,
        metavar="MINUTES",
        help="longest time that a transaction may run (default: 15)",
    )
    force = commands.add_parser("forceTerminateTransaction", help="fence an id and abort its transaction")
    force.add_argument(
        "--transactionalId", "--transactional-id", dest="transactional_id", required=True, metavar="ID"
    )


async def run(options: argparse.Namespace, out: Output) -> None:
    if options.command is None:
        raise UsageError(f"too few arguments: one of {', '.join(COMMANDS)} is needed")
    if options.bootstrap_server is None:
        raise UsageError("argument --bootstrap-server is required")
    search = search_of(options) if options.command == "find-hanging" else None
    async with cluster_from(options) as cluster:
        admin = Admin(cluster)
        if search is not None:
            show(HANGING_HEADERS, await find_hanging(admin, search), out)
        elif options.command == "list":
            await list_transactions(options, admin, out)
        elif options.command == "describe":
            await describe(options.transactional_id, admin, out)
        elif options.command == "describe-producers":
            await describe_producers(options, admin, out)
        elif options.command == "abort":
            await abort(options, admin)
        else:
            await force_terminate(options.transactional_id, admin)


def failed(what: str, error: KafkaError | ClientError) -> ToolError:
    return ToolError(f"{what}: {error.message if isinstance(error, KafkaError) else error}.")


def show(headers: Sequence[str], rows: Sequence[Sequence[str]], out: Output) -> None:
    for line in table_lines(headers, rows):
        out.line(line)


async def list_transactions(options: argparse.Namespace, admin: Admin, out: Output) -> None:
    duration_ms = NO_DURATION if options.duration_filter is None else options.duration_filter
    try:
        found = await admin.list_transactions(
            duration_ms=duration_ms, pattern=options.transactional_id_pattern
        )
    except (KafkaError, ClientError) as error:
        raise failed("Failed to list transactions", error) from None
    headers = ("TransactionalId", "Coordinator", "ProducerId", "TransactionState")
    rows = [
        (each.transactional_id, str(each.coordinator), str(each.producer_id), each.state) for each in found
    ]
    show(headers, rows, out)


async def describe(transactional_id: str, admin: Admin, out: Output) -> None:
    what = f"Failed to describe transaction state of transactional-id `{transactional_id}`"
    try:
        found = (await admin.describe_transactions([transactional_id]))[transactional_id]
    except (KafkaError, ClientError) as error:
        raise failed(what, error) from None
    if isinstance(found, KafkaError):
        if found.code == ErrorCode.TRANSACTIONAL_ID_NOT_FOUND:
            raise ToolError(
                f"{what}: DescribeTransactions request for transactionalId `{transactional_id}` failed "
                "because the ID could not be found."
            )
        raise failed(what, found)
    headers = (
        *("CoordinatorId", "TransactionalId", "ProducerId", "ProducerEpoch", "TransactionState"),
        *(
            "TransactionTimeoutMs",
            "CurrentTransactionStartTimeMs",
            "TransactionDurationMs",
            "TopicPartitions",
        ),
    )
    start_ms = found.start_ms
    row = (
        str(found.coordinator),
        transactional_id,
        str(found.producer_id),
        str(found.producer_epoch),
        found.state,
        str(found.timeout_ms),
        "None" if start_ms is None else str(start_ms),
        "None" if start_ms is None else str(int(time.time() * 1000) - start_ms),
        ",".join(map(str, found.partitions)),
    )
    show(headers, [row], out)


async def describe_producers(options: argparse.Namespace, admin: Admin, out: Output) -> None:
    topic_partition = TopicPartition(options.topic, options.partition)
    whom = "leader" if options.broker_id is None else f"broker {options.broker_id}"
    what = f"Failed to describe producers for partition {topic_partition} on {whom}"
    try:
        found = (await admin.describe_producers([topic_partition], options.broker_id))[topic_partition]
    except (KafkaError, ClientError) as error:
        raise failed(what, error) from None
    if isinstance(found, KafkaError):
        raise failed(what, found)
    headers = (
        *("ProducerId", "ProducerEpoch", "LatestCoordinatorEpoch", "LastSequence", "LastTimestamp"),
        "CurrentTransactionStartOffset",
    )
    rows = [
        (
            str(each.producer_id),
            str(each.producer_epoch),
            str(each.coordinator_epoch),
            str(each.last_sequence),
            str(each.last_timestamp),
            "None" if each.transaction_start is None else str(each.transaction_start),
        )
        for each in found
    ]
    show(headers, rows, out)


async def abort(options: argparse.Namespace, admin: Admin) -> None:
    topic_partition = TopicPartition(options.topic, options.partition)
    if options.start_offset is not None:
        aborted = await transaction_starting_at(admin, topic_partition, options.start_offset)
    elif options.producer_id is None:
        raise ToolError(NO_TRANSACTION_NAMED)
    else:
        for name in ("producer-epoch", "coordinator-epoch"):
            if getattr(options, name.replace("-", "_")) is None:
                raise ToolError(f"Missing required argument --{name}")
        aborted = AbortedTransaction(
            topic_partition, options.producer_id, options.producer_epoch, max(0, options.coordinator_epoch)
        )
    try:
        await admin.abort_transaction(aborted)
    except (KafkaError, ClientError) as error:
        raise failed(f"Failed to abort transaction {aborted}", error) from None


async def transaction_starting_at(admin: Admin, partition: TopicPartition, offset: int) -> AbortedTransaction:
    """Find the open transaction of a partition that starts at an offset."""
    what = f"Failed to validate producer state for partition {partition}"
    try:
        found = (await admin.describe_producers([partition]))[partition]
    except (KafkaError, ClientError) as error:
        raise failed(what, error) from None
    if isinstance(found, KafkaError):
        raise failed(what, found)
    for each in found:
        if each.transaction_start == offset:
            # If the producer's first transaction hangs, it has no coordinator epoch yet. 0 is never too high.
            return AbortedTransaction(
                partition, each.producer_id, each.producer_epoch, max(0, each.coordinator_epoch)
            )
    raise ToolError(
        f"Could not find any open transactions starting at offset {offset} on partition {partition}"
    )


async def force_terminate(transactional_id: str, admin: Admin) -> None:
    try:
        await admin.fence_producer(transactional_id)
    except (KafkaError, ClientError) as error:
        raise failed(f"Failed to force terminate transactionalId `{transactional_id}`", error) from None


def search_of(options: argparse.Namespace) -> Search:
    if options.topic is None and options.broker_id is None:
        raise ToolError(
            "The `find-hanging` command requires either --topic or --broker-id to limit the scope of the "
            "search"
        )
    if options.partition is not None and options.topic is None:
        raise ToolError("The --partition argument requires --topic to be provided")
    return Search(
        options.topic, options.partition, options.broker_id, options.max_transaction_timeout * 60_000
    )
