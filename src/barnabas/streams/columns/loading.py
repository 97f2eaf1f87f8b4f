"""Imports every module of steps, so that a task can build all that run over columns."""

from barnabas.streams.columns import aggregates, stateless, stream_joins, tables

STEPS = (aggregates, stateless, stream_joins, tables)
