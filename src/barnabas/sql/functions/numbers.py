"""Functions of numbers. Errors of Java's Math become NaN and infinities here too."""

from __future__ import annotations

import decimal
import math
import random
from collections.abc import Callable
from typing import Any

from barnabas.sql.errors import EvaluationError
from barnabas.sql.functions.registry import CODES, function, strict
from barnabas.sql.types.sql_types import EXACT, wrapped_long

NAN, INFINITY = math.nan, math.inf
EARTH_RADIUS = {"KM": 6371, "MI": 3959}
UNITS = {
    **dict.fromkeys(("KM", "KILOMETER", "KILOMETERS", "KILOMETRE", "KILOMETRES"), "KM"),
    **dict.fromkeys(("MI", "MILE", "MILES"), "MI"),
}
ONE = decimal.Decimal(1)


def double(code: Callable[..., float]) -> Callable[..., float]:
    """A function of doubles. What Python refuses has no number as its result."""

    def called(*arguments: Any) -> float:
        try:
            return float(code(*map(float, arguments)))
        except OverflowError:
            return INFINITY
        except ValueError:
            return NAN

    return strict(called)


def logarithm(value: float) -> float:
    if value == 0:
        return -INFINITY
    return math.log(value)


def log(base: float, value: float | None = None) -> float:
    if value is None:
        return logarithm(base)
    if base <= 0 or base == 1:
        return NAN
    return logarithm(value) / math.log(base)


def cotangent(value: float) -> float:
    tangent = math.tan(value)
    return math.copysign(INFINITY, tangent) if tangent == 0 else 1 / tangent


def power(base: float, exponent: float) -> float:
    if base == 0 and exponent < 0:
        return INFINITY
    return math.pow(base, exponent)


def overflows_to_infinity(code: Callable[[float], float], is_odd: bool) -> Callable[[float], float]:
    def called(value: float) -> float:
        try:
            return code(value)
        except OverflowError:
            return -INFINITY if is_odd and value < 0 else INFINITY

    return called


for _name, _code in {
    "ACOS": math.acos,
    "ASIN": math.asin,
    "ATAN": math.atan,
    "ATAN2": math.atan2,
    "CBRT": math.cbrt,
    "COS": math.cos,
    "COSH": math.cosh,
    "COT": cotangent,
    "DEGREES": math.degrees,
    "EXP": math.exp,
    "LN": logarithm,
    "LOG": log,
    "POWER": power,
    "RADIANS": math.radians,
    "SIN": math.sin,
    "SINH": overflows_to_infinity(math.sinh, True),
    "SQRT": math.sqrt,
    "TAN": math.tan,
    "TANH": math.tanh,
}.items():
    CODES[_name] = double(_code)  # type: ignore[arg-type]


@function("ABS")
def absolute(value: Any) -> Any:
    return abs(value)


@function("SIGN")
def sign(value: Any) -> int:
    return int(value > 0) - int(value < 0)


@function("PI")
def pi() -> float:
    return math.pi


@function("RANDOM")
def uniform() -> float:
    return random.random()


def whole(value: Any, towards: str) -> Any:
    match value:
        case decimal.Decimal():
            return value.quantize(ONE, towards, EXACT).quantize(value, context=EXACT)
        case float() if math.isfinite(value):
            return float(math.ceil(value) if towards == decimal.ROUND_CEILING else math.floor(value))
    return value


@function("CEIL")
def ceil(value: Any) -> Any:
    return whole(value, decimal.ROUND_CEILING)


@function("FLOOR")
def floor(value: Any) -> Any:
    return whole(value, decimal.ROUND_FLOOR)


def half_up(value: decimal.Decimal, places: int) -> decimal.Decimal:
    """Rounded half towards positive infinity."""
    rounding = decimal.ROUND_HALF_UP if value > 0 else decimal.ROUND_HALF_DOWN
    return value.quantize(ONE.scaleb(-places), rounding, EXACT)


def cut(value: decimal.Decimal, places: int) -> decimal.Decimal:
    return value.quantize(ONE.scaleb(-places), decimal.ROUND_DOWN, EXACT)


def to_places(
    value: Any, places: int | None, rounded: Callable[[decimal.Decimal, int], decimal.Decimal]
) -> Any:
    match value:
        case decimal.Decimal():
            found = rounded(value, places or 0)
            return found if places is None else found.quantize(value, context=EXACT)
        case float() if not math.isfinite(value):
            return value if places is not None else 0
        case float() if places is None:
            return wrapped_long(int(rounded(decimal.Decimal(value), 0)))
        case float():
            return float(rounded(decimal.Decimal(repr(value)), places or 0))
    return value


@function("ROUND")
def rounded(value: Any, places: int | None = None) -> Any:
    return to_places(value, places, half_up)


@function("TRUNC")
def truncated(value: Any, places: int | None = None) -> Any:
    return to_places(value, places, cut)


@function("GEO_DISTANCE")
def geo_distance(lat1: float, lon1: float, lat2: float, lon2: float, unit: str | None = None) -> float:
    name = (unit or "").strip().upper() or "KM"
    if name not in UNITS:
        raise EvaluationError(f"GEO_DISTANCE: the unit {unit!r} is unknown: use KM or MI")
    if not (-90 <= lat1 <= 90 and -90 <= lat2 <= 90 and -180 <= lon1 <= 180 and -180 <= lon2 <= 180):
        raise EvaluationError("GEO_DISTANCE: a latitude is within -90..90, a longitude within -180..180")
    one, two = math.radians(lat1), math.radians(lat2)
    by_lat, by_lon = math.radians(lat2 - lat1), math.radians(lon2 - lon1)
    part = math.sin(by_lat / 2) ** 2 + math.sin(by_lon / 2) ** 2 * math.cos(one) * math.cos(two)
    return EARTH_RADIUS[UNITS[name]] * 2 * math.asin(math.sqrt(part))


@function("GREATEST")
def greatest(*values: Any) -> Any:
    return max((each for each in values if each is not None), default=None)


@function("LEAST")
def least(*values: Any) -> Any:
    return min((each for each in values if each is not None), default=None)
