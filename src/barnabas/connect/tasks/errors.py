"""The treatment of a record that cannot be converted or transformed: KIP-298.

In: settings of a connector, failures with the record they belong to. Out: an error that names stage, topic,
partition and offset, or a record that is skipped, logged and given to the dead letter queue. Operations that
fail with RetriableError are tried again first. Does not know: converters, transforms, topics.
"""

from __future__ import annotations

import logging
import time
import traceback
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum
from threading import Event
from typing import NamedTuple, Protocol, TypeVar

from barnabas.connect.plugins import ConnectError, RetriableError
from barnabas.connect.tasks.progress import LastError, Progress

log = logging.getLogger("barnabas.connect")

T = TypeVar("T")
FIRST_DELAY_MS = 300
MESSAGE_CHARS_MAX = 500


class Stage(StrEnum):
    TASK_POLL = "TASK_POLL"
    TASK_PUT = "TASK_PUT"
    TRANSFORMATION = "TRANSFORMATION"
    KEY_CONVERTER = "KEY_CONVERTER"
    VALUE_CONVERTER = "VALUE_CONVERTER"
    HEADER_CONVERTER = "HEADER_CONVERTER"
    KAFKA_PRODUCE = "KAFKA_PRODUCE"
    KAFKA_CONSUME = "KAFKA_CONSUME"


class RawRecord(NamedTuple):
    """A record as it stands in its topic; sources know topic, key and value only as values."""

    topic: str | None = None
    partition: int | None = None
    offset: int | None = None
    key: bytes | None = None
    value: bytes | None = None
    headers: tuple[tuple[str, bytes | None], ...] = ()
    timestamp_ms: int | None = None
    shown: str = ""  # for logs, where errors.log.include.messages allows it


class DeadLetters(Protocol):
    def report(self, record: RawRecord, stage: Stage, where: str, error: BaseException) -> None: ...


class Stopped(Exception):
    """The task was told to stop while it waited."""


@dataclass(frozen=True, slots=True)
class ErrorSettings:
    tolerates_all: bool = False
    retry_timeout_ms: int = 0  # -1: endless
    retry_delay_ms_max: int = 60_000
    logs: bool = False
    logs_messages: bool = False

    @classmethod
    def of(cls, config: Mapping[str, str]) -> ErrorSettings:
        return cls(
            config.get("errors.tolerance", "none").strip().lower() == "all",
            int(config.get("errors.retry.timeout", "0")),
            int(config.get("errors.retry.delay.max.ms", "60000")),
            config.get("errors.log.enable", "false").strip().lower() == "true",
            config.get("errors.log.include.messages", "false").strip().lower() == "true",
        )


class ErrorHandler:
    def __init__(
        self,
        settings: ErrorSettings,
        progress: Progress,
        stopping: Event,
        dead_letters: DeadLetters | None = None,
    ) -> None:
        self.settings = settings
        self.progress = progress
        self._stopping = stopping
        self._dead_letters = dead_letters

    def retrying(self, operation: Callable[[], T]) -> T:
        """Run it; after a RetriableError again and again, with growing pauses, as long as settings allow."""
        started, delay_ms = time.monotonic(), FIRST_DELAY_MS
        limit_ms = self.settings.retry_timeout_ms
        while True:
            try:
                return operation()
            except RetriableError:
                passed_ms = (time.monotonic() - started) * 1000
                if limit_ms >= 0 and passed_ms + delay_ms > limit_ms:
                    raise
            self.progress.retries += 1
            if self._stopping.wait(min(delay_ms, self.settings.retry_delay_ms_max) / 1000):
                raise Stopped
            delay_ms = min(delay_ms * 2, self.settings.retry_delay_ms_max)

    def failed(self, record: RawRecord, stage: Stage, where: str, error: BaseException) -> None:
        """Skip the record if the connector tolerates it; else raise an error that names it."""
        progress = self.progress
        text = f"{type(error).__name__}: {error}"[:MESSAGE_CHARS_MAX]
        now_ms = int(time.time() * 1000)
        progress.errors += 1
        progress.last_error = LastError(text, stage, now_ms, record.topic, record.partition, record.offset)
        place = f"{progress.connector}-{progress.task}"
        if self.settings.logs:
            progress.errors_logged += 1
            shown = f"; record {record.shown}" if self.settings.logs_messages and record.shown else ""
            log.error("task %s, %s (%s)%s", place, progress.last_error, where, shown)
        if not self.settings.tolerates_all:
            progress.failures += 1
            raise ConnectError(
                f"task {place} stops at a record that {stage} ({where}) refuses: {progress.last_error}. "
                "Set errors.tolerance=all to skip such records"
                + (" and errors.deadletterqueue.topic.name to keep them" if progress.kind == "sink" else "")
            ) from error
        if self._dead_letters is not None:
            self._dead_letters.report(record, stage, where, error)
        progress.skipped += 1


def class_name(part: object) -> str:
    """The class of a part as users know it: Java's name of one that Apache has, else Python's."""
    names: Sequence[str] = getattr(type(part), "JAVA_NAMES", ())
    return names[0] if names else type(part).__qualname__


def context_headers(
    record: RawRecord, stage: Stage, where: str, error: BaseException, connector: str, task: int
) -> tuple[tuple[str, bytes | None], ...]:
    """The headers of a dead letter (KIP-298), all text."""
    trace = "".join(traceback.format_exception(error))
    values = {
        "topic": record.topic,
        "partition": record.partition,
        "offset": record.offset,
        "connector.name": connector,
        "task.id": task,
        "stage": stage,
        "class.name": where,
        "exception.class.name": f"{type(error).__module__}.{type(error).__qualname__}",
        "exception.message": str(error),
        "exception.stacktrace": trace,
    }
    return tuple(
        (f"__connect.errors.{name}", None if value is None else str(value).encode())
        for name, value in values.items()
    )
