"""Functions of regular expressions. Java's named groups and possessive quantifiers are Python's too."""

from __future__ import annotations

import functools
import re

from barnabas.sql.errors import EvaluationError
from barnabas.sql.functions.registry import function

GROUP = re.compile(r"\\(.)|\$(\d)|\$\{(\w+)\}", re.DOTALL)


@functools.lru_cache(512)
def compiled(pattern: str) -> re.Pattern[str]:
    try:
        return re.compile(re.sub(r"\(\?<([A-Za-z]\w*)>", r"(?P<\1>", pattern))
    except re.error as error:
        raise EvaluationError(f"{pattern!r} is no regular expression: {error}") from None


@function("REGEXP_EXTRACT")
def extract(pattern: str | None, text: str | None, group: int | None = 0) -> str | None:
    if pattern is None or text is None or group is None:
        return None
    form = compiled(pattern)
    found = form.search(text)
    return None if found is None or not 0 <= group <= form.groups else found[group]


@function("REGEXP_EXTRACT_ALL")
def extract_all(pattern: str | None, text: str | None, group: int | None = 0) -> list[str | None] | None:
    if pattern is None or text is None or group is None:
        return None
    form = compiled(pattern)
    if not 0 <= group <= form.groups:
        return None
    return [each[group] for each in form.finditer(text)]


@function("REGEXP_REPLACE")
def replace(text: str, pattern: str, new: str) -> str:
    def filled(match: re.Match[str]) -> str:
        def part(sign: re.Match[str]) -> str:
            if sign[1] is not None:
                return sign[1]
            try:
                return match[int(sign[2])] if sign[2] else match[sign[3]] or ""
            except (IndexError, re.error):
                raise EvaluationError(f"{pattern!r} has no group {sign[0]}") from None

        return GROUP.sub(lambda sign: part(sign) or "", new)

    return compiled(pattern).sub(filled, text)


@function("REGEXP_SPLIT_TO_ARRAY")
def split(text: str, pattern: str) -> list[str]:
    parts, start = [], 0
    for found in compiled(pattern).finditer(text):
        if found.end() == found.start() and found.start() in (0, len(text)):
            continue
        parts.append(text[start : found.start()])
        start = found.end()
    return [*parts, text[start:]]
