"""The comparison of schemas of texts, numbers, enumerations and constants.

In: two nodes of the same kind. Out: differences.
Does not know: other kinds.
"""

from __future__ import annotations

from decimal import Decimal

from barnabas.schemas.jsonschema.differences import Difference
from barnabas.schemas.jsonschema.nodes import Node
from barnabas.schemas.jsonschema.texts import Json, exact, frozen


def limits(writer: Node, reader: Node, names: dict[str, str]) -> list[Difference]:
    """Differences of keywords that hold a number: added, removed, increased, decreased."""
    found: list[Difference] = []
    for key, what in names.items():
        found += compare_limit(key, what, _number(writer.raw.get(key)), _number(reader.raw.get(key)))
    return found


def compare_limit(key: str, what: str, before: Decimal | None, after: Decimal | None) -> list[Difference]:
    if before == after:
        return []
    if before is None:
        change = "ADDED"
    elif after is None:
        change = "REMOVED"
    else:
        change = "INCREASED" if after > before else "DECREASED"
    return [Difference(f"{what}_{change}", (key,))]


def _number(value: Json) -> Decimal | None:
    return exact(value) if isinstance(value, int | float) and not isinstance(value, bool) else None


def compare_texts(writer: Node, reader: Node) -> list[Difference]:
    found = limits(writer, reader, {"maxLength": "MAX_LENGTH", "minLength": "MIN_LENGTH"})
    before, after = writer.raw.get("pattern"), reader.raw.get("pattern")
    if before != after:
        change = "ADDED" if before is None else "REMOVED" if after is None else "CHANGED"
        found.append(Difference(f"PATTERN_{change}", ("pattern",)))
    return found


def compare_numbers(writer: Node, reader: Node) -> list[Difference]:
    found: list[Difference] = []
    for key, what in (("maximum", "MAXIMUM"), ("minimum", "MINIMUM")):
        before, exclusive_before = _bounds(writer, key)
        after, exclusive_after = _bounds(reader, key)
        found += compare_limit(key, what, before, after)
        exclusive_key = f"exclusive{key.capitalize()}"
        found += compare_limit(exclusive_key, f"EXCLUSIVE_{what}", exclusive_before, exclusive_after)
    found += _multiples(_number(writer.raw.get("multipleOf")), _number(reader.raw.get("multipleOf")))
    if writer.is_integer != reader.is_integer:
        found.append(Difference("TYPE_EXTENDED" if writer.is_integer else "TYPE_NARROWED"))
    return found


def _bounds(node: Node, key: str) -> tuple[Decimal | None, Decimal | None]:
    """The bound that belongs to the range, and the one that does not."""
    bound = _number(node.raw.get(key))
    exclusive = node.raw.get(f"exclusive{key.capitalize()}")
    if isinstance(exclusive, bool):  # draft 4: a flag of the other keyword
        return (None, bound) if exclusive and node.draft.number == 4 else (bound, None)
    return bound, _number(exclusive)


def _multiples(before: Decimal | None, after: Decimal | None) -> list[Difference]:
    if before == after:
        return []
    if before is None or after is None:
        change = "ADDED" if before is None else "REMOVED"
    elif _is_multiple(after, before):
        change = "EXPANDED"
    elif _is_multiple(before, after):
        change = "REDUCED"
    else:
        change = "CHANGED"
    return [Difference(f"MULTIPLE_OF_{change}", ("multipleOf",))]


def _is_multiple(number: Decimal, of: Decimal) -> bool:
    """Exact, however many digits there are: both are scaled to integers."""
    exponents = [int(value.as_tuple().exponent) for value in (number, of)]
    scale = -min(exponents)
    whole, part = (
        int(_digits(value)) * 10 ** (exponent + scale)
        for value, exponent in zip((number, of), exponents, strict=True)
    )
    return bool(whole % part == 0)


def _digits(value: Decimal) -> str:
    return "".join(map(str, value.as_tuple().digits))


def compare_enums(writer: Node, reader: Node) -> list[Difference]:
    before, after = _values(writer), _values(reader)
    if before == after:
        return []
    change = "EXTENDED" if after > before else "NARROWED" if before > after else "CHANGED"
    return [Difference(f"ENUM_ARRAY_{change}", ("enum",))]


def _values(node: Node) -> set[str]:
    values = node.raw["enum"]
    return {frozen(value) for value in values} if isinstance(values, list) else set()


def compare_constants(writer: Node, reader: Node) -> list[Difference]:
    if frozen(writer.raw["const"]) == frozen(reader.raw["const"]):
        return []
    return [Difference("ENUM_ARRAY_CHANGED", ("const",))]
