"""A query to a view: filters, order, columns, limit, offset, and as of when.

In: parameters as a client writes them (`shop=berlin`, `filter=revenue>=100`, `order=-revenue`, `as_of=12`).
Out: a `Query`, then a `Bound`: the query with names and values checked against the view's layout. A wrong
parameter raises `BadRequest` with one sentence that says what to write. Does not know: HTTP, the store's SQL.
"""

from __future__ import annotations

import base64
import binascii
import csv
import difflib
import enum
import re
from collections.abc import Iterable
from dataclasses import dataclass
from datetime import UTC, date, datetime
from decimal import Decimal, InvalidOperation
from typing import Any

from barnabas.pipeline.views.layout import Column, Layout

LIMIT, LIMIT_MAX = 1_000, 100_000
FILTERS_MAX, VALUES_MAX = 50, 1_000
OWN = ("filter", "order", "columns", "limit", "offset", "as_of", "format")
FILTER = re.compile(
    r"\s*(\w+)\s*(?:(!=|<=|>=|=|<|>)\s*(.*)|\s(?:(in)\b\s*(.*)|(like)\s(.*)|(is\s+null|is\s+not\s+null)\s*))",
    re.IGNORECASE | re.DOTALL,
)
WHOLE = {"tinyint": 8, "smallint": 16, "int": 32, "bigint": 64}


class BadRequest(ValueError):
    """A query that cannot be answered; the message is one sentence for the client."""


class Operator(enum.StrEnum):
    EQUAL = "="
    UNEQUAL = "!="
    LESS = "<"
    LESS_EQUAL = "<="
    GREATER = ">"
    GREATER_EQUAL = ">="
    IN = "in"
    LIKE = "like"
    NULL = "is null"
    NOT_NULL = "is not null"


@dataclass(frozen=True, slots=True)
class Filter:
    """A condition on one column; `values` are text until they are bound."""

    column: str
    operator: Operator
    values: tuple[Any, ...] = ()


@dataclass(frozen=True, slots=True)
class Order:
    column: str
    is_descending: bool = False


@dataclass(frozen=True, slots=True)
class Query:
    """Without `columns` all visible ones. `as_of` is a version, a time, or None for now."""

    view: str
    filters: tuple[Filter, ...] = ()
    order: tuple[Order, ...] = ()
    columns: tuple[str, ...] = ()
    limit: int = LIMIT
    offset: int = 0
    as_of: int | datetime | None = None


@dataclass(frozen=True, slots=True)
class Bound:
    """A query whose names are columns of the view and whose values have their types."""

    columns: tuple[Column, ...]
    filters: tuple[Filter, ...]
    order: tuple[Order, ...]


def parse(view: str, parameters: Iterable[tuple[str, str]]) -> Query:
    """Parse the parameters of a request, without knowledge of the view's columns."""
    filters: list[Filter] = []
    single: dict[str, str] = {}
    for name, value in parameters:
        if name == "filter":
            filters.append(parse_filter(value))
        elif name in OWN:
            if name in single:
                raise BadRequest(f"{name} is given twice")
            single[name] = value
        else:
            # `revenue>=100` in a URL comes as the name `revenue>` with the value `100`, `revenue>5` as a name
            # alone.
            filters.append(parse_filter(name if not value and re.search("[<>]", name) else f"{name}={value}"))
    if len(filters) > FILTERS_MAX:
        raise BadRequest(f"{len(filters)} filters are too many: at most {FILTERS_MAX}")
    return Query(
        view,
        tuple(filters),
        tuple(parse_order(single.get("order", ""))),
        tuple(name.strip() for name in single["columns"].split(",")) if single.get("columns") else (),
        number("limit", single.get("limit"), LIMIT, LIMIT_MAX),
        number("offset", single.get("offset"), 0, 2**62),
        parse_as_of(single["as_of"]) if "as_of" in single else None,
    )


def parse_filter(text: str) -> Filter:
    found = FILTER.fullmatch(text)
    if not found:
        raise BadRequest(
            f"{text!r} is not a filter: write a column, one of = != < <= > >= in like, and a value, "
            "as in revenue>=100"
        )
    column, compare, value, is_in, listed, is_like, pattern, null = found.groups()
    if compare:
        return Filter(column, Operator(compare), (value.strip(),))
    if is_in:
        values = tuple(split(listed))
        if not values or len(values) > VALUES_MAX:
            raise BadRequest(
                f"in takes 1 to {VALUES_MAX} values, separated by commas; {column} has {len(values)}"
            )
        return Filter(column, Operator.IN, values)
    if is_like:
        return Filter(column, Operator.LIKE, (pattern.strip(),))
    return Filter(column, Operator(" ".join(null.lower().split())))


def split(listed: str) -> list[str]:
    """`a,b`, `(a, b)` or `"a,b",c`."""
    text = listed.strip()
    if text.startswith("(") and text.endswith(")"):
        text = text[1:-1]
    try:
        return [value.strip() for value in next(csv.reader([text], skipinitialspace=True, strict=True), [])]
    except csv.Error as problem:
        raise BadRequest(f"{listed!r} is not a list of values: {problem}") from None


def parse_order(text: str) -> Iterable[Order]:
    for item in filter(None, map(str.strip, text.split(","))):
        name, _, direction = item.partition(" ")
        if direction.strip().lower() not in ("", "asc", "desc"):
            raise BadRequest(f"{item!r} is not an order: write `name`, `name desc` or `-name`")
        yield Order(name.removeprefix("-"), name.startswith("-") or direction.strip().lower() == "desc")


def number(name: str, text: str | None, default: int, maximum: int) -> int:
    if text is None:
        return default
    if not re.fullmatch(r"[0-9]{1,18}", text) or int(text) > maximum:
        raise BadRequest(f"{name} is a whole number from 0 to {maximum}, not {text!r}")
    return int(text)


def parse_as_of(text: str) -> int | datetime:
    if re.fullmatch(r"[0-9]{1,18}", text):
        return int(text)
    try:
        # A plus in a URL means a space, and a time zone such as +02:00 comes as one.
        moment = datetime.fromisoformat(
            re.sub(r" (\d\d:?\d\d)$", r"+\1", text.strip()) if "T" in text else text
        )
    except ValueError:
        raise BadRequest(
            f"as_of is a version such as 12 or a time such as 2026-03-01T12:00:00Z, not {text!r}"
        ) from None
    return moment if moment.tzinfo else moment.replace(tzinfo=UTC)


def bind(query: Query, layout: Layout) -> Bound:
    """Checks names and values against the view's columns."""
    known = {column.name: column for column in layout.visible}

    def find(name: str) -> Column:
        if name in known:
            return known[name]
        near = difflib.get_close_matches(name, known, n=1)
        hint = f"did you mean {near[0]}?" if near else f"it has {', '.join(known)}"
        raise BadRequest(f"the view {layout.view} has no column {name!r}: {hint}")

    filters = []
    for item in query.filters:
        column = find(item.column)
        if item.operator is Operator.LIKE:
            if column.type != "string":
                raise BadRequest(f"like is for text, and {column.name} is {column.type}")
            filters.append(item)
        else:
            filters.append(
                Filter(item.column, item.operator, tuple(typed(column, value) for value in item.values))
            )
    for order in query.order:
        find(order.column)
    columns = tuple(map(find, dict.fromkeys(query.columns))) or layout.visible
    return Bound(columns, tuple(filters), query.order)


def typed(column: Column, text: str) -> Any:
    """A value of the column's type from its text."""
    try:
        return convert(column.type, text)
    except (ValueError, InvalidOperation, OverflowError, binascii.Error):
        raise BadRequest(f"{column.name} is {column.type}, and {text!r} is none") from None


def convert(kind: str, text: str) -> Any:
    if kind in WHOLE:
        # Parsed as a decimal, so that 2.5 and numbers beyond the type's range compare correctly.
        value = Decimal(text)
        if not value.is_finite():
            raise ValueError(text)
        bits = WHOLE[kind]
        whole = int(value)
        return whole if whole == value and -(2 ** (bits - 1)) <= whole < 2 ** (bits - 1) else float(value)
    if kind in ("float", "double"):
        return float(text)
    if kind.startswith("decimal"):
        decimal = Decimal(text)
        if not decimal.is_finite():
            raise ValueError(text)
        return decimal
    if kind == "boolean":
        return boolean(text)
    if kind == "date":
        return date.fromisoformat(text)
    if kind == "binary":
        return base64.b64decode(text, validate=True)
    if kind.startswith("timestamp"):
        moment = datetime.fromisoformat(re.sub(r" (\d\d:?\d\d)$", r"+\1", text) if "T" in text else text)
        if kind == "timestamp_ntz":
            return moment.replace(tzinfo=None)
        return moment if moment.tzinfo else moment.replace(tzinfo=UTC)
    return text


def boolean(text: str) -> bool:
    words = {"true": True, "1": True, "false": False, "0": False}
    if text.lower() not in words:
        raise ValueError(text)
    return words[text.lower()]
