"""One batch of one task: records in, results, changelogs, offsets and state out, together.

Steps: take over the transactional id; ask what the group has committed; bring the state to the committed
version; process the records; send the results; prepare the new state; write offsets, the state's version as
their metadata; commit; apply the state. A process that dies before the commit leaves nothing; one that dies
after it leaves a prepared state that the next attempt applies (decision 0065). Does not know: Spark, what the
logic computes.
"""

from __future__ import annotations

import contextlib
import json
import logging
import time
import uuid
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path

import pyarrow as pa

from barnabas.client.admin.group_offsets import GroupOffsetAdmin
from barnabas.client.blocking import run
from barnabas.client.core.errors import ClientError
from barnabas.client.core.topology import TopicPartition
from barnabas.client.core.transaction import Fenced, Transaction
from barnabas.protocol import KafkaError
from barnabas.spark.basics.cluster import WorkerCluster, shared_cluster
from barnabas.spark.planning import limited
from barnabas.spark.reading.fetcher import LATEST, OffsetRange
from barnabas.streams.columns.task import Part
from barnabas.streams.spark.batch_measures import BatchMeasures, Stopwatch, ages_of
from barnabas.streams.spark.measured_state import MeasuredStateFile
from barnabas.streams.spark.state_files import NEW, RESTORING, StateFile, StateLost, state_file
from barnabas.streams.spark.task_outputs import TaskWriter, drop_writers, table_of, task_writer
from barnabas.streams.spark.task_port import (
    ColumnLogic,
    Counts,
    Lasting,
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
from barnabas.streams.spark.task_records import in_order, read_parts

VERSION = "barnabas.version"
FACTS = "barnabas.facts"
log = logging.getLogger("barnabas.streams")
Step = Callable[[str], None]
Offsets = Mapping[TopicPartition, tuple[int, str]]


def no_step(name: str) -> None:
    """Tests stop a batch at the step of a name."""


def run_task(settings: TaskSettings, batch: TaskBatch, make: MakeLogic, step: Step = no_step) -> TaskResult:
    """Process a batch and commit it. Whatever fails before the commit leaves the group where it stood."""
    began, watch = time.monotonic(), Stopwatch()
    questions = shared_cluster(settings.client)
    writer = task_writer(settings, batch.task)
    transaction = standing(settings, batch.task, writer)
    step("init")
    places = [each.place for each in batch.ranges]
    committed = run(transaction.committed(settings.application_id, places))
    state = state_file(
        path_of(settings, batch.task), MeasuredStateFile if settings.measures_details else StateFile
    )
    restored_before = state.records_restored
    watch.lap("begin")
    settle(state, batch.task.partition, committed, make)
    step("settled")
    restored = state.records_restored - restored_before
    watch.lap("restore" if restored else "begin")
    ranges = [
        replace(each, start=committed[each.place][0]) if each.place in committed else each
        for each in batch.ranges
    ]
    ranges = up_to_now(questions, ranges, batch.records_max)
    stops = {each.place: max(each.start, each.stop) for each in ranges}
    has_records = any(each.stop > each.start for each in ranges)
    if not has_records and not batch.is_tick:
        return TaskResult(batch.task, positions=positions_of(stops))
    logic = make(state, batch.task.partition)
    has_sent = False
    try:
        timeout_ms = settings.client.request_timeout_ms
        parts, ranges = read_parts(questions, ranges, timeout_ms, fails_on_loss=settings.fails_on_loss)
        stops = {each.place: each.stop for each in ranges}
        count = sum(part.records.num_rows for part in parts)
        watch.lap("poll")
        ages = ages_of(parts, time.time())
        outputs = results(logic, parts)
        version = uuid.uuid4().hex
        watch.lap("process")
        has_sent = True
        writer.send(transaction, outputs)
        step("sent")
        watch.lap("send")
        state.prepare(version)  # while brokers write the results
        step("prepared")
        facts = make.facts(state) if isinstance(make, Restores) else ""
        watch.lap("flush")
        writer.flush()
        watch.lap("send")
        step("written")
        commit_offsets(settings, transaction, with_metadata(stops, version, facts), step)
    except BaseException:
        state.drop_changes()
        if isinstance(logic, Lasting):
            logic.failed()
        if has_sent:
            drop_writers(settings.client)  # responses may be under way
        with contextlib.suppress(Fenced, KafkaError, ClientError):
            run(transaction.end(commit=False))
        raise
    step("committed")
    watch.lap("commit")
    state.commit(version)
    if isinstance(logic, Lasting):
        logic.committed()
    step("applied")
    watch.lap("flush")
    counts = logic.counts if isinstance(logic, Counts) else TaskCounts()
    rows, seconds = sum(table.num_rows for table in outputs), time.monotonic() - began
    measures = BatchMeasures(
        watch.phases,
        ages,
        restored,
        counts.nodes,
        state.pop_measures() if isinstance(state, MeasuredStateFile) else {},
    )
    return TaskResult(
        batch.task, count, rows, positions_of(stops), counts=counts, seconds=seconds, measures=measures
    )


def standing(settings: TaskSettings, task: TaskId, writer: TaskWriter) -> Transaction:
    """Exactly once: take over the task's transactional id, which ends what another attempt left. At least
    once: the producer id of the last batch, or a new one after a failure."""
    if writer.kept is not None:
        return writer.kept
    transaction = Transaction(
        shared_cluster(settings.client),
        f"{settings.application_id}-{task}" if settings.is_exactly_once else None,
        timeout_ms=settings.transaction_timeout_ms,
        wait_ms=settings.wait_ms,
    )
    run(transaction.init())
    if not settings.is_exactly_once:
        writer.kept = transaction
    return transaction


def up_to_now(cluster: WorkerCluster, ranges: list[OffsetRange], records_max: int) -> list[OffsetRange]:
    """Read also the records that came while the job was started, up to so many in all."""
    if not records_max:
        return ranges
    try:
        newest = cluster.offsets({each.place: LATEST for each in ranges})
    except (KafkaError, ClientError):
        return ranges  # the fetch finds out what there is
    starts = {each.place: each.start for each in ranges}
    stops = limited(starts, {place: max(newest[place], at) for place, at in starts.items()}, records_max)
    return [replace(each, stop=max(stops[each.place], each.start)) for each in ranges]


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
    positions = {place: offset for place, (offset, _) in committed.items()}
    make.restore(state, partition, facts, positions)
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


def commit_offsets(settings: TaskSettings, transaction: Transaction, offsets: Offsets, step: Step) -> None:
    """Commit offsets and, with them, the transaction; results are written."""
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
