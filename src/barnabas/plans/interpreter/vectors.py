"""Vectorised functions, called here with vectors of one value.

Spark calls the same functions with whole batches. Imports pandas or Arrow when such a function is built.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any


def one_by_one(function: Any, kind: str) -> Callable[[Any, Any, int], Any]:
    if kind == "pandas":
        import pandas  # type: ignore[import-untyped]

        return lambda key, value, timestamp: only(function(pandas.Series([value])).tolist())
    import pyarrow

    return lambda key, value, timestamp: only(function(pyarrow.array([value])).to_pylist())


def only(found: list[Any]) -> Any:
    if len(found) != 1:
        raise ValueError(f"a function over batches gave {len(found)} values for one")
    return found[0]
