"""Values of settings: parsed from text by type, and formatted as in DescribeConfigs.

In: a type's name and a text of a file or a request. Out: bool, int, float, str, tuple of str, Password.
Parses as the JVM does (signs, digits of any script, hexadecimal doubles), since files written for Kafka rely
on it.
Does not know: which values a setting allows.
"""

from __future__ import annotations

import re

from barnabas.settings.errors import invalid_value

# Java trims all characters up to the blank, including control characters.
BLANKS = "".join(map(chr, range(0x21)))
INTEGER_BITS = {"short": 16, "int": 32, "long": 64}
# Patterns are compiled at first use, to keep the import of settings short.
DECIMAL = r"[+-]?([0-9]+\.?[0-9]*|\.[0-9]+)([eE][+-]?[0-9]+)?[fFdD]?"
HEXADECIMAL = r"[+-]?0[xX]([0-9a-fA-F]+\.?[0-9a-fA-F]*|\.[0-9a-fA-F]+)[pP][+-]?[0-9]+[fFdD]?"
NOT_A_NUMBER = {"NaN": "nan", "+NaN": "nan", "-NaN": "nan"}
INFINITIES = {"Infinity": "inf", "+Infinity": "inf", "-Infinity": "-inf"}
LIST_BLANKS = " \t\n\x0b\f\r"


class Password:
    """A secret text. Compared by value; `repr` hides it."""

    __slots__ = ("value",)

    def __init__(self, value: str) -> None:
        self.value = value

    def __repr__(self) -> str:
        return "[hidden]"

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Password) and other.value == self.value

    def __hash__(self) -> int:
        return hash(self.value)


Value = bool | int | float | str | tuple[str, ...] | Password | None


def parse_value(name: str, kind: str, text: str) -> Value:
    """The typed value of `text`, or SettingsError with Kafka's words for it."""
    trimmed = text.strip(BLANKS)
    if kind in ("string", "class"):
        return trimmed
    if kind == "password":
        return Password(trimmed)
    if kind == "list":
        return parse_list(trimmed)
    if kind == "boolean":
        lowered = trimmed.lower()
        if lowered in ("true", "false"):
            return lowered == "true"
        raise invalid_value(name, text, "Expected value to be either true or false")
    if kind == "double":
        return parse_double(name, text, trimmed)
    return parse_integer(name, kind, text, trimmed)


def parse_integer(name: str, kind: str, text: str, trimmed: str) -> int:
    limit = 1 << (INTEGER_BITS[kind] - 1)
    digits = trimmed[1:] if trimmed[:1] in ("+", "-") else trimmed
    # A bounded length first: int() of a huge digit string takes quadratic time.
    if digits.isdecimal() and len(digits) <= 64 and -limit <= (number := int(trimmed)) < limit:
        return number
    raise invalid_value(
        name, text, f"Not a number of type {kind.upper()}", f"a whole number from {-limit} to {limit - 1}"
    )


def parse_double(name: str, text: str, trimmed: str) -> float:
    special = NOT_A_NUMBER.get(trimmed) or INFINITIES.get(trimmed)
    if special:
        return float(special)
    if re.fullmatch(DECIMAL, trimmed):
        return float(trimmed.rstrip("fFdD"))
    if re.fullmatch(HEXADECIMAL, trimmed):
        mantissa, exponent = re.split("[pP]", trimmed)
        try:
            return float.fromhex(f"{mantissa}p{exponent.rstrip('fFdD')}")
        except OverflowError:
            return float("-inf" if trimmed.startswith("-") else "inf")
    raise invalid_value(name, text, "Not a number of type DOUBLE", "a number such as 0.5")


def parse_list(trimmed: str) -> tuple[str, ...]:
    """Entries in order, each once: Kafka drops repetitions."""
    if not trimmed:
        return ()
    return tuple(dict.fromkeys(entry.strip(LIST_BLANKS) for entry in trimmed.split(",")))


def to_text(value: Value) -> str | None:
    """The text of a value as Java prints it; None for None and for a secret."""
    if value is None or isinstance(value, Password):
        return None
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, tuple):
        return ",".join(value)
    if isinstance(value, float):
        return double_to_text(value)
    return str(value)


def double_to_text(value: float) -> str:
    """Format like Double.toString: decimal from 1e-3 to below 1e7, otherwise d.dddE."""
    if value != value:
        return "NaN"
    if value in (float("inf"), float("-inf")):
        return "Infinity" if value > 0 else "-Infinity"
    size = abs(value)
    if size == 0 or 1e-3 <= size < 1e7:
        text = repr(value)
        return text if "e" not in text else f"{value:f}".rstrip("0") or "0.0"
    digits, exponent = f"{value!r}e0".split("e")[:2] if "e" in repr(value) else spread(value)
    if "." not in digits:
        digits += ".0"
    return f"{digits}E{int(exponent)}"


def spread(value: float) -> tuple[str, str]:
    """The shortest digits of a number that repr writes without exponent, as d.ddd and a power of ten."""
    sign = "-" if value < 0 else ""
    whole, fraction = repr(abs(value)).split(".")
    fraction = "" if fraction == "0" else fraction
    digits = (whole + fraction).lstrip("0")
    exponent = len(whole) - 1 if whole != "0" else -(len(fraction) - len(digits) + 1)
    digits = digits.rstrip("0") or "0"
    return f"{sign}{digits[0]}.{digits[1:] or '0'}", str(exponent)
