"""Rows of a zone that a replay or a release must leave alone, found by their coordinates.

In: rows of a zone, the rows that a command writes. Out: frames. A replay replaces what raw holds: rows of
other zones whose row in raw is gone, because of retention, stay. A release adds what a table lacks.
Does not know: rules, commits.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from barnabas.pipeline.lake.columns import COORDINATES, RAW_PREFIX

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

    from barnabas.pipeline.ingest.write_mode import ReplayRange
    from barnabas.pipeline.lake.tables import TableName

PLACES = ("topic", "partition", "offset")  # the coordinates of a row in raw and in the quarantine


def forgotten(replayed: ReplayRange, there: DataFrame) -> DataFrame:
    """Rows of a staging or trusted table in the chunk whose row in raw is gone."""
    covered = there.where(replayed.zone)
    if replayed.held is None:
        return covered.limit(0)
    if replayed.held_here is None:
        return elsewhere(replayed.held, covered)
    # Nearly always all rows are found in their own chunk. A backfill may have read a row again: then raw has
    # it in another batch.
    missing = elsewhere(replayed.held_here, covered)
    return covered.limit(0) if missing.isEmpty() else elsewhere(replayed.held, missing)


def staying(replayed: ReplayRange, table: TableName, there: DataFrame) -> DataFrame:
    """Rows of a staging or trusted table that neither this chunk nor a later one replaces."""
    others = there.where(f"NOT ({replayed.remaining})")
    known = replayed.with_forgotten
    if replayed.held is None or (known is not None and table not in known):
        return others
    return others.unionByName(elsewhere(replayed.held, there.where(replayed.remaining)))


def elsewhere(places: DataFrame, there: DataFrame) -> DataFrame:
    """Rows of a staging or trusted table that are at none of these coordinates of raw."""
    return there.join(places.toDF(*COORDINATES), list(COORDINATES), "left_anti").select(*quoted(there))


def at(places: DataFrame, there: DataFrame) -> DataFrame:
    """Rows of a staging or trusted table that are at one of these coordinates of raw."""
    return there.join(places.toDF(*COORDINATES), list(COORDINATES), "left_semi").select(*quoted(there))


def forgotten_in_quarantine(replayed: ReplayRange, there: DataFrame) -> DataFrame:
    """Rows of a quarantine whose row in raw is gone."""
    if replayed.held is None:
        return there.limit(0)
    if replayed.held_here is not None:
        there = quarantined_elsewhere(replayed.held_here, there)
        if there.isEmpty():
            return there.limit(0)
    return quarantined_elsewhere(replayed.held, there)


def quarantined_elsewhere(places: DataFrame, there: DataFrame) -> DataFrame:
    return there.join(places.toDF(*PLACES), list(PLACES), "left_anti").select(*there.columns)


def not_in(rows: DataFrame, there: DataFrame) -> DataFrame:
    """The rows of a release that the table lacks."""
    return rows.join(there.select(*COORDINATES), list(COORDINATES), "left_anti").select(*quoted(rows))


def not_in_quarantine(rows: DataFrame, there: DataFrame) -> DataFrame:
    """The refused rows that these rows of the quarantine lack."""
    known = there.select("zone", *PLACES)
    return rows.join(known, ["zone", *PLACES], "left_anti").select(*rows.columns)


def quoted(rows: DataFrame) -> list[str]:
    """The columns in their order: a join by name puts its columns first."""
    return [f"`{name}`" for name in rows.columns]


def prefixed_places() -> list[str]:
    """The columns of a parsed batch with the coordinates in raw."""
    return [RAW_PREFIX + name for name in PLACES]
