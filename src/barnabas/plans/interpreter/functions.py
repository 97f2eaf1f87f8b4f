"""Functions of a plan as the interpreter calls them, whether they are Python callables or expressions.

In: a function of a node. Out: a callable with the arguments that the operator has.
Does not know: the operators.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from barnabas.plans.evaluation import compile_expression
from barnabas.plans.expressions import Expression


def key_value_function(task: Any, function: Any) -> Callable[[Any, Any, int], Any]:
    """A function of key and value."""
    if isinstance(function, Expression):
        evaluate = compile_expression(function)
        return lambda key, value, timestamp: evaluate((key, value, timestamp, None, task))
    return lambda key, value, timestamp: function(key, value)


def value_function(task: Any, function: Any, takes_key: bool) -> Callable[[Any, Any, int], Any]:
    """A function of the value, or of key and value if it takes the key."""
    if isinstance(function, Expression) or takes_key:
        return key_value_function(task, function)
    return lambda key, value, timestamp: function(value)


def pair_function(task: Any, function: Any) -> Callable[[Any, Any, int], tuple[Any, Any]]:
    """A function of key and value that gives a new key and a new value."""
    if isinstance(function, tuple):
        key_of, value_of = (key_value_function(task, each) for each in function)
        return lambda key, value, timestamp: (key_of(key, value, timestamp), value_of(key, value, timestamp))
    return lambda key, value, timestamp: function(key, value)


def joiner_function(task: Any, function: Any, takes_key: bool) -> Callable[[Any, Any, Any, int], Any]:
    """A function of key, left value, right value and timestamp."""
    if isinstance(function, Expression):
        evaluate = compile_expression(function)
        return lambda key, left, right, timestamp: evaluate((key, left, timestamp, right, task))
    if takes_key:
        return lambda key, left, right, timestamp: function(key, left, right)
    return lambda key, left, right, timestamp: function(left, right)
