"""perf consumer: read a number of records as fast as possible and print the rates.

In: options of kafka-consumer-perf-test. Out: its columns. Without --group this process reads all partitions,
with librdkafka if it is installed and with our client otherwise, and `rebalance.time.ms` is 0. With --group
`rebalance.time.ms` is the time until librdkafka has joined the group and has partitions.
"""

import argparse
import asyncio
import re
import time
from collections.abc import Callable
from datetime import datetime
from typing import Any

from barnabas.cli.frame import librdkafka
from barnabas.cli.frame.client_settings import consumer_settings
from barnabas.cli.frame.connecting import add_bootstrap, cluster_from, load_properties
from barnabas.cli.frame.output import Output
from barnabas.cli.frame.parsing import (
    ToolError,
    ToolParser,
    check_bootstrap,
    exactly_one,
    key_values,
    required,
)
from barnabas.cli.frame.progress import progress
from barnabas.cli.perf.perf_numbers import MEGABYTE
from barnabas.cli.records.consume_group import choose_membership, group_of
from barnabas.client.admin.offsets import FoundOffset, OffsetAdmin, OffsetSpec
from barnabas.client.cluster import Cluster
from barnabas.client.consumer import Consumer
from barnabas.client.core.topology import TopicPartition

EXAMPLES = ("--topic load --num-records 1000000", "--topic load --num-records 1000000 --show-detailed-stats")
EXTRA_COLUMNS = ", rebalance.time.ms, fetch.time.ms, fetch.MB.sec, fetch.nMsg.sec"
DATE_FORMAT = "yyyy-MM-dd HH:mm:ss:SSS"
DATE_LETTERS = {
    "yyyy": "%Y",
    "yy": "%y",
    "MM": "%m",
    "dd": "%d",
    "HH": "%H",
    "hh": "%I",
    "mm": "%M",
    "ss": "%S",
    "a": "%p",
    "EEE": "%a",
}
POLL_MS = 100
CONSUME_AT_ONCE = 10_000


def add_arguments(parser: ToolParser) -> None:
    parser.old_spellings |= {"--whitelist": "--include"}
    add_bootstrap(parser)
    parser.add_argument("--topic", help="the topic to read")
    parser.add_argument("--include", metavar="REGEX", help="or all topics whose name matches")
    parser.add_argument("--num-records", type=int, metavar="N", help="how many records to read (required)")
    parser.add_argument("--messages", type=int, metavar="N", help=argparse.SUPPRESS)
    parser.add_argument("--from-latest", action="store_true", help="start at the end of the log")
    parser.add_argument(
        "--fetch-size", type=int, default=1_048_576, metavar="BYTES", help="bytes of a partition in a fetch"
    )
    parser.add_argument(
        "--timeout", type=int, default=10_000, metavar="MS", help="stop if no record came for so long (10000)"
    )
    parser.add_argument(
        "--show-detailed-stats", action="store_true", help="print a line each --reporting-interval"
    )
    parser.add_argument(
        "--reporting-interval", type=int, default=5_000, metavar="MS", help="time between lines (5000)"
    )
    parser.add_argument("--hide-header", action="store_true", help="no line with the names of the columns")
    parser.add_argument("--date-format", default=DATE_FORMAT, metavar="FORMAT", help=f"({DATE_FORMAT})")
    parser.add_argument(
        "--command-property", action="append", metavar="NAME=VALUE", help="a consumer setting"
    )
    parser.add_argument("--command-config", metavar="FILE", help="a file of consumer settings")
    parser.add_argument("--consumer.config", dest="consumer_config", metavar="FILE", help=argparse.SUPPRESS)
    parser.add_argument("--group", metavar="ID", help="the consumer group to join (default: none)")
    parser.add_argument("--socket-buffer-size", type=int, metavar="N", help=argparse.SUPPRESS)
    parser.add_argument("--print-metrics", action="store_true", help=argparse.SUPPRESS)


async def run(options: argparse.Namespace, out: Output) -> None:
    required(options, "bootstrap-server")
    exactly_one(options, "topic", "include")
    exactly_one(options, "messages", "num-records")
    check_bootstrap(options.bootstrap_server)
    if options.messages is not None:
        out.note("Warning: --messages is deprecated. Use --num-records instead.")
        options.num_records = options.messages
    if options.reporting_interval <= 0:
        raise ToolError("Reporting interval must be greater than 0.")
    properties = load_properties(options.command_config or options.consumer_config)
    properties |= key_values(options.command_property)
    properties.setdefault("max.partition.fetch.bytes", str(options.fetch_size))
    group = group_of(options.group, properties)
    out.note(f"engine: {librdkafka.engine_name()}")
    async with cluster_from(options, properties, client_id="perf-consumer-client") as cluster:
        positions = await first_positions(cluster, options)
        await choose_membership(cluster, group, by_default=False)  # raises if no group can be joined
        report = Report(options, out)
        configuration = librdkafka.settings(properties) | {"bootstrap.servers": options.bootstrap_server}
        if group is not None:
            configuration["auto.offset.reset"] = "latest" if options.from_latest else "earliest"
            topics = sorted({topic_partition.topic for topic_partition in positions})
            await asyncio.to_thread(as_member, configuration | {"group.id": group}, topics, report)
        elif librdkafka.is_installed():
            await asyncio.to_thread(with_librdkafka, configuration, positions, report)
        else:
            await with_light_client(cluster, properties, positions, report)
    report.finish()


async def first_positions(cluster: Cluster, options: argparse.Namespace) -> dict[TopicPartition, int]:
    topology = await cluster.refresh(None if options.topic is None else [options.topic])
    if options.topic is not None:
        await cluster.partitions_of(options.topic)
        names = [options.topic]
    else:
        pattern = re.compile(options.include)
        names = [
            name for name, each in topology.topics.items() if pattern.fullmatch(name) and not each.internal
        ]
    wanted = [
        TopicPartition(name, index) for name in names for index in cluster.topology.topics[name].partitions
    ]
    if not wanted:
        raise ToolError(f"no topic matches --include {options.include}")
    spec = OffsetSpec.LATEST if options.from_latest else OffsetSpec.EARLIEST
    found = await OffsetAdmin(cluster).list_offsets(dict.fromkeys(wanted, spec))
    return {
        topic_partition: each.offset
        for topic_partition, each in found.items()
        if isinstance(each, FoundOffset)
    }


class Report:
    """Bytes and records so far, in Kafka's lines."""

    def __init__(self, options: argparse.Namespace, out: Output) -> None:
        self._options = options
        self._out = out
        self.wanted: int = options.num_records
        self.timeout_s: float = options.timeout / 1000
        self.records = self._bytes = 0
        self._window_records = self._window_bytes = 0
        self._began = self._window_began = self._last_at = time.time()
        self._rebalance_s = 0.0
        if not options.hide_header:
            first = "time, threadId" if options.show_detailed_stats else "start.time, end.time"
            columns = "data.consumed.in.MB, MB.sec, data.consumed.in.nMsg, nMsg.sec"
            out.line(f"{first}, {columns}{EXTRA_COLUMNS}")
            out.flush()

    @property
    def is_done(self) -> bool:
        return self.records >= self.wanted or time.time() - self._last_at > self.timeout_s

    def assigned(self) -> None:
        """Note that the group has assigned partitions: the time until now was the rebalance."""
        if not self._rebalance_s:
            self._rebalance_s = time.time() - self._began
            self._last_at = time.time()

    def add(self, records: int, size_bytes: int) -> None:
        now = time.time()
        if records:
            self._last_at = now
            self.records += records
            self._bytes += size_bytes
        if self._options.show_detailed_stats and now - self._window_began >= self._interval_s:
            self._print_window(now)

    @property
    def _interval_s(self) -> float:
        return float(self._options.reporting_interval) / 1000

    def _print_window(self, now: float) -> None:
        records, size = self.records - self._window_records, self._bytes - self._window_bytes
        seconds = max(now - self._window_began, 0.001)
        rates = f"{size / MEGABYTE / seconds:.4f}, {records / seconds:.4f}".split(", ")
        self._out.line(
            f"{self._moment(now)}, 0, {self._bytes / MEGABYTE:.4f}, {rates[0]}, {self.records}, {rates[1]}, "
            f"0, {int(seconds * 1000)}, {rates[0]}, {rates[1]}"
        )
        self._out.flush()
        self._window_records, self._window_bytes, self._window_began = self.records, self._bytes, now

    def finish(self) -> None:
        now = self._last_at if self.records >= self.wanted else time.time()
        if self.records < self.wanted:
            self._out.line(
                "WARNING: Exiting before consuming the expected number of records: timeout "
                f"({self._options.timeout} ms) exceeded. You can use the --timeout option to increase the "
                "timeout."
            )
        if self._options.show_detailed_stats:
            return
        seconds = max(now - self._began, 0.001)
        fetching = max(seconds - self._rebalance_s, 0.001)
        megabytes = self._bytes / MEGABYTE
        self._out.line(
            f"{self._moment(self._began)}, {self._moment(now)}, {megabytes:.4f}, {megabytes / seconds:.4f}, "
            f"{self.records}, {self.records / seconds:.4f}, {int(self._rebalance_s * 1000)}, "
            f"{int(fetching * 1000)}, {megabytes / fetching:.4f}, {self.records / fetching:.4f}"
        )

    def _moment(self, at: float) -> str:
        return format_date(self._options.date_format, datetime.fromtimestamp(at))


def format_date(pattern: str, moment: datetime) -> str:
    """Format a date by a pattern of java.text.SimpleDateFormat."""

    def piece(match: re.Match[str]) -> str:
        letters = match[0]
        if set(letters) == {"S"}:
            return f"{moment.microsecond // 1000:0{len(letters)}}"
        return moment.strftime(DATE_LETTERS[letters]) if letters in DATE_LETTERS else letters

    return re.sub(r"([a-zA-Z])\1*", piece, pattern)


def with_librdkafka(
    configuration: dict[str, Any], positions: dict[TopicPartition, int], report: Report
) -> None:
    from confluent_kafka import TopicPartition as Place

    configuration |= {"group.id": "perf-consumer", "enable.auto.commit": False}
    consumer = librdkafka.make("Consumer", configuration)
    places = [
        Place(topic_partition.topic, topic_partition.partition, offset)
        for topic_partition, offset in positions.items()
    ]
    drain(consumer, report, lambda: consumer.assign(places))


def as_member(configuration: dict[str, Any], topics: list[str], report: Report) -> None:
    consumer = librdkafka.make("Consumer", configuration)
    drain(
        consumer,
        report,
        lambda: consumer.subscribe(topics, on_assign=lambda _, partitions: report.assigned()),
    )


def drain(consumer: Any, report: Report, begin: Callable[[], None]) -> None:
    try:
        begin()
        with progress("reading", report.wanted) as advance:
            while not report.is_done:
                messages = consumer.consume(CONSUME_AT_ONCE, POLL_MS / 1000)
                records = [each for each in messages if each.error() is None]
                report.add(len(records), sum(len(each) + len(each.key() or b"") for each in records))
                advance(len(records))
    finally:
        consumer.close()


async def with_light_client(
    cluster: Cluster, properties: dict[str, str], positions: dict[TopicPartition, int], report: Report
) -> None:
    consumer = Consumer(cluster, consumer_settings(properties))
    consumer.assign(positions)
    try:
        with progress("reading", report.wanted) as advance:
            while not report.is_done:
                records = await consumer.poll(POLL_MS)
                report.add(len(records), sum(len(r.value or b"") + len(r.key or b"") for r in records))
                advance(len(records))
    finally:
        await consumer.close()
