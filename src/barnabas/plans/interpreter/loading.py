"""Imports every module of operators, so that a task can build all nodes."""

from barnabas.plans.interpreter import (
    aggregations,
    edges,
    foreign_joins,
    lookups,
    processors,
    stateless,
    stream_joins,
    suppressing,
    table_joins,
    tables,
    windowing,
)

OPERATORS = (
    aggregations,
    edges,
    foreign_joins,
    lookups,
    processors,
    stateless,
    stream_joins,
    suppressing,
    table_joins,
    tables,
    windowing,
)
