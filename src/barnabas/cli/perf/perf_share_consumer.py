"""perf share-consumer: read a number of records in a share group as fast as possible and print the rates.

In: options of kafka-share-consumer-perf-test. Out: its columns. `--threads` is the number of members of the
group; all run on the event loop of this process, each with connections of its own.
"""

import argparse
import asyncio
import time
from datetime import datetime

from barnabas.cli.frame.client_settings import share_limits
from barnabas.cli.frame.connecting import add_bootstrap, cluster_from, load_properties
from barnabas.cli.frame.output import Output
from barnabas.cli.frame.parsing import (
    ToolError,
    ToolParser,
    UsageError,
    check_bootstrap,
    exactly_one,
    key_values,
    required,
)
from barnabas.cli.perf.perf_consumer import DATE_FORMAT, POLL_MS, format_date
from barnabas.cli.perf.perf_numbers import MEGABYTE
from barnabas.client.cluster import Cluster
from barnabas.client.consumers.share_consumer import ShareConsumer, ShareConsumerSettings

EXAMPLES = (
    "--topic load --num-records 1000000",
    "--topic load --num-records 1000000 --threads 10 --show-consumer-stats",
)
HEADER = "start.time, end.time, data.consumed.in.MB, MB.sec, nMsg.sec, data.consumed.in.nMsg, fetch.time.ms"
CLIENT_ID = "perf-share-consumer-client"


def add_arguments(parser: ToolParser) -> None:
    add_bootstrap(parser)
    parser.add_argument("--topic", help="the topic to read (required)")
    parser.add_argument("--group", metavar="ID", default="perf-share-consumer", help="the share group")
    parser.add_argument("--num-records", type=int, metavar="N", help="how many records to read (required)")
    parser.add_argument("--messages", type=int, metavar="N", help=argparse.SUPPRESS)
    parser.add_argument("--threads", type=int, default=1, metavar="N", help="members of the group (1)")
    parser.add_argument(
        "--fetch-size", type=int, default=1_048_576, metavar="BYTES", help="bytes of a response (1048576)"
    )
    parser.add_argument(
        "--timeout",
        nargs="?",
        type=int,
        const=10_000,
        default=10_000,
        metavar="MS",
        help="stop if no record came for so long (10000)",
    )
    parser.add_argument(
        "--show-detailed-stats", action="store_true", help="print a line each --reporting-interval"
    )
    parser.add_argument("--show-consumer-stats", action="store_true", help="print a line for each member")
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
    parser.add_argument("--socket-buffer-size", type=int, metavar="N", help=argparse.SUPPRESS)
    parser.add_argument("--print-metrics", action="store_true", help=argparse.SUPPRESS)


async def run(options: argparse.Namespace, out: Output) -> None:
    check_options(options, out)
    properties = load_properties(options.command_config or options.consumer_config)
    properties |= key_values(options.command_property)
    properties.setdefault("fetch.max.bytes", str(options.fetch_size))
    client_id = properties.get("client.id", CLIENT_ID)
    names = [client_id if options.threads == 1 else f"{client_id}-{i + 1}" for i in range(options.threads)]
    if not options.hide_header:
        out.line(HEADER)
        out.flush()
    settings = ShareConsumerSettings(options.group, limits=share_limits(properties))
    readers = [
        Reader(index + 1, cluster_from(options, {**properties, "client.id": name}), settings)
        for index, name in enumerate(names)
    ]
    test = PerfTest(options, out, readers)
    try:
        await test.run()
        if options.show_consumer_stats:
            for reader, name in zip(readers, names, strict=True):
                shown = test.stats(reader.size_bytes, reader.records)
                out.line(
                    f"Share consumer {reader.index} having client id {name} consumption metrics- {shown}"
                )
        if test.records < options.num_records:
            out.line(
                "WARNING: Exiting before consuming the expected number of records: timeout "
                f"({options.timeout} ms) exceeded. You can use the --timeout option to increase the timeout."
            )
        await asyncio.gather(*(reader.consumer.commit() for reader in readers))
        out.line(test.stats(sum(reader.size_bytes for reader in readers), test.records))
    finally:
        await asyncio.gather(*(reader.close() for reader in readers))


def check_options(options: argparse.Namespace, out: Output) -> None:
    required(options, "topic", "bootstrap-server")
    exactly_one(options, "messages", "num-records")
    if options.consumer_config is not None and options.command_config is not None:
        raise UsageError('Option "[consumer.config]" can\'t be used with option "[command-config]"')
    check_bootstrap(options.bootstrap_server)
    if options.messages is not None:
        out.note("Warning: --messages is deprecated. Use --num-records instead.")
        options.num_records = options.messages
    if options.consumer_config is not None:
        out.note("Warning: --consumer.config is deprecated. Use --command-config instead.")
    if options.reporting_interval <= 0:
        raise ToolError("Reporting interval must be greater than 0.")
    if options.threads <= 0:
        raise ToolError("--threads should be greater than zero.")


class Reader:
    """One member of the group, and what it has read."""

    def __init__(self, index: int, cluster: Cluster, settings: ShareConsumerSettings) -> None:
        self.index = index
        self.consumer = ShareConsumer(cluster, settings)
        self.records = self.size_bytes = 0
        self._cluster = cluster

    async def close(self) -> None:
        await self.consumer.close()
        await self._cluster.close()


class PerfTest:
    def __init__(self, options: argparse.Namespace, out: Output, readers: list[Reader]) -> None:
        self._options = options
        self._out = out
        self._readers = readers
        self._began = self._ended = time.time()

    @property
    def records(self) -> int:
        return sum(reader.records for reader in self._readers)

    async def run(self) -> None:
        for reader in self._readers:
            await reader.consumer.subscribe([self._options.topic])
        self._began = time.time()
        await asyncio.gather(*map(self._read, self._readers))
        self._ended = time.time()

    async def _read(self, reader: Reader) -> None:
        last_at = window_began = time.time()
        window_records = window_bytes = 0
        while self.records < self._options.num_records:
            records = await reader.consumer.poll(POLL_MS)
            now = time.time()
            if records:
                last_at = now
                reader.records += len(records)
                reader.size_bytes += sum(len(each.key or b"") + len(each.value or b"") for each in records)
            elif now - last_at > self._options.timeout / 1000:
                return
            if records and now - window_began >= self._options.reporting_interval / 1000:
                if self._options.show_detailed_stats:
                    self._print_window(reader, window_began, now, window_records, window_bytes)
                window_began, window_records, window_bytes = now, reader.records, reader.size_bytes

    def _print_window(self, reader: Reader, began: float, now: float, records: int, size: int) -> None:
        seconds = max(now - began, 0.001)
        self._out.line(
            f"{self._moment(began)}, {self._moment(now)}, {reader.size_bytes / MEGABYTE:.4f}, "
            f"{(reader.size_bytes - size) / MEGABYTE / seconds:.4f}, "
            f"{(reader.records - records) / seconds:.4f}, {reader.records}, {int(seconds * 1000)} "
            f"for share consumer {reader.index}"
        )
        self._out.flush()

    def stats(self, size_bytes: int, records: int) -> str:
        seconds = max(self._ended - self._began, 0.001)
        megabytes = size_bytes / MEGABYTE
        return (
            f"{self._moment(self._began)}, {self._moment(self._ended)}, {megabytes:.4f}, "
            f"{megabytes / seconds:.4f}, {records / seconds:.4f}, {records}, {int(seconds * 1000)}"
        )

    def _moment(self, at: float) -> str:
        return format_date(self._options.date_format, datetime.fromtimestamp(at))
