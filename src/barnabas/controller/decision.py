"""The result of a decision: records to write, and the reply once they are committed.

In: nothing. Out: `Decision`; `InSteps`, for decisions that check many partitions: a host may do other work
between two steps, since the image does not change.
Does not know: what the records mean.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import Any, Generic, ParamSpec, TypeVar

from barnabas.metadata.steps import Steps, at_once
from barnabas.protocol import Message

Reply = TypeVar("Reply", covariant=True)
Given = ParamSpec("Given")
ReplyOut = TypeVar("ReplyOut")
Found = TypeVar("Found", bound=Message)


@dataclass(frozen=True, slots=True)
class Decision(Generic[Reply]):
    """Its records take effect together or not at all. Without records it is just a reply."""

    reply: Reply
    records: Sequence[Message] = ()


class InSteps(Generic[Given, ReplyOut]):
    """A decision written in steps. A call makes it at once; `steps` is for hosts that pause."""

    __slots__ = ("steps",)

    def __init__(self, steps: Callable[Given, Steps[Decision[ReplyOut]]]) -> None:
        self.steps = steps

    def __call__(self, *given: Given.args, **named: Given.kwargs) -> Decision[ReplyOut]:
        return at_once(self.steps(*given, **named))


def in_steps(decide: Any) -> Callable[..., Any]:
    """The function that makes a decision in steps, if there is one."""
    return decide.steps if isinstance(decide, InSteps) else decide


def collect(found: Iterable[Found | None], records: list[Message]) -> Steps[None]:
    """Append the records found. `None` only marks a point where other work may run."""
    for record in found:
        if record is not None:
            records.append(record)
        yield
