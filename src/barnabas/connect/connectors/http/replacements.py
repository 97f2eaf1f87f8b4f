"""Replacements in the bodies of requests: `regex.patterns` and `regex.replacements`.

In: settings. Out: patterns in their order, each with the text for what matches. Expressions and replacements
are Java's; places such as `${key}` in a replacement are filled from the record. Does not know: requests.
"""

from __future__ import annotations

import re

from barnabas.connect.config import ConfigDef, Settings
from barnabas.connect.connectors.http.templates import Template
from barnabas.connect.data import DataError, Record
from barnabas.connect.data.java_regex import java_pattern, java_replacement
from barnabas.connect.plugins import ConnectError

Replacements = tuple[tuple[re.Pattern[str], Template], ...]


def define_replacements(found: ConfigDef) -> ConfigDef:
    return (
        found.define("regex.patterns", "STRING", "", "LOW", "What is replaced in the body of each record.")
        .define("regex.replacements", "STRING", "", "LOW", "What stands there instead, one for each pattern.")
        .define("regex.separator", "STRING", "~", "LOW", "Between patterns, and between replacements.")
    )


def replacements_of(settings: Settings) -> Replacements:
    patterns, texts = (settings.raw.get(f"regex.{each}") or "" for each in ("patterns", "replacements"))
    if not patterns:
        return ()
    separator = settings.text("regex.separator") or "~"
    found, instead = patterns.split(separator), texts.split(separator)
    if len(found) != len(instead):
        raise ConnectError(
            f"regex.replacements: there are {len(instead)} for {len(found)} patterns, {separator!r} between"
        )
    try:
        return tuple((java_pattern(each), Template(text)) for each, text in zip(found, instead, strict=True))
    except re.error as error:
        raise ConnectError(f"regex.patterns: {error.pattern!r} is no expression: {error}") from error


def replaced(body: str, replacements: Replacements, record: Record) -> str:
    """The body after all replacements. DataError if a replacement names what is not there."""
    for pattern, template in replacements:
        text = template.of(record)
        try:
            body = pattern.sub(lambda found, text=text: java_replacement(text, found), body)  # type: ignore[misc]
        except (ValueError, IndexError) as error:
            raise DataError(f"regex.replacements: {template.text!r}: {error}") from error
    return body
