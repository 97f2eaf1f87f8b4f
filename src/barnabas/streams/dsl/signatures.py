"""Types of what operators take: formats, functions of the user, expressions in their place.

Type checkers follow keys and values through a topology by them; at run time they have no effect.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Literal, Protocol, TypeAlias

from barnabas.plans.expressions import Expression
from barnabas.plans.interpreter.records import Message
from barnabas.plans.type_variables import K, KeyIn, R, T, V, ValueIn


class BatchFunction(Protocol):
    """A function over whole batches of values: `pandas_function` and `arrow_function` make one."""

    vectorised: Literal["pandas", "arrow"]

    def __call__(self, values: Any, /) -> Any: ...


class Processor(Protocol[KeyIn, ValueIn]):
    """A processor of the user. It may have `close()` too."""

    def init(self, context: Any, /) -> Any: ...

    def process(self, record: Message[KeyIn, ValueIn], /) -> Any: ...


OfValue: TypeAlias = Callable[[V], R] | Expression
OfBoth: TypeAlias = Callable[[K, V], R] | Expression
WithKey: TypeAlias = Callable[[T, K, V], R] | Expression
