"""The rows of the table: the compared value, its unit, and the floor that Barnabas must reach.

Out: `ROWS` by name. A ratio is Barnabas divided by Apache Kafka. `floor` is its lower bound if more is
better, and its upper bound if less is better. Does not know: how a row is measured.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum


class Better(Enum):
    MORE = "≥"
    LESS = "≤"


@dataclass(frozen=True, slots=True)
class Row:
    name: str
    title: str
    unit: str
    better: Better
    floor: float
    of_own: bool = False  # the floor applies to our value, not to the ratio

    def holds(self, ratio: float) -> bool:
        return ratio >= self.floor if self.better is Better.MORE else ratio <= self.floor


_more = Better.MORE
_less = Better.LESS
_EIGHTH = 0.125
_SIXTH_OFF = 0.83
STALL_MS_MAX = 20.0

ROWS = {
    row.name: row
    for row in (
        Row("produce-880k", "produce, 880 KB batches", "MB/s", _more, 2.0),
        Row("produce-15k", "produce, 15 KB batches", "MB/s", _more, 3.0),
        Row("produce-pipelined", "one-record requests, pipelined", "k/s", _more, 3.0),
        Row("produce-64", "one-record requests, 64 connections", "k/s", _more, 1.2),
        Row("produce-rest", "one produce at rest", "µs", _less, 0.75),
        Row("produce-15k-v7", "produce, 15 KB batches, version 7", "MB/s", _more, 3.0),
        Row("produce-pipelined-v7", "one-record requests, pipelined, version 7", "k/s", _more, 3.0),
        Row("produce-rest-v7", "one produce at rest, version 7", "µs", _less, 0.75),
        Row("produce-15k-4", "produce, 15 KB batches, 4 connections and partitions", "MB/s", _more, 3.0),
        Row("produce-idempotent", "one-record requests, idempotent, pipelined", "k/s", _more, 3.0),
        Row("produce-together", "requests for five partitions, pipelined", "k/s", _more, 3.0),
        Row("fetch", "fetch of a backlog", "MB/s", _more, 1.0),
        Row("tls-produce-880k", "TLS: produce, 880 KB batches", "MB/s", _more, 1.3),
        Row("tls-produce-15k", "TLS: produce, 15 KB batches", "MB/s", _more, 1.3),
        Row("tls-fetch", "TLS: fetch of a backlog", "MB/s", _more, 1.0),
        Row("tls-connections", "TLS: connections with a handshake and a request", "/s", _more, 1.0),
        Row("confluent-produce", "confluent-kafka producing", "k records/s", _more, 1.0),
        Row("confluent-consume", "confluent-kafka consuming", "k records/s", _more, 1.0),
        Row("latency-p50", "produce to consume, p50", "µs", _less, 0.8),
        Row("latency-p99", "produce to consume, p99", "µs", _less, 0.7),
        Row("memory-load", "memory after load", "MB", _less, _EIGHTH),
        Row("start", "start to first response", "ms", _less, _EIGHTH),
        Row("memory-rest", "memory at rest", "MB", _less, _EIGHTH),
        Row("partitions-create", "4,000 partitions: create", "ms", _less, 1.0),
        Row("partitions-restart", "4,000 partitions: restart", "ms", _less, 1.0),
        Row("partitions-memory", "4,000 partitions: memory", "MB", _less, 1.0),
        Row("group-join-1", "group of 1: join to first record", "ms", _less, 1.0),
        Row("group-join-10", "group of 10: join to first record", "ms", _less, 1.0),
        Row("group-join-100", "group of 100: join to first record", "ms", _less, 1.0),
        Row("group-leave", "one of 100 leaves: rebalance", "ms", _less, 1.0),
        Row("commits-pipelined", "offset commits, pipelined", "k/s", _more, 1.5),
        Row("commits-groups", "offset commits of 10,000 groups", "k/s", _more, 1.5),
        Row("group-memory", "memory per 1,000 groups", "MB", _less, 0.5),
        Row("share-consume-1", "share group of 1: records accepted", "k records/s", _more, 1.5),
        Row("share-consume-10", "share group of 10: records accepted", "k records/s", _more, 1.5),
        Row("share-consume-50", "share group of 50: records accepted", "k records/s", _more, 1.5),
        Row("share-latency-p99", "share group: acquire to acknowledge, p99", "µs", _less, 0.75),
        Row("share-memory", "share group: memory with a million records in flight", "MB", _less, 0.5),
        Row("transaction-latency", "transaction of one record", "µs", _less, _SIXTH_OFF),
        Row("transaction-commit", "of that, the commit", "µs", _less, _SIXTH_OFF),
        Row("transactions-1", "transactions, one producer", "/s", _more, 1.5),
        Row("transactions-50", "transactions, 50 producers", "/s", _more, 1.5),
        Row("transaction-loop", "read, write and commit offsets in transactions", "k records/s", _more, 1.5),
        Row("transaction-fetch", "read_committed fetch, a tenth aborted", "MB/s", _more, 1.5),
        Row("cleaner", "compaction of a dirty log", "MB/s", _more, 0.75),
        Row("cleaner-p99", "p99 of one produce: cleaner busy, by idle", "x", _less, 2.0, of_own=True),
        Row("acls-produce", "one-record requests, pipelined, 10,000 ACLs", "k/s", _more, 3.0),
        Row("acls-cost", "requests a CPU second with 10,000 ACLs, by without", "x", _more, 0.95, of_own=True),
        Row("metrics-cost", "requests a CPU second with metrics, by without", "x", _more, 0.98, of_own=True),
        Row("metrics-scrape", "scrape of 10,000 partitions", "ms", _less, 300.0, of_own=True),
        Row("scram-logins", "SCRAM logins, a connection each", "/s", _more, 1.0),
        # The longest wait of one producer while another client does this: see `stalls`.
        Row(
            "stall-create", "longest wait: 10,000 partitions created", "ms", _less, STALL_MS_MAX, of_own=True
        ),
        Row(
            "stall-first-records",
            "longest wait: first records to them",
            "ms",
            _less,
            STALL_MS_MAX,
            of_own=True,
        ),
        Row("stall-metadata", "longest wait: metadata of all topics", "ms", _less, STALL_MS_MAX, of_own=True),
        Row("stall-offsets", "longest wait: end offsets of all", "ms", _less, STALL_MS_MAX, of_own=True),
        Row("stall-sizes", "longest wait: sizes of all logs", "ms", _less, STALL_MS_MAX, of_own=True),
        Row("stall-times", "longest wait: largest timestamps", "ms", _less, STALL_MS_MAX, of_own=True),
        Row("stall-cold", "longest wait: logs out of the page cache", "ms", _less, STALL_MS_MAX, of_own=True),
        Row("stall-commit", "longest wait: 10,000 offsets committed", "ms", _less, STALL_MS_MAX, of_own=True),
        Row("stall-fetch", "longest wait: a fetch of 10,000", "ms", _less, STALL_MS_MAX, of_own=True),
        Row(
            "stall-delete", "longest wait: 10,000 partitions deleted", "ms", _less, STALL_MS_MAX, of_own=True
        ),
        Row("stall-fetch-offsets", "longest wait: offsets fetched", "ms", _less, STALL_MS_MAX, of_own=True),
        Row("stall-groups", "longest wait: 50,000 groups commit", "ms", _less, STALL_MS_MAX, of_own=True),
        Row(
            "stall-groups-topic", "longest wait: a topic beside them", "ms", _less, STALL_MS_MAX, of_own=True
        ),
        Row("stall-groups-list", "longest wait: a list of them", "ms", _less, STALL_MS_MAX, of_own=True),
        Row("stall-groups-load", "longest wait: they are loaded", "ms", _less, STALL_MS_MAX, of_own=True),
        Row(
            "stall-rebalance", "longest wait: 500 members share 5,000", "ms", _less, STALL_MS_MAX, of_own=True
        ),
        Row("stall-validation", "longest wait: 880 KB recompressed", "ms", _less, STALL_MS_MAX, of_own=True),
    )
}
