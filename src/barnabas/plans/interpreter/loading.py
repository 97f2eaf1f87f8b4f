"""Imports every module of operators, so that a task can build all nodes."""

from barnabas.plans.interpreter import (
    aggregations,
    edges,
    lookups,
    processors,
    stateless,
    stream_joins,
    suppressing,
    tables,
    windowing,
)

OPERATORS = (
    aggregations,
    edges,
    lookups,
    processors,
    stateless,
    stream_joins,
    suppressing,
    tables,
    windowing,
)
