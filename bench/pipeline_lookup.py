"""`python -m bench.pipeline_lookup`: measures what it costs to look up keys of a batch in a horizon.

Out: a line of JSON for each size of the horizon: processor seconds of the executors for one lookup of random
keys (no file can be left out by its keys), and of keys that grow with time. Spark runs as `local-cluster`.
Does not know: batches, rows.
"""

from __future__ import annotations

import json
import os
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

from barnabas.engine.session import session
from barnabas.pipeline import SparkSettings, TableName, Zone
from barnabas.pipeline.ingest.dedupe.known_keys import AskedKeys, KnownKeys, key_hashes
from barnabas.pipeline.lake.tables import Lake
from bench.pipeline_scale import MASTER, processor_s

BATCH = 100_000
FILES = 20
SIZES = (2_000_000, 10_000_000)
KEYS = {"random": "md5(cast(id as string))", "growing": "lpad(cast(id as string), 12, '0')"}


def looked_up(spark: Any, folder: Path, size: int, kind: str) -> dict[str, Any]:
    from pyspark.sql import functions as F

    lake, table = Lake.at(str(folder)), TableName(Zone.STAGING, f"{kind}{size}")
    rows = spark.range(0, size, 1, FILES).selectExpr(f"{KEYS[kind]} k", "1L _batch", "now() _ingested_at")
    rows.write.format("delta").save(lake.path(table))
    asked = spark.range(size, size + BATCH, 1, 2).selectExpr(f"{KEYS[kind]} k").persist()
    bounds = asked.agg(F.min("k"), F.max("k")).first()
    first, second, _ = key_hashes([F.col("k")])
    keys = asked.select(first.alias("a"), second.alias("b"))
    known = KnownKeys(spark, lake, table, ["k"]).rows(-1, AskedKeys(0, 0, bounds[0], bounds[1]))
    assert known is not None
    found = known.join(F.broadcast(keys), ["a", "b"], "left_semi")
    found.count()  # warms up
    before, started = processor_s(), time.monotonic()
    found.count()
    wall = time.monotonic() - started
    driver, executors = (b - a for a, b in zip(before, processor_s(), strict=True))
    return {"keys": size, "kind": kind, "driver_s": driver, "executors_s": executors, "wall_s": wall}


def main() -> int:
    os.environ["PYSPARK_PYTHON"] = sys.executable
    os.environ.setdefault("SPARK_LOCAL_IP", "127.0.0.1")  # executors reach the driver there
    spark = session(SparkSettings(master=MASTER), ("delta",), "lookup", {"spark.driver.memory": "1g"})
    spark.sparkContext.setLogLevel("OFF")
    with tempfile.TemporaryDirectory(prefix="barnabas-lookup-") as folder:
        for size in SIZES:
            for kind in KEYS:
                print(json.dumps(looked_up(spark, Path(folder), size, kind)), flush=True)
    spark.stop()
    return 0


if __name__ == "__main__":
    sys.exit(main())
