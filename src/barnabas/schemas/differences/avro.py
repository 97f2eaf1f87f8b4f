"""Differences of two Avro schemas in words.

In: two trees. Out: sentences, with fields by their names. Does not know: compatibility; every change is told.
"""

from __future__ import annotations

from collections.abc import Iterator

from barnabas.schemas.avro.json_text import written
from barnabas.schemas.avro.types import (
    Absent,
    Array,
    Attributes,
    Enum,
    Field,
    Fixed,
    Map,
    Named,
    Record,
    Type,
    Union,
)


def differences(old: Type, new: Type) -> Iterator[str]:
    """One sentence for each change. Pairs of types are compared once, so recursive schemas end."""
    seen: set[tuple[int, int]] = set()
    waiting: list[tuple[Type, Type, str]] = [(old, new, "")]
    while waiting:
        before, after, place = waiting.pop()
        if (id(before), id(after)) in seen:
            continue
        seen.add((id(before), id(after)))
        yield from _pair(before, after, place, waiting)


def _pair(old: Type, new: Type, place: str, waiting: list[tuple[Type, Type, str]]) -> Iterator[str]:
    here = place or "the schema"
    if isinstance(old, Union) or isinstance(new, Union):
        yield from _unions(old, new, here, place, waiting)
        return
    if old.kind != new.kind:
        yield f"{here}: the type {shown(old)} became {shown(new)}"
        return
    match old, new:
        case Record(), Record():
            yield from _named(old, new, here)
            yield from _fields(old, new, place, waiting)
        case Enum(), Enum():
            yield from _named(old, new, here)
            yield from _listed(here, "symbol", old.symbols, new.symbols)
            yield from _changed(here, "the default symbol", old.default, new.default)
        case Fixed(), Fixed():
            yield from _named(old, new, here)
            yield from _changed(here, "the size", old.size, new.size)
        case Array(), Array():
            waiting.append((old.items, new.items, f"{place}[]"))
        case Map(), Map():
            waiting.append((old.values, new.values, f"{place}{{}}"))
    if not isinstance(old, Union) and not isinstance(new, Union):
        yield from _attributes(here, old.attributes, new.attributes)


def _named(old: Named, new: Named, here: str) -> Iterator[str]:
    yield from _changed(here, f"the name of the {new.kind}", old.name.full, new.name.full)
    yield from _changed(here, "the documentation", old.doc, new.doc)
    yield from _listed(here, "alias", [one.full for one in old.aliases], [one.full for one in new.aliases])


def _fields(old: Record, new: Record, place: str, waiting: list[tuple[Type, Type, str]]) -> Iterator[str]:
    before = {one.name: one for one in old.fields}
    taken: set[str] = set()
    for one in new.fields:
        where = f"{place}.{one.name}" if place else one.name
        source = next((name for name in (one.name, *one.aliases) if name in before), None)
        if source is None:
            default = (
                "without a default"
                if isinstance(one.default, Absent)
                else f"with the default {written(one.default)}"
            )
            yield f"field {where} was added, of type {shown(one.type)}, {default}"
            continue
        taken.add(source)
        if source != one.name:
            yield f"field {where} was renamed: it was {source}, which is now its alias"
        yield from _field(before[source], one, f"field {where}")
        waiting.append((before[source].type, one.type, where))
    for name in before.keys() - taken:
        yield f"field {f'{place}.{name}' if place else name} was removed"
    kept = [one.name for one in new.fields if one.name in before]
    if kept != [one.name for one in old.fields if one.name in {field.name for field in new.fields}]:
        yield f"{place or 'the schema'}: the order of the fields changed"


def _field(old: Field, new: Field, here: str) -> Iterator[str]:
    if isinstance(old.default, Absent) != isinstance(new.default, Absent):
        if isinstance(new.default, Absent):
            yield f"{here}: the default was removed"
        else:
            yield f"{here}: the default {written(new.default)} was added"
    elif not isinstance(old.default, Absent) and not isinstance(new.default, Absent):
        yield from _changed(here, "the default", written(old.default), written(new.default))
    yield from _changed(here, "the documentation", old.doc, new.doc)
    yield from _changed(here, "the order", str(old.order), str(new.order))
    yield from _listed(here, "alias", old.aliases, new.aliases)
    yield from _attributes(here, old.attributes, new.attributes)


def _unions(
    old: Type, new: Type, here: str, place: str, waiting: list[tuple[Type, Type, str]]
) -> Iterator[str]:
    before = {_branch(one): one for one in (old.branches if isinstance(old, Union) else [old])}
    after = {_branch(one): one for one in (new.branches if isinstance(new, Union) else [new])}
    for name in after.keys() - before.keys():
        yield f"{here}: {'null' if name == 'null' else name} is now allowed"
    for name in before.keys() - after.keys():
        yield f"{here}: {name} is not allowed any more"
    waiting += [(before[name], after[name], place) for name in before if name in after]


def _branch(node: Type) -> str:
    return node.name.full if isinstance(node, Named) else node.kind


def shown(node: Type) -> str:
    match node:
        case Union():
            return " or ".join(shown(branch) for branch in node.branches) or "nothing"
        case Array():
            return f"array of {shown(node.items)}"
        case Map():
            return f"map of {shown(node.values)}"
        case Record() | Enum() | Fixed():
            return f"{node.kind} {node.name.full}"
    logical = node.attributes.get("logicalType")
    return f"{node.kind} ({logical})" if isinstance(logical, str) else node.kind


def _changed(here: str, what: str, old: object, new: object) -> Iterator[str]:
    if old == new:
        return
    if old is None:
        yield f"{here}: {what} was added: {new}"
    elif new is None:
        yield f"{here}: {what} was removed: {old}"
    else:
        yield f"{here}: {what} {old} became {new}"


def _listed(here: str, what: str, old: list[str], new: list[str]) -> Iterator[str]:
    for one in new:
        if one not in old:
            yield f"{here}: the {what} {one} was added"
    for one in old:
        if one not in new:
            yield f"{here}: the {what} {one} was removed"


def _attributes(here: str, old: Attributes, new: Attributes) -> Iterator[str]:
    for name in [*old, *(name for name in new if name not in old)]:
        before = written(old[name]) if name in old else None
        after = written(new[name]) if name in new else None
        yield from _changed(here, f"the attribute {name}", before, after)
