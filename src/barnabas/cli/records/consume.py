"""consume: print the records of topics as they arrive, with the options of kafka-console-consumer.

In: options. Out: formatted records, and at the end a count on standard error. With --group the tool joins the
group as a member (`consume_group`). Under Kafka's name it joins a generated group if none is named, as
Kafka's tool does. Without a group this process reads every partition, from its end or its beginning,
including partitions that are created later.
"""

import argparse
import asyncio

from barnabas.cli.frame.client_settings import CONSUMER_NAMES, consumer_settings, without_effect
from barnabas.cli.frame.connecting import add_bootstrap, cluster_from, load_properties
from barnabas.cli.frame.output import Output, end_when_reader_closes
from barnabas.cli.frame.parsing import ToolError, ToolParser, UsageError, exactly_one, key_values
from barnabas.cli.frame.topic_filter import compile_include
from barnabas.cli.records.consume_group import choose_membership, group_of, read_as_member
from barnabas.cli.records.formatters import formatter
from barnabas.cli.records.record_printer import Printer
from barnabas.client.admin.offsets import OffsetSpec
from barnabas.client.cluster import Cluster
from barnabas.client.consumer import Consumer, ConsumerSettings, OnOutOfRange
from barnabas.client.core.errors import Unreachable
from barnabas.client.core.fetching import DamagedBatch
from barnabas.client.core.topology import TopicPartition

EXAMPLES = (
    "--topic orders --from-beginning",
    "--topic orders --group readers",
    "--topic orders --partition 0 --offset 42 --max-messages 1",
    "--topic orders --formatter-property print.key=true --formatter-property print.timestamp=true",
)
DISCOVERY_S = 5.0  # how often the tool looks for new partitions
POLL_MS = 1_000


def add_arguments(parser: ToolParser) -> None:
    parser.set_defaults(as_kafka=parser.strict)
    parser.old_spellings |= {"--whitelist": "--include"}
    add_bootstrap(parser)
    parser.add_argument("--topic", help="the topic to read")
    parser.add_argument("--include", metavar="REGEX", help="or all topics whose name matches")
    parser.add_argument("--partition", type=int, metavar="N", help="read only this partition")
    parser.add_argument("--offset", help="earliest, latest or a number; with --partition (default: latest)")
    parser.add_argument("--from-beginning", action="store_true", help="start with the first record")
    parser.add_argument("--group", metavar="ID", help="the consumer group to join")
    parser.add_argument("--max-messages", type=int, metavar="N", help="stop after this many (default: never)")
    parser.add_argument("--timeout-ms", type=int, metavar="MS", help="stop if no record came for so long")
    parser.add_argument(
        "--skip-message-on-error", action="store_true", help="skip records that cannot be read or printed"
    )
    parser.add_argument(
        "--isolation-level",
        metavar="LEVEL",
        help="read_committed leaves aborted transactions out (default: read_uncommitted)",
    )
    parser.add_argument(
        "--formatter-property",
        action="append",
        metavar="NAME=VALUE",
        help="what to print: print.key, print.timestamp, print.partition, print.offset, print.epoch, "
        "print.headers, print.value (true or false), key.separator, line.separator, headers.separator, "
        "null.literal, key.deserializer, value.deserializer, headers.deserializer; may be repeated",
    )
    parser.add_argument("--formatter-config", metavar="FILE", help="a file of such properties")
    parser.add_argument(
        "--property", action="append", metavar="NAME=VALUE", help="old name of --formatter-property"
    )
    parser.add_argument("--formatter", metavar="CLASS", help="the formatter, by Kafka's class name")
    parser.add_argument("--key-deserializer", metavar="CLASS", help="e.g. LongDeserializer")
    parser.add_argument("--value-deserializer", metavar="CLASS", help="e.g. LongDeserializer")
    parser.add_argument(
        "--command-property", action="append", metavar="NAME=VALUE", help="a consumer setting"
    )
    parser.add_argument("--consumer-property", action="append", metavar="NAME=VALUE", help=argparse.SUPPRESS)
    parser.add_argument("--command-config", metavar="FILE", help="a file of consumer settings")
    parser.add_argument("--consumer.config", dest="consumer_config", metavar="FILE", help=argparse.SUPPRESS)
    parser.add_argument("--enable-systest-events", action="store_true", help=argparse.SUPPRESS)
    parser.add_argument("--new-consumer", action="store_true", help=argparse.SUPPRESS)


async def run(options: argparse.Namespace, out: Output) -> int | None:
    check_options(options)
    deprecations(options, out)
    properties = consumer_properties(options)
    group = group_of(options.group, properties)
    if group is not None and options.partition is not None:
        raise UsageError("Options group and partition cannot be specified together.")
    write = formatter(options.formatter, formatter_properties(options))
    settings = consumer_settings(properties)
    printer = Printer(write, out, limit=options.max_messages, skip_errors=options.skip_message_on_error)
    async with cluster_from(options, properties, client_id="console-consumer") as cluster:
        by_default = options.as_kafka and options.partition is None
        membership = await choose_membership(cluster, group, by_default=by_default)
        try:
            await cluster.refresh()
            with end_when_reader_closes():
                if membership is not None:
                    await read_as_member(membership, options, properties, cluster, printer, out)
                else:
                    for name in without_effect(properties, CONSUMER_NAMES):
                        out.note(f"the consumer setting {name} has no effect in this tool")
                    await read_alone(options, settings, cluster, printer, out)
        finally:
            out.note(f"Processed a total of {printer.count} messages")
            if options.enable_systest_events:
                out.line("shutdown_complete")
    return None


async def read_alone(
    options: argparse.Namespace, settings: ConsumerSettings, cluster: Cluster, printer: Printer, out: Output
) -> None:
    """Read every partition without a group, and commit nothing."""
    consumer = Consumer(cluster, settings)
    start = OffsetSpec.EARLIEST
    if settings.on_out_of_range is not OnOutOfRange.EARLIEST:
        start = OffsetSpec.LATEST
    discovery = Discovery(options, cluster, consumer, out)
    try:
        await discovery.begin(start)
        await follow(consumer, discovery, printer, options)
    finally:
        await consumer.close()


def check_options(options: argparse.Namespace) -> None:
    exactly_one(options, "topic", "include")
    if options.partition is not None:
        if options.topic is None:
            raise UsageError("The topic is required when partition is specified.")
        if options.from_beginning and options.offset is not None:
            raise UsageError("Options from-beginning and offset cannot be specified together.")
    elif options.offset is not None:
        raise UsageError("The partition is required when offset is specified.")
    if options.bootstrap_server is None:
        raise UsageError('Missing required argument "[bootstrap-server]"')
    if options.offset is not None:
        first_offset(options.offset)


def first_offset(text: str) -> OffsetSpec | int:
    """Parse `earliest`, `latest` or an offset."""
    specs = {"earliest": OffsetSpec.EARLIEST, "latest": OffsetSpec.LATEST}
    if text.lower() in specs:
        return specs[text.lower()]
    if text.isascii() and text.isdigit():
        return int(text)
    raise UsageError(
        f"The provided offset value '{text}' is incorrect. Valid values are 'earliest', 'latest', "
        "or a non-negative long."
    )


def consumer_properties(options: argparse.Namespace) -> dict[str, str]:
    properties = load_properties(options.command_config or options.consumer_config)
    properties |= key_values([*(options.consumer_property or ()), *(options.command_property or ())])
    reset = properties.get("auto.offset.reset")
    if options.from_beginning and reset not in (None, "earliest"):
        raise ToolError(
            f"Can't simultaneously specify --from-beginning and 'auto.offset.reset={reset}', "
            "please remove one option"
        )
    properties.setdefault("auto.offset.reset", "earliest" if options.from_beginning else "latest")
    if options.isolation_level is not None:
        properties["isolation.level"] = options.isolation_level
    return properties


def formatter_properties(options: argparse.Namespace) -> dict[str, str]:
    properties = load_properties(options.formatter_config)
    if options.key_deserializer:
        properties["key.deserializer"] = options.key_deserializer
    if options.value_deserializer:
        properties["value.deserializer"] = options.value_deserializer
    return properties | key_values([*(options.property or ()), *(options.formatter_property or ())])


def deprecations(options: argparse.Namespace, out: Output) -> None:
    for old, new in (
        ("property", "formatter-property"),
        ("consumer-property", "command-property"),
        ("consumer_config", "command-config"),
    ):
        if getattr(options, old.replace("-", "_")) is not None:
            shown = old.replace("_", ".")
            out.note(
                f"Option --{shown} is deprecated and will be removed in a future version. "
                f"Use --{new} instead."
            )
    if options.new_consumer:
        out.note("--new-consumer has no effect: there is only one consumer")


class Discovery:
    """Finds the partitions to read, and those that are created later."""

    def __init__(
        self, options: argparse.Namespace, cluster: Cluster, consumer: Consumer, out: Output
    ) -> None:
        self._options = options
        self._cluster = cluster
        self._consumer = consumer
        self._out = out
        self._told_missing = False

    async def begin(self, start: OffsetSpec) -> None:
        if self._options.partition is not None:
            await self._begin_one(TopicPartition(self._options.topic, self._options.partition), start)
        else:
            found = await self._partitions(auto_create=True)
            if found:
                await self._consumer.assign_at(found, start)

    async def _begin_one(self, partition: TopicPartition, start: OffsetSpec) -> None:
        offset = self._options.offset
        chosen = start if offset is None else first_offset(offset)
        exists = partition in await self._partitions(auto_create=True)
        if isinstance(chosen, OffsetSpec) and exists:
            await self._consumer.assign_at([partition], chosen)
        else:
            # A partition that does not exist yet starts with its first record.
            self._consumer.assign({partition: 0 if isinstance(chosen, OffsetSpec) else chosen})
        if not exists:
            self._note_missing(f"partition {partition}")

    async def extend(self) -> None:
        """Read partitions that were created since the start, from their first record."""
        if self._options.partition is not None:
            return
        new = [where for where in await self._partitions() if where not in self._consumer.positions]
        if new:
            await self._consumer.assign_at(new, OffsetSpec.EARLIEST)

    async def _partitions(self, *, auto_create: bool = False) -> list[TopicPartition]:
        topic = self._options.topic
        if topic is not None:
            topology = await self._cluster.refresh([topic], auto_create=auto_create)
            names = [topic]
        else:
            topology = await self._cluster.refresh(None)
            pattern = compile_include(self._options.include)
            names = [n for n, each in topology.topics.items() if pattern.fullmatch(n) and not each.internal]
        found = [
            TopicPartition(name, index)
            for name in names
            if name in topology.topics
            for index in topology.topics[name].partitions
        ]
        if not found and self._options.partition is None:
            self._note_missing(f"topic {topic}" if topic else f"a topic that matches {self._options.include}")
        return found

    def _note_missing(self, what: str) -> None:
        if not self._told_missing:
            self._told_missing = True
            self._out.note(f"{what} does not exist yet: waiting for it")


async def follow(
    consumer: Consumer, discovery: Discovery, printer: Printer, options: argparse.Namespace
) -> None:
    """Print records until there are enough, or until none came for the given time."""
    loop = asyncio.get_running_loop()
    patience_s = (
        options.timeout_ms / 1000 if options.timeout_ms is not None and options.timeout_ms >= 0 else None
    )
    last_at, discovered_at = loop.time(), loop.time()
    while not printer.is_done:
        now = loop.time()
        left_ms = POLL_MS if patience_s is None else (last_at + patience_s - now) * 1000
        if left_ms <= 0:
            return
        try:
            records = await consumer.poll(min(left_ms, POLL_MS))
        except DamagedBatch as error:
            if not options.skip_message_on_error:
                raise
            printer.note(f"skipped: {error.message}")
            consumer.assign({error.where: error.next_offset})
            continue
        if records:
            printer.show(records)
            last_at = loop.time()
        elif loop.time() - discovered_at > DISCOVERY_S or not consumer.positions:
            discovered_at = loop.time()
            try:
                await discovery.extend()
            except Unreachable:
                continue  # the fetches reconnect themselves
