"""Regular expressions of schemas: whether one is valid, and whether it matches the name of a property.

Python's `re` only compiles them. Matching is left to automata, which take time linear in the name, because
schemas come from strangers: an expression such as `(a+)+$` can keep a backtracking matcher busy for ever.
In: an expression, a name. Out: InvalidSchema; yes, no, or None if an automaton cannot tell.
Does not know: schemas.
"""

from __future__ import annotations

import re

from barnabas.expressions.chars import RegexError
from barnabas.expressions.matching import matcher
from barnabas.expressions.syntax import parse
from barnabas.schemas.model import InvalidSchema

PATTERN_MAX = 16_384  # characters
GROUPS_MAX = 200  # parentheses; the compiler of `re` calls itself for each level

# Parts of ECMA 262 that Python writes in another way, and what stands for them when only validity matters.
UNICODE_CLASS = re.compile(r"\\[pP]\{[\w=^]{1,60}\}|\\u\{[0-9a-fA-F]{1,6}\}")
NAMED_GROUP = re.compile(r"\(\?<(?![=!])")


def check(pattern: str, path: str) -> None:
    """InvalidSchema unless the expression is valid, as RE2 or as the dialect with look-around."""
    if len(pattern) > PATTERN_MAX:
        raise InvalidSchema(f"{path}: the expression has more than {PATTERN_MAX} characters")
    try:
        parse(pattern)
        return
    except RegexError as error:
        reason = str(error)
    if pattern.count("(") > GROUPS_MAX:
        raise InvalidSchema(f"{path}: the expression has more than {GROUPS_MAX} groups")
    try:
        re.compile(NAMED_GROUP.sub("(?P<", UNICODE_CLASS.sub(r"\\w", pattern)))
    except (re.error, RecursionError, OverflowError):
        raise InvalidSchema(f"{path}: {pattern[:100]!r} is no regular expression: {reason}") from None


def found_in(pattern: str, name: str) -> bool | None:
    """Whether an expression matches somewhere in a name; None if no automaton can tell.

    Automata know neither look-around nor back-references, and do not distinguish characters beyond ASCII.
    """
    if not name.isascii():
        return None
    try:
        return matcher(f".*(?:{pattern}).*").matches(name)
    except RegexError:
        return None
