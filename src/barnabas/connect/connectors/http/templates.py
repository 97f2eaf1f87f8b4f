"""Texts with places for parts of a record: `${topic}`, `${key}`, `${key.id}`, `${value.name}`, `${name}`.

In: a text, a record. Out: the text with the places filled in, encoded for URLs where asked. A place that the
record cannot fill is an error, not an empty text. Does not know: requests.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from typing import Any
from urllib.parse import quote

from barnabas.connect.config import Settings
from barnabas.connect.connectors.stores.json_values import text_of
from barnabas.connect.data import DataError, Record
from barnabas.connect.plugins import ConnectError

PLACE = re.compile(r"\$\{([^{}$]{1,200})\}")


class Template:
    def __init__(self, text: str, *, in_url: bool = False) -> None:
        self.text = text
        self._in_url = in_url
        self.is_fixed = PLACE.search(text) is None

    def of(self, record: Record) -> str:
        if self.is_fixed:
            return self.text

        def filled(match: re.Match[str]) -> str:
            found = text_of(part(record, match[1]))
            return quote(found, safe="") if self._in_url else found

        return PLACE.sub(filled, self.text)


def header_templates(text: str, separator: str, setting: str) -> tuple[tuple[str, Template], ...]:
    found = []
    for each in filter(None, (one.strip() for one in text.split(separator))):
        name, colon, value = each.partition(":")
        if not colon or not name.strip():
            raise ConnectError(f"{setting}: a header has no name or no value: write name:value")
        found.append((name.strip().lower(), Template(value.strip())))
    return tuple(found)


def fixed_headers(settings: Settings, name: str, separator: str) -> dict[str, str]:
    """The headers of a setting as they are, without places."""
    made = header_templates(settings.text(name), settings.text(separator) or "|", name)
    return {each: template.text for each, template in made}


def part(record: Record, path: str) -> Any:
    """A part of a record by its path; names alone are fields of the value."""
    fixed: dict[str, Callable[[], Any]] = {
        "topic": lambda: record.topic,
        "partition": lambda: record.partition,
        "offset": lambda: record.offset,
        "timestamp": lambda: record.timestamp,
        "key": lambda: record.key,
        "value": lambda: record.value,
    }
    first, _, rest = path.partition(".")
    if path in fixed:
        found = fixed[path]()
    elif first == "header":
        found = next((each.value for each in reversed(record.headers) if each.name == rest), None)
    elif first in ("key", "value"):
        found = inside(fixed[first](), rest)
    else:
        found = inside(record.value, path)
    if found is None:
        raise DataError(f"the record has nothing for ${{{path}}}")
    return found


def inside(value: Any, path: str) -> Any:
    for name in path.split("."):
        if not isinstance(value, Mapping):
            return None
        value = value.get(name)
    return value
