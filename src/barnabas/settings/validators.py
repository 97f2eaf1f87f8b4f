"""Validators of setting values: parse the `valid` column of the tables on demand.

In: a setting and a typed value. Raises SettingsError with Kafka's message and the allowed values. Supports
ranges, choices, lists, throttled replicas and offset resets.
Does not know: relations between settings.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from functools import lru_cache

from barnabas.settings.errors import SettingsError, invalid_value
from barnabas.settings.tables.row import Setting
from barnabas.settings.values import Value

Check = Callable[[str, Value], None]

# Patterns are compiled at first use, to keep the import of settings short.
RANGE = r"\[(-?[\d.]+),\.\.\.(?:,(-?[\d.]+))?\](?: or (-?\d+))?"
REPLICA = r"[0-9]+:[0-9]+"
REPLICA_FORMAT = "[partitionId]:[brokerId],[partitionId]:[brokerId],..."
OFFSET_RESETS = "[latest, earliest, by_duration:PnDTnHnMn.nS]"
DURATION = r"(?i:P(?=[0-9T])(?:[0-9]+D)?(?:T(?=[0-9])(?:[0-9]+H)?(?:[0-9]+M)?(?:[0-9]+(?:\.[0-9]{0,9})?S)?)?)"


def check_value(setting: Setting, value: Value) -> None:
    """Raise SettingsError if the setting does not allow the value. None is always allowed."""
    if setting.type == "list":
        check_list(setting, value)
    if setting.valid:
        check_of(setting.valid)(setting.name, value)


def check_list(setting: Setting, value: Value) -> None:
    assert isinstance(value, tuple)
    if not value and setting.valid.startswith("one or more"):
        choices = setting.valid.removeprefix("one or more").removeprefix(" of ") or "any non-empty value"
        raise SettingsError(
            f"Configuration '{setting.name}' must not be empty. Valid values include: {choices}",
            name=setting.name,
        )
    if "" in value and not (setting.valid.startswith("non-empty") or choices_of(setting.valid)):
        raise empty_entry(setting.name)


def empty_entry(name: str) -> SettingsError:
    return SettingsError(f"Configuration '{name}' values must not be empty.", name=name)


@lru_cache(maxsize=128)
def check_of(valid: str) -> Check:
    """The check that a text of the `valid` column describes."""
    if found := re.fullmatch(RANGE, valid):
        low, high, alone = found.groups()
        return range_check(number(low), number(high), number(alone))
    if valid.startswith("(case insensitive) "):
        return any_case_check(choices_of(valid.removeprefix("(case insensitive) ")))
    if valid == REPLICA_FORMAT:
        return check_throttled_replicas
    if valid == OFFSET_RESETS:
        return check_offset_reset
    if valid == "non-empty string":
        return check_non_empty
    if choices := choices_of(valid.removeprefix("one or more of ")):
        return choice_check(choices)
    return accept


def choices_of(valid: str) -> list[str]:
    text = valid.removeprefix("one or more of ")
    if text.startswith("[") and "..." not in text and text != OFFSET_RESETS:
        return text.strip("[]").split(", ")
    return []


def number(text: str | None) -> int | float | None:
    if text is None:
        return None
    return float(text) if "." in text else int(text)


def accept(name: str, value: Value) -> None:
    """Accept any value. Quorum voters and bootstrap servers are checked when they are parsed."""


def range_check(low: int | float | None, high: int | float | None, alone: int | float | None) -> Check:
    span = f"at least {low}" if high is None else f"from {low} to {high}"

    def check(name: str, value: Value) -> None:
        if value is None:
            raise invalid_value(name, "null", "Value must be non-null", span)
        assert isinstance(value, int | float)
        if alone is not None:
            if value != alone and not (low is not None and high is not None and low <= value <= high):
                raise invalid_value(
                    name, value, f"Value must be between {low} and {high} or equal to {alone}"
                )
        elif low is not None and value < low:
            raise invalid_value(
                name, value, f"Value must be at least {low}", span if high is not None else ""
            )
        elif high is not None and value > high:
            raise invalid_value(name, value, f"Value must be no more than {high}", span)

    return check


def choice_check(choices: list[str]) -> Check:
    def check(name: str, value: Value) -> None:
        for entry in value if isinstance(value, tuple) else (value,):
            if entry == "" and isinstance(value, tuple):
                raise empty_entry(name)
            if entry not in choices:
                raise invalid_value(name, entry, f"String must be one of: {', '.join(choices)}")

    return check


def any_case_check(choices: list[str]) -> Check:
    def check(name: str, value: Value) -> None:
        if not isinstance(value, str) or value.upper() not in choices:
            known = ", ".join(choices)
            raise invalid_value(name, value, f"String must be one of (case insensitive): {known}")

    return check


def check_non_empty(name: str, value: Value) -> None:
    if value == "":
        raise invalid_value(name, value, "String must be non-empty")


def check_throttled_replicas(name: str, value: Value) -> None:
    assert isinstance(value, tuple)
    if value not in ((), ("*",)) and not all(re.fullmatch(REPLICA, entry) for entry in value):
        raise invalid_value(
            name,
            f"[{', '.join(value)}]",
            f"{name} must be the literal '*' or a list of replicas in the following format: {REPLICA_FORMAT}",
        )


def check_offset_reset(name: str, value: Value) -> None:
    if value in ("latest", "earliest"):
        return
    if not (isinstance(value, str) and re.fullmatch(f"by_duration:{DURATION}", value)):
        raise invalid_value(
            name,
            value,
            f"Invalid value `{value}` for configuration {name}. The value must be either 'earliest', "
            "'latest' or of the format 'by_duration:<PnDTnHnMn.nS>'.",
        )
