"""Spark looks for modules of this kind by name, and finds the data source `barnabas` without registration.

The class itself is that of `barnabas.spark.source`: it is pickled by its module, which executors have. A
driver that imports this module before it makes a session lets Spark's workers run the same interpreter."""

from barnabas.spark.source import BarnabasSource as DefaultSource
from barnabas.spark.workers_python import prefer_this_python

__all__ = ["DefaultSource"]

prefer_this_python()
