"""Types of settings: names, parsing of texts, texts of typed values.

In: a type and the value of a property file or of a JSON body. Out: bool, int, float, str, list of str,
Password. Numbers are parsed as the JVM parses them.
Does not know: which values a setting allows.
"""

from __future__ import annotations

from enum import Enum, StrEnum
from typing import Any, Final

from barnabas.connect.config.errors import invalid
from barnabas.settings.errors import SettingsError
from barnabas.settings.values import BLANKS, LIST_BLANKS, Password, double_to_text, parse_value

__all__ = ["REQUIRED", "ConfigType", "Importance", "Password", "Width", "config_text", "parse_type"]


class ConfigType(StrEnum):
    """Kafka's types of settings."""

    BOOLEAN = "BOOLEAN"
    STRING = "STRING"
    INT = "INT"
    SHORT = "SHORT"
    LONG = "LONG"
    DOUBLE = "DOUBLE"
    LIST = "LIST"
    CLASS = "CLASS"
    PASSWORD = "PASSWORD"


class Importance(StrEnum):
    """How much a user must care about a setting."""

    HIGH = "HIGH"
    MEDIUM = "MEDIUM"
    LOW = "LOW"


class Width(StrEnum):
    """How wide a form shows the input field of a setting."""

    NONE = "NONE"
    SHORT = "SHORT"
    MEDIUM = "MEDIUM"
    LONG = "LONG"


class Missing(Enum):
    """The type of REQUIRED."""

    REQUIRED = "REQUIRED"


REQUIRED: Final = Missing.REQUIRED  # the default of a setting that must be given

INTEGERS = {ConfigType.INT: 32, ConfigType.SHORT: 16, ConfigType.LONG: 64}


def parse_type(name: str, value: object, kind: ConfigType) -> Any:
    """The typed value; raises ConfigError with Kafka's words. None stays None."""
    if value is None:
        return None
    if isinstance(value, str):
        return parse_text(name, value, kind)
    if kind is ConfigType.BOOLEAN and isinstance(value, bool):
        return value
    if kind in INTEGERS and isinstance(value, int) and not isinstance(value, bool):
        return parse_text(name, str(value), kind)
    if kind is ConfigType.DOUBLE and isinstance(value, int | float) and not isinstance(value, bool):
        return float(value)
    if kind is ConfigType.LIST and isinstance(value, list | tuple):
        return [str(entry) for entry in value]
    if kind is ConfigType.PASSWORD and isinstance(value, Password):
        return value
    raise invalid(name, value, EXPECTED.get(kind, f"Expected value to be a {kind.lower()}"))


EXPECTED = {
    ConfigType.BOOLEAN: "Expected value to be either true or false",
    ConfigType.STRING: "Expected value to be a string, but it was a different type",
    ConfigType.LIST: "Expected a comma separated list.",
    ConfigType.PASSWORD: "Expected value to be a string, but it was a different type",
    ConfigType.CLASS: "Expected a Class instance or class name.",
    ConfigType.INT: "Expected value to be a 32-bit integer, but it was a different type",
    ConfigType.SHORT: "Expected value to be a 16-bit integer (short), but it was a different type",
    ConfigType.LONG: "Expected value to be a 64-bit integer (long), but it was a different type",
    ConfigType.DOUBLE: "Expected value to be a double, but it was a different type",
}


def parse_text(name: str, text: str, kind: ConfigType) -> Any:
    trimmed = text.strip(BLANKS)
    if kind is ConfigType.LIST:
        return [entry.strip(LIST_BLANKS) for entry in trimmed.split(",")] if trimmed else []
    try:
        return parse_value(name, kind.lower(), text)
    except SettingsError as error:
        raise invalid(name, text, error.reason.rpartition(": ")[2]) from None


def config_text(value: object) -> str | None:
    """The text of a typed value as Kafka shows it; secrets are `[hidden]`."""
    if value is None:
        return None
    if isinstance(value, Password):
        return "[hidden]"
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, float):
        return double_to_text(value)
    if isinstance(value, list | tuple):
        return ",".join(str(entry) for entry in value)
    return str(value)
