"""The same steps written by hand: Spark's own Kafka connector, structured streaming, Delta.

In: a session with both jars, a broker, a lake. Out: the four zones, filled by a streaming query that reads
the available records and ends. The job is written as a Spark expert would write it: one pass over the topic
for each batch, the parsed batch cached, commits with transaction ids, MERGE only if keys must be looked up.
Does not know: Barnabas.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

SCHEMA = "order_id STRING, customer_id BIGINT, shop STRING, product STRING, amount DOUBLE, at TIMESTAMP"
RULES = {
    "not_null_order_id": "order_id IS NOT NULL",
    "range_amount": "amount BETWEEN 0 AND 10000",
    "pattern_shop": "shop RLIKE '^[a-z]+$'",
}
REFINED = "SELECT order_id, shop, product, amount, date(at) AS day FROM orders WHERE amount >= 5"


class Job:
    """One streaming query over one topic."""

    def __init__(self, spark: Any, bootstrap: str, topic: str, lake: Path, rows_per_batch: int) -> None:
        self.spark = spark
        self.bootstrap = bootstrap
        self.topic = topic
        self.lake = lake
        self.rows_per_batch = rows_per_batch

    def run(self) -> None:
        """Write all current records of the topic to all zones."""
        stream = (
            self.spark.readStream.format("kafka")
            .option("kafka.bootstrap.servers", self.bootstrap)
            .option("subscribe", self.topic)
            .option("startingOffsets", "earliest")
            .option("maxOffsetsPerTrigger", self.rows_per_batch)
            .load()
        )
        query = (
            stream.writeStream.foreachBatch(self.batch)
            .option("checkpointLocation", str(self.lake / "checkpoint"))
            .trigger(availableNow=True)
            .start()
        )
        query.awaitTermination()

    def batch(self, frame: Any, number: int) -> None:
        from pyspark.sql import functions as F

        spark = frame.sparkSession
        raw = frame.withColumn("source", F.lit(self.topic)).withColumn("batch", F.lit(number))
        raw = raw.withColumn("ingested_at", F.current_timestamp())
        parsed = F.from_json(F.col("value").cast("string"), SCHEMA, {"mode": "PERMISSIVE"})
        rows = raw.withColumn("parsed", parsed).persist()
        try:
            self.append(rows.drop("parsed"), "raw", number)
            place = ("topic", "partition", "offset", "timestamp", "batch")
            good = rows.where("parsed.order_id IS NOT NULL").select("parsed.*", *place)
            bad = rows.where("parsed.order_id IS NULL")
            bad = bad.select("value", *place, F.lit("malformed").alias("rule"))
            self.append(self.new_rows(spark, good.dropDuplicates(["order_id"])), "staging", number)
            # Read back instead of cached: after a crash the job must find the staged rows of this batch, and
            # Spark would recompute a cached frame that reads the table it is written to, as empty.
            staged = spark.read.format("delta").load(str(self.lake / "staging"))
            checks = [F.when(F.expr(f"NOT ({rule})"), F.lit(name)) for name, rule in RULES.items()]
            checked = staged.where(F.col("batch") == number).withColumn("rule", F.coalesce(*checks))
            checked.persist()
            try:
                accepted = checked.where("rule IS NULL").drop("rule")
                self.append(accepted, "trusted", number)
                refused = checked.where("rule IS NOT NULL")
                value = F.to_json(F.struct(*[name for name in staged.columns if name not in place]))
                refused = refused.select(value.cast("binary").alias("value"), *place, "rule")
                self.append(bad.unionByName(refused), "quarantine", number)
                accepted.createOrReplaceTempView("orders")
                self.append(spark.sql(REFINED), "refined", number)
            finally:
                checked.unpersist()
        finally:
            rows.unpersist()

    def new_rows(self, spark: Any, rows: Any) -> Any:
        """Rows with keys that are not in staging yet."""
        path = self.lake / "staging"
        if not (path / "_delta_log").exists():
            return rows
        known = spark.read.format("delta").load(str(path)).select("order_id")
        return rows.join(known, "order_id", "left_anti")

    def append(self, rows: Any, zone: str, number: int) -> None:
        (
            rows.write.format("delta")
            .option("txnAppId", f"by-hand-{self.topic}-{zone}")
            .option("txnVersion", number)
            .mode("append")
            .save(str(self.lake / zone))
        )
