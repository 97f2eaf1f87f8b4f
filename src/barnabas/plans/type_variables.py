"""Type variables of topologies: keys, values, results, and what checkers assume where nothing tells a type.

A bare `KStream` or `Serde` means any keys and values (PEP 696).
"""

from __future__ import annotations

from typing import Any

from typing_extensions import TypeVar  # `typing` has it with defaults since Python 3.13

T = TypeVar("T", default=Any)
KeyIn = TypeVar("KeyIn", contravariant=True, default=Any)
ValueIn = TypeVar("ValueIn", contravariant=True, default=Any)
K = TypeVar("K", covariant=True, default=Any)
V = TypeVar("V", covariant=True, default=Any)
TableKey = TypeVar("TableKey", covariant=True, default=K)

# Of functions: another key or value, the result of a function, an aggregate, keys that are text unless a
# format tells another type.
K2 = TypeVar("K2", default=Any)
V2 = TypeVar("V2", default=Any)
R = TypeVar("R", default=Any)
A = TypeVar("A", default=Any)
TextKey = TypeVar("TextKey", default=str)
