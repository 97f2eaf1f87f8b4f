"""Spark looks for modules of this kind by name, and finds the data source `barnabas` without registration."""

from barnabas.spark.source import BarnabasSource


class DefaultSource(BarnabasSource):
    pass
