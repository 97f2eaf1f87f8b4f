"""Requests that name several keys of a coordinator: split by shard, and the responses combined.

In: responses of shards, ready or deferred. Out: one response. Does not know: which shards exist.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import Any, NamedTuple

from barnabas.broker.api.deferred import Deferred, Response
from barnabas.protocol import Message

Combine = Callable[[list[Any]], Message]
CombinedResponse = Message | Deferred | Awaitable[Response]
"""Response of a handler that sent parts of its request to several shards."""


class Split(NamedTuple):
    """How to split a request that names several keys, and how to combine the responses."""

    part: Callable[[list[int]], Message]  # the request for the keys at these indexes
    results: Callable[[Any], list[Any]]  # the results in a response, one for each key
    whole: Combine  # the response with all results


class Results(NamedTuple):
    """Results of some keys of a request."""

    results: list[Any]


def gather(responses: list[Message | Deferred], combine: Combine) -> Message | Deferred:
    """Combine all responses, now or when the last of them is ready."""
    found: list[Message | None] = [
        response if isinstance(response, Message) else None for response in responses
    ]
    missing = sum(response is None for response in found)
    if not missing:
        return combine(found)

    def cancel() -> None:
        for response in responses:
            if isinstance(response, Deferred):
                response.cancel()

    whole = Deferred(cancel)

    def arrived(index: int, message: Message | None) -> None:
        nonlocal missing
        found[index] = message
        missing -= 1
        if not missing:
            whole.resolve(combine(found))

    for index, response in enumerate(responses):
        if isinstance(response, Deferred):
            response.then(lambda message, index=index: arrived(index, message))  # type: ignore[misc]
    return whole
