"""Reads rules of trusted tables: `{range: {amount: [0, 10000]}}`.

In: an entry of the list. Out: a `Rule`, or a problem. Does not know: columns.
"""

from __future__ import annotations

from typing import Any

from barnabas.pipeline.file.document import kind_of, plain_tree
from barnabas.pipeline.file.problems import did_you_mean
from barnabas.pipeline.file.shape_types import problem, word
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
TEXT = {"type": "string"}
COLUMNS: dict[str, Any] = {"anyOf": [TEXT, {"type": "array", "items": TEXT}]}


def of_one_column(value: Any) -> dict[str, Any]:
    return {"type": "object", "minProperties": 1, "maxProperties": 1, "additionalProperties": value}


SHAPES: dict[RuleKind, Any] = {
    RuleKind.NOT_NULL: COLUMNS,
    RuleKind.RANGE: of_one_column({"type": "array", "minItems": 2, "maxItems": 2}),
    RuleKind.PATTERN: of_one_column(TEXT),
    RuleKind.UNIQUE: {
        "anyOf": [
            *COLUMNS["anyOf"],
            {
                "type": "object",
                "properties": {"columns": COLUMNS, "within": TEXT},
                "required": ["columns"],
                "additionalProperties": False,
            },
        ]
    },
    RuleKind.REFERENCE: of_one_column(TEXT),
    RuleKind.EXPRESSION: TEXT,
    RuleKind.FRESHNESS: of_one_column(TEXT),
}
RULES_SCHEMA = {
    "oneOf": [
        {
            "type": "object",
            "properties": {str(kind): {**shape, "description": EXAMPLES[kind]}, "name": TEXT},
            "required": [str(kind)],
            "additionalProperties": False,
        }
        for kind, shape in SHAPES.items()
    ]
}


def read_rule(value: Any) -> Rule:
    if isinstance(value, Rule):
        return value
    if not isinstance(value, dict):
        raise problem(f"must hold names with values, this is {kind_of(value)}")
    kinds = [name for name in value if name in set(RuleKind)]
    others = [name for name in value if name != "name" and name not in kinds]
    if len(kinds) != 1:
        hint = did_you_mean(others[0], RuleKind) if others and not kinds else "one rule an entry"
        raise problem("is not a rule" if not kinds else "is more than one rule", hint)
    if others:
        raise problem(f"{others[0]} is unknown here", did_you_mean(others[0], [*RuleKind, "name"]))
    kind = RuleKind(kinds[0])
    rule = made(kind, plain_tree(value[kind]), word(value.get("name") or ""))
    if rule is None:
        raise problem(f"{kind} cannot be understood", f"write it as in {EXAMPLES[kind]}")
    return rule


def made(kind: RuleKind, value: Any, name: str) -> Rule | None:
    if kind is RuleKind.NOT_NULL:
        columns = columns_of(value)
        return Rule(kind, columns, name=name) if columns else None
    if kind is RuleKind.UNIQUE:
        return made_unique(value, name)
    if kind is RuleKind.EXPRESSION:
        return Rule(kind, text=value, name=name) if isinstance(value, str) else None
    if not isinstance(value, dict) or len(value) != 1:
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
    if isinstance(limit, dict | list):
        return None
    return Rule(kind, (str(column),), text=str(limit), name=name)


def columns_of(value: Any) -> tuple[str, ...]:
    """One column, or a list of them; empty if it is neither."""
    columns = [value] if isinstance(value, str) else value
    if not isinstance(columns, list) or not all(isinstance(each, str) for each in columns):
        return ()
    return tuple(columns)


def made_unique(value: Any, name: str) -> Rule | None:
    given = value if isinstance(value, dict) else {"columns": value}
    columns = columns_of(given.get("columns"))
    if not columns or not given.keys() <= {"columns", "within"}:
        return None
    try:
        within = durations.seconds(str(given["within"])) if "within" in given else None
    except ValueError:
        return None
    return Rule(RuleKind.UNIQUE, columns, name=name, within_s=within)
