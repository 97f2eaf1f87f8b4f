"""share-consume: print records as a member of a share group, as kafka-console-share-consumer.

In: options. Out: formatted records, and at the end a count on standard error. Each record is accepted when it
is printed (or released, or rejected); records that were fetched and not printed are released at the end.
"""

import argparse
import asyncio

from barnabas.cli.frame.client_settings import SHARE_NAMES, share_limits, without_effect
from barnabas.cli.frame.connecting import add_bootstrap, cluster_from, load_properties
from barnabas.cli.frame.ending import end_by_signal
from barnabas.cli.frame.output import Output, end_when_reader_closes
from barnabas.cli.frame.parsing import ToolError, ToolParser, UsageError, key_values
from barnabas.cli.records.consume import formatter_properties
from barnabas.cli.records.formatters import formatter
from barnabas.cli.records.record_printer import UNLIMITED
from barnabas.client.consumers.share_consumer import ShareConsumer, ShareConsumerSettings
from barnabas.client.core.acknowledgements import AcknowledgeType
from barnabas.client.core.share_fetching import ShareRecord

EXAMPLES = (
    "--topic orders --group workers",
    "--topic orders --group workers --max-messages 10 --timeout-ms 5000",
    "--topic orders --group workers --formatter-property print.delivery=true --release",
)
DEFAULT_GROUP = "console-share-consumer"
POLL_MS = 1_000


def add_arguments(parser: ToolParser) -> None:
    add_bootstrap(parser)
    parser.add_argument("--topic", help="the topic to read (required)")
    parser.add_argument("--group", metavar="ID", help=f"the share group to join (default: {DEFAULT_GROUP})")
    parser.add_argument("--max-messages", type=int, metavar="N", help="stop after this many (default: never)")
    parser.add_argument("--timeout-ms", type=int, metavar="MS", help="stop if no record came for so long")
    parser.add_argument("--reject", action="store_true", help="reject records instead of accepting them")
    parser.add_argument("--release", action="store_true", help="release records, to be delivered again")
    parser.add_argument(
        "--reject-message-on-error", action="store_true", help="reject records that cannot be printed"
    )
    parser.add_argument(
        "--formatter-property",
        action="append",
        metavar="NAME=VALUE",
        help="what to print: print.key, print.timestamp, print.partition, print.offset, print.delivery, "
        "print.headers, print.value (true or false), key.separator, line.separator, headers.separator, "
        "null.literal, key.deserializer, value.deserializer, headers.deserializer; may be repeated",
    )
    parser.add_argument("--formatter-config", metavar="FILE", help="a file of such properties")
    parser.add_argument("--property", action="append", metavar="NAME=VALUE", help=argparse.SUPPRESS)
    parser.add_argument("--formatter", metavar="CLASS", help="the formatter, by Kafka's class name")
    parser.add_argument("--key-deserializer", metavar="CLASS", help="e.g. LongDeserializer")
    parser.add_argument("--value-deserializer", metavar="CLASS", help="e.g. LongDeserializer")
    parser.add_argument(
        "--command-property", action="append", metavar="NAME=VALUE", help="a consumer setting"
    )
    parser.add_argument("--consumer-property", action="append", metavar="NAME=VALUE", help=argparse.SUPPRESS)
    parser.add_argument("--command-config", metavar="FILE", help="a file of consumer settings")
    parser.add_argument("--consumer-config", metavar="FILE", help=argparse.SUPPRESS)
    parser.add_argument("--enable-systest-events", action="store_true", help=argparse.SUPPRESS)


async def run(options: argparse.Namespace, out: Output) -> None:
    check_options(options)
    deprecations(options, out)
    properties = load_properties(options.command_config or options.consumer_config)
    given = key_values(options.command_property or options.consumer_property)
    group = group_of(options.group, properties, given)
    properties |= given
    printer = SharePrinter(options, out)
    for name in without_effect(properties, SHARE_NAMES):
        out.note(f"the consumer setting {name} has no effect in this tool")
    settings = ShareConsumerSettings(
        group, explicit=True, limits=share_limits(properties), rack_id=properties.get("client.rack")
    )
    async with cluster_from(options, properties, client_id="console-share-consumer") as cluster:
        consumer = ShareConsumer(cluster, settings)
        try:
            await cluster.refresh()
            await consumer.subscribe([options.topic])
            with end_when_reader_closes(), end_by_signal():
                await printer.read(consumer)
        finally:
            await consumer.close()
            out.note(f"Processed a total of {printer.count} messages")
            if options.enable_systest_events:
                out.line("shutdown_complete")


class SharePrinter:
    """Prints records and acknowledges them, up to a limit."""

    def __init__(self, options: argparse.Namespace, out: Output) -> None:
        self._write = formatter(options.formatter, formatter_properties(options))
        self._out = out
        self._kind = acknowledge_type(options)
        self._rejects_errors: bool = options.reject_message_on_error
        limit = options.max_messages
        self._limit: int | None = None if limit in (None, UNLIMITED) else limit
        self._timeout_ms: int | None = options.timeout_ms if (options.timeout_ms or -1) >= 0 else None
        self.count = 0

    async def read(self, consumer: ShareConsumer) -> None:
        loop = asyncio.get_running_loop()
        last_at = loop.time()
        while self._limit is None or self.count < self._limit:
            left_ms: float = POLL_MS
            if self._timeout_ms is not None:
                left_ms = min(POLL_MS, last_at * 1000 + self._timeout_ms - loop.time() * 1000)
            if left_ms <= 0:
                return
            records = await consumer.poll(left_ms)
            if not records:
                continue
            last_at = loop.time()
            if not self._print(consumer, records):
                return  # the consumer closes: what was not printed is released

    def _print(self, consumer: ShareConsumer, records: list[ShareRecord]) -> bool:
        """Print records; False when the limit is reached before all are printed."""
        for record in records:
            if self._limit is not None and self.count >= self._limit:
                return False
            self.count += 1
            try:
                self._out.bytes(self._write(record))
            except ToolError as error:
                where = f"{record.topic}-{record.partition}, offset {record.offset}"
                if not self._rejects_errors:
                    raise ToolError(f"cannot print the record at {where}: {error}") from None
                self._out.note(f"rejected the record at {where}: {error}")
                consumer.acknowledge(record, AcknowledgeType.REJECT)
            else:
                consumer.acknowledge(record, self._kind)
        self._out.flush()
        return True


def acknowledge_type(options: argparse.Namespace) -> AcknowledgeType:
    if options.reject:
        return AcknowledgeType.REJECT
    return AcknowledgeType.RELEASE if options.release else AcknowledgeType.ACCEPT


def check_options(options: argparse.Namespace) -> None:
    if options.topic is None:
        raise UsageError("--topic is a required argument")
    if options.bootstrap_server is None:
        raise UsageError('Missing required argument "[bootstrap-server]"')
    if options.reject and options.release:
        raise UsageError("At most one of --reject and --release may be specified.")
    for old, new in (
        ("consumer_property", "command_property"),
        ("consumer_config", "command_config"),
        ("property", "formatter_property"),
    ):
        if getattr(options, old) is not None and getattr(options, new) is not None:
            names = " and ".join(f"--{name.replace('_', '-')}" for name in (old, new))
            raise UsageError(f"Options {names} cannot be specified together.")


def deprecations(options: argparse.Namespace, out: Output) -> None:
    for old, new in (
        ("consumer-property", "command-property"),
        ("consumer-config", "command-config"),
        ("property", "formatter-property"),
    ):
        if getattr(options, old.replace("-", "_")) is not None:
            out.note(
                f"Option --{old} is deprecated and will be removed in a future version. Use --{new} instead."
            )


def group_of(option: str | None, *sources: dict[str, str]) -> str:
    """The group, which must be the same wherever it is given."""
    given = [option, *(properties.get("group.id") for properties in sources)]
    groups = list(dict.fromkeys(group for group in given if group is not None))
    if len(groups) > 1:
        shown = ", ".join(f"'{group}'" for group in groups)
        raise UsageError(
            "The group ids provided in different places (directly using '--group', via "
            "'--consumer-property', or via '--consumer-config') do not match. "
            f"Detected group ids: {shown}"
        )
    return groups[0] if groups else DEFAULT_GROUP
