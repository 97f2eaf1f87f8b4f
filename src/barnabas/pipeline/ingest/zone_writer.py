"""Writes one parsed batch to the tables of staging, trusted, quarantine and refined, side by side.

In: a parsed batch, and the mode in which to write it. Out: commits and counts. The whole batch is judged
before the first commit. Commits do not wait for each other; each carries the id of its batch.
Does not know: formats, sources, the raw zone, how rows are judged.
"""

from __future__ import annotations

import logging
import time
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import Future, ThreadPoolExecutor, wait
from dataclasses import dataclass, field
from functools import partial
from typing import TYPE_CHECKING, Any

from pyspark.sql import functions as F

from barnabas.pipeline.ingest import (
    quarantine,
    rewritten_rows,
    rules,
    schemas,
    table_properties,
)
from barnabas.pipeline.ingest import zone_rows as zone
from barnabas.pipeline.ingest.dedupe.known_keys import KnownKeys
from barnabas.pipeline.ingest.judging.driver_judge import DriverJudge
from barnabas.pipeline.ingest.judging.executor_judge import ExecutorJudge
from barnabas.pipeline.ingest.judging.judgement import Case, Chosen, Judgement, nothing_to_note
from barnabas.pipeline.ingest.judging.parsed_batch import BITS, ParsedBatch
from barnabas.pipeline.ingest.masking import masked
from barnabas.pipeline.ingest.results import AddedRows, CommitListener, DuplicateListener, TableChange
from barnabas.pipeline.ingest.write_mode import RELEASE, WriteMode, WriteResult
from barnabas.pipeline.lake import commits
from barnabas.pipeline.lake.columns import BATCH, OP, ROW
from barnabas.pipeline.lake.tables import TableName, Zone
from barnabas.pipeline.refined import zone as refined_zone
from barnabas.pipeline.spec.model import Merging, Pipeline, Refined, Source, Staging, Trusted

if TYPE_CHECKING:
    from pyspark.sql import Column, DataFrame, SparkSession

COMMITS_AT_ONCE_MAX = 6
LOG = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class WriterState:
    """State that one batch leaves for the next: known keys of tables, refined tables to append to."""

    refinements: Mapping[str, list[tuple[Refined, str]]]
    appender: commits.Appender
    listener: CommitListener | None = None
    duplicates: DuplicateListener | None = None
    epoch: int = 0  # of the lake's lease
    pool: ThreadPoolExecutor = field(
        default_factory=lambda: ThreadPoolExecutor(COMMITS_AT_ONCE_MAX, thread_name_prefix="commit")
    )
    known_keys: dict[tuple[TableName, tuple[str, ...], int | None], KnownKeys] = field(default_factory=dict)


class ZoneWriter:
    """Writes one batch."""

    def __init__(
        self,
        spark: SparkSession,
        pipeline: Pipeline,
        source: Source,
        state: WriterState,
        batch: ParsedBatch,
        mode: WriteMode,
    ) -> None:
        self._spark = spark
        self._pipeline = pipeline
        self._source = source
        self._lake = pipeline.lake_location
        self._state = state
        self._known_keys = state.known_keys
        self._batch = batch
        self._mode = mode
        self._done = WriteResult()
        self._commits: list[Callable[[], None]] = []
        self._staging_commits: list[Callable[[], None]] = []
        self._refused: dict[TableName, list[tuple[Zone, int, DataFrame | None]]] = {}

    def write(
        self, stagings: list[Staging], trusteds: list[tuple[Staging, Trusted]], *, is_staged: bool
    ) -> WriteResult:
        """`is_staged`: staging has the rows already, only the trusted tables are written."""
        mode, done = self._mode, self._done
        case = Case(
            stagings, trusteds, mode.merging, mode.own_batch, self._known, is_staged=is_staged, only=mode.only
        )
        found = judged(self._batch, case)
        done.staged = sum(each.count for each in found.staged)
        done.duplicates, done.late, done.malformed = found.duplicates, found.late, found.malformed.count
        if not is_staged:
            for each, chosen in zip(stagings, found.staged, strict=True):
                self._stage(each, chosen, found)
            self._tell_of_duplicates(stagings, found)
        for index, staging, trusted in case.trusted():
            self._trust(staging, trusted, found.accepted[index], found)
            self._refuse(trusted, found.refused[index])
        if not is_staged:
            self._refuse_malformed(stagings, found.malformed)
        self._quarantine()
        self._commit()
        return done

    def _commit(self) -> None:
        """Run all commits; raise the first error when all have ended."""
        if self._mode.is_release:
            # Rows that staging has count as released, so it comes after all others.
            for commit in (*self._commits, *self._staging_commits):
                commit()
            return
        # A MERGE takes its transaction id from the session, so merges run one at a time.
        if self._mode.merging is not Merging.INSERT_NEW or self._mode.replay_range is not None:
            for commit in (*self._staging_commits, *self._commits):
                commit()
            return
        # Views wait for trusted tables; nothing waits for staging, so it comes last.
        in_order = (*self._commits, *self._staging_commits)
        futures = [self._state.pool.submit(commit) for commit in in_order]
        wait(futures)
        for future in futures:
            future.result()

    # -- staging -----------------------------------------------------------------------------------

    def _stage(self, each: Staging, chosen: Chosen, found: Judgement) -> None:
        if not chosen.count and self._mode.adds:
            return
        table = TableName(Zone.STAGING, each.name)
        names = [f"`{name}`" for name in self._batch.schema.names]
        rows = chosen.rows().select(*names, *zone.system_columns(), OP)

        def commit() -> None:
            version = self._write(rows, table, each.key, chosen.count)
            found.committed.get(table, nothing_to_note)(version)

        self._staging_commits.append(commit)

    def _tell_of_duplicates(self, stagings: list[Staging], found: Judgement) -> None:
        listener, mode = self._state.duplicates, self._mode
        if listener is None or mode.merging is not Merging.INSERT_NEW or mode.writer or not mode.adds:
            return

        def tell(staging: str, chosen: Chosen) -> None:
            listener.duplicates(mode.batch, staging, chosen.rows())

        for each, chosen in zip(stagings, found.repeated, strict=True):
            if chosen.count:
                self._commits.append(partial(tell, each.name, chosen))

    def _known(
        self, table: TableName, columns: Sequence[str], within_us: int | None = None
    ) -> KnownKeys | None:
        """Keys that the table holds and keeps; None where rows replace those of their key."""
        replay_range, names = self._mode.replay_range, tuple(columns)
        if self._mode.merging is not Merging.INSERT_NEW:
            return None
        if replay_range is not None:
            counting = partial(rewritten_rows.staying, replay_range, table)
            return KnownKeys(self._spark, self._lake, table, names, within_us, counting)
        if self._mode.is_release:
            mine = self._batch.frame.select(*rewritten_rows.prefixed_places())
            counting = partial(rewritten_rows.elsewhere, mine)
            return KnownKeys(self._spark, self._lake, table, names, within_us, counting)
        name = (table, names, within_us)
        if name not in self._known_keys:
            self._known_keys[name] = KnownKeys(self._spark, self._lake, table, names, within_us)
        return self._known_keys[name]

    # -- trusted -----------------------------------------------------------------------------------

    def _trust(self, staging: Staging, trusted: Trusted, chosen: Chosen, found: Judgement) -> None:
        table = TableName(Zone.TRUSTED, trusted.name)
        self._done.accepted += chosen.count
        if not chosen.count and self._mode.adds:
            return
        rows = chosen.rows().select(
            *[masked(trusted, name) for name in self._batch.schema.names], *zone.system_columns(), OP, ROW
        )
        increments = self._increments(table, rows)

        def commit() -> None:
            before = self._lake.version(self._spark, table)
            version = self._write(rows, table, staging.key, chosen.count)
            if increments is not None and version > before:
                self._tell(table, version, increments)
            found.committed.get(table, nothing_to_note)(version)

        self._commits.append(commit)
        if not self._mode.writer:
            for each, alias in self._state.refinements.get(trusted.name, ()):
                self._commits.append(self._refining(each, alias, rows))

    def _increments(self, table: TableName, rows: DataFrame) -> Future[Mapping[str, Any]] | None:
        """Compute what the rows add to views, in parallel to the commit. If that fails, the views read the
        table's changes instead."""
        listener, mode = self._state.listener, self._mode
        if (
            listener is None
            or mode.merging is not Merging.INSERT_NEW
            or mode.writer
            or mode.replay_range is not None
        ):
            return None
        found: Future[Mapping[str, Any]] = Future()

        def compute() -> None:
            started = time.perf_counter()
            try:
                found.set_result(listener.increments(table, rows.drop(OP, ROW)))
            except Exception as problem:
                LOG.warning(
                    "views over %s read its changes, because increments could not be computed: %s",
                    table,
                    str(problem).partition("\n")[0],
                )
                found.set_result({})
            self._done.seconds[f"views of {table}"] = round(time.perf_counter() - started, 3)

        self._commits.append(compute)
        return found

    def _tell(self, table: TableName, version: int, increments: Future[Mapping[str, Any]]) -> None:
        txn = self._txn(table)
        assert self._state.listener is not None
        self._state.listener.added(AddedRows(table, version, txn.app, txn.version, increments.result()))

    def _refining(self, each: Refined, alias: str, rows: DataFrame) -> Callable[[], None]:
        def commit() -> None:
            started = time.perf_counter()
            app = f"{self._pipeline.name}/{self._source.name}/refined/{each.name}"
            txn = commits.Txn.of(app, self._state.epoch, self._mode.batch)
            changed = refined_zone.append_rows(self._state.appender, self._lake, each, alias, rows, txn)
            if changed is not None:
                self._done.changed.append(changed)
            self._done.seconds[f"refined.{each.name}"] = round(time.perf_counter() - started, 3)

        return commit

    # -- quarantine --------------------------------------------------------------------------------

    def _refuse(self, trusted: Trusted, chosen: Chosen) -> None:
        self._done.quarantined += chosen.count
        if self._mode.writer == RELEASE:  # rows that are refused again stay in quarantine
            return
        refused = None
        if chosen.count:
            labels = [
                F.when(F.col(BITS).bitwiseAND(F.lit(1 << number)) != 0, F.lit(rule.label))
                for number, rule in enumerate(trusted.rules)
            ]
            reasons = [
                F.when(label.isNotNull(), rules.reason(rule))
                for label, rule in zip(labels, trusted.rules, strict=True)
            ]
            table = TableName(Zone.TRUSTED, trusted.name)
            refused = quarantine.refused(chosen.rows(), table, without_nulls(labels), without_nulls(reasons))
        self._refused.setdefault(quarantine.table_of(trusted.name), []).append(
            (Zone.TRUSTED, chosen.count, refused)
        )

    def _refuse_malformed(self, stagings: list[Staging], chosen: Chosen) -> None:
        self._done.quarantined += chosen.count
        if self._mode.is_release:
            return
        for each in stagings:
            refused = None
            if chosen.count:
                refused = quarantine.malformed(
                    chosen.rows(),
                    TableName(Zone.STAGING, each.name),
                    self._batch.schema,
                    "debezium change event" if self._source.changes else schemas.form_of(self._source),
                )
            self._refused.setdefault(quarantine.table_of(each.name), []).append(
                (Zone.STAGING, chosen.count, refused)
            )

    def _quarantine(self) -> None:
        """Plan one commit for each quarantine."""
        for table, refusals in self._refused.items():
            if any(rows is not None for _, _, rows in refusals) or not self._mode.adds:
                self._commits.append(self._quarantining(table, refusals))

    def _quarantining(
        self, table: TableName, refusals: list[tuple[Zone, int, DataFrame | None]]
    ) -> Callable[[], None]:
        def commit() -> None:
            started = time.perf_counter()
            path = self._lake.path(table)
            txn = self._txn(table)
            outdated = self._outdated(table, [judge for judge, _, _ in refusals])
            frames = [rows for _, _, rows in refusals if rows is not None]
            replayed = self._mode.replay_range
            if outdated and replayed is not None:
                there = self._lake.read(self._spark, table).where(outdated)
                kept = rewritten_rows.forgotten_in_quarantine(replayed, there)
                frames += [] if kept.isEmpty() else [kept]
            if not frames:
                if outdated:
                    commits.delete(self._spark, path, outdated, txn)
                return
            whole = frames[0]
            for rows in frames[1:]:
                whole = whole.unionByName(rows)
            if (self._mode.is_release or self._mode.recovers) and self._lake.exists(self._spark, table):
                mine = f"batch = {self._mode.batch}" if self._mode.recovers else quarantine.WAITING
                there = self._lake.read(self._spark, table).where(mine)
                whole = rewritten_rows.not_in_quarantine(whole, there)
            if outdated:
                commits.overwrite(whole, path, txn, where=outdated)
            else:
                self._state.appender.append(whole, path, txn, properties=self._properties(table, whole))
            self._note(table, sum(count for _, count, _ in refusals), started)

        return commit

    def _outdated(self, table: TableName, judges: list[Zone]) -> str:
        """The condition on quarantined rows that a snapshot or a replay judges again, and that are therefore
        deleted; empty if there are none."""
        mode = self._mode
        if mode.adds or not self._lake.exists(self._spark, table):
            return ""
        zones = ", ".join(f"'{judge}'" for judge in judges)
        waiting = f"zone IN ({zones}) AND source = '{self._source.name}' AND {quarantine.WAITING}"
        if mode.replay_range is not None and mode.merging is not Merging.REPLACE_ALL:
            waiting = f"{waiting} AND {mode.replay_range.raw}"
        return "" if self._lake.read(self._spark, table).where(waiting).isEmpty() else waiting

    # -- commits -----------------------------------------------------------------------------------

    def _write(self, rows: DataFrame, table: TableName, keys: Any, count: int) -> int:
        """Write the rows; the version of the table that holds them."""
        started = time.perf_counter()
        path, mode, found = self._lake.path(table), self._mode, self._batch
        if mode.replay_range is not None and mode.merging is Merging.INSERT_NEW:
            there = self._lake.read(self._spark, table)
            kept = rewritten_rows.forgotten(mode.replay_range, there)
            rows = rows.drop(OP, ROW).unionByName(kept, allowMissingColumns=True)
            commits.overwrite(rows, path, self._txn(table), where=mode.replay_range.zone)
        else:
            is_appended = mode.merging is Merging.INSERT_NEW
            if (mode.is_release or mode.recovers) and is_appended and self._lake.exists(self._spark, table):
                # An interrupted release has written them, or a backfill with the number of this batch.
                there = self._lake.read(self._spark, table)
                there = there.where(F.col(BATCH) == mode.batch) if mode.recovers else there
                rows = rewritten_rows.not_in(rows, there)
            zone.write(
                rows, path, found.schema.names, keys, mode.merging, self._txn(table), self._state.appender,
                widens=found.widened, properties=self._properties(table, rows),
            )  # fmt: skip
        return self._note(table, count, started)

    def _properties(self, table: TableName, rows: DataFrame) -> dict[str, str] | None:
        """Properties for a table that its first rows create; None where it exists."""
        if self._lake.exists(self._spark, table):
            return None
        return table_properties.properties_of(self._pipeline, table, rows.schema)

    def _txn(self, table: TableName) -> commits.Txn:
        app = f"{self._pipeline.name}/{self._source.name}/{table.zone}/{table.name}"
        if not self._mode.writer:
            return commits.Txn.of(app, self._state.epoch, self._mode.batch)
        return commits.rewriting(self._spark, self._lake, table, app, self._state.epoch)

    def _note(self, table: TableName, rows: int, started: float) -> int:
        version = self._lake.version(self._spark, table)
        self._done.changed.append(TableChange(table, version, rows))
        self._done.seconds[str(table)] = round(time.perf_counter() - started, 3)
        return version


def judged(batch: ParsedBatch, case: Case) -> Judgement:
    """Judge a batch where its facts are: on the driver, or on executors."""
    return (ExecutorJudge if batch.row_facts is None else DriverJudge)(batch, case).judge()


def without_nulls(columns: list[Column]) -> Column:
    return F.filter(F.array(*columns), lambda each: each.isNotNull())
