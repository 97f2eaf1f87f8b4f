"""A plan as text: Kafka Streams' description of a topology, and a graph in DOT.

In: a plan. Out: text with the names, order and layout that Kafka Streams prints, so that tools which draw
such text work. Does not know: how anything runs.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from barnabas.plans.nodes import Node, Sink, Source
from barnabas.plans.plan import Plan, Subtopology


def describe(plan: Plan) -> str:
    """The text of Kafka Streams' `Topology.describe()`."""
    lines = []
    for part in sorted(plan.subtopologies, key=lambda part: part.number):
        kind = " for global store (will not generate tasks)" if part.is_global else ""
        lines.append(f"  Sub-topology: {part.number}{kind}")
        sizes = _sizes(plan, part)
        for name in _ordered(sizes, sizes):
            lines += _node_lines(plan, plan.by_name[name], sizes)
        lines.append("")
    return "Topologies:\n " + "\n".join(lines) + "\n"


def _sizes(plan: Plan, part: Subtopology) -> dict[str, int]:
    """How many nodes lie below each node, itself included; a node with two parents counts for both."""
    sizes: dict[str, int] = {}
    for node in reversed(part.nodes):
        sizes[node.name] = 1 + sum(sizes[child] for child in plan.children[node.name] if child in sizes)
    return sizes


def _ordered(names: Iterable[str], sizes: Mapping[str, int]) -> list[str]:
    return sorted(names, key=lambda name: (-sizes[name], name))


def _node_lines(plan: Plan, node: Node, sizes: Mapping[str, int]) -> list[str]:
    after = ", ".join(_ordered(plan.children[node.name], sizes))
    before = ", ".join(node.parents)
    if isinstance(node, Source):
        topics = (
            f"topics: {_listed(sorted(topic_shown(plan, topic) for topic in node.topics))}"
            if node.pattern is None
            else f"topic pattern: {node.pattern}"
        )
        return [f"    Source: {node.name} ({topics})", f"      --> {after or 'none'}"]
    if isinstance(node, Sink):
        topic = topic_shown(plan, node.topic) if isinstance(node.topic, str) else None
        place = f"topic: {topic}" if topic is not None else f"extractor class: {node.topic}"
        return [f"    Sink: {node.name} ({place})", f"      <-- {before or 'none'}"]
    return [
        f"    Processor: {node.name} (stores: {_listed(node.stores)})",
        f"      --> {after or 'none'}",
        f"      <-- {before or 'none'}",
    ]


def topic_shown(plan: Plan, topic: str) -> str:
    """Internal topics are shown without the application id."""
    internal = {each.name for each in plan.repartition_topics}
    return topic.removeprefix(f"{plan.application_id}-") if topic in internal else topic


def _listed(names: Iterable[str]) -> str:
    return f"[{', '.join(names)}]"


def dot(plan: Plan) -> str:
    """The plan as a graph for Graphviz: a box for each sub-topology, topics between them."""
    lines = ["digraph topology {", "  rankdir=LR;", "  node [shape=box, fontname=Helvetica];"]
    topics: dict[str, None] = {}
    edges: list[str] = []
    for part in plan.subtopologies:
        lines += [
            f"  subgraph cluster_{part.number} {{",
            f"    label={_quoted(f'sub-topology {part.number}')};",
        ]
        for node in part.nodes:
            stores = "".join(f"\\n{store}" for store in node.stores)
            lines.append(f'    "{node.name}" [label="{node.name}{stores}"];')
            edges += [f'  "{parent}" -> "{node.name}";' for parent in node.parents]
            if isinstance(node, Source):
                for topic in node.topics or (node.pattern or "",):
                    topics[topic] = None
                    edges.append(f'  {_quoted(topic)} -> "{node.name}";')
            if isinstance(node, Sink):
                topic = node.topic if isinstance(node.topic, str) else "by record"
                topics[topic] = None
                edges.append(f'  "{node.name}" -> {_quoted(topic)};')
        lines.append("  }")
    lines += [f"  {_quoted(topic)} [shape=cylinder];" for topic in topics]
    return "\n".join([*lines, *edges, "}"]) + "\n"


def _quoted(text: str) -> str:
    escaped = text.replace("\\", "\\\\").replace('"', '\\"')
    return f'"{escaped}"'
