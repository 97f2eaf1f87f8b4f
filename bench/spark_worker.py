"""`python -m bench.spark_worker`: measures our source and sink without Spark.

In: rows as Arrow tables, a Barnabas broker. Out: seconds of processor time for a million records, of the
process that writes or reads them (user and system) and of the broker. This is the cost on top of what Spark
takes for any Python source or sink. Processor time hardly changes on a busy machine. Does not know: Spark.
"""

from __future__ import annotations

import argparse
import hashlib
import os
import random
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path

import psutil
import pyarrow as pa

from barnabas.client.blocking import run
from barnabas.client.core.topology import TopicPartition
from barnabas.client.core.transaction import Transaction
from barnabas.records.compression import Compression
from barnabas.spark.basics.cluster import WorkerCluster
from barnabas.spark.basics.settings import ClientSettings
from barnabas.spark.producer import BlockingProducer
from barnabas.spark.reading.columns import COLUMNS, Table
from barnabas.spark.reading.fetcher import LATEST, Fetcher, OffsetRange
from barnabas.spark.sink_options import BATCH_BYTES
from barnabas.spark.writing.encoding import Encoder
from barnabas.testing.broker import Broker

PARTITIONS = 2
CODECS = (Compression.NONE, Compression.LZ4, Compression.ZSTD)
RECORDS = {100: 1_000_000, 1000: 300_000}  # by size
ROWS_A_TABLE = 10_000  # the size of Spark's Arrow batches
TIMEOUT_MS = 60_000
ROUNDS = 3
MEMORY = Path("/dev/shm")


@dataclass(frozen=True, slots=True)
class Took:
    """Seconds of processor time."""

    user: float
    system: float
    broker: float

    @property
    def total(self) -> float:
        return self.user + self.system + self.broker

    def a_million(self, records: int) -> str:
        times = 1_000_000 / records
        parts = (self.user, self.system, self.broker, self.total)
        return " | ".join(f"{each * times:.2f}" for each in parts)


def took(broker: Broker, work: Callable[..., None], *arguments: object) -> Took:
    process = psutil.Process(broker.pid)
    broker_before, before = process.cpu_times(), os.times()
    work(*arguments)
    after, broker_after = os.times(), process.cpu_times()
    of_broker = broker_after.user + broker_after.system - broker_before.user - broker_before.system
    return Took(after.user - before.user, after.system - before.system, of_broker)


def tables(size: int, records: int) -> list[pa.Table]:
    """The rows of the comparison with Spark's own connector: half of each is random."""
    half = size // 2

    def value(number: int) -> str:
        return "x" * half + (hashlib.sha1(b"%d" % number).hexdigest() * (half // 40 + 1))[: size - half]

    return [
        pa.table(
            {
                "key": [str(number) for number in range(start, start + ROWS_A_TABLE)],
                "value": [value(number) for number in range(start, start + ROWS_A_TABLE)],
            }
        )
        for start in range(0, records, ROWS_A_TABLE)
    ]


def write(settings: ClientSettings, topic: str, codec: Compression, rows: list[pa.Table]) -> None:
    cluster, coordinators = WorkerCluster(settings), WorkerCluster(settings)
    transaction = Transaction(coordinators, None, timeout_ms=TIMEOUT_MS, wait_ms=TIMEOUT_MS)
    run(transaction.init())
    encoder = Encoder(
        {topic: PARTITIONS}, compression=codec, batch_bytes=BATCH_BYTES, rng=random.Random(), level=None
    )
    producer = BlockingProducer(cluster, encoder, transaction, timeout_ms=TIMEOUT_MS)
    for table in rows:
        producer.write(encoder.batches(table, topic, int(time.time() * 1000)))
    producer.flush()
    run(cluster.close())
    run(coordinators.close())


def read(settings: ClientSettings, topic: str, records: int) -> None:
    cluster = WorkerCluster(settings)
    found = 0
    for partition in range(PARTITIONS):
        place = TopicPartition(topic, partition)
        asked = OffsetRange(topic, b"", partition, 0, cluster.offsets({place: LATEST})[place])
        fetcher = Fetcher(cluster, asked, fails_on_loss=True, timeout_ms=TIMEOUT_MS)
        columns = Table(topic, partition, COLUMNS)
        found += sum(columns.batch(chunk, 0, asked.stop).num_rows for chunk in fetcher.chunks())
    run(cluster.close())
    assert found == records, f"read {found} of {records}"


def lines(rounds: int) -> Iterator[str]:
    """Yield a table; the best of the rounds counts, after one more round as warm-up."""
    yield "| seconds of processor time, a million records | user | system | broker | together |"
    yield "| --- | --- | --- | --- | --- |"
    with (
        tempfile.TemporaryDirectory(dir=MEMORY if MEMORY.is_dir() else None) as folder,
        Broker(Path(folder) / "data", in_process=False) as broker,
    ):
        settings = ClientSettings(bootstrap_servers=broker.bootstrap)
        for size, records in RECORDS.items():
            rows = tables(size, records)
            for codec in CODECS:
                name = codec.name.lower()
                writes, reads = [], []
                for number in range(rounds + 1):
                    topic = f"{name}-{size}-{number}"
                    broker.create_topic(topic, partitions=PARTITIONS)
                    writes.append(took(broker, write, settings, topic, codec, rows))
                    reads.append(took(broker, read, settings, topic, records))
                    broker.delete_topic(topic)
                for kind, found in (("write", writes), ("read", reads)):
                    best = min(found[1:], key=lambda each: each.total)
                    yield f"| {kind} {size} B, {name} | {best.a_million(records)} |"


def main(arguments: list[str]) -> int:
    parser = argparse.ArgumentParser(prog="python -m bench.spark_worker", description=__doc__.splitlines()[0])
    parser.add_argument("--rounds", type=int, default=ROUNDS)
    options = parser.parse_args(arguments)
    for line in lines(options.rounds):
        print(line, flush=True)
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
