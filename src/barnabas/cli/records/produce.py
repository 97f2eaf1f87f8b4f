"""produce: write every line of standard input as a record, with the options of kafka-console-producer.

In: options, lines. Out: records in a topic. If records cannot be written, the tool prints the error to
standard error and ends with status 1; Kafka's own tool only logs it.
"""

import argparse
import asyncio
import os
import stat
import sys
from collections.abc import AsyncIterator

from barnabas.cli.frame.client_settings import PRODUCER_NAMES, producer_settings, without_effect
from barnabas.cli.frame.connecting import add_bootstrap, cluster_from, load_properties
from barnabas.cli.frame.output import Output
from barnabas.cli.frame.parsing import ToolError, ToolParser, check_bootstrap, key_values, required
from barnabas.cli.frame.progress import progress
from barnabas.cli.records.line_reader import LineReader
from barnabas.client.accumulator import PendingBatch
from barnabas.client.core.errors import ClientError
from barnabas.client.producer import Producer
from barnabas.protocol import KafkaError

EXAMPLES = (
    "--topic greetings",
    "--topic orders --reader-property parse.key=true --reader-property key.separator=:",
    "--topic orders --compression-codec zstd < orders.txt",
)
LINE_READERS = {"org.apache.kafka.tools.LineMessageReader", "kafka.tools.ConsoleProducer$LineMessageReader"}
READ_BYTES = 1 << 18
FAILURES_SHOWN_MAX = 10

# Kafka's option, the producer setting it sets, and the default of the console producer.
SETTING_OPTIONS = (
    ("--compression-codec", "compression.type", "none"),
    ("--batch-size", "batch.size", "16384"),
    ("--message-send-max-retries", "retries", "3"),
    ("--retry-backoff-ms", "retry.backoff.ms", "100"),
    ("--timeout", "linger.ms", "1000"),
    ("--request-required-acks", "acks", "-1"),
    ("--request-timeout-ms", "request.timeout.ms", "1500"),
    ("--max-block-ms", "max.block.ms", "60000"),
    ("--max-memory-bytes", "buffer.memory", "33554432"),
)
WITHOUT_EFFECT = ("--metadata-expiry-ms", "--socket-buffer-size")


def add_arguments(parser: ToolParser) -> None:
    add_bootstrap(parser)
    parser.add_argument("--topic", help="the topic to write to (required)")
    parser.add_argument("--sync", action="store_true", help="wait for each record before sending the next")
    for option, setting, default in SETTING_OPTIONS:
        if option == "--compression-codec":
            parser.add_argument(
                option,
                nargs="?",
                const="gzip",
                help="none, gzip, snappy, lz4 or zstd (without a value: gzip)",
            )
        elif setting == "acks":
            parser.add_argument(option, metavar="ACKS", help=f"-1 or all, 0, 1 (default: {default})")
        else:
            parser.add_argument(
                option, type=int, metavar="N", help=f"the producer's {setting} (default: {default})"
            )
    parser.add_argument("--max-partition-memory-bytes", type=int, metavar="N", help=argparse.SUPPRESS)
    for option in WITHOUT_EFFECT:
        parser.add_argument(option, type=int, metavar="N", help=argparse.SUPPRESS)
    parser.add_argument("--line-reader", metavar="CLASS", help=argparse.SUPPRESS)
    parser.add_argument(
        "--property", action="append", metavar="NAME=VALUE", help="old name of --reader-property"
    )
    parser.add_argument(
        "--reader-property",
        action="append",
        metavar="NAME=VALUE",
        help="how to read a line: parse.key=true, key.separator=:, parse.headers=true, headers.delimiter, "
        "headers.separator, headers.key.separator, null.marker, ignore.error; may be repeated",
    )
    parser.add_argument("--reader-config", metavar="FILE", help="a file of such properties")
    parser.add_argument(
        "--command-property", action="append", metavar="NAME=VALUE", help="a producer setting"
    )
    parser.add_argument("--producer-property", action="append", metavar="NAME=VALUE", help=argparse.SUPPRESS)
    parser.add_argument("--command-config", metavar="FILE", help="a file of producer settings")
    parser.add_argument("--producer.config", dest="producer_config", metavar="FILE", help=argparse.SUPPRESS)


async def run(options: argparse.Namespace, out: Output) -> int:
    required(options, "topic", "bootstrap-server")
    check_bootstrap(options.bootstrap_server)
    deprecations(options, out)
    reader = LineReader(reader_properties(options))
    properties = producer_properties(options)
    for name in without_effect(properties, PRODUCER_NAMES):
        out.note(f"the producer setting {name} has no effect in this tool")
    failures = Failures(options.topic, out)
    settings = producer_settings(properties)
    async with cluster_from(options, properties, client_id="console-producer") as cluster:
        producer = Producer(cluster, settings, on_failure=failures.add)
        try:
            await send_lines(producer, reader, options)
        finally:
            await producer.flush()
            await producer.close()
    return failures.status()


async def send_lines(producer: Producer, reader: LineReader, options: argparse.Namespace) -> None:
    total = input_size()
    with progress(f"sending to {options.topic}", total, size_bytes=True) as advance:
        async for lines in read_lines():
            for line in lines:
                key, value, headers = reader.read(line)
                sent = await producer.send(options.topic, value, key, headers=headers)
                if options.sync:
                    await sent
                advance(len(line) + 1)


async def read_lines() -> AsyncIterator[list[bytes]]:
    """Yield lines as they arrive, without waiting for a full buffer of a terminal or a slow pipe."""
    prompting = sys.stdin.isatty() and sys.stdout.isatty()
    rest = b""
    while True:
        if prompting:
            sys.stdout.write(">")
            sys.stdout.flush()
        data = await read_some(sys.stdin.fileno())
        if not data:
            break
        *lines, rest = (rest + data).split(b"\n")
        yield [line.removesuffix(b"\r") for line in lines]
    if rest:
        yield [rest.removesuffix(b"\r")]


async def read_some(descriptor: int) -> bytes:
    """Wait for input without a thread: Ctrl-C could not end a thread that waits for a terminal."""
    loop = asyncio.get_running_loop()
    readable = asyncio.Event()
    try:
        loop.add_reader(descriptor, readable.set)
    except PermissionError:  # a regular file is always ready
        await asyncio.sleep(0)
        return os.read(descriptor, READ_BYTES)
    try:
        await readable.wait()
    finally:
        loop.remove_reader(descriptor)
    return os.read(descriptor, READ_BYTES)


def input_size() -> int | None:
    status = os.fstat(sys.stdin.fileno())
    return status.st_size if stat.S_ISREG(status.st_mode) else None


def reader_properties(options: argparse.Namespace) -> dict[str, str]:
    if options.line_reader is not None and options.line_reader not in LINE_READERS:
        known = ", ".join(sorted(LINE_READERS))
        raise ToolError(
            f"--line-reader {options.line_reader}: this tool has no such reader, it knows {known}"
        )
    given = key_values([*(options.property or ()), *(options.reader_property or ())])
    return load_properties(options.reader_config) | given


def producer_properties(options: argparse.Namespace) -> dict[str, str]:
    """The producer settings: an option wins over a property, and a property over a default, as in Kafka's."""
    properties = load_properties(options.command_config or options.producer_config)
    properties |= key_values([*(options.producer_property or ()), *(options.command_property or ())])
    for option, name, default in SETTING_OPTIONS:
        value = getattr(options, option.removeprefix("--").replace("-", "_"))
        if value is not None:
            properties[name] = str(value)
        else:
            properties.setdefault(name, default)
    if options.max_partition_memory_bytes is not None:
        properties["batch.size"] = str(options.max_partition_memory_bytes)
    return properties


def deprecations(options: argparse.Namespace, out: Output) -> None:
    for old, new in (
        ("property", "reader-property"),
        ("producer-property", "command-property"),
        ("producer_config", "command-config"),
        ("max-partition-memory-bytes", "batch-size"),
    ):
        if getattr(options, old.replace("-", "_")) is not None:
            shown = old.replace("_", ".")
            out.note(
                f"Warning: --{shown} is deprecated and will be removed in a future version. "
                f"Use --{new} instead."
            )
    for option in WITHOUT_EFFECT:
        if getattr(options, option.removeprefix("--").replace("-", "_")) is not None:
            out.note(f"{option} has no effect in this tool")


class Failures:
    """Records that were not written: counts all, and prints the first few errors."""

    def __init__(self, topic: str, out: Output) -> None:
        self._topic = topic
        self._out = out
        self._batches = 0
        self._records = 0

    def add(self, batch: PendingBatch, error: KafkaError | ClientError) -> None:
        self._batches += 1
        self._records += len(batch.records)
        if self._batches <= FAILURES_SHOWN_MAX:
            reason = error.message if isinstance(error, KafkaError) else str(error)
            self._out.note(f"{len(batch.records)} records for {batch.where} were not written: {reason}")

    def status(self) -> int:
        if self._records and self._batches > 1:
            self._out.note(f"{self._records} records were not written to {self._topic}")
        return 1 if self._records else 0
