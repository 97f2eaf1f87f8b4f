"""response.http.headers.config: headers that every response of the API gets.

In: the setting, rules `[set|add|setDate|addDate] name: value` with commas between them, in quotes where a
value has a comma. Out: headers. ConfigError names a rule that cannot be read.
"""

from __future__ import annotations

import csv
import time
from collections.abc import Callable
from email.utils import formatdate

from barnabas.connect.config import ConfigError

NAME = "response.http.headers.config"
ACTIONS = ("set", "add", "setDate", "addDate")


def response_headers(text: str) -> Callable[[], dict[str, str]]:
    """A function that gives the headers of a response now: dates count from its time."""
    rules: list[tuple[str, str, str]] = []
    for rule in next(csv.reader([text], skipinitialspace=True), []) if text.strip() else []:
        action, _, rest = rule.strip().partition(" ")
        name, colon, value = rest.partition(":")
        if action not in ACTIONS or not colon or not name.strip() or " " in name.strip():
            raise ConfigError(
                f"Invalid value {text} for configuration {NAME}: {rule!r} must be like "
                "'set X-Frame-Options: DENY', with one of the actions set, add, setDate, addDate"
            )
        if action.endswith("Date") and not value.strip().lstrip("-").isdigit():
            raise ConfigError(f"Invalid value {text} for configuration {NAME}: {value!r} are no milliseconds")
        rules.append((action, name.strip().lower(), value.strip()))

    def now() -> dict[str, str]:
        found: dict[str, str] = {}
        for action, name, value in rules:
            made = (
                formatdate(time.time() + int(value) / 1000, usegmt=True) if action.endswith("Date") else value
            )
            found[name] = f"{found[name]}, {made}" if action.startswith("add") and name in found else made
        return found

    return now
