"""Evaluates the text of an expression for a row: key, value, timestamp, headers."""

from __future__ import annotations

from typing import Any

from barnabas.plans.evaluation import compile_expression
from barnabas.plans.expressions import Column
from barnabas.sql.expressions.nodes import Guarded
from barnabas.sql.expressions.resolving import Resolver
from barnabas.sql.expressions.scopes import Scope, Visible
from barnabas.sql.expressions.typed import Typed
from barnabas.sql.syntax.parsing import parse_expression, parse_type
from barnabas.sql.types.sql_types import SqlType


class Log:
    """What a task is to an expression."""

    def __init__(self) -> None:
        self.causes: list[str] = []
        self.headers: tuple[tuple[str, bytes | None], ...] = ()

    def report(self, logger: str, message: str, error: Exception, row: Any = None) -> None:
        self.causes.append(str(error))


def resolved(text: str, **types: str) -> Typed:
    columns = [Visible(name, parse_type(kind), Column(name)) for name, kind in types.items()]
    return Resolver(Scope(tuple(columns))).resolve(parse_expression(text))


def kind_of(text: str, **types: str) -> SqlType:
    return resolved(text, **types).kind


def value_of(text: str, row: dict[str, Any] | None = None, log: Log | None = None, **types: str) -> Any:
    """The value; null and a line in the log where the expression raises."""
    node = Guarded(resolved(text, **types).node, text, "test")
    return compile_expression(node)((None, row or {}, 0, None, log or Log()))
