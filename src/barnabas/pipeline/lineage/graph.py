"""The lineage graph of a pipeline: what is made from what, table by table and column by column.

In: values that `lineage.pipeline_graph` fills in. Out: nodes in the order in which they are made, and what
lies before or behind one. Does not know: SQL, pictures, events.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from enum import StrEnum


class Use(StrEnum):
    """How a column is computed, in OpenLineage's words."""

    IDENTITY = "IDENTITY"
    TRANSFORMATION = "TRANSFORMATION"
    AGGREGATION = "AGGREGATION"
    MASKED = "MASKED"


@dataclass(frozen=True, slots=True, order=True)
class Column:
    """A column of a node."""

    node: str
    name: str


@dataclass(frozen=True, slots=True)
class Origin:
    """The origin of a column, and the expression that makes it."""

    column: Column
    use: Use


@dataclass(frozen=True, slots=True)
class Node:
    """A dataset. `zone` is its place from left to right; `inputs` are the nodes it is made from."""

    key: str
    zone: str
    name: str
    namespace: str  # OpenLineage's, with `dataset` the name of the data outside of the pipeline
    dataset: str
    columns: Mapping[str, str] = field(default_factory=dict)  # name -> type, empty if unknown
    inputs: Sequence[str] = ()
    origins: Mapping[str, Sequence[Origin]] = field(default_factory=dict)  # by column
    sql: str = ""


@dataclass(frozen=True, slots=True)
class Graph:
    pipeline: str
    nodes: Mapping[str, Node]

    def behind(self, key: str) -> list[Node]:
        """Everything made from a node, in the order it is made."""
        reached = {key}
        found = []
        for node in self.nodes.values():  # made before what is made from them
            if node.key != key and any(each in reached for each in node.inputs):
                reached.add(node.key)
                found.append(node)
        return found

    def sources_of(self, column: Column) -> list[Column]:
        """The columns of sources that a column comes from in the end."""
        node = self.nodes.get(column.node)
        origins = () if node is None else node.origins.get(column.name, ())
        if not origins:
            return [column]
        found: list[Column] = []
        for origin in origins:
            found += [each for each in self.sources_of(origin.column) if each not in found]
        return found
