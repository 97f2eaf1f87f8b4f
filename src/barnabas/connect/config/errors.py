"""The error for invalid settings of a connector: all errors, by the name of the setting."""

from __future__ import annotations

from collections.abc import Mapping, Sequence


class ConfigError(ValueError):
    """Settings are invalid. `errors` has the messages by setting; a message without a setting has the name
    `""`."""

    def __init__(self, message: str, errors: Mapping[str, Sequence[str]] | None = None) -> None:
        super().__init__(message)
        self.message = message
        self.errors: dict[str, list[str]] = {
            name: list(texts) for name, texts in (errors or {"": [message]}).items()
        }

    @classmethod
    def of(cls, errors: Mapping[str, Sequence[str]]) -> ConfigError:
        """The error of several settings; its text has one line for each message."""
        return cls("\n".join(text for texts in errors.values() for text in texts), errors)


def invalid(name: str, value: object, reason: str = "") -> ConfigError:
    """The error for one value in Kafka's words. `value` is printed as Java prints it."""
    message = f"Invalid value {java_text(value)} for configuration {name}"
    message += f": {reason}" if reason else ""
    return ConfigError(message, {name: [message]})


def java_text(value: object) -> str:
    """The text that Java's toString gives for a value of a setting."""
    if value is None:
        return "null"
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, list | tuple):
        return f"[{', '.join(java_text(entry) for entry in value)}]"
    return str(value)
