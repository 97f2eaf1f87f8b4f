"""Single values between SQL and the numbers that formats write: days, milliseconds, fitted decimals.

Does not know: formats, columns.
"""

from __future__ import annotations

import datetime as dt
import math
from decimal import Decimal as Number
from decimal import InvalidOperation

from barnabas.sql.types.sql_types import (
    EXACT,
    INT_MAX,
    INT_MIN,
    LONG_MAX,
    LONG_MIN,
    Decimal,
    of_millis,
    to_millis,
)

FIRST_DAY = dt.date(1970, 1, 1)
DAY_MS = 86_400_000
PLAIN_MIN, PLAIN_MAX = 1e-3, 1e7  # between them Java writes doubles without an exponent


def days_of(value: dt.date) -> int:
    return (value - FIRST_DAY).days


def of_days(value: int) -> dt.date:
    try:
        return FIRST_DAY + dt.timedelta(days=value)
    except OverflowError:
        raise ValueError(f"{value} days lie beyond the calendar") from None


def time_millis(value: dt.time) -> int:
    return ((value.hour * 60 + value.minute) * 60 + value.second) * 1000 + value.microsecond // 1000


def of_time_millis(value: int) -> dt.time:
    if not 0 <= value < DAY_MS:
        raise ValueError(f"a time is 0 to {DAY_MS - 1} milliseconds of a day, not {value}")
    return (dt.datetime.min + dt.timedelta(milliseconds=value)).time()


def millis_of(value: dt.datetime) -> int:
    return to_millis(value)


def of_millis_checked(value: int) -> dt.datetime:
    try:
        return of_millis(value)
    except OverflowError:
        raise ValueError(f"{value} milliseconds lie beyond the calendar") from None


def int_in_range(value: int) -> int:
    if not INT_MIN <= value <= INT_MAX:
        raise ValueError(f"{value} does not fit an INTEGER")
    return value


def long_in_range(value: int) -> int:
    if not LONG_MIN <= value <= LONG_MAX:
        raise ValueError(f"{value} does not fit a BIGINT")
    return value


def fitted_decimal(value: Number, kind: Decimal) -> Number:
    """The decimal with the type's digits after the point. ValueError where digits would be lost."""
    try:
        found = value.quantize(Number(1).scaleb(-kind.scale), context=EXACT)
    except InvalidOperation:
        raise ValueError(f"{value} is no {kind}") from None
    if found != value:
        raise ValueError(f"{value} has more than {kind.scale} digits after the point of {kind}")
    if found and found.adjusted() + 1 > kind.precision - kind.scale:
        raise ValueError(
            f"Numeric field overflow: {value} has more digits before the point than {kind} takes"
        )
    return found


def java_double(value: float) -> str:
    """A double as Java prints it: `1.0E10`, `NaN`, `Infinity`."""
    if math.isnan(value):
        return "NaN"
    if math.isinf(value):
        return "Infinity" if value > 0 else "-Infinity"
    if value == 0 or PLAIN_MIN <= abs(value) < PLAIN_MAX:
        text = format(Number(repr(value)), "f")
        return text if "." in text else f"{text}.0"
    sign, digits, exponent = Number(repr(value)).as_tuple()
    texts = "".join(map(str, digits)).rstrip("0") or "0"
    power = len(digits) - 1 + int(exponent)
    return f"{'-' if sign else ''}{texts[0]}.{texts[1:] or '0'}E{power}"
