"""The list of a SELECT: which columns a result has, what they are called, and which of them are its key.

Stars and struct stars are expanded, expressions without a name get KSQL_COL_n, clashing columns of a join
their source's name in front. Does not know: where the result goes.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from barnabas.sql.analysis.stages import KeyPart, Stage
from barnabas.sql.errors import Position, SqlError
from barnabas.sql.expressions.resolving import Resolver
from barnabas.sql.expressions.scopes import Place, Visible
from barnabas.sql.expressions.typed import Typed
from barnabas.sql.metastore.schemas import PSEUDO_COLUMNS, WINDOW_COLUMNS
from barnabas.sql.syntax import tree
from barnabas.sql.syntax.printing import expression_text
from barnabas.sql.syntax.statements import Item, Query
from barnabas.sql.types.sql_types import Struct

SYSTEM_NAMES = {*PSEUDO_COLUMNS, *WINDOW_COLUMNS}


@dataclass(frozen=True, slots=True, eq=False)
class Selected:
    """A column of the result. `canonical` is its expression with full names."""

    name: str
    typed: Typed
    canonical: tree.Expression
    text: str
    is_aliased: bool
    at: Position | None = None


def expanded(
    query: Query, stage: Stage, before: Stage, resolver: Resolver, shows_windows: bool
) -> list[Selected]:
    """The columns of the list, in order. `before` is the stage before GROUP BY: it knows the sources'
    columns. `shows_windows`: bounds of windows are part of `*`."""
    found: list[Selected] = []
    clashes = clashing(before)
    names: set[str] = {item.alias for item in query.items if item.alias is not None}
    numbers = iter(range(len(query.items) + 10_000))
    for item in query.items:
        expression = item.expression
        if isinstance(expression, tree.Star):
            found += _star(expression, stage, shows_windows)
        elif isinstance(expression, tree.FieldsOf):
            found += _fields(expression, stage, resolver)
        else:
            typed = resolver.resolve(expression)
            name = item.alias or _name(item, before, clashes)
            if name is None:
                name = next(n for n in (f"KSQL_COL_{i}" for i in numbers) if n not in names)
            if item.alias is None and isinstance(expression, tree.Field):
                name = unused(name, {each.name for each in found} | names)
            canonical = before.scope.canonical(expression)
            text = expression_text(expression)
            found.append(Selected(name, typed, canonical, text, item.alias is not None, expression.at))
    check_duplicates(found, query.at)
    return found


def unused(name: str, names: set[str]) -> str:
    number, found = 0, name
    while found in names:
        number += 1
        found = f"{name}_{number}"
    return found


def clashing(stage: Stage) -> set[str]:
    """Names that several sources of a join have."""
    seen: dict[str, set[str | None]] = {}
    for each in stage.scope.columns:
        if each.source is not None:
            seen.setdefault(each.name, set()).add(each.source)
    return {name for name, sources in seen.items() if len(sources) > 1}


def _name(item: Item, stage: Stage, clashes: set[str]) -> str | None:
    expression = item.expression
    if isinstance(expression, tree.Name):
        if stage.is_join and expression.name in clashes and expression.source is not None:
            return f"{expression.source}_{expression.name}"
        return expression.name
    return expression.name if isinstance(expression, tree.Field) else None


def _star(star: tree.Star, stage: Stage, shows_windows: bool) -> list[Selected]:
    if star.source is not None and star.source not in stage.aliases:
        known = ", ".join(stage.aliases)
        raise SqlError(f"'{star.source}' is not a valid stream/table name or alias: {known}", star.at)
    columns = [
        each
        for each in stage.scope.columns
        if star.source is None or each.source == star.source
        if each.place != Place.PSEUDO and (each.place != Place.WINDOW or shows_windows)
    ]
    order = {Place.KEY: 0, Place.WINDOW: 1}
    found = []
    groups: Iterable[str | None] = [None] if not stage.is_join else [None, *stage.aliases]
    for alias in groups:
        inside = [each for each in columns if not stage.is_join or each.source == alias]
        for each in sorted(inside, key=lambda c: order.get(c.place, 2)):
            found.append(_of_star(each, stage, star))
    return found


def _of_star(each: Visible, stage: Stage, star: tree.Star) -> Selected:
    name = f"{each.source}_{each.name}" if stage.is_join and each.source is not None else each.name
    return Selected(
        name,
        Typed(each.node, each.kind),
        tree.Name(each.name, each.source),
        each.name,
        False,
        star.at,
    )


def _fields(x: tree.FieldsOf, stage: Stage, resolver: Resolver) -> list[Selected]:
    base = resolver.resolve(x.base)
    if not isinstance(base.kind, Struct):
        raise SqlError(f"{expression_text(x.base)} is {base.kind}: only a STRUCT has fields", x.at)
    found = []
    for name, _ in base.kind.fields:
        field = tree.Field(x.base, name, at=x.at)
        canonical = stage.scope.canonical(field)
        found.append(Selected(name, resolver.resolve(field), canonical, expression_text(field), False, x.at))
    return found


def check_duplicates(selected: list[Selected], at: Position | None) -> None:
    seen: dict[str, Selected] = {}
    for each in selected:
        if each.name in seen:
            raise SqlError(
                f"The projection contains the column name `{each.name}` more than once: "
                f"{seen[each.name].text} and {each.text}. Give one of them another name with AS.",
                each.at or at,
            )
        seen[each.name] = each


def check_reserved(selected: list[Selected]) -> None:
    """SqlError for columns of a sink that have a pseudo column's name."""
    for each in selected:
        if each.name in SYSTEM_NAMES:
            raise SqlError(
                f"Reserved column name in select: `{each.name}`. Please remove or alias the column.", each.at
            )


@dataclass(frozen=True, slots=True, eq=False)
class Divided:
    """The result's columns, by where they go. `key` has the order of the stage's key."""

    key: tuple[Selected, ...]
    value: tuple[Selected, ...]


def divided(selected: list[Selected], stage: Stage, sink: str, at: Position | None) -> Divided:
    """Find the columns of the key. SqlError if a key column is missing or there twice."""
    taken: dict[int, Selected] = {}
    for index, part in enumerate(stage.key):
        found = _selected_key(part, selected)
        if not found:
            missing = ", ".join(_shown(each) for each in stage.key if not _selected_key(each, selected))
            example = ", ".join(_shown(each) for each in stage.key)
            raise SqlError(
                f"Key missing from projection (ie, SELECT). The query used to build `{sink}` must include "
                f"the {stage.what_key} {missing} in its projection (eg, SELECT {example}...).",
                at,
            )
        if len(found) > 1:
            names = " and ".join(f"`{each.name}`" for each in found)
            raise SqlError(
                f"The projection contains a key column (`{part.name}`) more than once, aliased as: {names}. "
                "Each key column must only be in the projection once. If you intended to copy the key into "
                "the value, then consider using the AS_VALUE function to indicate which key reference should "
                "be copied.",
                found[1].at or at,
            )
        taken[index] = found[0]
    keys = tuple(taken[index] for index in range(len(stage.key)))
    return Divided(keys, tuple(each for each in selected if not any(each is key for key in keys)))


def _selected_key(part: KeyPart, selected: list[Selected]) -> list[Selected]:
    """The columns that are the key: those of the first expression of `same` that is selected."""
    for expression in part.same:
        found = [each for each in selected if each.canonical == expression]
        if found:
            return found
    return []


def _shown(part: KeyPart) -> str:
    options = [expression_text(each) for each in part.same]
    return options[0] if len(options) == 1 else " or ".join(options)
