"""A long request, or one that waited behind a long one: decided, appended, applied and responded to in steps.

In: the host of a shard, the request. Out: the response, when the records are committed; an error response if
the host drops the shard on the way.
Does not know: what the request means, when the steps run.
"""

from __future__ import annotations

import logging
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Any, TypeVar

from barnabas.broker.coordinators.journal import KeyAndValue, as_coordinator_error, frame_records
from barnabas.protocol import ErrorCode, KafkaError, Message

if TYPE_CHECKING:
    from barnabas.broker.api.context import RequestContext
    from barnabas.broker.api.deferred import Deferred
    from barnabas.broker.coordinators.host import CoordinatorHost
    from barnabas.metadata.steps import Steps

log = logging.getLogger("barnabas.coordinator")
RECORDS_A_STEP = 100
FAILED = KafkaError(ErrorCode.UNKNOWN_SERVER_ERROR, "The request failed.")
T = TypeVar("T")


class LongRequest:
    __slots__ = ("_host", "_shard", "context", "request")

    def __init__(self, host: CoordinatorHost[Any], request: Message, context: RequestContext) -> None:
        self._host = host
        self._shard: Any = None
        self.request = request
        self.context = context

    # -- what subclasses override --------------------------------------------------------

    def decide_now(self) -> Message | Deferred:
        """Decide on a request that is not long itself."""
        return self._host.decide_now(self.request, self.context)

    def append(self, framed: list[bytes], now_ms: int) -> None:
        """Append the records as one batch."""
        self._host.journal.append_framed(framed, now_ms)

    def apply(self, records: Sequence[Any]) -> None:
        self._shard.apply_all(records)

    def keeps_state_after(self, error: KafkaError) -> bool:
        """Whether the shard stays valid when the log refused the records."""
        return self._host.keeps_state_after(error, self.request)

    def refusal(self, error: KafkaError) -> Message:
        return self._host.refusal(self.request, error, self.context.version)

    # -- steps -----------------------------------------------------------------------------------------

    def respond(self, deferred: Deferred) -> Steps[None]:
        host = self._host
        try:
            response = yield from self._decide()
        except KafkaError as error:
            deferred.resolve(self.refusal(error))
        except Exception:
            log.exception("%s: a request failed", host.partition)
            deferred.resolve(self.refusal(FAILED))
        else:
            host.resolve_when_committed(response, deferred)

    def _decide(self) -> Steps[Message | Deferred]:
        host, request = self._host, self.request
        self._shard = host.shard
        self._check()
        if not host.is_long(request):
            return self.decide_now()
        now_ms = host.now_ms()
        outcome = yield from self._while_same_shard(host.decide_in_steps(request, self.context, now_ms))
        if outcome.records:
            yield from self._write(outcome, now_ms)
        host.respond_to_waiting(outcome)
        host.send_calls(outcome)
        host.arm()
        if outcome.waiting_token is not None:
            return host.wait(outcome.waiting_token)
        assert outcome.reply is not None, f"{type(request).__name__} has no response"
        return outcome.reply

    def _check(self) -> None:
        """Raise KafkaError if the host dropped the shard since the last step."""
        host = self._host
        if host.error is not None:
            raise host.error.copy()
        if host.shard is not self._shard:
            raise as_coordinator_error(KafkaError(ErrorCode.NOT_LEADER_OR_FOLLOWER))

    def _while_same_shard(self, steps: Steps[T]) -> Steps[T]:
        """Run the steps as long as the host has the same shard."""
        while True:
            try:
                next(steps)
            except StopIteration as done:
                result: T = done.value
                return result
            yield
            self._check()

    def _write(self, outcome: Any, now_ms: int) -> Steps[None]:
        """Append and apply the records: all together, or in parts if all are tombstones, since each tombstone
        is valid alone. The shard decides on no other request before all of them are applied."""
        host = self._host
        encoded: Sequence[KeyAndValue] | None = outcome.encoded
        try:
            if encoded is None:
                encoded = yield from self._while_same_shard(self._encode(outcome.records))
            if not any(value for _, value in encoded):
                yield from self._while_same_shard(self._write_tombstones(outcome.records, encoded, now_ms))
                return
            framed: list[bytes] = []
            for some in in_parts(encoded):
                frame_records(some, 0, framed)
                yield
                self._check()
            self.append(framed, now_ms)
        except KafkaError as error:
            if host.error is None and not self.keeps_state_after(error):
                host.reload_after(error)
            refused = as_coordinator_error(error)
            host.refuse_waiting(outcome, refused)
            raise refused from error
        for some_records in in_parts(outcome.records):
            self.apply(some_records)
            yield
            self._check()

    def _encode(self, records: Sequence[Any]) -> Steps[list[KeyAndValue]]:
        encoded: list[KeyAndValue] = []
        for some in in_parts(records):
            encoded += self._host.encode_all(some)
            yield
        return encoded

    def _write_tombstones(
        self, records: Sequence[Any], encoded: Sequence[KeyAndValue], now_ms: int
    ) -> Steps[None]:
        for some, written in zip(in_parts(records), in_parts(encoded), strict=True):
            self._host.journal.append_in_parts(written, now_ms)
            self._shard.apply_all(some)
            yield


def in_parts(items: Sequence[T]) -> Iterator[Sequence[T]]:
    for start in range(0, len(items), RECORDS_A_STEP):
        yield items[start : start + RECORDS_A_STEP]
