"""Compares two topics on Spark: by digests of ranges of keys, then record by record where digests differ.

In: a session, two data frames of records as the source `barnabas` gives them. Out: a `Comparison`. Executors
hash every record; the driver sees one digest for each range, and the first differences. Records with a key
are compared in the order of each key; records without one are compared as a bag, because nothing orders them
across partitions. Does not know: where the records come from, how the result is shown.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from barnabas.audit.deep.difference import Comparison, Difference, Kind, Place

if TYPE_CHECKING:
    from pyspark.sql import Column, DataFrame, Row

RANGES = 256
LIMIT = 20
PARTS = ("value", "headers", "timestamp")  # of a record that changed
CARRIED = ("partition", "offset", "number", *PARTS)


@dataclass(frozen=True, slots=True)
class Aspects:
    """Parts that have to be equal beside key and value."""

    headers: bool = False
    timestamps: bool = False
    order: bool = True
    latest: bool = False  # only the last record of each key, and no tombstones: what compaction keeps


def compare(
    source: DataFrame,
    target: DataFrame,
    aspects: Aspects | None = None,
    *,
    ranges: int = RANGES,
    limit: int = LIMIT,
) -> Comparison:
    aspects = aspects or Aspects()
    if aspects.latest:
        source, target, aspects = latest(source), latest(target), replace(aspects, order=False)
    sides = [hashed(each, aspects, ranges) for each in (source, target)]
    digests = [
        {row["range"]: (row["records"], row["content"], row["ordered"]) for row in digest(each, aspects)}
        for each in sides
    ]
    differing = sorted(
        each for each in {*digests[0], *digests[1]} if digests[0].get(each) != digests[1].get(each)
    )
    totals = [sum(each[0] for each in some.values()) for some in digests]
    found: list[Difference] = []
    counts: dict[str, int] = {}
    if differing:
        found, counts = differences(sides[0], sides[1], differing, aspects, limit)
    return Comparison(totals[0], totals[1], ranges, len(differing), tuple(found), counts)


def latest(records: DataFrame) -> DataFrame:
    """The last record of each key, if it is no tombstone. Copies of a topic may be compacted to different
    degrees: this is what they agree on. Records without a key are left out, as compaction forbids them."""
    from pyspark.sql import functions as f

    place = f.struct("partition", "offset").alias("place")
    ends = records.where("key is not null").groupBy("key").agg(f.max(place).alias("place"))
    return (
        records.join(ends.withColumnRenamed("key", "of"), f.expr("key = of"))
        .where("partition = place.partition and offset = place.offset and value is not null")
        .drop("of", "place")
    )


def hashed(records: DataFrame, aspects: Aspects, ranges: int) -> DataFrame:
    """Each record with its hash, the range of its key, and its number among the records of its key."""
    from pyspark.sql import Window
    from pyspark.sql import functions as f

    content: list[Column] = [f.col("key"), f.col("value")]
    nulls = [f.col(name).isNull() for name in ("key", "value")]  # xxhash64 passes over nulls
    stamp = f.col("timestamp") if aspects.timestamps else f.lit(0)
    headers = f.xxhash64(f.to_json("headers")) if aspects.headers else f.lit(0)
    if aspects.timestamps:
        content.append(stamp)
    if aspects.headers:
        content.append(headers)
    # Two hashes with different beginnings: 128 bits, so that equal sums mean equal records.
    hash1 = f.xxhash64(*nulls, *content)
    hash2 = f.xxhash64(f.lit(7), *content, *nulls)
    found = records.select(
        "key",
        "partition",
        "offset",
        f.pmod(f.xxhash64("key"), f.lit(ranges)).alias("range"),
        hash1.alias("hash"),
        hash2.alias("hash2"),
        f.xxhash64(f.col("value").isNull(), "value").alias("value"),
        stamp.alias("timestamp"),
        headers.alias("headers"),
    )
    if not aspects.order:
        # The last record of a key is alone, so another one in its place is one that changed.
        return found.withColumn("number", f.lit(int(aspects.latest)).cast("bigint"))
    # Records without a key have no order: each is alone, or one task would sort all of them.
    alone = f.when(f.col("key").isNull(), f.xxhash64("partition", "offset"))
    in_key = Window.partitionBy("key", alone).orderBy("partition", "offset")
    numbered = f.row_number().over(in_key).cast("bigint")
    return found.withColumn("number", f.when(f.col("key").isNotNull(), numbered).otherwise(0))


def digest(records: DataFrame, aspects: Aspects) -> list[Row]:
    """A row for each range: how many records, and sums of hashes, whatever the order of rows."""
    from pyspark.sql import functions as f

    wide = "decimal(20,0)"
    return (
        records.groupBy("range")
        .agg(
            f.count("*").alias("records"),
            f.concat_ws("/", *(f.sum(f.col(name).cast(wide)) for name in ("hash", "hash2"))).alias("content"),
            f.sum(f.xxhash64("hash", "hash2", "number").cast(wide)).alias("ordered"),
        )
        .collect()
    )


def differences(
    source: DataFrame, target: DataFrame, differing: list[int], aspects: Aspects, limit: int
) -> tuple[list[Difference], dict[str, int]]:
    """The first differences of these ranges, and how many there are of each kind."""
    from pyspark.sql import Window
    from pyspark.sql import functions as f

    def occurrences(records: DataFrame, side: str) -> DataFrame:
        """The n-th record with the same key and content: equal ones are matched in their order."""
        same = Window.partitionBy("key", "hash", "hash2").orderBy("partition", "offset")
        return records.where(f.col("range").isin(differing)).select(
            "key",
            "hash",
            "hash2",
            f.row_number().over(same).alias("occurrence"),
            *(f.col(name).alias(f"{side}_{name}") for name in CARRIED),
        )

    left, right = occurrences(source, "s"), occurrences(target, "t")
    on = (
        left["key"].eqNullSafe(right["key"])
        & (left["hash"] == right["hash"])
        & (left["hash2"] == right["hash2"])
        & (left["occurrence"] == right["occurrence"])
    )
    columns = [f"{side}_{name}" for side in "st" for name in CARRIED]
    matched = left.join(right, on, "full_outer").select(
        f.coalesce(left["key"], right["key"]).alias("key"), *columns
    )
    missing = matched.where("t_offset is null").select("key", *(f"s_{name}" for name in CARRIED))
    extra = matched.where("s_offset is null").select("key", *(f"t_{name}" for name in CARRIED))
    # A missing and an extra record of a key at the same place are one record that changed.
    paired = missing.alias("m").join(
        extra.alias("e"),
        f.expr("m.key <=> e.key and m.s_number = e.t_number and m.key is not null and m.s_number > 0"),
        "full_outer",
    )
    wrong = paired.select(
        f.when(f.col("t_offset").isNull(), Kind.MISSING.value)
        .when(f.col("s_offset").isNull(), Kind.EXTRA.value)
        .otherwise(Kind.CHANGED.value)
        .alias("kind"),
        f.coalesce("m.key", "e.key").alias("key"),
        *(f"{side}_{name}" for side in "st" for name in ("partition", "offset")),
        f.concat_ws(", ", *(f.when(f.expr(f"s_{name} != t_{name}"), name) for name in PARTS)).alias("parts"),
    )
    if aspects.order:
        wrong = wrong.unionByName(out_of_order(matched))
    wrong = wrong.cache()
    try:
        counts = {row["kind"]: row["count"] for row in wrong.groupBy("kind").count().collect()}
        first = wrong.orderBy(
            f.coalesce("s_partition", "t_partition"), f.coalesce("s_offset", "t_offset"), "kind"
        ).limit(limit)
        return [difference(row) for row in first.collect()], counts
    finally:
        wrong.unpersist()


def out_of_order(matched: DataFrame) -> DataFrame:
    """Records of a key that stand in the target before one that they follow in the source."""
    from pyspark.sql import Window
    from pyspark.sql import functions as f

    in_key = Window.partitionBy("key").orderBy("s_number")
    both = matched.where("s_offset is not null and t_offset is not null and key is not null")
    before = f.max("t_number").over(in_key.rowsBetween(Window.unboundedPreceding, -1))
    return (
        both.withColumn("before", before)
        .where("before > t_number")
        .select(
            f.lit(Kind.ORDER.value).alias("kind"),
            "key",
            *(f"{side}_{name}" for side in "st" for name in ("partition", "offset")),
            f.lit("").alias("parts"),
        )
    )


def difference(row: Row) -> Difference:
    def place(side: str) -> Place | None:
        partition, offset = row[f"{side}_partition"], row[f"{side}_offset"]
        return None if offset is None else Place(partition, offset)

    key = row["key"]
    parts = tuple(row["parts"].split(", ")) if row["parts"] else ()
    return Difference(Kind(row["kind"]), None if key is None else bytes(key), place("s"), place("t"), parts)
