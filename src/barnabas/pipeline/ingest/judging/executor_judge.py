"""Judges a large batch on executors: windows over narrow facts of its rows; the driver sees totals.

In: a parsed batch with its facts as a frame. Out: the `Judgement` that `driver_judge` would make. Facts are
shuffled by the hashes of keys, the rows themselves are not. Where few rows are excluded, their numbers are
broadcast to the rows; where many are, Spark joins. Does not know: commits.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from typing import TYPE_CHECKING, Any

from pyspark.sql import Window
from pyspark.sql import functions as F

from barnabas.pipeline.ingest.dedupe.known_keys import AskedKeys, KnownKeys
from barnabas.pipeline.ingest.judging.driver_judge import bounds
from barnabas.pipeline.ingest.judging.judgement import Case, Chosen, Judgement, unique_rules, within_us
from barnabas.pipeline.ingest.judging.parsed_batch import BITS, ParsedBatch, fine_rows
from barnabas.pipeline.lake.columns import DELETE, MALFORMED, OP, ROW
from barnabas.pipeline.lake.tables import TableName, Zone
from barnabas.pipeline.spec.model import Merging

if TYPE_CHECKING:
    from pyspark.sql import Column, DataFrame

ORDER = ("o_batch", "o_topic", "o_partition", "o_offset")  # facts: the order in which rows were read
# So many numbers of rows (8 bytes) and hashes of keys (16 bytes) are broadcast through the driver at most.
ROWS_BROADCAST_MAX = 500_000
KEYS_BROADCAST_MAX = 1_500_000
KNOWN = "_known"  # a row of the table, among those of the batch


class ExecutorJudge:
    def __init__(self, batch: ParsedBatch, case: Case) -> None:
        assert batch.facts is not None
        self._batch = batch
        self._case = case

    def judge(self) -> Judgement:
        case = self._case
        facts = self._batch.facts
        assert facts is not None
        facts = facts.withColumn("bad", F.col("malformed")).withColumn(
            "fine", ~F.col("malformed") & ~F.col("ignored")
        )
        for index, each in enumerate(case.stagings):
            whole = F.col(f"k{index}n") if each.key else F.lit(True)
            if each.key and case.merging is not Merging.INSERT_NEW:
                facts = facts.withColumn("bad", F.col("bad") | (F.col("fine") & ~whole))
                facts = facts.withColumn("fine", F.col("fine") & whole)
            facts = facts.withColumn(f"fine{index}", F.col("fine"))
            if not each.key or case.is_staged:
                facts = facts.withColumn(f"staged{index}", F.col("fine"))
                continue
            table = TableName(Zone.STAGING, each.name)
            known = case.known(table, each.key, within_us(each))
            name, is_last = f"k{index}", case.merging is not Merging.INSERT_NEW
            facts = self._first_of_each(facts, name, F.col("fine") & whole, known, each.key[0], last=is_last)
            # A key with a null equals no other key.
            facts = facts.withColumn(f"staged{index}", F.col("first") | (F.col("fine") & ~whole))
        for index, staging, trusted in case.trusted():
            at = [each.name for each in case.stagings].index(staging.name)
            staged, deletes = F.col(f"staged{at}"), F.col("deletes")
            facts = facts.withColumn(f"bits{index}", F.col(f"broken{index}"))
            facts = facts.withColumn("passing", staged & ~deletes & (F.col(f"bits{index}") == 0))
            for number, rule in unique_rules(trusted):
                name = f"u{index}_{number}"
                candidate = F.col("passing") & F.col(f"{name}n")
                table = TableName(Zone.TRUSTED, trusted.name)
                known = case.known(table, rule.columns, within_us(rule))
                facts = self._first_of_each(facts, name, candidate, known, "")
                lost = F.col("candidate") & ~F.col("first")
                bits = F.col(f"bits{index}").bitwiseOR(F.when(lost, F.lit(1 << number)).otherwise(F.lit(0)))
                facts = facts.withColumn(f"bits{index}", bits)
                facts = facts.withColumn("passing", F.col("passing") & ~lost)
            facts = facts.withColumn(f"accepted{index}", F.col("passing") | (staged & deletes))
            refused = staged & ~deletes & (F.col(f"bits{index}") != 0)
            facts = facts.withColumn(f"refused{index}", refused)
        self._judged = self._batch.keep(facts.select(*self._kept(facts.columns)))
        return self._counted()

    def _kept(self, names: Sequence[str]) -> list[str]:
        """Columns that later selections need."""
        dropped = ("k", "u", "o_", "event_time", "bytes", "at", "rescued", "first", "passing", "candidate")
        return [name for name in names if not name.startswith(dropped)]

    def _first_of_each(
        self,
        facts: DataFrame,
        name: str,
        candidate: Column,
        known: KnownKeys | None,
        column: str,
        *,
        last: bool = False,
    ) -> DataFrame:
        """Add `first`: the candidates with new keys, one of each key; and `candidate`."""
        facts = facts.withColumn("candidate", candidate)
        # Rows that are no candidates are spread: they all have the hash of null.
        spread = F.when(F.col("candidate"), F.col(f"{name}a")).otherwise(F.col(ROW)).alias("wa")
        facts = facts.select("*", spread, F.col(f"{name}b").alias("wb"))
        there = self._looked_up(facts, known, column) if known is not None else None
        is_new = F.col("candidate")
        if there is not None:
            assert known is not None
            facts = with_known(facts, there, known.within_us)
            is_new = is_new & ~F.col("is_known")
        facts = facts.withColumn("is_new", is_new)
        order = [F.col(each).desc() if last else F.col(each) for each in (*ORDER, ROW)]
        window = Window.partitionBy("wa", "wb", "is_new").orderBy(*order)
        first = F.col("is_new") & (F.row_number().over(window) == 1)
        return facts.withColumn("first", first).drop("wa", "wb", "is_new", "is_known")

    def _looked_up(self, facts: DataFrame, known: KnownKeys, column: str) -> DataFrame | None:
        """The keys of the table that may be among the candidates."""
        asked: AskedKeys | None = None
        least, greatest = bounds(self._batch.frame, self._batch, column)
        if known.within_us is not None:
            times = facts.agg(F.min("at"), F.max("at")).first()
            assert times is not None
            asked = AskedKeys(int(times[0] or 0), int(times[1] or 0), least, greatest)
        elif least is not None:
            asked = AskedKeys(0, 0, least, greatest)
        there = known.rows(self._case.own_batch, asked)
        if there is None or self._batch.count > KEYS_BROADCAST_MAX:
            return there
        keys = facts.where("candidate").select(F.col("wa").alias("a"), F.col("wb").alias("b"))
        return there.join(F.broadcast(keys), ["a", "b"], "left_semi")

    # -- totals and rows ---------------------------------------------------------------------------

    def _counted(self) -> Judgement:
        case = self._case
        trusteds = [index for index, _, _ in case.trusted()]
        parsed = ~F.col("malformed") & ~F.col("ignored")
        wanted: dict[str, Column] = {"bad": F.col("bad"), "keyless": F.col("bad") & ~F.col("malformed")}
        wanted["late"] = F.col("late") & F.col("staged0")
        wanted["parsed"] = parsed
        for index, _ in enumerate(case.stagings):
            wanted[f"fine{index}"] = F.col(f"fine{index}")
            wanted[f"staged{index}"] = F.col(f"staged{index}")
        for index in trusteds:
            wanted[f"accepted{index}"] = F.col(f"accepted{index}")
            wanted[f"refused{index}"] = F.col(f"refused{index}")
            wanted[f"would_pass{index}"] = self._would_pass(index)
            wanted[f"would_break{index}"] = self._would_break(index)
            other = F.col(f"refused{index}") & (F.col(f"bits{index}") != F.col(f"own{index}"))
            wanted[f"other{index}"] = other
        sums = [F.sum(each.cast("bigint")).alias(name) for name, each in wanted.items()]
        row = self._judged.agg(*sums).first()
        assert row is not None
        total = {name: int(row[name] or 0) for name in wanted}
        staged, repeated = [], []
        for index, _ in enumerate(case.stagings):
            count = total[f"staged{index}"]
            excluded = parsed & ~F.col(f"staged{index}")
            rows = partial(self._selected, fine_rows(), excluded, total["parsed"] - count)
            staged.append(Chosen(count, rows))
            again = total[f"fine{index}"] - count
            wanted_again = F.col(f"fine{index}") & ~F.col(f"staged{index}")
            repeated.append(Chosen(again, partial(self._joined, wanted_again, again)))
        malformed = Chosen(total["bad"], partial(self._malformed, total["keyless"]))
        found = Judgement(malformed, total["late"], staged, sum(each.count for each in repeated), repeated)
        for index in trusteds:
            found.accepted[index] = Chosen(total[f"accepted{index}"], partial(self._accepted, index, total))
            found.refused[index] = Chosen(total[f"refused{index}"], partial(self._refused, index, total))
        return found

    @staticmethod
    def _would_pass(index: int) -> Column:
        parsed = ~F.col("malformed") & ~F.col("ignored")
        return parsed & ((F.col(f"own{index}") == 0) | F.col("deletes"))

    @staticmethod
    def _would_break(index: int) -> Column:
        parsed = ~F.col("malformed") & ~F.col("ignored")
        return parsed & ~F.col("deletes") & (F.col(f"own{index}") != 0)

    def _accepted(self, index: int, total: dict[str, int]) -> DataFrame:
        passing = fine_rows() & ((F.col(f"_broken{index}") == 0) | (F.col(OP) == DELETE))
        excluded = self._would_pass(index) & ~F.col(f"accepted{index}")
        return self._selected(passing, excluded, total[f"would_pass{index}"] - total[f"accepted{index}"])

    def _refused(self, index: int, total: dict[str, int]) -> DataFrame:
        count = total[f"refused{index}"]
        if total[f"other{index}"]:  # other rows or tables decided
            return self._joined(F.col(f"refused{index}"), count, F.col(f"bits{index}").alias(BITS))
        bits = F.col(f"_broken{index}")
        breaking = fine_rows() & (bits != 0) & (F.col(OP) != DELETE)
        excluded = self._would_break(index) & ~F.col(f"refused{index}")
        rows = self._selected(breaking, excluded, total[f"would_break{index}"] - count)
        return rows.withColumn(BITS, bits)

    def _malformed(self, keyless: int) -> DataFrame:
        rows = self._batch.frame.where(F.col(MALFORMED))
        if not keyless:
            return rows
        return rows.unionByName(self._joined(F.col("bad") & ~F.col("malformed"), keyless))

    def _selected(self, condition: Column, excluded: Column, count: int) -> DataFrame:
        """The rows that the condition finds, without those excluded, of which there are `count`."""
        rows = self._batch.frame.where(condition)
        if not count:
            return rows
        return rows.join(few(self._judged.where(excluded).select(ROW), count), ROW, "left_anti")

    def _joined(self, wanted: Column, count: int, *columns: Column) -> DataFrame:
        chosen = self._judged.where(wanted).select(ROW, *columns)
        return self._batch.frame.join(few(chosen, count), ROW)


def few(rows: DataFrame, count: int) -> DataFrame:
    """Broadcast rows if they are few; Spark sorts and merges others."""
    return F.broadcast(rows) if count <= ROWS_BROADCAST_MAX else rows


def with_known(facts: DataFrame, there: DataFrame, within: int | None) -> DataFrame:
    """Add `is_known`: whether the table has the key, within the horizon. One shuffle brings both together."""
    names = {"a": "wa", "b": "wb", **({"at": "at"} if within is not None else {})}
    table = there.select(*[F.col(name).alias(alias) for name, alias in names.items()])
    table = table.withColumn(KNOWN, F.lit(True))
    both = facts.withColumn(KNOWN, F.lit(False)).unionByName(table, allowMissingColumns=True)
    window: Any = Window.partitionBy("wa", "wb")
    if within is not None:
        window = window.orderBy("at").rangeBetween(-within, within)
    both = both.withColumn("is_known", F.max(F.col(KNOWN).cast("int")).over(window) == 1)
    return both.where(~F.col(KNOWN)).drop(KNOWN)
