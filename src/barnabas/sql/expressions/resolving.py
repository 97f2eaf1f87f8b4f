"""Expressions of a text become typed trees of a plan.

In: a tree with places, a scope of names, types of CREATE TYPE. Out: `Typed`: the plan's expression and its
type. SqlError with line and column for what has no type. Values are converted where ksqlDB converts them by
itself; literals more freely. Does not know: statements.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from barnabas.plans import expressions as e
from barnabas.sql.errors import SqlError, did_you_mean
from barnabas.sql.expressions import operators
from barnabas.sql.expressions.casting import cast
from barnabas.sql.expressions.nodes import SqlCall
from barnabas.sql.expressions.scopes import Scope
from barnabas.sql.expressions.signatures import (
    Argument,
    Choice,
    LambdaPattern,
    choose,
    filled,
    result_of,
    signatures_of,
)
from barnabas.sql.expressions.typed import Typed, coerce, common, literal
from barnabas.sql.functions.builtin import AGGREGATES
from barnabas.sql.functions.registry import table
from barnabas.sql.functions.user import USER_FUNCTIONS
from barnabas.sql.syntax import tree
from barnabas.sql.syntax.printing import expression_text
from barnabas.sql.types.sql_types import (
    BIGINT,
    BOOLEAN,
    INTEGER,
    NULL,
    STRING,
    UNIT,
    Array,
    LambdaType,
    Map,
    Named,
    SqlType,
    Struct,
)

Special = Callable[[tree.Expression], Typed | None]
UNITS = {"MILLISECONDS", "SECONDS", "MINUTES", "HOURS", "DAYS"}
TIMES = {"ROWTIME", "WINDOWSTART", "WINDOWEND"}


def is_aggregate(name: str) -> bool:
    return name in AGGREGATES or any(each.kind == "aggregate" for each in USER_FUNCTIONS.named(name))


def is_table_function(name: str) -> bool:
    row = table().get(name)
    users = USER_FUNCTIONS.named(name)
    return (row is not None and row.kind == "table") or any(each.kind == "table" for each in users)


def known_functions() -> list[str]:
    return [*table(), *USER_FUNCTIONS.by_name]


def looked_up(kind: SqlType, types: Mapping[str, SqlType], at: Any = None) -> SqlType:
    """The type with names of CREATE TYPE replaced by what they mean."""
    if isinstance(kind, Named):
        if kind.name not in types:
            raise SqlError(f"Cannot resolve unknown type: {kind.name}.{did_you_mean(kind.name, types)}", at)
        return types[kind.name]
    if isinstance(kind, Array):
        return Array(looked_up(kind.item, types, at))
    if isinstance(kind, Map):
        return Map(looked_up(kind.key, types, at), looked_up(kind.value, types, at))
    if isinstance(kind, Struct):
        return Struct(tuple((name, looked_up(each, types, at)) for name, each in kind.fields))
    return kind


@dataclass
class Resolver:
    """Resolves expressions of one clause. `special` is asked first for every part: it knows aggregates and
    groups. `variables` are parameters of lambdas around the expression."""

    scope: Scope
    types: Mapping[str, SqlType] = field(default_factory=dict)
    clause: str = "SELECT"
    special: Special | None = None
    variables: Mapping[str, SqlType] = field(default_factory=dict)

    def resolve(self, expression: tree.Expression) -> Typed:
        is_variable = isinstance(expression, tree.Name) and expression.name in self.variables
        if self.special is not None and not is_variable:
            found = self.special(expression)
            if found is not None:
                return found
        resolve = _RESOLVERS.get(type(expression))
        if resolve is None:
            raise SqlError(f"{expression_text(expression)} is not supported in {self.clause}", expression.at)
        try:
            return resolve(self, expression)
        except SqlError as error:
            if error.at is None:
                error.at = expression.at
            raise

    def condition(self, expression: tree.Expression) -> e.Expression:
        """An expression of type BOOLEAN."""
        found = self.resolve(expression)
        if found.kind not in (BOOLEAN, NULL):
            raise SqlError(
                f"Type error in {self.clause} expression: Should evaluate to boolean but is "
                f"{expression_text(expression)} ({found.kind}) instead.",
                expression.at,
            )
        return found.node

    def all(self, expressions: Sequence[tree.Expression]) -> list[Typed]:
        return [self.resolve(each) for each in expressions]

    # ------------------------------------------------------------------------------------------- leaves

    def _literal(self, x: tree.Literal) -> Typed:
        return literal(x.value, x.kind)

    def _name(self, x: tree.Name) -> Typed:
        if x.source is None and x.name in self.variables:
            return Typed(e.Variable(x.name), self.variables[x.name])
        found = self.scope.find(x, self.clause)
        return Typed(found.node, found.kind, is_time=found.name in TIMES)

    # ---------------------------------------------------------------------------------------- operators

    def _arithmetic(self, x: tree.Arithmetic) -> Typed:
        return operators.arithmetic(x.operator, self.resolve(x.left), self.resolve(x.right), x)

    def _sign(self, x: tree.Sign) -> Typed:
        return operators.sign(x.operator, self.resolve(x.operand), x)

    def _comparison(self, x: tree.Comparison) -> Typed:
        return operators.comparison(x.operator, self.resolve(x.left), self.resolve(x.right), x)

    def _logical(self, x: tree.Logical) -> Typed:
        node = e.Binary(x.operator.lower(), self._boolean(x.left), self._boolean(x.right))
        return Typed(node, BOOLEAN)

    def _not(self, x: tree.Not) -> Typed:
        return Typed(e.Unary("not", self._boolean(x.operand)), BOOLEAN)

    def _boolean(self, x: tree.Expression) -> e.Expression:
        found = self.resolve(x)
        if found.kind not in (BOOLEAN, NULL):
            raise SqlError(f"{expression_text(x)} is {found.kind}: BOOLEAN is needed", x.at)
        return found.node

    def _between(self, x: tree.Between) -> Typed:
        operand = self.resolve(x.operand)
        low = operators.comparison(">=", operand, self.resolve(x.low), x)
        high = operators.comparison("<=", operand, self.resolve(x.high), x)
        node: e.Expression = e.Binary("and", low.node, high.node)
        return Typed(e.Unary("not", node) if x.is_negated else node, BOOLEAN)

    def _in(self, x: tree.In) -> Typed:
        operand, items = self.resolve(x.operand), self.all(x.items)
        made = [operators.comparable("=", operand, item, x) for item in items]
        first = made[0][0] if made else operand
        options = tuple(right.node for _, right in made)
        kinds = (first.kind, *(right.kind for _, right in made))
        node: e.Expression = SqlCall("IN", (first.node, *options), kinds, BOOLEAN)
        return Typed(e.Unary("not", node) if x.is_negated else node, BOOLEAN)

    def _like(self, x: tree.Like) -> Typed:
        operand, pattern = self.resolve(x.operand), self.resolve(x.pattern)
        for each, part in ((operand, x.operand), (pattern, x.pattern)):
            if each.kind not in (STRING, NULL):
                raise SqlError(
                    f"Like condition must be between strings: {expression_text(part)} is {each.kind}"
                )
        arguments = [operand.node, pattern.node]
        if x.escape is not None:
            if len(x.escape) != 1:
                raise SqlError(f"Expected single character escape but got: {x.escape}")
            arguments.append(e.Literal_(x.escape))
        node: e.Expression = SqlCall("LIKE", tuple(arguments), (STRING,) * len(arguments), BOOLEAN)
        return Typed(e.Unary("not", node) if x.is_negated else node, BOOLEAN)

    def _is_null(self, x: tree.IsNull) -> Typed:
        operator = "is not null" if x.is_negated else "is null"
        return Typed(e.Unary(operator, self.resolve(x.operand).node), BOOLEAN)

    def _case(self, x: tree.Case) -> Typed:
        conditions: list[e.Expression] = []
        for when, _ in x.whens:
            if x.operand is None:
                conditions.append(self._boolean(when))
            else:
                conditions.append(
                    operators.comparison("=", self.resolve(x.operand), self.resolve(when), when).node
                )
        results = [self.resolve(then) for _, then in x.whens]
        if x.otherwise is not None:
            results.append(self.resolve(x.otherwise))
        kind, nodes = common(results, "CASE")
        whens = tuple(zip(conditions, nodes[: len(conditions)], strict=True))
        default = nodes[-1] if x.otherwise is not None else None
        return Typed(e.Case(whens, default), kind)

    def _cast(self, x: tree.Cast) -> Typed:
        operand, kind = self.resolve(x.operand), looked_up(x.kind, self.types, x.at)
        try:
            if cast(operand.kind, kind) is None:
                return Typed(operand.node, kind)
        except SqlError as error:
            raise SqlError(f"{error.message}: {expression_text(x)}", x.at) from None
        return Typed(SqlCall("CAST", (operand.node,), (operand.kind,), kind), kind)

    # ------------------------------------------------------------------------------- arrays, maps, structs

    def _new_array(self, x: tree.NewArray) -> Typed:
        kind, nodes = common(self.all(x.items), "ARRAY")
        if kind == NULL:
            raise SqlError("Cannot construct an array with all NULL elements", x.at)
        return Typed(e.ArrayOf(tuple(nodes)), Array(kind))

    def _new_map(self, x: tree.NewMap) -> Typed:
        key, keys = common(self.all([k for k, _ in x.entries]), "MAP")
        value, values = common(self.all([v for _, v in x.entries]), "MAP")
        if NULL in (key, value):
            raise SqlError("Cannot construct a map with all NULL values", x.at)
        return Typed(e.MapOf(tuple(zip(keys, values, strict=True))), Map(key, value))

    def _new_struct(self, x: tree.NewStruct) -> Typed:
        fields = [(name, self.resolve(value)) for name, value in x.fields]
        names = [name for name, _ in fields]
        if len(set(names)) < len(names):
            raise SqlError(f"Duplicate field names found in STRUCT: {expression_text(x)}", x.at)
        node = e.Struct(tuple((name, value.node) for name, value in fields))
        return Typed(node, Struct(tuple((name, value.kind) for name, value in fields)))

    def _field(self, x: tree.Field) -> Typed:
        base = self.resolve(x.base)
        if not isinstance(base.kind, Struct):
            raise SqlError(f"{expression_text(x.base)} is {base.kind}: only a STRUCT has fields", x.at)
        kind = base.kind.field(x.name)
        if kind is None:
            names = [name for name, _ in base.kind.fields]
            raise SqlError(
                f"Could not find field '{x.name}' in '{expression_text(x.base)}'."
                f"{did_you_mean(x.name, names)}",
                x.at,
            )
        return Typed(e.Field(base.node, x.name), kind)

    def _subscript(self, x: tree.Subscript) -> Typed:
        base, index = self.resolve(x.base), self.resolve(x.index)
        if isinstance(base.kind, Array):
            if index.kind not in (INTEGER, BIGINT):
                raise SqlError(f"An array is read by a whole number, not by {index.kind}", x.at)
            kind = base.kind.item
        elif isinstance(base.kind, Map):
            index, kind = coerce(index, base.kind.key, "a key of the map"), base.kind.value
        else:
            raise SqlError(f"{expression_text(x.base)} is {base.kind}: only ARRAY and MAP are indexed", x.at)
        return Typed(SqlCall("[]", (base.node, index.node), (base.kind, index.kind), kind), kind)

    # --------------------------------------------------------------------------------------- functions

    def _call(self, x: tree.Call) -> Typed:
        if is_aggregate(x.function):
            raise SqlError(
                f"Aggregate functions are not allowed in {self.clause}: {expression_text(x)}", x.at
            )
        if is_table_function(x.function):
            raise SqlError(f"Table functions are not allowed in {self.clause}: {expression_text(x)}", x.at)
        if not signatures_of(x.function):
            hint = did_you_mean(x.function, known_functions())
            raise SqlError(f"Can't find any functions with the name '{x.function}'.{hint}", x.at)
        return self.call(x)

    def call(self, x: tree.Call) -> Typed:
        """A scalar or table function over arguments of this clause."""
        given: list[Typed | None] = []
        described: list[Argument] = []
        takes_unit = any(each.parameters[:1] == (UNIT,) for each in signatures_of(x.function))
        for index, argument in enumerate(x.arguments):
            if isinstance(argument, tree.Lambda):
                given.append(None)
                described.append(Argument(LambdaType(len(argument.parameters))))
                continue
            if index == 0 and takes_unit and isinstance(argument, tree.Name):
                found = self._unit(argument)
            else:
                found = self.resolve(argument)
            given.append(found)
            described.append(Argument(found.kind, found.is_literal))
        choice = choose(x.function, described)
        nodes: list[e.Expression] = []
        kinds: list[SqlType] = []
        for index, (each, kind) in enumerate(zip(given, choice.wanted, strict=True)):
            if each is None:
                node, kind = self._lambda(x.arguments[index], choice, index)
            else:
                assert kind is not None
                node = each.node if each.kind in (kind, NULL) else coerce(each, kind, x.function).node
            nodes.append(node)
            kinds.append(kind)
        result = result_of(choice, described)
        return Typed(SqlCall(x.function, tuple(nodes), tuple(kinds), result, choice.signature.user), result)

    def _unit(self, x: tree.Name) -> Typed:
        name = x.name if x.name.endswith("S") else f"{x.name}S"
        if name not in UNITS:
            raise SqlError(f"{x.name} is no unit of time.{did_you_mean(x.name, UNITS)}", x.at)
        return Typed(e.Literal_(name), UNIT)

    def _lambda(self, x: Any, choice: Choice, index: int) -> tuple[e.Expression, SqlType]:
        """The lambda with its parameters' types; what it gives becomes known to the other parameters."""
        pattern = choice.signature.parameter(index)
        assert isinstance(pattern, LambdaPattern)
        kinds = [filled(each, choice.bindings) for each in pattern.parameters]
        names = {**self.variables, **dict(zip(x.parameters, kinds, strict=True))}
        body = dataclasses.replace(self, variables=names, clause="a lambda").resolve(x.body)
        name = getattr(pattern.result, "name", None)
        wanted = pattern.result if isinstance(pattern.result, SqlType) else choice.bindings.get(str(name))
        if wanted is None or wanted == NULL:
            choice.bindings[str(name)] = body.kind
        elif body.kind != wanted:
            body = coerce(body, wanted, f"the lambda of {choice.signature.name}")
        return e.Lambda(x.parameters, body.node), LambdaType(len(x.parameters))


_RESOLVERS: dict[type[tree.Expression], Callable[[Resolver, Any], Typed]] = {
    tree.Literal: Resolver._literal,
    tree.Name: Resolver._name,
    tree.Arithmetic: Resolver._arithmetic,
    tree.Sign: Resolver._sign,
    tree.Comparison: Resolver._comparison,
    tree.Logical: Resolver._logical,
    tree.Not: Resolver._not,
    tree.Between: Resolver._between,
    tree.In: Resolver._in,
    tree.Like: Resolver._like,
    tree.IsNull: Resolver._is_null,
    tree.Case: Resolver._case,
    tree.Cast: Resolver._cast,
    tree.NewArray: Resolver._new_array,
    tree.NewMap: Resolver._new_map,
    tree.NewStruct: Resolver._new_struct,
    tree.Field: Resolver._field,
    tree.Subscript: Resolver._subscript,
    tree.Call: Resolver._call,
}
