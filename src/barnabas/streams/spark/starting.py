"""Offsets at which a query begins, and how they are kept before its first batch is committed.

In: a query's settings, partitions, and where topics begin of which the group has committed nothing. Out: a
position for each partition. `latest` is asked once and committed at once: a query that is paused, fails or
moves before its first batch would else begin at a newer end, and leave records out. Does not know: batches.
"""

from __future__ import annotations

import json
from collections.abc import Collection, Iterable, Mapping

from barnabas.client.admin.group_offsets import GroupOffsetAdmin
from barnabas.client.blocking import run
from barnabas.client.core.topology import TopicPartition
from barnabas.client.core.transaction import Transaction
from barnabas.spark.basics.cluster import WorkerCluster
from barnabas.spark.reading.fetcher import EARLIEST, LATEST
from barnabas.streams.spark.state_files import NEW
from barnabas.streams.spark.task_batches import VERSION
from barnabas.streams.spark.task_port import TaskId, TaskSettings

Committed = Mapping[TopicPartition, tuple[int, str]]
Positions = dict[TopicPartition, int]
OF_A_NEW_TASK = json.dumps({VERSION: NEW}, separators=(",", ":"))


def start_positions(
    cluster: WorkerCluster,
    settings: TaskSettings,
    number: int,
    places: Iterable[TopicPartition],
    resets: Mapping[str, int],
    added: Collection[TopicPartition] = (),
) -> Positions:
    """Positions of a sub-topology's partitions. Those that begin at the end of their topic are committed, and
    those that were `added` to it while the application ran: they begin at their first record."""
    # A task that was killed may have left a transaction open. Its next batch ends that, and asks again.
    asked = Transaction(cluster).committed(settings.application_id, places, is_stable=False)
    committed = run(asked)
    new = {
        place: EARLIEST if place in added else resets.get(place.topic, EARLIEST)
        for place in places
        if place not in committed
    }
    timeout_ms = cluster.client.request_timeout_ms  # a leader may be elected just now
    begins = cluster.offsets(new, timeout_ms=timeout_ms) if new else {}
    pinned = {place: at for place, at in begins.items() if new[place] == LATEST or place in added}
    found = begins | {place: offset for place, (offset, _) in committed.items()}
    return found | commit_positions(cluster, settings, number, pinned, places)


def commit_positions(
    cluster: WorkerCluster,
    settings: TaskSettings,
    number: int,
    positions: Positions,
    places: Iterable[TopicPartition],
    *,
    replaces: bool = False,
) -> Positions:
    """Commit positions of tasks that run no batch now; the positions that count. One that a batch has
    committed stays, unless it `replaces` that. `places` are all partitions of the sub-topology."""
    if not positions:
        return {}
    if not settings.is_exactly_once:
        return _commit_all(cluster, settings, positions, places, replaces=replaces)
    found: Positions = {}
    for partition in sorted({place.partition for place in positions}):
        wanted = {place: at for place, at in positions.items() if place.partition == partition}
        mine = [place for place in places if place.partition == partition]
        task = TaskId(number, partition)
        found |= _commit_task(cluster, settings, task, wanted, mine, replaces=replaces)
    return found


def _commit_all(
    cluster: WorkerCluster,
    settings: TaskSettings,
    wanted: Positions,
    places: Iterable[TopicPartition],
    *,
    replaces: bool,
) -> Positions:
    """Without transactions: one commit for all tasks."""
    group = settings.application_id
    committed = run(Transaction(cluster).committed(group, places, is_stable=False))
    found, texts = chosen(wanted, committed, replaces=replaces)
    metadata = {place: text for place, (_, text) in texts.items()}
    if texts:
        answer = run(GroupOffsetAdmin(cluster).alter_offsets(group, offsets_of(texts), metadata))
        for error in answer.values():
            if error is not None:
                raise error
    return found


def _commit_task(
    cluster: WorkerCluster,
    settings: TaskSettings,
    task: TaskId,
    wanted: Positions,
    places: list[TopicPartition],
    *,
    replaces: bool,
) -> Positions:
    """Commit by the transactional id of the task, which ends a transaction that a killed attempt left."""
    group = settings.application_id
    transaction = Transaction(
        cluster, f"{group}-{task}", timeout_ms=settings.transaction_timeout_ms, wait_ms=settings.wait_ms
    )
    run(transaction.init())
    committed = run(transaction.committed(group, places))
    found, texts = chosen(wanted, committed, replaces=replaces)
    if texts:
        run(transaction.commit_offsets(group, texts))
        run(transaction.end(commit=True))
    return found


def chosen(wanted: Positions, committed: Committed, *, replaces: bool) -> tuple[Positions, Committed]:
    """The positions that count, and those to commit, with their metadata."""
    new = {place: at for place, at in wanted.items() if replaces or place not in committed}
    there = {place: committed[place][0] for place in wanted if place not in new}
    return there | new, {place: (at, metadata_of(place, committed)) for place, at in new.items()}


def offsets_of(texts: Committed) -> Positions:
    return {place: at for place, (at, _) in texts.items()}


def metadata_of(place: TopicPartition, committed: Committed) -> str:
    """The version of the state stays what it is. A task that has committed nothing has no state."""
    if place in committed:
        return committed[place][1]
    has_state = any(each.partition == place.partition for each in committed)
    return "" if has_state else OF_A_NEW_TASK
