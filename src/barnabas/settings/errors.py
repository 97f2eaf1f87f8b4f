"""The error for a setting that cannot be used: which one, with which value, and what is allowed."""

from __future__ import annotations


class SettingsError(ValueError):
    """One line for a person to act on; `reason` is the part that Kafka would print."""

    def __init__(self, reason: str, *, name: str = "", allowed: str = "") -> None:
        super().__init__(f"{reason} (allowed: {allowed})" if allowed else reason)
        self.reason = reason
        self.name = name
        self.allowed = allowed


def invalid_value(name: str, value: object, problem: str, allowed: str = "") -> SettingsError:
    return SettingsError(
        f"Invalid value {value} for configuration {name}: {problem}", name=name, allowed=allowed
    )
