"""Random trees are printed and parsed again, and are the same."""

from __future__ import annotations

import decimal
from random import Random
from typing import Any

import pytest

from barnabas.sql.syntax import statements as made
from barnabas.sql.syntax import tree
from barnabas.sql.syntax.parsing import parse_expression, parse_statement, parse_type
from barnabas.sql.syntax.printing import expression_text, type_text
from barnabas.sql.syntax.statement_printing import statement_text
from barnabas.sql.types import sql_types as kinds

NAMES = ("A", "b c", "SELECT", "KEY", "X_1", "ARRAY", "`", "ümlaut", "EMIT")


def name(rng: Random) -> str:
    return rng.choice(NAMES)


def a_type(rng: Random, depth: int = 2) -> kinds.SqlType:
    choice = rng.randrange(6 if depth else 2)
    if choice < 2:
        return rng.choice(
            [kinds.INTEGER, kinds.STRING, kinds.TIMESTAMP, kinds.Decimal(4, 2), kinds.Named("T")]
        )
    if choice == 2:
        return kinds.Array(a_type(rng, depth - 1))
    if choice == 3:
        return kinds.Map(a_type(rng, 0), a_type(rng, depth - 1))
    return kinds.Struct(tuple((name(rng), a_type(rng, depth - 1)) for _ in range(rng.randrange(4))))


def literal(rng: Random) -> tree.Literal:
    return rng.choice(
        [
            tree.Literal(None, kinds.NULL),
            tree.Literal(True, kinds.BOOLEAN),
            tree.Literal(rng.randrange(-5, 5), kinds.INTEGER),
            tree.Literal(-(2**40), kinds.BIGINT),
            tree.Literal(rng.choice([1.5, -2e300, 0.0]), kinds.DOUBLE),
            tree.Literal(decimal.Decimal("-1.50"), kinds.Decimal(3, 2)),
            tree.Literal(rng.choice(["", "it's", "a--b", "/*"]), kinds.STRING),
        ]
    )


def expression(rng: Random, depth: int = 3) -> tree.Expression:
    if depth == 0 or rng.random() < 0.15:
        return literal(rng) if rng.random() < 0.5 else tree.Name(name(rng), rng.choice([None, name(rng)]))
    e = lambda: expression(rng, depth - 1)  # noqa: E731
    some = lambda: tuple(e() for _ in range(rng.randrange(1, 3)))  # noqa: E731
    flag = rng.random() < 0.5
    makers: list[Any] = [
        lambda: tree.Field(e(), name(rng)),
        lambda: tree.Subscript(e(), e()),
        lambda: tree.Sign("-", tree.Name("A")),
        lambda: tree.Arithmetic(rng.choice(["+", "-", "*", "/", "%", "||"]), e(), e()),
        lambda: tree.Comparison(rng.choice(["=", "<>", "<", ">=", "IS DISTINCT FROM"]), e(), e()),
        lambda: tree.Logical(rng.choice(["AND", "OR"]), e(), e()),
        lambda: tree.Not(e()),
        lambda: tree.Between(e(), e(), e(), flag),
        lambda: tree.In(e(), some(), flag),
        lambda: tree.Like(e(), e(), rng.choice([None, "\\", "'"]), flag),
        lambda: tree.IsNull(e(), flag),
        lambda: tree.Case(e() if flag else None, ((e(), e()),), e() if rng.random() < 0.5 else None),
        lambda: tree.Cast(e(), a_type(rng)),
        lambda: tree.NewArray(some()),
        lambda: tree.NewMap(((e(), e()),)),
        lambda: tree.NewStruct(((name(rng), e()),)),
        lambda: tree.Call(rng.choice(["LEN", "REPLACE", "COUNT"]), (*some(), tree.Lambda(("X", "Y"), e()))),
    ]
    made_tree: tree.Expression = rng.choice(makers)()
    return made_tree


def duration(rng: Random) -> made.Duration:
    return made.Duration(rng.randrange(100), rng.choice(list(made.UNITS_MS)))


def query(rng: Random) -> made.Query:
    maybe = lambda value: value if rng.random() < 0.5 else None  # noqa: E731
    span = maybe((duration(rng), duration(rng))) or (None, None)
    join = made.Join(
        rng.choice(["INNER", "LEFT", "RIGHT", "FULL"]), made.Relation(name(rng)), expression(rng), *span
    )
    kind = rng.choice(["TUMBLING", "HOPPING", "SESSION"])
    advance = duration(rng) if kind == "HOPPING" else None
    window = made.Window(kind, duration(rng), advance, maybe(duration(rng)), maybe(duration(rng)))
    return made.Query(
        (
            made.Item(tree.Star()),
            made.Item(tree.Star(name(rng))),
            made.Item(expression(rng), maybe(name(rng))),
        ),
        made.Relation(name(rng), maybe(name(rng))),
        (join,) if rng.random() < 0.5 else (),
        maybe(window),
        maybe(expression(rng)),
        (expression(rng),) if rng.random() < 0.5 else (),
        (expression(rng), tree.Name("A")) if rng.random() < 0.5 else (),
        maybe(expression(rng)),
        maybe(rng.choice(["CHANGES", "FINAL"])),
        maybe(rng.randrange(9)),
    )


@pytest.mark.parametrize("seed", range(40))
def test_expressions_and_types_survive_a_round_trip(seed: int) -> None:
    rng = Random(seed)
    for _ in range(5):
        given = expression(rng)
        assert parse_expression(expression_text(given)) == given
        kind = a_type(rng)
        assert parse_type(type_text(kind)) == kind


@pytest.mark.parametrize("seed", range(30))
def test_statements_survive_a_round_trip(seed: int) -> None:
    rng = Random(seed)
    flag = rng.random() < 0.5
    properties = (("KAFKA_TOPIC", "it's"), ("PARTITIONS", 3), ("wrap", True))
    roles = [(made.Role.KEY, None), (made.Role.VALUE, None), (made.Role.HEADERS, "it's")]
    columns = tuple(made.ColumnDefinition(name(rng), a_type(rng), *role) for role in roles)
    for given in (
        query(rng),
        made.CreateSource(flag, name(rng), columns, properties, flag, not flag, flag),
        made.CreateAs(flag, name(rng), query(rng), properties if flag else (), flag),
        made.InsertInto(name(rng), query(rng)),
        made.InsertValues(name(rng), (name(rng),) if flag else (), (expression(rng),)),
        made.DropSource(flag, name(rng), flag, not flag),
        made.AlterSource(flag, name(rng), ((name(rng), a_type(rng)), (name(rng), a_type(rng)))),
        made.CreateType(name(rng), a_type(rng), flag),
        made.DropType(name(rng), flag),
        made.ControlQuery(rng.choice(["PAUSE", "RESUME", "TERMINATE"]), name(rng) if flag else None),
    ):
        assert parse_statement(statement_text(given)) == given
