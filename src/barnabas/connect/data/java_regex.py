"""Regular expressions of Java in Python: patterns with their names of groups, and replacements."""

from __future__ import annotations

import re


def java_pattern(text: str) -> re.Pattern[str]:
    """A regular expression of Java as Python spells it."""
    return re.compile(re.sub(r"\(\?<([A-Za-z]\w*)>", r"(?P<\1>", text))


def java_replacement(text: str, found: re.Match[str]) -> str:
    """A replacement as Java reads it: `$1`, `${name}`, and a backslash before what is meant literally."""
    made = []
    at = 0
    while at < len(text):
        sign = text[at]
        if sign == "\\" and at + 1 < len(text):
            made.append(text[at + 1])
            at += 2
        elif sign == "$":
            named = re.match(r"\{(\w+)\}", text[at + 1 :])
            digits = re.match(r"\d+", text[at + 1 :])
            if named is not None:
                made.append(found[named[1]] or "")
                at += 1 + named.end()
            elif digits is not None:
                group = digits[0]  # as many digits as name a group
                while len(group) > 1 and int(group) > found.re.groups:
                    group = group[:-1]
                made.append(found[int(group)] or "")
                at += 1 + len(group)
            else:
                raise ValueError("Illegal group reference in the replacement: $ needs a number or {name}")
        else:
            made.append(sign)
            at += 1
    return "".join(made)
