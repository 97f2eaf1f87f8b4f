"""Topics for the comparison of streams: lines of words, clicks, users, orders and their payments.

In: a broker, how many records. Out: filled topics, and what is in result topics. The same seed gives the same
records. Does not know: which application reads them.
"""

from __future__ import annotations

import random
import time
from collections.abc import Iterator

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from barnabas.client.blocking import run
from barnabas.client.core.topology import TopicPartition
from barnabas.client.core.transaction import Transaction
from barnabas.records.compression import Compression
from barnabas.spark.basics.cluster import WorkerCluster
from barnabas.spark.producer import BlockingProducer
from barnabas.spark.reading.columns import Table
from barnabas.spark.reading.fetcher import LATEST, Fetcher, OffsetRange
from barnabas.spark.sink import PartitionCounts
from barnabas.spark.writing.encoding import Encoder

# Records are of this day: a broker deletes old ones, changelogs of windows too.
START_MS = (int(time.time()) - 6 * 3600) * 1000
PIECE = 200_000
BATCH_BYTES = 256 * 1024
WORDS, USERS, PAGES = 20_000, 100_000, 1_000
WORDS_A_LINE = 4
TIMEOUT_MS = 60_000
Columns = tuple[pa.Array | None, pa.Array]  # keys, values


def texts(form: str, count: int) -> pa.Array:
    return pa.array([form % number for number in range(count)], pa.string())


def lines(first: int, count: int, rng: np.random.Generator) -> Columns:
    """Lines of words, some of which are frequent."""
    words = texts("word%05d", WORDS)
    picks = [
        words.take(pa.array((WORDS * rng.random(count) ** 3).astype(np.int64))) for _ in range(WORDS_A_LINE)
    ]
    return None, pc.binary_join_element_wise(*picks, " ")


def clicks(first: int, count: int, rng: np.random.Generator) -> Columns:
    users, pages = texts("user%06d", USERS), texts("/%d/page/of/the/shop", PAGES)
    chosen = pa.array(rng.integers(0, USERS, count)), pa.array(rng.integers(0, PAGES, count))
    return users.take(chosen[0]), pages.take(chosen[1])


def users(first: int, count: int, rng: np.random.Generator) -> Columns:
    return texts("user%06d", count), texts("name of the user %06d, of some town", count)


def orders(first: int, count: int, rng: np.random.Generator) -> Columns:
    return _numbered("order%08d", first, count), _numbered("%08d things", first, count)


def payments(first: int, count: int, rng: np.random.Generator) -> Columns:
    return _numbered("order%08d", first, count), _numbered("%08d crowns", first, count)


def _numbered(form: str, first: int, count: int) -> pa.Array:
    return pa.array([form % number for number in range(first, first + count)], pa.string())


MAKERS = {"lines": lines, "clicks": clicks, "users": users, "orders": orders, "payments": payments}


def fill(bootstrap_cluster: WorkerCluster, topic: str, count: int, *, ms_a_record: float = 0.2) -> None:
    """Write records of a topic. Payments come up to two minutes after their orders."""
    rng = np.random.default_rng(7)
    transaction = Transaction(bootstrap_cluster)
    run(transaction.init())
    counts = PartitionCounts(bootstrap_cluster, TIMEOUT_MS)
    encoder = Encoder(counts, compression=Compression.LZ4, batch_bytes=BATCH_BYTES, rng=random.Random(7))
    producer = BlockingProducer(bootstrap_cluster, encoder, transaction, timeout_ms=TIMEOUT_MS)
    for first in range(0, count, PIECE):
        size = min(PIECE, count - first)
        keys, values = MAKERS[topic](first, size, rng)
        times = START_MS + (np.arange(first, first + size) * ms_a_record).astype(np.int64)
        if topic == "payments":
            times = np.sort(times + rng.integers(0, 120_000, size))
        columns = {"value": values, "timestamp": pa.array(times * 1000).cast(pa.timestamp("us"))}
        if keys is not None:
            columns["key"] = keys
        for start in range(0, size, BATCH_BYTES // 16):
            piece = pa.table(columns).slice(start, BATCH_BYTES // 16)
            producer.write(encoder.batches(piece, topic, START_MS))
    producer.flush()


def end_offsets(cluster: WorkerCluster, topic: str) -> dict[TopicPartition, int]:
    found = run(cluster.topics([topic]))
    places = [TopicPartition(topic, each) for each in found[topic].partitions] if topic in found else []
    return cluster.offsets(dict.fromkeys(places, LATEST))


def read(cluster: WorkerCluster, topic: str) -> Iterator[pa.RecordBatch]:
    """All records of a topic: keys, values, timestamps."""
    columns = ("key", "value", "timestamp")
    for place, end in end_offsets(cluster, topic).items():
        if end > 0:
            asked = OffsetRange(topic, b"", place.partition, 0, end)
            table = Table(topic, place.partition, columns)
            for chunk in Fetcher(cluster, asked, fails_on_loss=False, timeout_ms=TIMEOUT_MS).chunks():
                yield table.batch(chunk, 0, end)
