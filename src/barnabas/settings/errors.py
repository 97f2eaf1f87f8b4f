"""The error for an invalid setting: its name, its value, and the allowed values."""

from __future__ import annotations


class SettingsError(ValueError):
    """A setting is invalid. The message has one line; `reason` is Kafka's part of it."""

    def __init__(self, reason: str, *, name: str = "", allowed: str = "") -> None:
        super().__init__(f"{reason} (allowed: {allowed})" if allowed else reason)
        self.reason = reason
        self.name = name
        self.allowed = allowed


def invalid_value(name: str, value: object, problem: str, allowed: str = "") -> SettingsError:
    return SettingsError(
        f"Invalid value {value} for configuration {name}: {problem}", name=name, allowed=allowed
    )
