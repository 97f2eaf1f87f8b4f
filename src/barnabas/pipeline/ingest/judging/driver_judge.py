"""Judges a small batch on the driver, from a few facts of each row: no join, no shuffle.

In: a parsed batch with its facts as arrays. Out: a `Judgement`. Spark selects the rows by a condition on
their own columns; rows that this condition finds too often are excluded by their numbers.
Does not know: commits. `executor_judge` gives the same judgement for large batches.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import TYPE_CHECKING, Any

import numpy as np
from pyspark.sql import functions as F

from barnabas.pipeline.ingest.dedupe.key_index import Flags, KeyIndex
from barnabas.pipeline.ingest.dedupe.known_keys import ORDERED_TYPES, AskedKeys, KnownKeys
from barnabas.pipeline.ingest.judging.judgement import Case, Chosen, Judgement, unique_rules, within_us
from barnabas.pipeline.ingest.judging.parsed_batch import BITS, ParsedBatch, fine_rows, frame_of
from barnabas.pipeline.ingest.judging.verdicts import (
    Hashes,
    StagingVerdict,
    TrustedVerdict,
    UniqueValues,
    judge_staging,
    judge_trusted,
)
from barnabas.pipeline.lake.columns import DELETE, MALFORMED, OP, ROW
from barnabas.pipeline.lake.tables import TableName, Zone
from barnabas.pipeline.spec.model import Merging, Staging, Trusted

if TYPE_CHECKING:
    from pyspark.sql import Column, DataFrame

LISTED_MAX = 4000  # so many rows are excluded by a list in the query, more by a join


class DriverJudge:
    def __init__(self, batch: ParsedBatch, case: Case) -> None:
        assert batch.row_facts is not None
        self._batch = batch
        self._facts = batch.row_facts
        self._case = case
        self._times = self._facts.get("at")

    def judge(self) -> Judgement:
        facts, case = self._facts, self._case
        malformed, ignored, deletes = (facts[name] for name in ("malformed", "ignored", "deletes"))
        fine = ~malformed & ~ignored
        verdicts: dict[str, StagingVerdict] = {}
        staged: list[Chosen] = []
        repeated: list[Chosen] = []
        committed: dict[TableName, list[Callable[[int], None]]] = {}
        for index, each in enumerate(case.stagings):
            keys = hashes_of(facts, f"k{index}") if each.key else None
            if keys is not None and case.merging is not Merging.INSERT_NEW:
                malformed = malformed | (fine & ~keys.whole)
                fine = fine & keys.whole
            verdict = StagingVerdict(fine, np.zeros(len(fine), np.bool_))
            if not case.is_staged:
                table = TableName(Zone.STAGING, each.name)
                verdict = self._stage(each, table, fine, keys, committed)
            verdicts[each.name] = verdict
            rows = partial(self._selected, verdict.staged, ~facts["malformed"] & ~ignored, fine_rows())
            staged.append(Chosen(int(verdict.staged.sum()), rows))
            count = int(verdict.duplicates.sum())
            repeated.append(Chosen(count, partial(self._joined, verdict.duplicates, None)))
        found = Judgement(
            Chosen(int(malformed.sum()), partial(self._malformed, malformed)),
            int((facts["late"] & verdicts[case.stagings[0].name].staged).sum()),
            staged,
            sum(each.count for each in repeated),
            repeated,
        )
        for index, staging, trusted in case.trusted():
            self._trust(found, index, trusted, verdicts[staging.name], deletes, committed)
        found.committed = {table: partial(note_all, notes) for table, notes in committed.items()}
        return found

    # -- verdicts ----------------------------------------------------------------------------------

    def _stage(
        self,
        staging: Staging,
        table: TableName,
        fine: Flags,
        keys: Hashes | None,
        committed: dict[TableName, list[Callable[[int], None]]],
    ) -> StagingVerdict:
        case = self._case
        known = case.known(table, staging.key, within_us(staging)) if keys is not None else None
        index = self._index(known, keys, staging.key[0] if staging.key else "")
        verdict = judge_staging(
            fine, keys, case.merging, index, self._times, known.within_us if known is not None else None
        )
        if known is not None and keys is not None:
            new = verdict.staged & keys.whole
            committed.setdefault(table, []).append(self._noting(known, keys, new))
        return verdict

    def _trust(
        self,
        found: Judgement,
        index: int,
        trusted: Trusted,
        staged: StagingVerdict,
        deletes: Flags,
        committed: dict[TableName, list[Callable[[int], None]]],
    ) -> None:
        table = TableName(Zone.TRUSTED, trusted.name)
        uniques: dict[int, UniqueValues] = {}
        trackers: dict[int, KnownKeys] = {}
        for number, rule in unique_rules(trusted):
            hashes = hashes_of(self._facts, f"u{index}_{number}")
            known = self._case.known(table, rule.columns, within_us(rule))
            if known is not None:
                trackers[number] = known
            there = self._index(known, hashes, "")
            uniques[number] = UniqueValues(hashes, there, self._times, within_us(rule))
        verdict = judge_trusted(staged.staged, deletes, self._facts[f"broken{index}"], uniques)
        for number, known in trackers.items():
            note = self._noting(known, uniques[number].hashes, verdict.claimed[number])
            committed.setdefault(table, []).append(note)
        accepted = partial(self._accepted, index, verdict, deletes)
        refused = partial(self._refused, index, verdict, deletes)
        found.accepted[index] = Chosen(int(verdict.accepted.sum()), accepted)
        found.refused[index] = Chosen(int(verdict.refused.sum()), refused)

    def _index(self, known: KnownKeys | None, keys: Hashes | None, column: str) -> KeyIndex | None:
        if known is None or keys is None or not len(keys.first):
            return None
        return known.index(self._case.own_batch, keys.first, keys.second, partial(self._asked, column))

    def _asked(self, column: str) -> AskedKeys:
        """The times of the batch, and the least and greatest value of a column."""
        times = self._times if self._times is not None and len(self._times) else np.zeros(1, np.int64)
        first_at, last_at = int(times.min()), int(times.max())
        least, greatest = bounds(self._batch.frame, self._batch, column)
        return AskedKeys(first_at, last_at, least, greatest)

    def _noting(self, known: KnownKeys, keys: Hashes, new: Flags) -> Callable[[int], None]:
        times = self._times[new] if self._times is not None else None
        return lambda version: known.add(keys.first[new], keys.second[new], times, version)

    # -- rows --------------------------------------------------------------------------------------

    def _accepted(self, index: int, verdict: TrustedVerdict, deletes: Flags) -> DataFrame:
        facts = self._facts
        passing = fine_rows() & ((F.col(f"_broken{index}") == 0) | (F.col(OP) == DELETE))
        would = ~facts["malformed"] & ~facts["ignored"] & ((facts[f"own{index}"] == 0) | deletes)
        return self._selected(verdict.accepted, would, passing)

    def _refused(self, index: int, verdict: TrustedVerdict, deletes: Flags) -> DataFrame:
        """Rows that break rules, with `_bits`. Joins only if the verdict depends on other rows or tables."""
        facts, refused = self._facts, verdict.refused
        own = facts[f"own{index}"]
        if not np.array_equal(own[refused], verdict.broken[refused]):
            return self._joined(refused, verdict.broken)
        bits = F.col(f"_broken{index}")
        breaking = fine_rows() & (bits != 0) & (F.col(OP) != DELETE)
        would = ~facts["malformed"] & ~facts["ignored"] & ~deletes & (own != 0)
        return self._selected(refused, would, breaking).withColumn(BITS, bits)

    def _malformed(self, malformed: Flags) -> DataFrame:
        if not self._facts["malformed"][malformed].all():  # also rows without a key
            return self._joined(malformed, None)
        return self._selected(malformed, self._facts["malformed"], F.col(MALFORMED))

    def _selected(self, wanted: Flags, by_condition: Flags, condition: Column) -> DataFrame:
        """The wanted rows: `condition` finds them and maybe more (`by_condition`), which are excluded."""
        rows = self._batch.frame.where(condition)
        excluded = self._facts[ROW][by_condition & ~wanted]
        if not len(excluded):
            return rows
        if len(excluded) <= LISTED_MAX:
            return rows.where(F.expr(f"{ROW} NOT IN ({','.join(map(str, excluded.tolist()))})"))
        return rows.join(F.broadcast(frame_of(rows.sparkSession, {ROW: excluded})), ROW, "left_anti")

    def _joined(self, wanted: Flags, bits: Any) -> DataFrame:
        columns = {ROW: self._facts[ROW][wanted]}
        if bits is not None:
            columns[BITS] = bits[wanted]
        frame = self._batch.frame
        return frame.join(F.broadcast(frame_of(frame.sparkSession, columns)), ROW)


def note_all(notes: list[Callable[[int], None]], version: int) -> None:
    for note in notes:
        note(version)


def hashes_of(row_facts: dict[str, Any], name: str) -> Hashes:
    return Hashes(row_facts[f"{name}a"], row_facts[f"{name}b"], row_facts[f"{name}n"])


def bounds(rows: DataFrame, batch: ParsedBatch, column: str) -> tuple[Any, Any]:
    """The least and the greatest value of a column, where Delta's statistics can use them."""
    kinds = {each.name: each.dataType.simpleString() for each in batch.schema.fields}
    if kinds.get(column) not in ORDERED_TYPES:
        return None, None
    found = rows.where(fine_rows()).agg(F.min(f"`{column}`"), F.max(f"`{column}`")).first()
    return (None, None) if found is None else (found[0], found[1])
