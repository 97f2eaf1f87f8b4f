"""The error codes in a response, found by its schema, for the metric ErrorsPerSec.

In: a class of responses. Out: a function that counts the codes of one response, those of its partitions and
other items included, as Kafka does. Built once for each class. Responses of many items are counted in steps,
by their schema. Does not know: metrics, requests.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from typing import Any

from barnabas.metadata.steps import Steps
from barnabas.protocol import Message
from barnabas.protocol.message import Struct

ERROR = "error_code"
Counts = dict[int, int]
Count = Callable[[Any, Counts], None]


@cache
def error_counter(response: type[Message]) -> Count:
    """A function `(response, counts)`."""
    return counter_of(response) or count_nothing


def counter_of(struct: type[Struct]) -> Count | None:
    """None: there is no error code below this struct."""
    has_own = False
    inner: list[tuple[str, bool, Count]] = []
    for field in struct.schema.fields:
        if field.name == ERROR:
            has_own = True
        elif field.struct is not None and (found := counter_of(field.struct)) is not None:
            inner.append((field.name, field.is_array, found))
    if not inner:
        return count_own if has_own else None
    return nested(has_own, inner)


def count_own(struct: Any, counts: Counts) -> None:
    code = struct.error_code
    counts[code] = counts.get(code, 0) + 1


def nested(has_own: bool, inner: list[tuple[str, bool, Count]]) -> Count:
    def count(struct: Any, counts: Counts) -> None:
        if has_own:
            code = struct.error_code
            counts[code] = counts.get(code, 0) + 1
        for name, is_array, count_inner in inner:
            value = getattr(struct, name)
            if not value:
                continue
            if not is_array:
                count_inner(value, counts)
                continue
            for each in value:
                count_inner(each, counts)

    return count


def count_in_steps(response: Message, counts: Counts) -> Steps[None]:
    """Count the codes of a response with many items."""
    if error_counter(type(response)) is count_nothing:
        count_nothing(response, counts)
    else:
        yield from count_below(response, counts)


def count_below(struct: Struct, counts: Counts) -> Steps[None]:
    for field in struct.schema.fields:
        value = getattr(struct, field.name)
        if field.name == ERROR:
            counts[value] = counts.get(value, 0) + 1
        elif field.struct is None or not value:
            continue
        elif field.is_array:
            for each in value:
                yield from count_below(each, counts)
                yield
        else:
            yield from count_below(value, counts)


def count_nothing(response: Any, counts: Counts) -> None:
    """A response without any error code succeeded."""
    counts[0] = counts.get(0, 0) + 1
