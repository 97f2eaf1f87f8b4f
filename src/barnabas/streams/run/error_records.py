"""Records about records that failed: dead letters with Kafka Streams' headers, lines of a processing log.

In: a failure of a task, or an expression without a value. Out: records for a topic; they are written with the
results of the batch, so each failure is told once. Does not know: handlers, which decide what becomes of the
record.
"""

from __future__ import annotations

import json
import time
import traceback
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from barnabas.plans.interpreter.records import ErrorSink, Failure, Headers, Output, Problem

PREFIX = "__streams.errors."
CAUSES_MAX = 10


@dataclass(frozen=True, slots=True)
class DeadLetters:
    """The record as it was read, to a topic (KIP-1034). Problems are none: their records go on."""

    topic: str

    def __call__(self, event: Failure | Problem) -> Iterable[Output]:
        if isinstance(event, Problem):
            return ()
        record = event.record
        return [
            Output(self.topic, record.key, record.value, record.timestamp, (*record.headers, *headers(event)))
        ]


def headers(failure: Failure) -> Headers:
    error, record = failure.error, failure.record
    texts = {
        "exception": f"{type(error).__module__}.{type(error).__qualname__}",
        "message": str(error),
        "stacktrace": "".join(traceback.format_exception(error)),
        "topic": failure.topic,
        "partition": str(record.partition),
        "offset": str(record.offset),
    }
    return tuple((PREFIX + name, text.encode()) for name, text in texts.items())


@dataclass(frozen=True, slots=True)
class ProcessingLog:
    """A line in JSON for each failure and problem: the reason and the record's coordinates, no data of it."""

    topic: str
    application_id: str

    def __call__(self, event: Failure | Problem) -> Iterable[Output]:
        now_ms = int(time.time() * 1000)
        if isinstance(event, Problem):
            message: dict[str, object] = {"stage": "expression", "node": event.logger, "error": event.message}
            message |= {"causes": [event.cause]}
            place = (event.topic, event.partition, event.offset, event.timestamp)
        else:
            error, record = event.error, event.record
            message = {"stage": event.stage, "node": event.node, "error": type(error).__name__}
            message |= {"causes": causes(error)}
            place = (event.topic, record.partition, record.offset, record.timestamp)
        line = {
            "level": "ERROR",
            "time": now_ms,
            "application": self.application_id,
            **message,
            **dict(zip(("topic", "partition", "offset", "timestamp"), place, strict=True)),
        }
        return [Output(self.topic, None, json.dumps(line).encode(), now_ms)]


def causes(error: BaseException) -> list[str]:
    found: list[str] = []
    each: BaseException | None = error
    while each is not None and len(found) < CAUSES_MAX:
        found.append(str(each) or type(each).__name__)
        each = each.__cause__
    return found


@dataclass(frozen=True, slots=True)
class Sinks:
    """Several sinks as one."""

    each: Sequence[ErrorSink]

    def __call__(self, event: Failure | Problem) -> Iterable[Output]:
        return [record for sink in self.each for record in sink(event)]
