"""Rules of trusted tables as Spark columns: which rules a row breaks, and why.

In: rules, the columns of the table. Out: a number per row with a bit for each broken rule, and reasons for
the quarantine. `unique` depends on other rows: `verdicts` decides it from hashes.
Does not know: where rows go.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from pyspark.sql import functions as F

from barnabas.pipeline.lake.tables import Lake, TableName, Zone
from barnabas.pipeline.spec.durations import duration_text
from barnabas.pipeline.spec.model import Rule, RuleKind

if TYPE_CHECKING:
    from pyspark.sql import Column, DataFrame, SparkSession

RULES_MAX = 62  # bits of a BIGINT


@dataclass(frozen=True, slots=True)
class Reference:
    """A rule `reference`, and the joined column that is not null where the value exists."""

    rule: Rule
    column: str


def target_of(rule: Rule) -> tuple[TableName, str]:
    """`customers.id` and `staging.customers.id` -> the table and its column."""
    parts = rule.text.split(".")
    if len(parts) == 2:
        return TableName(Zone.TRUSTED, parts[0]), parts[1]
    if len(parts) == 3 and parts[0] in (Zone.STAGING, Zone.TRUSTED, Zone.REFINED):
        return TableName(Zone(parts[0]), parts[1]), parts[2]
    raise ValueError(f"{rule.text!r} is not a column of a table: write table.column, as in customers.id")


def reference_versions(spark: SparkSession, lake: Lake, rules: Iterable[Rule]) -> dict[str, int]:
    """The newest versions of the tables that rules refer to; -1 for a table that does not exist."""
    tables = {target_of(rule)[0] for rule in rules if rule.kind is RuleKind.REFERENCE}
    return {str(table): lake.version(spark, table) for table in sorted(tables, key=str)}


def with_references(
    spark: SparkSession,
    lake: Lake,
    rows: DataFrame,
    rules: Sequence[Rule],
    table_index: str,
    versions: Mapping[str, int] | None = None,
) -> DataFrame:
    """Join the referenced values. A table that does not exist has none. `versions` are read where they are
    given, else the newest."""
    for index, rule in enumerate(rules):
        if rule.kind is not RuleKind.REFERENCE:
            continue
        table, column = target_of(rule)
        name = reference_column(table_index, index)
        version = None if versions is None else versions.get(str(table))
        if not lake.exists(spark, table) or (version is not None and version < 0):
            rows = rows.withColumn(name, F.lit(False))
            continue
        known = (
            lake.read(spark, table, version)
            .select(F.col(f"`{column}`").alias("_known"))
            .where("_known IS NOT NULL")
            .distinct()
            .withColumn(name, F.lit(True))
        )
        rows = rows.join(known, F.col(f"`{rule.columns[0]}`") == F.col("_known"), "left").drop("_known")
    return rows


def reference_column(table_index: str, index: int) -> str:
    return f"_refers_{table_index}_{index}"


def broken(
    rules: Sequence[Rule], table_index: str, ingested_at: Column, *, references: bool = False
) -> Column:
    """A bit for each rule that a row breaks: rules on the row alone, or with `references` those on other
    tables. The latter are evaluated once per batch: the other tables may change before Spark recomputes
    rows."""
    total = F.lit(0).cast("bigint")
    for index, rule in enumerate(rules):
        if rule.kind is RuleKind.UNIQUE or (rule.kind is RuleKind.REFERENCE) != references:
            continue
        fine = F.coalesce(holds(rule, index, table_index, ingested_at), F.lit(False))
        total = total + F.when(fine, F.lit(0)).otherwise(F.lit(1 << index)).cast("bigint")
    return total


def holds(rule: Rule, index: int, table_index: str, ingested_at: Column) -> Column:
    """True where the rule holds. Only `not_null` refuses nulls."""
    if rule.kind is RuleKind.EXPRESSION:
        return F.expr(rule.text)
    value = F.col(f"`{rule.columns[0]}`")
    if rule.kind is RuleKind.NOT_NULL:
        fine = value.isNotNull()
        for name in rule.columns[1:]:
            fine = fine & F.col(f"`{name}`").isNotNull()
        return fine
    if rule.kind is RuleKind.RANGE:
        fine = F.lit(True)
        if rule.low is not None:
            fine = fine & (value >= F.lit(rule.low))
        if rule.high is not None:
            fine = fine & (value <= F.lit(rule.high))
        return value.isNull() | fine
    if rule.kind is RuleKind.PATTERN:
        return value.isNull() | value.cast("string").rlike(f"^(?:{rule.text})$")
    if rule.kind is RuleKind.REFERENCE:
        return value.isNull() | F.col(reference_column(table_index, index))
    if rule.kind is RuleKind.FRESHNESS:
        age_s = ingested_at.cast("double") - value.cast("timestamp").cast("double")
        return value.isNull() | (age_s <= F.lit(rule.age_s))
    raise AssertionError(rule.kind)


def reason(rule: Rule) -> Column:
    """Why a row breaks the rule, in one sentence."""
    if rule.kind is RuleKind.EXPRESSION:
        return F.lit(f"not true: {rule.text}")
    names = ", ".join(rule.columns)
    if rule.kind is RuleKind.NOT_NULL:
        return F.lit(f"{names} is null")
    if rule.kind is RuleKind.UNIQUE:
        return F.lit(f"{names} is there already")
    shown = F.coalesce(F.col(f"`{rule.columns[0]}`").cast("string"), F.lit("null"))
    ends = {
        RuleKind.RANGE: f", it must be {span(rule)}",
        RuleKind.PATTERN: f", it must match {rule.text}",
        RuleKind.REFERENCE: f", which {rule.text} does not have",
        RuleKind.FRESHNESS: f", which is older than {duration_text(rule.age_s)}",
    }
    return F.concat(F.lit(f"{names} is "), shown, F.lit(ends[rule.kind]))


def span(rule: Rule) -> str:
    if rule.low is None:
        return f"at most {rule.high}"
    return f"at least {rule.low}" if rule.high is None else f"from {rule.low} to {rule.high}"
