"""A request that names several keys of a coordinator, split by shard, and its answers put together.

In: answers of shards, there or still to come. Out: one answer. Does not know: which shards there are.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import Any, NamedTuple

from barnabas.broker.api.deferred import Deferred, Response
from barnabas.protocol import Message

Combine = Callable[[list[Any]], Message]
Asked = Message | Deferred | Awaitable[Response]
"""What a handler answers that asked several shards."""


class Split(NamedTuple):
    """How a request that names several keys comes apart, and its answers together."""

    part: Callable[[list[int]], Message]  # the request for those at these places
    results: Callable[[Any], list[Any]]  # what an answer says of each
    whole: Combine  # the answer with the results of all


class Results(NamedTuple):
    """Results of some keys of a request that names more."""

    results: list[Any]


def gather(answers: list[Message | Deferred], combine: Combine) -> Message | Deferred:
    """All answers put together, now or when the last of them is there."""
    found: list[Message | None] = [answer if isinstance(answer, Message) else None for answer in answers]
    missing = sum(answer is None for answer in found)
    if not missing:
        return combine(found)

    def cancel() -> None:
        for answer in answers:
            if isinstance(answer, Deferred):
                answer.cancel()

    whole = Deferred(cancel)

    def arrived(place: int, message: Message | None) -> None:
        nonlocal missing
        found[place] = message
        missing -= 1
        if not missing:
            whole.resolve(combine(found))

    for place, answer in enumerate(answers):
        if isinstance(answer, Deferred):
            answer.then(lambda message, place=place: arrived(place, message))  # type: ignore[misc]
    return whole
