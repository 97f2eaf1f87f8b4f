"""Casts: which types can be turned into which, and how a value is turned.

Explicit casts (CAST) may fail for a value: EvaluationError. Implicit ones widen numbers only. Does not know:
trees, names.
"""

from __future__ import annotations

import datetime as dt
import decimal
import math
import re
from collections.abc import Callable
from typing import Any

from barnabas.sql.errors import EvaluationError, SqlError
from barnabas.sql.types.sql_types import (
    BIGINT,
    BYTES,
    DOUBLE,
    EXACT,
    INT_MAX,
    INT_MIN,
    INTEGER,
    LONG_MAX,
    LONG_MIN,
    NULL,
    STRING,
    WHOLE,
    Array,
    Decimal,
    Map,
    SqlType,
    Struct,
    is_number,
    wrapped_int,
    wrapped_long,
)

Convert = Callable[[Any], Any]
NUMBER = decimal.Decimal
INT_DIGITS, BIGINT_DIGITS = 10, 19
ISO_TIMESTAMP = re.compile(
    r"(\d{4})(?:-(\d{1,2})(?:-(\d{1,2}))?)?(?:[T ](\d{1,2})(?::(\d{1,2})(?::(\d{1,2})(?:[.,](\d{1,9}))?)?)?)?"
    r"\s*(Z|[+-]\d{2}:?(?:\d{2})?)?"
)


def cast(given: SqlType, wanted: SqlType) -> Convert | None:
    """The function that turns a value that is not null, None where it stays as it is. SqlError where no value
    of the type can be turned."""
    if given in (wanted, NULL):
        return None
    if isinstance(given, Array) and isinstance(wanted, Array):
        item = total(given.item, wanted.item)
        return lambda items: [item(each) for each in items]
    if isinstance(given, Map) and isinstance(wanted, Map):
        key, value = total(given.key, wanted.key), total(given.value, wanted.value)
        return lambda entries: {key(k): value(v) for k, v in entries.items()}
    if isinstance(given, Struct) and isinstance(wanted, Struct):
        return _struct(given, wanted)
    if wanted == STRING and given != BYTES:
        return lambda value: text_of(value, given)
    found = _number(given, wanted) if is_number(wanted) else _OTHERS.get((given.base, wanted.base))
    if found is None:
        raise SqlError(f"Cast of {given} to {wanted} is not supported")
    return found


def total(given: SqlType, wanted: SqlType) -> Convert:
    """The same for any value: null stays null."""
    convert = cast(given, wanted)
    if convert is None:
        return lambda value: value
    return lambda value: None if value is None else convert(value)


def _struct(given: Struct, wanted: Struct) -> Convert:
    """Fields by their names; missing ones are null."""
    fields: list[tuple[str, Convert]] = []
    for name, kind in wanted.fields:
        before = given.field(name)
        fields.append((name, (lambda value: None) if before is None else total(before, kind)))
    return lambda row: {name: convert(row.get(name)) for name, convert in fields}


def _number(given: SqlType, wanted: SqlType) -> Convert | None:
    if given == STRING:
        return lambda text: of_text(text, wanted)
    if not is_number(given):
        return None
    if wanted == DOUBLE:
        return float
    if wanted == INTEGER:
        return lambda value: wrapped_int(_whole(value, INT_MIN, INT_MAX))
    if wanted == BIGINT:
        return lambda value: wrapped_long(_whole(value, LONG_MIN, LONG_MAX))
    assert isinstance(wanted, Decimal)
    fitted = fit(wanted)
    return lambda value: fitted(NUMBER(repr(value)) if isinstance(value, float) else NUMBER(value))


def _whole(value: Any, low: int, high: int) -> int:
    """Cut, as Java casts: a double beyond the range becomes the nearest number, NaN becomes 0."""
    if isinstance(value, float):
        if math.isnan(value):
            return 0
        return low if value <= low else high if value >= high else int(value)
    return int(value)


def fit(kind: Decimal) -> Convert:
    """Round half up to the scale of a decimal; an error where the number is too large."""
    one, most = NUMBER(1).scaleb(-kind.scale), NUMBER(10) ** (kind.precision - kind.scale)

    def fitted(value: decimal.Decimal) -> decimal.Decimal:
        if not value.is_finite():
            raise EvaluationError(f"{value} is no {kind}")
        rounded = EXACT.quantize(value, one)
        if abs(rounded) >= most:
            raise EvaluationError(f"Numeric field overflow: {value} does not fit {kind}")
        return rounded

    return fitted


def of_text(text: str, wanted: SqlType) -> Any:
    trimmed = text.strip()
    try:
        if wanted == DOUBLE:
            return float(trimmed)
        if isinstance(wanted, Decimal):
            return fit(wanted)(NUMBER(trimmed))
        number = int(trimmed)
    except (ValueError, decimal.InvalidOperation):
        raise EvaluationError(f"{text!r} is no {wanted}") from None
    low, high = (INT_MIN, INT_MAX) if wanted == INTEGER else (LONG_MIN, LONG_MAX)
    if not low <= number <= high or "_" in trimmed:
        raise EvaluationError(f"{text!r} is no {wanted}")
    return number


def to_boolean(text: str) -> bool:
    """`true`, `yes` and their beginnings, in any case."""
    given = text.strip().lower()
    return given != "" and ("true".startswith(given) or "yes".startswith(given))


def to_timestamp(text: str) -> dt.datetime:
    """ISO texts; parts that are missing are zero, a zone is turned to UTC."""
    found = ISO_TIMESTAMP.fullmatch(text.strip())
    if found is None:
        raise EvaluationError(f"{text!r} is no timestamp: yyyy-MM-ddTHH:mm:ss.SSS is expected")
    year, month, day, hour, minute, second, fraction, zone = found.groups()
    micros = int((fraction or "0").ljust(6, "0")[:3]) * 1000
    try:
        value = dt.datetime(
            int(year),
            int(month or 1),
            int(day or 1),
            int(hour or 0),
            int(minute or 0),
            int(second or 0),
            micros,
        )
        if zone is None or zone == "Z":
            return value
        digits = zone[1:].replace(":", "").ljust(4, "0")
        offset = dt.timedelta(hours=int(digits[:2]), minutes=int(digits[2:]))
        return value - offset if zone[0] == "+" else value + offset
    except (ValueError, OverflowError) as error:
        raise EvaluationError(f"{text!r} is no timestamp: {error}") from None


def to_date(text: str) -> dt.date:
    try:
        return dt.date.fromisoformat(text.strip())
    except ValueError:
        raise EvaluationError(f"{text!r} is no date: yyyy-MM-dd is expected") from None


def to_time(text: str) -> dt.time:
    try:
        return dt.time.fromisoformat(text.strip()).replace(tzinfo=None)
    except ValueError:
        raise EvaluationError(f"{text!r} is no time of day: HH:mm:ss is expected") from None


_OTHERS: dict[tuple[str, str], Convert] = {
    ("STRING", "BOOLEAN"): to_boolean,
    ("STRING", "TIMESTAMP"): to_timestamp,
    ("STRING", "DATE"): to_date,
    ("STRING", "TIME"): to_time,
    ("TIMESTAMP", "TIME"): lambda value: value.time(),
    ("TIMESTAMP", "DATE"): lambda value: value.date(),
    ("DATE", "TIMESTAMP"): lambda value: dt.datetime(value.year, value.month, value.day),
}

# ------------------------------------------------------------------------------------------------- texts


def text_of(value: Any, kind: SqlType) -> str:
    """A value as Java prints it."""
    if value is None:
        return "null"
    if isinstance(kind, Array):
        return f"[{', '.join(text_of(each, kind.item) for each in value)}]"
    if isinstance(kind, Map):
        pairs = (f"{text_of(k, kind.key)}={text_of(v, kind.value)}" for k, v in value.items())
        return f"{{{', '.join(pairs)}}}"
    if isinstance(kind, Struct):
        shown = (f"{n}={text_of(value.get(n), k)}" for n, k in kind.fields if value.get(n) is not None)
        return f"Struct{{{','.join(shown)}}}"
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, float):
        return double_text(value)
    if isinstance(value, decimal.Decimal):
        return format(value, "f")
    if isinstance(value, dt.datetime):
        return value.isoformat(timespec="milliseconds")
    if isinstance(value, dt.time):
        return time_text(value)
    return str(value)


def double_text(value: float) -> str:
    """A double as Java prints it: 1.0E10 from ten million on, 1.0E-4 below a thousandth."""
    if math.isnan(value):
        return "NaN"
    if math.isinf(value):
        return "Infinity" if value > 0 else "-Infinity"
    if value == 0 or 1e-3 <= abs(value) < 1e7:
        return format(NUMBER(repr(value)), "f")
    sign, digits, exponent = NUMBER(repr(value)).normalize().as_tuple()
    head, rest = digits[0], "".join(map(str, digits[1:])) or "0"
    power = int(exponent) + len(digits) - 1
    return f"{'-' if sign else ''}{head}.{rest}E{power}"


def time_text(value: dt.time) -> str:
    text = value.isoformat(timespec="milliseconds").removesuffix(".000")
    return text.removesuffix(":00") if len(text) == 8 else text


# ---------------------------------------------------------------------------------------------- implicit


def as_decimal(kind: SqlType) -> Decimal:
    """INTEGER and BIGINT in arithmetic with decimals."""
    if isinstance(kind, Decimal):
        return kind
    return Decimal(INT_DIGITS if kind == INTEGER else BIGINT_DIGITS, 0)


def widens(given: SqlType, wanted: SqlType) -> bool:
    """Whether a value turns into the other type by itself."""
    if given in (wanted, NULL):
        return True
    if isinstance(given, Array) and isinstance(wanted, Array):
        return widens(given.item, wanted.item)
    if isinstance(given, Map) and isinstance(wanted, Map):
        return given.key == wanted.key and widens(given.value, wanted.value)
    if isinstance(given, Struct) and isinstance(wanted, Struct):
        return [n for n, _ in given.fields] == [n for n, _ in wanted.fields] and all(
            widens(one, two) for (_, one), (_, two) in zip(given.fields, wanted.fields, strict=True)
        )
    if wanted == DOUBLE:
        return is_number(given)
    if wanted == BIGINT:
        return given == INTEGER
    if isinstance(wanted, Decimal) and (given in WHOLE or isinstance(given, Decimal)):
        narrow = as_decimal(given)
        return narrow.scale <= wanted.scale and (
            narrow.precision - narrow.scale <= wanted.precision - wanted.scale
        )
    return False


def wider(one: SqlType, two: SqlType) -> SqlType | None:
    """The type that both turn into; None where there is none."""
    if widens(one, two):
        return two
    if widens(two, one):
        return one
    if is_number(one) and is_number(two):
        a, b = as_decimal(one), as_decimal(two)
        scale = max(a.scale, b.scale)
        return Decimal(max(a.precision - a.scale, b.precision - b.scale) + scale, scale)
    return None
