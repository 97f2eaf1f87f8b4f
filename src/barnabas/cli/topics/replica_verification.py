"""replica-verification: check that all replicas of partitions hold the same batches up to the high watermark.

The tool fetches every replica from its broker and compares offsets and checksums batch by batch. It continues
with new records until it is interrupted. With --once it ends when it has compared all existing records.
"""

import argparse
import asyncio
import time
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field

from barnabas.cli.frame.connecting import add_bootstrap, add_command_config, cluster_from
from barnabas.cli.frame.output import Output
from barnabas.cli.frame.parsing import ToolError, ToolParser, UsageError, check_bootstrap
from barnabas.cli.frame.topic_filter import TopicFilter
from barnabas.client.admin.admin import Admin
from barnabas.client.admin.offsets import FoundOffset, OffsetSpec
from barnabas.client.cluster import Cluster
from barnabas.client.core.topology import TopicPartition
from barnabas.client.replica_reader import ReplicaBatches, read_replicas
from barnabas.protocol import KafkaError

EXAMPLES = ("--bootstrap-server localhost:9092 --topics-include 'orders.*'", "--time -2 --once")
NEEDS_ARGUMENTS = False
FETCH_BYTES = 1_048_576


@dataclass(slots=True)
class Comparison:
    """The next offset to compare of each partition, and the largest lag behind a high watermark."""

    replicas: dict[TopicPartition, tuple[int, ...]]
    positions: dict[TopicPartition, int]
    lag_max: int = -1
    lag_where: TopicPartition | None = None
    differences: int = 0
    marks: dict[TopicPartition, int] = field(default_factory=dict)

    def compare(self, partition: TopicPartition, found: Mapping[int, ReplicaBatches]) -> Iterator[str]:
        """Compare batches that all replicas have below their high watermarks; yield differences."""
        first_id, *other_ids = self.replicas[partition]
        for place, batch in enumerate(found[first_id].batches):
            for other_id in other_ids:
                others = found[other_id].batches
                if place >= len(others) or others[place].last_offset >= found[other_id].high_watermark:
                    return
                if others[place].last_offset != batch.last_offset:
                    self.differences += 1
                    yield (
                        f"partition {partition}: replica {first_id}'s offset {batch.last_offset} doesn't "
                        f"match replica {other_id}'s offset {others[place].last_offset}"
                    )
                    raise ToolError(f"the replicas of {partition} do not have the same batches")
                if others[place].checksum != batch.checksum:
                    self.differences += 1
                    yield (
                        f"partition {partition} has unmatched checksum at offset {batch.last_offset}; "
                        f"replica {first_id}'s checksum {batch.checksum}; "
                        f"replica {other_id}'s checksum {others[place].checksum}"
                    )
            if batch.last_offset >= found[first_id].high_watermark:
                return
            self.positions[partition] = batch.last_offset + 1

    def measure(self, partition: TopicPartition, found: Mapping[int, ReplicaBatches]) -> None:
        self.marks[partition] = max(each.high_watermark for each in found.values())
        lag = self.marks[partition] - self.positions[partition]
        if lag > self.lag_max:
            self.lag_max, self.lag_where = lag, partition

    @property
    def is_done(self) -> bool:
        return all(self.positions[partition] >= mark for partition, mark in self.marks.items())


def add_arguments(parser: ToolParser) -> None:
    add_bootstrap(parser)
    parser.old_spellings.pop("--broker-list")  # Kafka's tool still uses this name
    parser.add_argument("--broker-list", dest="bootstrap_server", metavar="HOST:PORT,...", help="the same")
    add_command_config(parser)
    parser.add_argument("--topics-include", default=".*", metavar="REGEX", help="topics (default: all)")
    parser.add_argument("--fetch-size", type=int, default=FETCH_BYTES, metavar="BYTES", help="of a partition")
    parser.add_argument(
        "--max-wait-ms", type=int, default=1_000, metavar="MS", help="longest wait of a fetch"
    )
    parser.add_argument(
        "--time",
        type=int,
        default=int(OffsetSpec.LATEST),
        metavar="-1|-2|MS",
        help="where to start: latest (-1, the default), earliest (-2), or a time",
    )
    parser.add_argument("--report-interval-ms", type=int, default=30_000, metavar="MS", help="default: 30000")
    parser.add_argument("--once", action="store_true", help="end when all existing records are compared")


async def run(options: argparse.Namespace, out: Output) -> int:
    if options.bootstrap_server is None:
        raise UsageError('Missing required argument "[broker-list]"')
    check_bootstrap(options.bootstrap_server)
    chosen = TopicFilter(options.topics_include)
    async with cluster_from(options, client_id="ReplicaVerification") as cluster:
        admin = Admin(cluster)
        names = chosen.select(topic.name for topic in await admin.list_topics())
        if not names:
            raise ToolError("No topics found. There are none, or --topics-include matches none.")
        comparison = await start(admin, names, options.time)
        out.line(f"{moment()}: verification process is started")
        out.flush()
        return await verify(cluster, comparison, options, out)


async def start(admin: Admin, names: list[str], at: int) -> Comparison:
    replicas = {
        TopicPartition(topic.name, each.index): each.replicas
        for topic in await admin.describe_topics(names)
        for each in topic.partitions
    }
    positions = {}
    for partition, found in (await admin.list_offsets(dict.fromkeys(replicas, at))).items():
        if not isinstance(found, FoundOffset):
            raise ToolError(f"the start offset of {partition} cannot be looked up: {found.message}")
        positions[partition] = found.offset
    behind = [
        partition for partition, offset in positions.items() if offset < 0
    ]  # no record is as new as --time
    for partition, found in (await admin.list_offsets(dict.fromkeys(behind, OffsetSpec.LATEST))).items():
        positions[partition] = found.offset if isinstance(found, FoundOffset) else 0
    return Comparison(replicas, positions)


async def verify(cluster: Cluster, comparison: Comparison, options: argparse.Namespace, out: Output) -> int:
    reported_s = time.monotonic()
    while True:
        comparison.lag_max = -1
        found = await one_round(cluster, comparison, options)
        for partition, results in found.items():
            for line in comparison.compare(partition, results):
                out.line(f"{moment()}: {line}")
                out.flush()
            comparison.measure(partition, results)
        done = options.once and comparison.is_done
        if done or (time.monotonic() - reported_s) * 1000 > options.report_interval_ms:
            reported_s = time.monotonic()
            furthest = comparison.lag_where
            at = comparison.positions[furthest] if furthest else -1
            out.line(
                f"{moment()}: max lag is {comparison.lag_max} for partition {furthest} at offset {at} "
                f"among {len(comparison.replicas)} partitions"
            )
            out.flush()
        if done:
            return 1 if comparison.differences else 0


async def one_round(
    cluster: Cluster, comparison: Comparison, options: argparse.Namespace
) -> dict[TopicPartition, dict[int, ReplicaBatches]]:
    """Fetch once from every replica of every partition."""
    by_broker: dict[int, dict[TopicPartition, int]] = {}
    for partition, brokers in comparison.replicas.items():
        for broker in brokers:
            by_broker.setdefault(broker, {})[partition] = comparison.positions[partition]
    missing = [broker for broker in by_broker if broker not in cluster.topology.nodes]
    if missing:
        raise ToolError(f"broker {missing[0]} is not in the cluster: its replicas cannot be read")
    results = await asyncio.gather(
        *(
            read_replicas(
                cluster,
                cluster.topology.nodes[broker],
                positions,
                max_wait_ms=options.max_wait_ms,
                partition_bytes_max=options.fetch_size,
            )
            for broker, positions in by_broker.items()
        )
    )
    found: dict[TopicPartition, dict[int, ReplicaBatches]] = {}
    for broker, result in zip(by_broker, results, strict=True):
        for partition, batches in result.items():
            if isinstance(batches, KafkaError):
                raise ToolError(f"replica {broker} of {partition} cannot be read: {batches.message}")
            found.setdefault(partition, {})[broker] = batches
    return found


def moment() -> str:
    now_s = time.time()
    return f"{time.strftime('%Y-%m-%d %H:%M:%S', time.localtime(now_s))},{int(now_s * 1000) % 1000:03}"
