"""Keywords of the grammar, read from the grammar itself."""

from __future__ import annotations

import functools
import re
from importlib import resources

KEYWORD = re.compile(r'"([A-Z]+)"i')


@functools.cache
def grammar_text() -> str:
    return resources.files("barnabas.sql.syntax").joinpath("ksql.lark").read_text()


@functools.cache
def keywords() -> frozenset[str]:
    return frozenset(KEYWORD.findall(grammar_text()))
