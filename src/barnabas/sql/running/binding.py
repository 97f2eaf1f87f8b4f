"""Plans with code for their formats, and what an engine must know of a plan's sources.

Does not know: brokers, Spark.
"""

from __future__ import annotations

from barnabas.plans.nodes import Source, TableSource
from barnabas.plans.plan import Plan
from barnabas.plans.serdes import Serde
from barnabas.sql.analysis.serdes import RowSerde, bind
from barnabas.sql.formats.registries import RegistryPlace
from barnabas.sql.formats.serdes import ColumnsSerde


def bound(plan: Plan, registry: RegistryPlace) -> Plan:
    """The plan with the formats' code."""

    def make(named: RowSerde) -> Serde:
        return ColumnsSerde(named.row_format, named.columns, named.is_key, registry)

    return bind(plan, make)


def table_topics(plan: Plan) -> frozenset[str]:
    """Topics that are read as tables, whole from their start: the state of a table is what its topic has."""
    parents = {parent for node in plan.nodes if isinstance(node, TableSource) for parent in node.parents}
    return frozenset(
        topic
        for node in plan.nodes
        if isinstance(node, Source) and (node.name in parents or node.is_global)
        for topic in node.topics
    )


def outer_topics(plan: Plan) -> tuple[str, ...]:
    """Source topics that are not internal to the plan."""
    internal = {each.name for each in plan.repartition_topics}
    return tuple(
        dict.fromkeys(
            topic
            for node in plan.nodes
            if isinstance(node, Source)
            for topic in node.topics
            if topic not in internal
        )
    )
