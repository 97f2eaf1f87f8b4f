"""A Spark application that copies a topic to another, exactly once, until it is killed.

`python copying_driver.py BOOTSTRAP SOURCE TARGET CHECKPOINT`
"""

from __future__ import annotations

import os
import sys


def main(bootstrap: str, source: str, target: str, checkpoint: str) -> None:
    os.environ["PYSPARK_PYTHON"] = sys.executable
    from pyspark.sql import SparkSession

    builder = SparkSession.builder.master("local[2,8]").config("spark.ui.enabled", "false")
    builder = builder.config("spark.ui.showConsoleProgress", "false")
    spark = builder.getOrCreate()
    spark.sparkContext.setLogLevel("OFF")
    reader = spark.readStream.format("barnabas").option("kafka.bootstrap.servers", bootstrap)
    reader = reader.option("subscribe", source).option("startingOffsets", "earliest")
    frame = reader.option("maxOffsetsPerTrigger", "400").load()
    writer = frame.select("key", "value").writeStream.format("barnabas")
    for name, value in {
        "kafka.bootstrap.servers": bootstrap,
        "topic": target,
        "exactlyOnce": "true",
        "checkpointLocation": checkpoint,
    }.items():
        writer = writer.option(name, value)
    query = writer.trigger(processingTime="100 milliseconds").start()
    print("running", flush=True)
    query.awaitTermination()


if __name__ == "__main__":
    main(*sys.argv[1:])
