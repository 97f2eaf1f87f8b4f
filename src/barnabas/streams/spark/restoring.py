"""State from changelogs: records of a changelog become pages of a state again.

In: a cluster, a partition of a changelog, offsets. Out: the store's pages in a backend. Tasks restore a state
that was lost so, and views follow changelogs so. Does not know: who asks, where the pages lie.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator

from barnabas.client.core.topology import TopicPartition
from barnabas.plans.interpreter.task import State
from barnabas.spark.basics.cluster import WorkerCluster
from barnabas.spark.reading.fetcher import EARLIEST, LATEST, OffsetRange
from barnabas.streams.spark.task_port import InputRecord
from barnabas.streams.spark.task_records import read_range

STEP_OFFSETS = 20_000  # so many offsets are held in memory at once


def steps(
    cluster: WorkerCluster, place: TopicPartition, start: int, stop: int
) -> Iterator[tuple[list[InputRecord], int]]:
    """Records of a range in steps, each with the offset at which the next one begins. Offsets that
    compaction or retention deleted are left out."""
    while start < stop:
        after = min(start + STEP_OFFSETS, stop)
        asked = OffsetRange(place.topic, b"", place.partition, start, after)
        yield (
            read_range(cluster, asked, cluster.client.request_timeout_ms, fails_on_loss=False),
            after,
        )
        start = after


def apply(state: State, records: Iterable[InputRecord]) -> None:
    """Bring records of its changelog into a store, down to the pages of its backend."""
    for record in records:
        if record.key is not None:
            state.restore(record.key, record.value, record.timestamp)
    state.flush()


def restore_store(
    cluster: WorkerCluster,
    state: State,
    changelog: str,
    partition: int,
    keep: Callable[[], None],
    stop: int | None = None,
) -> int:
    """Restore a store from a partition of its changelog, as far as it is committed now, or to an offset.
    `keep` writes the pages of each step. Gives the number of records."""
    place = TopicPartition(changelog, partition)
    start = cluster.offsets({place: EARLIEST})[place]
    if stop is None:
        stop = cluster.offsets({place: LATEST})[place]
    count = 0
    for records, _ in steps(cluster, place, start, stop):
        apply(state, records)
        state.forget()
        keep()
        count += len(records)
    return count
