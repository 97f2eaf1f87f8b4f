"""A long request, or one that waited behind a long one: decided, appended, applied and responded to in steps.

In: the host of a shard, the request. Out: the response, when the records are committed; an error response if
the host drops the shard on the way. `DecisionHost.in_steps` runs the decision.
Does not know: what the request means, when the steps run.
"""

from __future__ import annotations

import logging
from collections.abc import Iterator, Sequence
from time import perf_counter_ns
from typing import TYPE_CHECKING, Any, TypeVar

from barnabas.broker.coordinators.journal import KeyAndValue, frame_records
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
    __slots__ = ("_host", "_now_ms", "context", "request")

    def __init__(self, host: CoordinatorHost[Any], request: Message, context: RequestContext) -> None:
        self._host = host
        self._now_ms = 0  # of the decision
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
        self._host.shard.apply_all(records)

    def keeps_state_after(self, error: KafkaError) -> bool:
        """Whether the shard stays valid when the log refused the records."""
        return self._host.keeps_state_after(error, self.request)

    def refusal(self, error: KafkaError) -> Message:
        return self._host.refusal(self.request, error, self.context.version)

    # -- steps -----------------------------------------------------------------------------------------

    def respond(self, deferred: Deferred) -> Steps[None]:
        host = self._host
        try:
            response = yield from self._response()
        except KafkaError as error:
            deferred.resolve(self.refusal(error))
        except Exception:
            log.exception("%s: a request failed", host.partition)
            deferred.resolve(self.refusal(FAILED))
        else:
            host.resolve_when_committed(response, deferred)

    def _response(self) -> Steps[Message | Deferred]:
        host = self._host
        host.check_open()
        if not host.is_long(self.request):
            return self.decide_now()
        asked_ns = perf_counter_ns()
        outcome = yield from host.in_steps(self)
        host.stats.processing.observe(perf_counter_ns() - asked_ns)
        host.count_records(outcome.records, self.request)
        host.respond_to_waiting(outcome)
        host.send_calls(outcome)
        host.arm()
        if outcome.waiting_token is not None:
            return host.wait(outcome.waiting_token)
        response: Message | None = outcome.reply
        assert response is not None, f"{type(self.request).__name__} has no response"
        return response

    def decide(self) -> Steps[Any]:
        now_ms = self._now_ms = self._host.now_ms()
        return self._host.decide_in_steps(self.request, self.context, now_ms)

    def write(self, outcome: Any) -> Steps[None]:
        """Append and apply the records: all together, or in parts if all are tombstones, since each tombstone
        is valid alone. The shard decides on no other request before all of them are applied."""
        encoded: Sequence[KeyAndValue] | None = outcome.encoded
        if encoded is None:
            encoded = yield from self._encode(outcome.records)
        if not any(value for _, value in encoded):
            yield from self._write_tombstones(outcome.records, encoded)
            return
        framed: list[bytes] = []
        for some in in_parts(encoded):
            frame_records(some, 0, framed)
            yield
        self.append(framed, self._now_ms)
        for some_records in in_parts(outcome.records):
            self.apply(some_records)
            yield

    def _encode(self, records: Sequence[Any]) -> Steps[list[KeyAndValue]]:
        encoded: list[KeyAndValue] = []
        for some in in_parts(records):
            encoded += self._host.encode_all(some)
            yield
        return encoded

    def _write_tombstones(self, records: Sequence[Any], encoded: Sequence[KeyAndValue]) -> Steps[None]:
        for some, written in zip(in_parts(records), in_parts(encoded), strict=True):
            self._host.journal.append_in_parts(written, self._now_ms)
            self._host.shard.apply_all(some)
            yield


def in_parts(items: Sequence[T]) -> Iterator[Sequence[T]]:
    for start in range(0, len(items), RECORDS_A_STEP):
        yield items[start : start + RECORDS_A_STEP]
