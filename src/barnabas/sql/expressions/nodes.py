"""The nodes that SQL adds to a plan's expressions: they carry types, and their code is found by name.

A compiler for columns reads names and types; the interpreter gets functions of a scope (`plans/evaluation`).
Keys are tuples: `KeyColumn` takes one of their values. Does not know: how texts become these trees.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from barnabas.plans import expressions as e
from barnabas.plans.evaluation import CONTEXT, KEY, VALUE, Evaluate, compile_expression, compiles
from barnabas.plans.windows import Windowed
from barnabas.sql.errors import EvaluationError
from barnabas.sql.expressions.codes import code_for
from barnabas.sql.functions.user import UserFunction
from barnabas.sql.types.sql_types import SqlType


@dataclass(frozen=True, eq=False, slots=True)
class KeyColumn(e.Expression):
    """A column of the record's key, in a window or not."""

    index: int
    name: str
    kind: SqlType


@dataclass(frozen=True, eq=False, slots=True)
class SqlCall(e.Expression):
    """An operator, a cast or a function: its name, the types of its arguments and of its result.

    `user` is set for a function of the user."""

    name: str
    arguments: tuple[e.Expression, ...]
    kinds: tuple[SqlType, ...]
    kind: SqlType
    user: UserFunction | None = None


@dataclass(frozen=True, eq=False, slots=True)
class Guarded(e.Expression):
    """Null where the operand raises, and a line of the processing log."""

    operand: e.Expression
    message: str
    logger: str


@dataclass(frozen=True, eq=False, slots=True)
class NewKey(e.Expression):
    """A key of these values: no key where the only one is null. With `drops_nulls` there is none either where
    any is null, and the processing log gets a line."""

    parts: tuple[e.Expression, ...]
    drops_nulls: bool = False
    logger: str = ""


@dataclass(frozen=True, eq=False, slots=True)
class Headers(e.Expression):
    """All headers as an array of structs, or the value of the last one with a name."""

    name: str | None = None


@dataclass(frozen=True, eq=False, slots=True)
class ExplodedRows(e.Expression):
    """The rows of table functions, zipped: structs of `carried` columns and one of each function."""

    functions: tuple[tuple[str, e.Expression], ...]
    carried: tuple[tuple[str, e.Expression], ...]


@compiles(KeyColumn)
def _key_column(node: KeyColumn) -> Evaluate:
    index = node.index

    def evaluate(scope: Any) -> Any:
        key = scope[KEY]
        if type(key) is Windowed:
            key = key.key
        return None if key is None else key[index]

    return evaluate


@compiles(SqlCall)
def _call(node: SqlCall) -> Evaluate:
    code = node.user.code() if node.user is not None else code_for(node.name, node.kinds, node.kind)
    if node.name == "COALESCE" or node.name == "IFNULL":
        return _first_of([compile_expression(each) for each in node.arguments])
    arguments = [compile_expression(each) for each in node.arguments]
    if len(arguments) == 1:
        (one,) = arguments
        return lambda scope: code(one(scope))
    if len(arguments) == 2:
        left, right = arguments
        return lambda scope: code(left(scope), right(scope))
    return lambda scope: code(*[argument(scope) for argument in arguments])


def _first_of(options: list[Evaluate]) -> Evaluate:
    def evaluate(scope: Any) -> Any:
        for option in options:
            value = option(scope)
            if value is not None:
                return value
        return None

    return evaluate


@compiles(Guarded)
def _guarded(node: Guarded) -> Evaluate:
    operand, message, logger = compile_expression(node.operand), node.message, node.logger

    def evaluate(scope: Any) -> Any:
        try:
            return operand(scope)
        except Exception as error:
            scope[CONTEXT].report(logger, message, error, scope[VALUE])
            return None

    return evaluate


@compiles(NewKey)
def _new_key(node: NewKey) -> Evaluate:
    parts = [compile_expression(part) for part in node.parts]
    drops, logger, is_single = node.drops_nulls, node.logger, len(parts) == 1

    def evaluate(scope: Any) -> Any:
        key = tuple([part(scope) for part in parts])
        if None in key:
            if drops:
                reason = EvaluationError("a value of the group is null")
                message = "Group-by column with null value: the row is left out"
                scope[CONTEXT].report(logger, message, reason, scope[VALUE])
                return None
            return None if is_single else key
        return key

    return evaluate


@compiles(Headers)
def _headers(node: Headers) -> Evaluate:
    wanted = node.name
    if wanted is None:
        return lambda scope: [{"KEY": key, "VALUE": value} for key, value in scope[CONTEXT].headers]

    def evaluate(scope: Any) -> Any:
        return next((value for key, value in reversed(scope[CONTEXT].headers) if key == wanted), None)

    return evaluate


@compiles(ExplodedRows)
def _exploded(node: ExplodedRows) -> Evaluate:
    functions: list[tuple[str, Callable[[Any], Any]]] = [
        (name, compile_expression(each)) for name, each in node.functions
    ]
    carried = [(name, compile_expression(each)) for name, each in node.carried]

    def evaluate(scope: Any) -> list[dict[str, Any]]:
        columns = [(name, function(scope) or []) for name, function in functions]
        base = {name: each(scope) for name, each in carried}
        length = max((len(rows) for _, rows in columns), default=0)
        return [
            {**base, **{name: rows[at] if at < len(rows) else None for name, rows in columns}}
            for at in range(length)
        ]

    return evaluate
