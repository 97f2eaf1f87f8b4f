"""Scalar functions that expressions call by name.

In: a name. Out: a Python function, whether it wants to see nulls, and its form as a column of Spark, if it
has one. Other parts register theirs (SQL has its own list). Does not know: types; callers check them.
"""

from __future__ import annotations

import difflib
import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import lru_cache
from typing import Any

# `spark(columns, types)` gives the column of Spark that computes the same for every record, or None where it
# cannot for arguments of these types. `columns` are `pyspark.sql.Column`s, `types` their `DataType`s; a
# literal argument is a column too. It is called on the driver only, when a query starts.
SparkForm = Callable[[Sequence[Any], Sequence[Any]], Any]


@dataclass(frozen=True, slots=True)
class ScalarFunction:
    """`takes_null`: it is called with nulls too; otherwise one null argument makes the result null, for
    `spark` too: its compiler sees to that."""

    compute: Callable[..., Any]
    takes_null: bool = False
    spark: SparkForm | None = None


_FUNCTIONS: dict[str, ScalarFunction] = {}


def register(
    name: str, compute: Callable[..., Any], *, takes_null: bool = False, spark: SparkForm | None = None
) -> None:
    """Make a function known by name, or replace it."""
    _FUNCTIONS[name.lower()] = ScalarFunction(compute, takes_null, spark)


def register_spark(name: str, spark: SparkForm) -> None:
    """Give a known function its form as a column of Spark."""
    _FUNCTIONS[name.lower()] = replace(function_named(name.lower()), spark=spark)


def function_named(name: str) -> ScalarFunction:
    try:
        return _FUNCTIONS[name]
    except KeyError:
        near = difflib.get_close_matches(name, _FUNCTIONS, 1)
        hint = f"; did you mean {near[0]}?" if near else ""
        raise ValueError(f"there is no function {name!r}{hint}") from None


def known_functions() -> tuple[str, ...]:
    return tuple(sorted(_FUNCTIONS))


@lru_cache(1024)
def _like_pattern(pattern: str) -> re.Pattern[str]:
    parts = [".*" if c == "%" else "." if c == "_" else re.escape(c) for c in pattern]
    return re.compile("".join(parts), re.DOTALL)


def like(text: str, pattern: str) -> bool:
    """SQL's LIKE: % for any characters, _ for one."""
    return _like_pattern(pattern).fullmatch(text) is not None


def _coalesce(*values: Any) -> Any:
    return next((value for value in values if value is not None), None)


register("like", like)
register("upper", str.upper)
register("lower", str.lower)
register("trim", str.strip)
register("length", len)
register("concat", lambda *parts: "".join(str(part) for part in parts if part is not None), takes_null=True)
register("split", lambda text, separator: text.split(separator))
register("replace", lambda text, old, new: text.replace(old, new))
register("abs", abs)
register("round", lambda number, digits=0: round(number, digits))
register("coalesce", _coalesce, takes_null=True)
register("contains", lambda holder, item: item in holder)
