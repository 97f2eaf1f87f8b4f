"""The host of a state machine: the life of its decisions, in one place.

    decide ──► append ──► apply ──► wait for the commit ──► respond
                  │                        │
                  ▼ refused                ▼ lost
            refuse the request;      refuse everything that waits;
            if the state is not      the state is dropped, and the log replayed
            valid any more: replay

A decision sees everything that was appended before it, committed or not, so many decisions wait for their
commit at once, and each waits for all records below the log's end. Decisions take effect in order: while one
is made in steps, later ones wait behind it in the work queue. What waits is bounded in both places.
Users subclass it: `awaited` for coroutines (the controller), `broker.coordinators.host` for responses that
leave at the end of a tick without a future. They say how to append, to apply and to replay.
Does not know: what the records mean, how the log commits, what a response is.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from typing import Any, Generic, NoReturn, Protocol, TypeVar

from barnabas.decisions.commit_waits import CommitWaits
from barnabas.decisions.work_queue import WorkQueue
from barnabas.protocol import ErrorCode, KafkaError
from barnabas.runtime.pieces import Pieces, Steps

WAITING_MAX = 10_000  # for the commit; further requests are refused before anything is appended
DROPPED = KafkaError(ErrorCode.NOT_LEADER_OR_FOLLOWER)  # the state that a decision was made on

T = TypeVar("T")


class Decided(Protocol):
    """A decision: records to append together, or none."""

    @property
    def records(self) -> Sequence[Any]: ...


D = TypeVar("D", bound=Decided)


class DecisionInSteps(Protocol[D]):
    """A decision that takes several turns of the loop."""

    def decide(self) -> Steps[D]:
        """Decide; changes nothing."""

    def write(self, decided: D, /) -> Steps[None]:
        """Append and apply the records. KafkaError: the log refused them."""

    def keeps_state_after(self, error: KafkaError, /) -> bool:
        """Whether the state stays valid when the log refused the records."""


class DecisionHost(Generic[D]):
    __slots__ = ("_full", "commit_waits", "error", "generation", "work_queue")

    def __init__(
        self,
        pieces: Pieces,
        commit_waits: CommitWaits[Any],
        *,
        queue_full: KafkaError,
        full: KafkaError,
        error: KafkaError | None = None,
    ) -> None:
        """`queue_full` refuses requests when too many wait for a long decision, `full` when too many wait for
        the commit."""
        self.error = error  # why requests are refused, or None
        self.generation = 0  # of the state: it counts how often the state was dropped
        self.work_queue = WorkQueue(pieces, queue_full)
        self.commit_waits = commit_waits
        self._full = full

    # -- what users define -----------------------------------------------------------------------

    def append(self, decided: D, now_ms: int) -> None:
        """Append the records of a decision together. KafkaError: the log refused them."""
        raise NotImplementedError

    def apply(self, decided: D) -> None:
        """Apply the records of a decision. Cannot fail, does not look at the clock."""
        raise NotImplementedError

    def keeps_state_after(self, error: KafkaError, request: Any) -> bool:
        """Whether the state stays valid when the log refused the records of this request."""
        return True

    def reload_after(self, error: KafkaError) -> None:
        """Drop the state, and replay the log into a new one."""
        raise NotImplementedError

    def as_refusal(self, error: KafkaError) -> KafkaError:
        """Translate the error of a failed append for the client."""
        return error

    def refuse_waiting(self, decided: D, error: KafkaError) -> None:
        """Send the error to other requests that the decision has responses for."""

    # -- before a decision -----------------------------------------------------------------------

    def check_open(self) -> None:
        """Raise KafkaError if this host refuses everything."""
        if self.error is not None:
            raise self.error.copy()

    def check_room(self) -> None:
        """Raise KafkaError if too many requests wait for the commit: clients that time out and retry would
        add to them."""
        if len(self.commit_waits) >= WAITING_MAX:
            raise self._full.copy()

    def refuse_all(self, error: KafkaError) -> None:
        """Refuse requests from now on, and those in the work queue. Not for callers in the queue."""
        self.error = error
        self.work_queue.finish()  # each finds the error

    # -- decisions -------------------------------------------------------------------------------

    def append_and_apply(self, decided: D, now_ms: int, request: Any = None) -> None:
        """Append and apply the records of a decision. On KafkaError nothing was applied."""
        try:
            self.append(decided, now_ms)
        except KafkaError as error:
            self._refuse_decision(decided, error, partial(self.keeps_state_after, error, request))
        self.apply(decided)

    def in_steps(self, decision: DecisionInSteps[D]) -> Steps[D]:
        """Make a decision in steps, append and apply it. Its caller puts the steps into the work queue,
        unless the decision only reads."""
        generation = self.generation
        self.check_open()
        decided = yield from self._while_valid(generation, decision.decide())
        if decided.records:
            try:
                yield from self._while_valid(generation, decision.write(decided))
            except KafkaError as error:
                self._refuse_decision(decided, error, partial(decision.keeps_state_after, error))
        return decided

    def _while_valid(self, generation: int, steps: Steps[T]) -> Steps[T]:
        """Run the steps as long as the host is open and has the same state."""
        while True:
            try:
                next(steps)
            except StopIteration as done:
                result: T = done.value
                return result
            yield
            self.check_open()
            if self.generation != generation:
                raise self.as_refusal(DROPPED.copy())

    def _refuse_decision(self, decided: D, error: KafkaError, keeps_state: Callable[[], bool]) -> NoReturn:
        """Raise the error for the client of a decision whose records the log refused."""
        if self.error is None and not keeps_state():
            self.reload_after(error)
        refused = self.as_refusal(error)
        self.refuse_waiting(decided, refused)
        if refused is error:
            raise error
        raise refused from error
