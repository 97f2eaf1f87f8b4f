"""perf producer: send records as fast as possible, or at a given rate, and print rate and latency.

In: options of kafka-producer-perf-test. Out: its lines. The tool uses librdkafka if it is installed, else our
own client. It names the client on standard error, because the numbers depend on it.
"""

import argparse
import asyncio
import random
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

from barnabas.cli.frame import librdkafka
from barnabas.cli.frame.client_settings import producer_settings
from barnabas.cli.frame.connecting import add_bootstrap, cluster_from, load_properties
from barnabas.cli.frame.output import Output
from barnabas.cli.frame.parsing import ToolError, ToolParser, UsageError, check_bootstrap, key_values
from barnabas.cli.frame.progress import progress
from barnabas.cli.perf.perf_numbers import ProducerStats, Throttle
from barnabas.client.accumulator import SentRecord
from barnabas.client.cluster import Cluster
from barnabas.client.producer import Producer

EXAMPLES = (
    "--topic load --num-records 1000000 --record-size 100 --throughput -1",
    "--topic load --num-records 50000 --record-size 1000 --throughput 5000 --command-property acks=1",
)
DEFAULT_TRANSACTION_MS = 3_000
IN_FLIGHT_MAX = 10_000
POLL_EVERY = 1_000
FLUSH_S = 120.0

Payload = Callable[[int], bytes]


def add_arguments(parser: ToolParser) -> None:
    add_bootstrap(parser)
    parser.add_argument("--topic", help="the topic to write to (required)")
    parser.add_argument("--num-records", type=int, metavar="N", help="how many records to send (required)")
    parser.add_argument("--record-size", type=int, metavar="BYTES", help="size of each record")
    parser.add_argument(
        "--payload-file", metavar="FILE", help="or take records from this file, in random order"
    )
    parser.add_argument(
        "--payload-delimiter", default="\\n", metavar="TEXT", help="separator of the records in it"
    )
    parser.add_argument("--payload-monotonic", action="store_true", help="or send numbers from 0 on")
    parser.add_argument(
        "--throughput", type=float, metavar="N", help="records a second, -1 for no limit (required)"
    )
    parser.add_argument(
        "--command-property", nargs="+", action="extend", metavar="NAME=VALUE", help="producer settings"
    )
    parser.add_argument(
        "--producer-props", nargs="+", action="extend", metavar="NAME=VALUE", help=argparse.SUPPRESS
    )
    parser.add_argument("--command-config", metavar="FILE", help="a file of producer settings")
    parser.add_argument("--producer.config", dest="producer_config", metavar="FILE", help=argparse.SUPPRESS)
    parser.add_argument(
        "--warmup-records", type=int, default=0, metavar="N", help="records that a second total leaves out"
    )
    parser.add_argument(
        "--reporting-interval", type=int, default=5_000, metavar="MS", help="time between lines (5000)"
    )
    parser.add_argument("--transactional-id", metavar="ID", help="send in transactions")
    parser.add_argument(
        "--transaction-duration-ms", type=int, metavar="MS", help="how long each may take (3000)"
    )
    parser.add_argument("--print-metrics", action="store_true", help=argparse.SUPPRESS)


def run(options: argparse.Namespace, out: Output) -> Any:
    check_options(options, out)
    properties = producer_properties(options)
    payload = payloads(options)
    report = Report(options, out)
    out.note(f"engine: {librdkafka.engine_name()}")
    if librdkafka.is_installed():
        with_librdkafka(options, properties, payload, report)
        return 0
    if options.transactional_id or options.transaction_duration_ms:
        raise ToolError("transactions need librdkafka: pip install confluent-kafka")
    return with_light_client(options, properties, payload, report)


def check_options(options: argparse.Namespace, out: Output) -> None:
    for name in ("topic", "num-records", "throughput"):
        if getattr(options, name.replace("-", "_")) is None:
            raise UsageError(f"argument --{name} is required")
    if options.num_records <= 0:
        raise UsageError("--num-records should be greater than zero.")
    chosen = [options.record_size is not None, options.payload_file is not None, options.payload_monotonic]
    if sum(chosen) != 1:
        raise UsageError(
            "exactly one of the arguments --record-size --payload-file --payload-monotonic is required"
        )
    if options.record_size is not None and options.record_size <= 0:
        raise UsageError("--record-size should be greater than zero.")
    if not 0 <= options.warmup_records < options.num_records:
        raise UsageError(
            "The value for --warmup-records must be strictly fewer than the number of records in the test."
        )
    if options.transaction_duration_ms is not None and options.transaction_duration_ms <= 0:
        raise UsageError("--transaction-duration-ms should be greater than zero.")
    for old, new in (("producer_props", "command-property"), ("producer_config", "command-config")):
        if getattr(options, old) is not None:
            shown = "producer-props" if old == "producer_props" else "producer.config"
            out.note(
                f"Option --{shown} has been deprecated and will be removed in a future version. "
                f"Use --{new} instead."
            )
    if options.print_metrics:
        out.note("--print-metrics has no effect in this tool")


def producer_properties(options: argparse.Namespace) -> dict[str, str]:
    properties = load_properties(options.command_config or options.producer_config)
    properties |= key_values([*(options.producer_props or ()), *(options.command_property or ())])
    given = properties.get("bootstrap.servers")
    # A property wins over our default address, but not over an address on the command line.
    if given is None or not is_default(options):
        if options.bootstrap_server is None:
            raise UsageError(
                "At least one of --bootstrap-server, --command-property or --command-config is required"
            )
        properties["bootstrap.servers"] = options.bootstrap_server
    check_bootstrap(properties["bootstrap.servers"])
    properties.setdefault("client.id", "perf-producer-client")
    return properties


def is_default(options: argparse.Namespace) -> bool:
    from barnabas.cli.frame.connecting import DEFAULT_BOOTSTRAP

    return options.bootstrap_server in (None, DEFAULT_BOOTSTRAP)


def payloads(options: argparse.Namespace) -> Payload:
    rng = random.Random(0)
    if options.payload_monotonic:
        return lambda index: str(index).encode()
    if options.record_size is not None:
        letters = bytes(rng.randrange(65, 91) for _ in range(options.record_size))
        return lambda index: letters
    delimiter = options.payload_delimiter.encode().decode("unicode_escape")
    content = Path(options.payload_file).read_text(encoding="utf-8")
    lines = [part.encode() for part in content.split(delimiter) if part]
    if not lines:
        raise ToolError(
            f"Payload file path is empty. Please provide a non-empty file: {options.payload_file}"
        )
    return lambda index: rng.choice(lines)


class Report:
    """Counts all records, and separately those after the warm-up."""

    def __init__(self, options: argparse.Namespace, out: Output) -> None:
        self._options = options
        self._out = out
        self._all = ProducerStats(options.num_records, options.reporting_interval, now_ms(), self._line)
        self._steady: ProducerStats | None = None
        self.failed = 0
        if options.warmup_records:
            warmup = options.warmup_records
            self._line(
                f"Warmup first {warmup} records. Steady state results will print after the complete test "
                "summary."
            )

    def _line(self, text: str) -> None:
        self._out.line(text)
        self._out.flush()

    def sent(self, latency_ms: float, size_bytes: int) -> None:
        now = now_ms()
        self._all.record(int(latency_ms), size_bytes, now)
        warmup = self._options.warmup_records
        if not warmup or self._all.count <= warmup:
            return
        if self._steady is None:
            self._line("In steady state.")
            left = self._options.num_records - warmup
            self._steady = ProducerStats(left, 2**62, now, self._line, " steady state")
        self._steady.record(int(latency_ms), size_bytes, now)

    def fail(self, reason: str) -> None:
        self.failed += 1
        if self.failed == 1:
            self._out.note(f"a record was not written: {reason}")

    def finish(self) -> None:
        self._all.print_total(now_ms())
        if self._steady is not None:
            self._steady.print_total(now_ms())
        if self.failed:
            raise ToolError(f"{self.failed} of {self._options.num_records} records were not written")


def paced(options: argparse.Namespace) -> Iterator[tuple[int, float]]:
    """Yield the number of each record, and the time to wait before it."""
    throttle = Throttle(options.throughput, time.monotonic())
    with progress("sending", options.num_records) as advance:
        for index in range(options.num_records):
            yield index, throttle.wait_s(index, time.monotonic()) if options.throughput > 0 else 0.0
            if index % POLL_EVERY == 0:
                advance(POLL_EVERY)


def with_librdkafka(
    options: argparse.Namespace, properties: dict[str, str], payload: Payload, report: Report
) -> None:
    configuration = librdkafka.settings(properties)
    transactional = options.transactional_id or properties.get("transactional.id")
    if options.transaction_duration_ms is not None and transactional is None:
        transactional = f"performance-producer-{random.getrandbits(64):x}"
    if transactional:
        configuration["transactional.id"] = transactional
    producer = librdkafka.make("Producer", configuration)
    duration_s = (options.transaction_duration_ms or DEFAULT_TRANSACTION_MS) / 1000
    begun = time.monotonic()
    if transactional:
        producer.init_transactions()
        producer.begin_transaction()

    def delivered(error: Any, message: Any) -> None:
        if error is not None:
            report.fail(error.str())
        else:
            report.sent(message.latency() * 1000, len(message))

    for index, wait_s in paced(options):
        if wait_s:
            producer.poll(wait_s)
        while True:
            try:
                producer.produce(options.topic, payload(index), on_delivery=delivered)
                break
            except BufferError:
                producer.poll(0.01)
        if index % POLL_EVERY == 0:
            producer.poll(0)
        if transactional and time.monotonic() - begun > duration_s:
            producer.commit_transaction()
            producer.begin_transaction()
            begun = time.monotonic()
    if transactional:
        producer.commit_transaction()
    producer.flush(FLUSH_S)
    report.finish()


async def with_light_client(
    options: argparse.Namespace, properties: dict[str, str], payload: Payload, report: Report
) -> int:
    async with cluster_from(options, properties) as cluster:
        await send_light(cluster, options, properties, payload, report)
    report.finish()
    return 0


async def send_light(
    cluster: Cluster,
    options: argparse.Namespace,
    properties: dict[str, str],
    payload: Payload,
    report: Report,
) -> None:
    room = asyncio.Semaphore(IN_FLIGHT_MAX)

    async def settled(sent: SentRecord, started_ms: float, size: int) -> None:
        try:
            await sent
            report.sent(now_ms() - started_ms, size)
        except Exception as error:
            report.fail(str(error))
        finally:
            room.release()

    async with Producer(cluster, producer_settings(properties)) as producer, asyncio.TaskGroup() as group:
        for index, wait_s in paced(options):
            if wait_s:
                await asyncio.sleep(wait_s)
            await room.acquire()
            value = payload(index)
            sent = await producer.send(options.topic, value)
            group.create_task(settled(sent, now_ms(), len(value)))


def now_ms() -> float:
    return time.monotonic() * 1000
