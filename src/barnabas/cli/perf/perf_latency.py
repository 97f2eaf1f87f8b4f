"""perf latency: send one record at a time, wait until it is consumed, and print the times.

In: options of kafka-e2e-latency, by name or by position as in older versions. Out: its lines. The tool uses
our own client, which sends and reads in one thread: no wake-up of another thread adds to the times.
"""

import argparse
import asyncio
import random
import time

from barnabas.cli.frame.client_settings import consumer_settings, producer_settings
from barnabas.cli.frame.connecting import add_bootstrap, cluster_from, load_properties
from barnabas.cli.frame.output import Output
from barnabas.cli.frame.parsing import ToolError, ToolParser, UsageError, check_bootstrap, required
from barnabas.cli.frame.progress import progress
from barnabas.cli.perf.perf_numbers import percentiles
from barnabas.client.admin.admin import Admin
from barnabas.client.admin.offsets import OffsetSpec
from barnabas.client.admin.topics import NewTopic
from barnabas.client.cluster import Cluster
from barnabas.client.consumer import Consumer
from barnabas.client.core.topology import TopicPartition
from barnabas.client.producer import Producer
from barnabas.records.record import Headers

EXAMPLES = (
    "--topic ping --num-records 5000 --producer-acks 1 --record-size 100",
    "localhost:9092 ping 5000 all 100",
)
POSITIONAL = ("bootstrap_server", "topic", "num_records", "producer_acks", "record_size", "command_config")
POSITIONAL_WARNING = (
    "WARNING: Positional argument usage is deprecated and will be removed in Apache Kafka 5.0. Please use "
    "named arguments instead: --bootstrap-server, --topic, --num-records, --producer-acks, --record-size, "
    "--command-config"
)
REPORT_EVERY = 1_000
RECEIVE_TIMEOUT_MS = 60_000
ACKS = ("1", "all")


def add_arguments(parser: ToolParser) -> None:
    add_bootstrap(parser)
    parser.add_argument("positional", nargs="*", metavar="ARGUMENT", help=argparse.SUPPRESS)
    parser.add_argument("--topic", help="the topic to use, created if it does not exist (required)")
    parser.add_argument("--num-records", type=int, metavar="N", help="how many records to send (required)")
    parser.add_argument("--producer-acks", metavar="1|all", help="the producer's acks (required)")
    parser.add_argument("--record-size", type=int, metavar="BYTES", help="size of each record (required)")
    parser.add_argument(
        "--record-key-size", type=int, default=0, metavar="BYTES", help="size of its key (none)"
    )
    parser.add_argument("--num-headers", type=int, default=0, metavar="N", help="headers of each record (0)")
    parser.add_argument(
        "--record-header-key-size", type=int, default=0, metavar="BYTES", help="size of their names"
    )
    parser.add_argument(
        "--record-header-size", type=int, default=0, metavar="BYTES", help="-1 for null values"
    )
    parser.add_argument("--command-config", metavar="FILE", help="a file of client settings")


async def run(options: argparse.Namespace, out: Output) -> None:
    by_position(options, out)
    required(options, "bootstrap-server", "topic", "num-records", "producer-acks", "record-size")
    check_bootstrap(options.bootstrap_server)
    if options.producer_acks not in ACKS:
        raise UsageError(
            "Invalid value for --producer-acks. Latency testing requires synchronous acknowledgement. "
            "Please use '1' or 'all'."
        )
    if options.num_records <= 0:
        raise UsageError("Value for --num-records must be a positive integer.")
    if options.record_size < 0:
        raise UsageError("Value for --record-size must be a non-negative integer.")
    properties = load_properties(options.command_config)
    out.note("engine: barnabas")
    async with cluster_from(options, properties, client_id="e2e-latency") as cluster:
        await ensure_topic(cluster, options.topic, out)
        latencies_ns = await measure(cluster, options, properties, out)
    out.line(f"Avg latency: {sum(latencies_ns) / len(latencies_ns) / 1e6:.4f} ms")
    p50, p99, p999 = percentiles([each // 1_000_000 for each in latencies_ns], (0.5, 0.99, 0.999))
    out.line(f"Percentiles: 50th = {p50}, 99th = {p99}, 99.9th = {p999}")
    exact = percentiles([each // 1_000 for each in latencies_ns], (0.5, 0.99, 0.999))
    out.note(f"in microseconds: 50th = {exact[0]}, 99th = {exact[1]}, 99.9th = {exact[2]}")


def by_position(options: argparse.Namespace, out: Output) -> None:
    """Read the old form: bootstrap-server topic num-records producer-acks record-size [command-config]."""
    given = options.positional
    if not given:
        return
    if not 5 <= len(given) <= 6:
        raise UsageError(
            f"Invalid number of arguments. Expected 5 or 6 positional arguments, but got {len(given)}. "
            "Usage: bootstrap-server topic num-records producer-acks record-size [optional] command-config"
        )
    out.note(POSITIONAL_WARNING)
    for name, value in zip(POSITIONAL, given, strict=False):
        if name in ("num_records", "record_size"):
            if not value.isdigit():
                raise UsageError(f"Cannot parse argument '{value}' of option {name.replace('_', '-')}")
            value = int(value)
        setattr(options, name, value)


async def ensure_topic(cluster: Cluster, topic: str, out: Output) -> None:
    found = (await cluster.refresh([topic])).topics.get(topic)
    if found is not None and not found.error_code:
        return
    out.line(
        f'Topic "{topic}" does not exist. Will create topic with 1 partition(s) and replication factor = 1'
    )
    await Admin(cluster).create_topic(NewTopic(topic, 1, 1))
    await cluster.partitions_of(topic, auto_create=True)


async def measure(
    cluster: Cluster, options: argparse.Namespace, properties: dict[str, str], out: Output
) -> list[int]:
    producer_properties = {"linger.ms": "0", "max.block.ms": "9223372036854775807"} | properties
    producer_properties["acks"] = options.producer_acks
    producer = Producer(cluster, producer_settings(producer_properties))
    consumer = Consumer(cluster, consumer_settings(properties))
    count = await cluster.partitions_of(options.topic, auto_create=True)
    await consumer.assign_at(
        [TopicPartition(options.topic, each) for each in range(count)], OffsetSpec.LATEST
    )
    rng = random.Random(0)
    latencies = []
    try:
        with progress("measuring", options.num_records) as advance:
            for index in range(options.num_records):
                value, key = letters(rng, options.record_size), letters(rng, options.record_key_size) or None
                began = time.perf_counter_ns()
                sent = await producer.send(options.topic, value, key, headers=headers(rng, options))
                await sent
                await receive(consumer, value)
                elapsed = time.perf_counter_ns() - began
                latencies.append(elapsed)
                advance(1)
                if index % REPORT_EVERY == 0:
                    out.line(f"{index}\t{elapsed / 1e6}")
    finally:
        await consumer.close()
        await producer.close()
    return latencies


async def receive(consumer: Consumer, value: bytes) -> None:
    """Wait for the record that was sent; any other record is an error."""
    deadline = asyncio.get_running_loop().time() + RECEIVE_TIMEOUT_MS / 1000
    while True:
        left_ms = (deadline - asyncio.get_running_loop().time()) * 1000
        if left_ms <= 0:
            raise ToolError(f"poll() timed out before finding a result (timeout:[{RECEIVE_TIMEOUT_MS}ms])")
        records = await consumer.poll(left_ms)
        if not records:
            continue
        if records[0].value != value or len(records) > 1:
            raise ToolError(
                "The consumed record is not the one that was sent: does another producer write to the topic?"
            )
        return


def letters(rng: random.Random, size: int) -> bytes:
    return bytes(rng.randrange(65, 91) for _ in range(max(size, 0)))


def headers(rng: random.Random, options: argparse.Namespace) -> Headers:
    names = options.record_header_key_size
    value = None if options.record_header_size < 0 else letters(rng, options.record_header_size)
    return tuple((letters(rng, names).decode(), value) for _ in range(options.num_headers))
