"""Latency of streams: from produce to result, at a steady rate, and what idle queries cost.

In: a broker, an application that runs. Out: percentiles in milliseconds. The timestamp of a record and of its
result is the time at which it was sent; the reader subtracts. Does not know: the applications.
"""

from __future__ import annotations

import random
import threading
import time
from collections.abc import Callable
from typing import Any

import numpy as np
import pyarrow as pa

from barnabas.client.blocking import run
from barnabas.client.core.topology import TopicPartition
from barnabas.client.core.transaction import Transaction
from barnabas.records.compression import Compression
from barnabas.spark.basics.cluster import WorkerCluster
from barnabas.spark.basics.settings import ClientSettings
from barnabas.spark.producer import BlockingProducer
from barnabas.spark.reading.columns import Table
from barnabas.spark.reading.fetcher import LATEST, Fetcher, OffsetRange
from barnabas.spark.sink import PartitionCounts
from barnabas.spark.writing.encoding import Encoder
from bench.streams_load import PAGES, TIMEOUT_MS, USERS, end_offsets, texts

TICK_S = 0.02
POLL_S = 0.005
WARM_UP_S = 12.0
FIRST_RESULT_S = 180.0


class Load(threading.Thread):
    """Clicks at a steady rate, until it is stopped. Their timestamps are the times at which they are sent."""

    def __init__(self, bootstrap: str, topic: str, rate: int) -> None:
        super().__init__(daemon=True)
        self._servers, self._topic, self._rate = bootstrap, topic, rate
        self.stopping = threading.Event()
        self.sent = 0
        self.late_s = 0.0  # how far the load fell behind its rate at most
        self.error: BaseException | None = None

    def run(self) -> None:
        try:
            self._send()
        except BaseException as error:
            self.error = error

    def _send(self) -> None:
        cluster = WorkerCluster(ClientSettings(self._servers))
        transaction = Transaction(cluster)
        run(transaction.init())
        encoder = Encoder(
            PartitionCounts(cluster, TIMEOUT_MS),
            compression=Compression.NONE,
            batch_bytes=256 * 1024,
            rng=random.Random(7),
        )
        producer = BlockingProducer(cluster, encoder, transaction, timeout_ms=TIMEOUT_MS)
        rng = np.random.default_rng(7)
        users, pages = texts("user%06d", USERS), texts("/%d/page/of/the/shop", PAGES)
        count = int(self._rate * TICK_S)
        due = time.monotonic()
        while not self.stopping.is_set():
            time.sleep(max(0.0, due - time.monotonic()))
            self.late_s = max(self.late_s, time.monotonic() - due)
            due += TICK_S
            now = np.full(count, int(time.time() * 1000), np.int64)
            columns = {
                "key": users.take(pa.array(rng.integers(0, USERS, count))),
                "value": pages.take(pa.array(rng.integers(0, PAGES, count))),
                "timestamp": pa.array(now * 1000).cast(pa.timestamp("us")),
            }
            producer.write(encoder.batches(pa.table(columns), self._topic, int(now[0])))
            producer.flush()
            self.sent += count


def latencies(bootstrap: str, topic: str, seconds: float, stop_when: Callable[[], bool]) -> Any:
    """Milliseconds from each record's timestamp until its result can be read, for results of some seconds."""
    cluster = WorkerCluster(ClientSettings(bootstrap))
    places = [TopicPartition(topic, each) for each in run(cluster.topics([topic]))[topic].partitions]
    positions = cluster.offsets(dict.fromkeys(places, LATEST))
    tables = {place: Table(topic, place.partition, ("timestamp",)) for place in places}
    found = []
    ends_at = time.monotonic() + seconds
    while time.monotonic() < ends_at and not stop_when():
        ends = cluster.offsets(dict.fromkeys(places, LATEST))
        seen_ms = time.time() * 1000
        for place, end in ends.items():
            start = positions[place]
            if end > start:
                asked = OffsetRange(topic, b"", place.partition, start, end)
                for chunk in Fetcher(cluster, asked, fails_on_loss=False, timeout_ms=TIMEOUT_MS).chunks():
                    times = tables[place].batch(chunk, start, end).column("timestamp").cast(pa.int64())
                    found.append(seen_ms - times.to_numpy(zero_copy_only=False) / 1000)
                positions[place] = end
        time.sleep(POLL_S)
    run(cluster.close())
    return np.concatenate(found) if found else np.empty(0)


def wait_for_result(bootstrap: str, topic: str, load: Load) -> None:
    cluster = WorkerCluster(ClientSettings(bootstrap))
    ends_at = time.monotonic() + FIRST_RESULT_S
    while not any(end_offsets(cluster, topic).values()):
        if time.monotonic() > ends_at or not load.is_alive():
            raise RuntimeError(f"no result came within {FIRST_RESULT_S:.0f} s: {load.error or ''}")
        time.sleep(0.1)
    run(cluster.close())


def measure(bootstrap: str, source: str, result: str, rate: int, seconds: float) -> dict[str, float]:
    """Percentiles of an application that reads `source` and writes `result`."""
    load = Load(bootstrap, source, rate)
    load.start()
    try:
        wait_for_result(bootstrap, result, load)
        time.sleep(WARM_UP_S)  # what gathered while the first workers started is through
        before, began = load.sent, time.monotonic()
        found = latencies(bootstrap, result, seconds, lambda: not load.is_alive())
    finally:
        load.stopping.set()
        load.join()
    rate = (load.sent - before) / (time.monotonic() - began)
    if load.error is not None:
        raise RuntimeError(f"the load failed: {load.error}")
    if not len(found):
        raise RuntimeError("no result came")
    p50, p99 = np.percentile(found, [50, 99])
    return {
        "p50": float(p50),
        "p99": float(p99),
        "rate": rate,
        "late": load.late_s,
    }
