"""Decorators for functions over whole batches of values.

In: a function of a pandas Series or an Arrow array that gives another one of the same length. Out: the same
function, marked, for `map_values`. Over columns it is called once for a batch, in the test driver and in the
interpreter with one value at a time. Does not know: how batches are made.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, cast

from barnabas.streams.dsl.signatures import BatchFunction


def pandas_function(function: Callable[[Any], Any]) -> BatchFunction:
    """`function(series)` gives a Series."""
    return _marked(function, "pandas")


def arrow_function(function: Callable[[Any], Any]) -> BatchFunction:
    """`function(array)` gives an Arrow array."""
    return _marked(function, "arrow")


def _marked(function: Callable[[Any], Any], kind: str) -> BatchFunction:
    if not callable(function):
        raise TypeError(f"{function!r} is no function")
    function.vectorised = kind  # type: ignore[attr-defined]
    return cast(BatchFunction, function)
