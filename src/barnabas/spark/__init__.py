"""Spark reads and writes topics: a Python data source that needs nothing but pip, on any Kafka cluster.

`spark.read.format("barnabas")` finds it without registration, through the module `pyspark_barnabas`.
"""

from barnabas.spark.workers_python import use_this_python

__all__ = ["use_this_python"]
