"""Spark looks for modules of this kind by name, and finds the data source `barnabas` without registration.

The class itself is that of `barnabas.spark.source`: it is pickled by its module, which executors have."""

from barnabas.spark.source import BarnabasSource as DefaultSource

__all__ = ["DefaultSource"]
