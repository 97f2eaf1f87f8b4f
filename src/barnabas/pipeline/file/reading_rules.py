"""Reads rules of trusted tables: `{range: {amount: [0, 10000]}}`.

In: an entry of the list. Out: a `Rule`, or None and problems. Does not know: columns.
"""

from __future__ import annotations

from yaml.nodes import MappingNode, Node

from barnabas.pipeline.file.document import Section, plain
from barnabas.pipeline.file.problems import did_you_mean
from barnabas.pipeline.spec import durations
from barnabas.pipeline.spec.model import Rule, RuleKind

EXAMPLES = {
    RuleKind.NOT_NULL: "{not_null: order_id}",
    RuleKind.RANGE: "{range: {amount: [0, 10000]}}",
    RuleKind.PATTERN: '{pattern: {shop: "[a-z]+"}}',
    RuleKind.UNIQUE: "{unique: [order_id]}",
    RuleKind.REFERENCE: "{reference: {customer_id: customers.id}}",
    RuleKind.EXPRESSION: '{expression: "amount > 0", name: positive}',
    RuleKind.FRESHNESS: "{freshness: {at: 1 hour}}",
}


def read_rule(section: Section) -> Rule | None:
    kinds = [name for name in section.values if name in set(RuleKind)]
    if len(kinds) != 1:
        others = [name for name in section.values if name != "name"]
        hint = did_you_mean(others[0], RuleKind) if others and not kinds else "one rule an entry"
        section.document.wrong(
            section.path, "is not a rule" if not kinds else "is more than one rule", hint, section.node
        )
        return None
    kind = RuleKind(kinds[0])
    node = section.node_of(kind)
    name = section.text("name")
    section.finish(RuleKind)
    rule = made(kind, node, name)
    if rule is None:
        section.wrong(kind, "cannot be understood", f"write it as in {EXAMPLES[kind]}")
    return rule


def made(kind: RuleKind, node: Node | None, name: str) -> Rule | None:
    value = plain(node) if node is not None else None
    if kind in (RuleKind.NOT_NULL, RuleKind.UNIQUE):
        columns = [value] if isinstance(value, str) else value
        if not isinstance(columns, list) or not columns or not all(isinstance(each, str) for each in columns):
            return None
        return Rule(kind, tuple(columns), name=name)
    if kind is RuleKind.EXPRESSION:
        return Rule(kind, text=value, name=name) if isinstance(value, str) else None
    if not isinstance(node, MappingNode) or not isinstance(value, dict) or len(value) != 1:
        return None
    [(column, limit)] = value.items()
    if kind is RuleKind.RANGE:
        if not isinstance(limit, list) or len(limit) != 2:
            return None
        return Rule(kind, (str(column),), low=limit[0], high=limit[1], name=name)
    if kind is RuleKind.FRESHNESS:
        try:
            return Rule(kind, (str(column),), age_s=durations.seconds(str(limit)), name=name)
        except ValueError:
            return None
    return Rule(kind, (str(column),), text=str(limit), name=name)
