"""Imports every module of operators, so that a task can build all nodes."""

from barnabas.plans.interpreter import (
    aggregations,
    edges,
    stateless,
    tables,
)

OPERATORS = (aggregations, edges, stateless, tables)
