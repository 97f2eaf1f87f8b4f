"""Validators of typed values, with Kafka's messages.

A validator is called with the name and the typed value of a setting and raises ConfigError. Its `text`
describes the allowed values.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

from barnabas.connect.config.errors import ConfigError, invalid

Check = Callable[[str, Any], None]


@dataclass(frozen=True, slots=True)
class Validator:
    """A check of one value, and its description."""

    text: str
    check: Check

    def __call__(self, name: str, value: Any) -> None:
        self.check(name, value)

    def __str__(self) -> str:
        return self.text


def checked(text: str, accepts: Callable[[Any], bool], reason: str) -> Validator:
    """A validator made of a question; None is accepted. `reason` is what the user reads."""

    def check(name: str, value: Any) -> None:
        if value is not None and not accepts(value):
            raise invalid(name, value, reason)

    return Validator(text, check)


def at_least(low: int | float) -> Validator:
    """A number that is not lower than `low`. None is refused, as in Kafka."""
    return between(low, None)


def not_negative() -> Validator:
    """A number from 0 on, or none."""
    return checked("[0,...] or none", lambda value: value >= 0, "Value must be at least 0")


def between(low: int | float | None, high: int | float | None) -> Validator:
    """A number of a range, ends included. None is refused, as in Kafka."""

    def check(name: str, value: Any) -> None:
        if value is None:
            raise invalid(name, None, "Value must be non-null")
        if low is not None and value < low:
            raise invalid(name, value, f"Value must be at least {low}")
        if high is not None and value > high:
            raise invalid(name, value, f"Value must be no more than {high}")

    ends = [str(end) for end in (low, "...", high) if end is not None]
    return Validator(f"[{','.join(ends)}]", check)


def one_of(*choices: str) -> Validator:
    """One of these texts."""

    def check(name: str, value: Any) -> None:
        if value not in choices:
            raise invalid(name, value, f"String must be one of: {', '.join(choices)}")

    return Validator(f"[{', '.join(choices)}]", check)


def one_of_any_case(*choices: str) -> Validator:
    """One of these texts in upper or lower case. Choices are listed in capitals, as in Kafka."""
    capitals = [choice.upper() for choice in choices]

    def check(name: str, value: Any) -> None:
        if value is None or str(value).upper() not in capitals:
            reason = f"String must be one of (case insensitive): {', '.join(capitals)}"
            raise invalid(name, value, reason)

    return Validator(f"(case insensitive) [{', '.join(capitals)}]", check)


def list_of(*choices: str) -> Validator:
    """A list whose entries are among these texts."""

    def check(name: str, value: Any) -> None:
        for entry in value or ():
            if entry not in choices:
                raise invalid(name, entry, f"String must be one of: {', '.join(choices)}")

    return Validator(f"[{', '.join(choices)}]", check)


def non_null() -> Validator:
    def check(name: str, value: Any) -> None:
        if value is None:
            raise invalid(name, None, "entry must be non null")

    return Validator("non-null string", check)


def non_empty() -> Validator:
    return checked("non-empty string", lambda value: value != "", "String must be non-empty")


def non_empty_list() -> Validator:
    def check(name: str, value: Any) -> None:
        if not value:
            raise invalid(name, value, "Empty list")

    return Validator("non-empty list", check)


def entries(*, may_be_empty: bool = True) -> Validator:
    """A list whose entries differ and have letters, with Kafka's messages of its lists."""

    def check(name: str, value: Any) -> None:
        if value is None:
            raise ConfigError(f"Configuration '{name}' values must not be null.")
        if not value and not may_be_empty:
            reason = "must not be empty. Valid values include: any non-empty value"
            raise ConfigError(f"Configuration '{name}' {reason}")
        if len(set(value)) != len(value):
            raise ConfigError(f"Configuration '{name}' values must not be duplicated.")
        if "" in value:
            raise ConfigError(f"Configuration '{name}' values must not be empty.")

    return Validator("any non-duplicate values" + ("" if may_be_empty else ", empty list not allowed"), check)


def no_control_characters() -> Validator:
    """A text that is not empty and has no ISO control characters."""

    def check(name: str, value: Any) -> None:
        if value is None:
            return
        if value == "":
            raise invalid(name, value, "String may not be empty")
        codes = [str(code) for code in map(ord, value) if code < 0x20 or 0x7F <= code < 0xA0]
        if codes:
            reason = "String may not contain control sequences but had the following ASCII chars: "
            raise invalid(name, value, reason + ", ".join(codes))

    return Validator("non-empty string without ISO control characters", check)


def regex() -> Validator:
    """A text that is a valid regular expression."""

    def check(name: str, value: Any) -> None:
        try:
            re.compile(value or "")
        except re.error as error:
            raise invalid(name, value, f"Invalid regex: {error}") from None

    return Validator("valid regex", check)


def all_of(*validators: Validator) -> Validator:
    """Every one of these validators; the first that refuses gives the message."""

    def check(name: str, value: Any) -> None:
        for validator in validators:
            validator(name, value)

    return Validator(", ".join(validator.text for validator in validators), check)


def unique_aliases(kind: str) -> Validator:
    """A list of aliases, each once: of transforms, predicates or groups of topics."""

    def check(name: str, value: Any) -> None:
        entries: Sequence[str] = value or ()
        if len(set(entries)) != len(entries):
            raise invalid(name, value, "Duplicate alias provided.")

    return Validator(f"non-null string, unique {kind}", check)
