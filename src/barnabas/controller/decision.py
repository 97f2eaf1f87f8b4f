"""What deciding gives: records to write, and the answer once they are committed.

In: nothing. Out: `Decision`, the shape that every core in decide/apply form shares; `InSteps`, for decisions
that look at many partitions: a host may serve others between two steps, since the image that is looked at
does not change.
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
Answer = TypeVar("Answer")
Found = TypeVar("Found", bound=Message)


@dataclass(frozen=True, slots=True)
class Decision(Generic[Reply]):
    """Records take effect together or not at all; without records it is just an answer."""

    reply: Reply
    records: Sequence[Message] = ()


class InSteps(Generic[Given, Answer]):
    """A decision written as steps: called, it is taken at once; `steps` is for hosts that pause."""

    __slots__ = ("steps",)

    def __init__(self, steps: Callable[Given, Steps[Decision[Answer]]]) -> None:
        self.steps = steps

    def __call__(self, *given: Given.args, **named: Given.kwargs) -> Decision[Answer]:
        return at_once(self.steps(*given, **named))


def in_steps(decide: Any) -> Callable[..., Any]:
    """The way to take a decision that allows for pauses, where there is one."""
    return decide.steps if isinstance(decide, InSteps) else decide


def collect(found: Iterable[Found | None], records: list[Message]) -> Steps[None]:
    """Append what is found; `None` only says that somebody else may have a turn."""
    for record in found:
        if record is not None:
            records.append(record)
        yield
