"""All functions that have code: importing this module registers them."""

from __future__ import annotations

from barnabas.sql.functions import collections, dates, documents, numbers, regexps, strings
from barnabas.sql.functions.aggregates import MAKERS
from barnabas.sql.functions.registry import CODES, Code, row_named

MODULES = (collections, dates, documents, numbers, regexps, strings)
AGGREGATES = frozenset(MAKERS)


def code_of(name: str) -> Code | None:
    """The code of a function; None for one without.

    SqlError for an unknown name."""
    return CODES.get(row_named(name).name)
