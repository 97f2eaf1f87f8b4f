"""Names that an expression may use, and the columns that they mean.

Does not know: where rows come from.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Iterable
from dataclasses import dataclass, replace
from enum import Enum
from typing import Any

from barnabas.plans.expressions import Expression
from barnabas.sql.errors import SqlError, did_you_mean
from barnabas.sql.syntax import tree
from barnabas.sql.types.sql_types import SqlType


class Place(Enum):
    """The place of a column in a source."""

    KEY = "key"
    VALUE = "value"
    HEADERS = "headers"
    WINDOW = "window"
    PSEUDO = "pseudo"


@dataclass(frozen=True, slots=True, eq=False)
class Visible:
    """A column by its name; `node` gives its value, `source` is the name or alias of its source."""

    name: str
    kind: SqlType
    node: Expression
    source: str | None = None
    place: Place = Place.VALUE


@dataclass(frozen=True, slots=True)
class Scope:
    columns: tuple[Visible, ...]

    def find(self, name: tree.Name, clause: str = "SELECT") -> Visible:
        """SqlError for a name that is unknown, or that several sources have."""
        found = self._named(name)
        if len(found) == 1:
            return found[0]
        shown = name.name if name.source is None else f"{name.source}.{name.name}"
        if found:
            options = " or ".join(f"{each.source}.{each.name}" for each in found)
            raise SqlError(f"{clause} column '{shown}' is ambiguous. Could be {options}.", name.at)
        raise SqlError(f"{clause} column '{shown}' cannot be resolved.{self._hint(name)}", name.at)

    def _named(self, name: tree.Name) -> list[Visible]:
        """The columns that a name may mean. A column without a source is that of the whole row: ROWTIME of a
        join, ROWKEY."""
        found = [
            each for each in self.columns if each.name == name.name and name.source in (None, each.source)
        ]
        own = [each for each in found if each.source is None]
        return own if name.source is None and len(own) == 1 else found

    def _hint(self, name: tree.Name) -> str:
        sources = {each.source for each in self.columns if each.source is not None}
        if name.source is not None and name.source not in sources:
            return did_you_mean(name.source, sources)
        inside = [each.name for each in self.columns if name.source in (None, each.source)]
        return did_you_mean(name.name, inside)

    def of(self, source: str) -> list[Visible]:
        return [each for each in self.columns if each.source == source]

    def with_columns(self, more: Iterable[Visible]) -> Scope:
        return replace(self, columns=(*self.columns, *more))

    def canonical(self, expression: Any) -> Any:
        """The expression with every name written in full, so that equal ones are equal."""
        if isinstance(expression, tree.Name):
            found = self._named(expression)
            return tree.Name(expression.name, found[0].source) if len(found) == 1 else expression
        if isinstance(expression, tuple):
            return tuple(self.canonical(each) for each in expression)
        if isinstance(expression, tree.Expression):
            changes = {
                field.name: self.canonical(getattr(expression, field.name))
                for field in dataclasses.fields(expression)
                if field.name != "at"
            }
            return replace(expression, **changes)
        return expression


def names_in(expression: Any) -> list[tree.Name]:
    """All names of an expression, in order; parameters of lambdas are left out."""
    if isinstance(expression, tree.Name):
        return [expression]
    if isinstance(expression, tree.Lambda):
        return [each for each in names_in(expression.body) if each.name not in expression.parameters]
    if isinstance(expression, tuple):
        return [name for each in expression for name in names_in(each)]
    if isinstance(expression, tree.Expression):
        return [
            name
            for field in dataclasses.fields(expression)
            if field.name != "at"
            for name in names_in(getattr(expression, field.name))
        ]
    return []


def calls_in(expression: Any) -> list[tree.Call]:
    """All calls of an expression, outer ones first."""
    found = [expression] if isinstance(expression, tree.Call) else []
    if isinstance(expression, tuple):
        return [call for each in expression for call in calls_in(each)]
    if isinstance(expression, tree.Expression):
        for field in dataclasses.fields(expression):
            if field.name != "at":
                found += calls_in(getattr(expression, field.name))
    return found
