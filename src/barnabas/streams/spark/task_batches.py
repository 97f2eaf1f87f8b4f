"""One batch of one task: records in, results, changelogs, offsets and state out, together.

Steps: take over the transactional id; ask what the group has committed; bring the state to the committed
version; process the records; prepare the new state; write outputs and offsets, the state's version as their
metadata; commit; apply the state. A process that dies before the commit leaves nothing; one that dies after
it leaves a prepared state that the next attempt applies
(decision 0082). Does not know: Spark,
what the logic computes.
"""

from __future__ import annotations

import contextlib
import json
import logging
import random
import time
import uuid
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path

import pyarrow as pa

from barnabas.client.admin.group_offsets import GroupOffsetAdmin
from barnabas.client.blocking import run
from barnabas.client.core.errors import ClientError
from barnabas.client.core.topology import TopicPartition
from barnabas.client.core.transaction import Fenced, Transaction
from barnabas.protocol import KafkaError
from barnabas.records.compression import Compression
from barnabas.spark.basics.cluster import WorkerCluster, shared_cluster
from barnabas.spark.basics.settings import ClientSettings
from barnabas.spark.producer import BlockingProducer
from barnabas.spark.reading.columns import HEADER_TYPE
from barnabas.spark.sink import PartitionCounts
from barnabas.spark.writing.encoding import Encoder
from barnabas.streams.columns.task import Part
from barnabas.streams.spark.state_files import NEW, RESTORING, StateFile, StateLost, state_file
from barnabas.streams.spark.task_port import (
    ColumnLogic,
    Counts,
    MakeLogic,
    OutputRecord,
    Restores,
    TaskBatch,
    TaskCounts,
    TaskId,
    TaskLogic,
    TaskResult,
    TaskSettings,
)
from barnabas.streams.spark.task_records import US_A_MS, in_order, read_parts

BATCH_BYTES = 1024 * 1024
VERSION = "barnabas.version"
FACTS = "barnabas.facts"
log = logging.getLogger("barnabas.streams")
Step = Callable[[str], None]
Offsets = Mapping[TopicPartition, tuple[int, str]]


def no_step(name: str) -> None:
    """Tests stop a batch at the step of a name."""


def run_task(settings: TaskSettings, batch: TaskBatch, make: MakeLogic, step: Step = no_step) -> TaskResult:
    """Process a batch and commit it. Whatever fails before the commit leaves the group where it stood."""
    began = time.monotonic()
    questions = shared_cluster(settings.client)
    transactional_id = f"{settings.application_id}-{batch.task}" if settings.is_exactly_once else None
    transaction = Transaction(
        questions, transactional_id, timeout_ms=settings.transaction_timeout_ms, wait_ms=settings.wait_ms
    )
    run(transaction.init())
    step("init")
    places = [each.place for each in batch.ranges]
    committed = run(transaction.committed(settings.application_id, places))
    state = state_file(path_of(settings, batch.task))
    settle(state, batch.task.partition, committed, make)
    step("settled")
    ranges = [
        replace(each, start=committed[each.place][0]) if each.place in committed else each
        for each in batch.ranges
    ]
    stops = {each.place: max(each.start, each.stop) for each in ranges}
    has_records = any(each.stop > each.start for each in ranges)
    if not has_records and not batch.is_tick:
        return TaskResult(batch.task, positions=positions_of(stops))
    logic = make(state, batch.task.partition)
    try:
        timeout_ms = settings.client.request_timeout_ms
        parts, ranges = read_parts(questions, ranges, timeout_ms, fails_on_loss=settings.fails_on_loss)
        stops = {each.place: each.stop for each in ranges}
        count = sum(part.records.num_rows for part in parts)
        outputs = results(logic, parts)
        version = uuid.uuid4().hex
        state.prepare(version)
        step("prepared")
        facts = make.facts(state) if isinstance(make, Restores) else ""
        offsets = with_metadata(stops, version, facts)
        commit(settings, transaction, outputs, offsets, step)
    except BaseException:
        state.drop_changes()
        with contextlib.suppress(Fenced, KafkaError, ClientError):
            run(transaction.end(commit=False))
        raise
    step("committed")
    state.commit(version)
    step("applied")
    counts = logic.counts if isinstance(logic, Counts) else TaskCounts()
    rows, seconds = sum(table.num_rows for table in outputs), time.monotonic() - began
    return TaskResult(batch.task, count, rows, positions_of(stops), counts=counts, seconds=seconds)


def positions_of(stops: Mapping[TopicPartition, int]) -> dict[tuple[str, int], int]:
    return {(place.topic, place.partition): offset for place, offset in stops.items()}


def results(logic: TaskLogic, parts: Sequence[Part]) -> list[pa.Table]:
    """Compute the results of records: by columns where the logic can, else record by record."""
    if isinstance(logic, ColumnLogic) and parts:
        tables = logic.process_parts(parts)
        if tables is not None:
            return tables
    outputs: list[OutputRecord] = []
    for topic, record in in_order(parts):
        outputs += logic.process(topic, record)
    outputs += logic.finish()
    return [table_of(outputs)] if outputs else []


def path_of(settings: TaskSettings, task: TaskId) -> Path:
    return Path(settings.state_dir) / settings.application_id / f"{task}.sqlite"


def settle(state: StateFile, partition: int, committed: Offsets, make: MakeLogic) -> None:
    """Bring the state to the committed version: as it was prepared, else from the changelogs."""
    version, facts = committed_facts(committed)
    is_lost = version is None and bool(committed) and state.version == NEW
    if not is_lost and state.version != RESTORING:
        try:
            state.settle(state.version if version is None else version)
            return
        except StateLost as error:
            if not isinstance(make, Restores):
                raise
            log.warning("%s; it is restored from the changelogs", error)
    if not isinstance(make, Restores):
        return
    state.clear(RESTORING)
    make.restore(state, partition, facts)
    state.keep(version if version is not None else uuid.uuid4().hex)


def committed_facts(committed: Offsets) -> tuple[str | None, str]:
    """The version in the offsets' metadata, and the facts of the logic. Offsets that a tool has set have
    none: the state stays."""
    version, facts = None, ""
    for _, metadata in committed.values():
        with contextlib.suppress(ValueError, AttributeError):
            found = json.loads(metadata)
            version = found.get(VERSION) if version is None else version
            facts = found.get(FACTS) or facts
    return (version if isinstance(version, str) else None), facts


def with_metadata(stops: Mapping[TopicPartition, int], version: str, facts: str) -> Offsets:
    """Offsets with the state's version as their metadata; the facts travel once."""
    found: dict[TopicPartition, tuple[int, str]] = {}
    for place, offset in sorted(stops.items()):
        text = {VERSION: version} if found or not facts else {VERSION: version, FACTS: facts}
        found[place] = (offset, json.dumps(text, separators=(",", ":")))
    return found


def commit(
    settings: TaskSettings,
    transaction: Transaction,
    outputs: Sequence[pa.Table],
    offsets: Offsets,
    step: Step,
) -> None:
    """Write outputs and offsets: in one transaction, or one after the other."""
    cluster = _writers.pop(settings.client, None) or WorkerCluster(settings.client)
    try:
        write_tables(settings, cluster, transaction, outputs)
    except BaseException:
        run(cluster.close())  # responses may be under way
        raise
    _writers[settings.client] = cluster
    step("written")
    group = settings.application_id
    if transaction.transactional_id is not None:
        run(transaction.commit_offsets(group, offsets))
        step("offsets")
        run(transaction.end(commit=True))
        return
    admin = GroupOffsetAdmin(shared_cluster(settings.client))
    texts = {place: text for place, (_, text) in offsets.items()}
    numbers = {place: offset for place, (offset, _) in offsets.items()}
    for error in run(admin.alter_offsets(group, numbers, texts)).values():
        if error is not None:
            raise error


_writers: dict[ClientSettings, WorkerCluster] = {}  # whose connections outlive batches


def write(
    settings: TaskSettings, cluster: WorkerCluster, transaction: Transaction, outputs: Sequence[OutputRecord]
) -> None:
    """Write records that are at hand one by one."""
    write_tables(settings, cluster, transaction, [table_of(outputs)] if outputs else [])


def write_tables(
    settings: TaskSettings, cluster: WorkerCluster, transaction: Transaction, outputs: Sequence[pa.Table]
) -> None:
    if not outputs:
        return
    counts = PartitionCounts(cluster, settings.client.request_timeout_ms)
    rng = random.Random()
    encoder = Encoder(counts, compression=Compression.LZ4, batch_bytes=BATCH_BYTES, rng=rng, level=None)
    producer = BlockingProducer(cluster, encoder, transaction, timeout_ms=settings.wait_ms)
    for table in outputs:
        producer.write(encoder.batches(table, None, int(time.time() * 1000)))
    producer.flush()


def table_of(outputs: Sequence[OutputRecord]) -> pa.Table:
    columns = {
        "key": pa.array([each.key for each in outputs], pa.binary()),
        "value": pa.array([each.value for each in outputs], pa.binary()),
        "topic": pa.array([each.topic for each in outputs], pa.string()),
        "timestamp": pa.array([each.timestamp * US_A_MS for each in outputs], pa.timestamp("us", tz="UTC")),
    }
    if any(each.partition is not None for each in outputs):
        columns["partition"] = pa.array([each.partition for each in outputs], pa.int32())
    if any(each.headers for each in outputs):
        columns["headers"] = pa.array([pairs(each.headers) for each in outputs], pa.list_(HEADER_TYPE))
    return pa.table(columns)


def pairs(headers: Iterable[tuple[str, bytes | None]]) -> list[dict[str, str | bytes | None]] | None:
    return [{"key": key, "value": value} for key, value in headers] or None
