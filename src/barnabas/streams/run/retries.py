"""Queries of an application that failed: told to the catalogue, started again after a while, or left.

In: the queries of a conductor, after each of its rounds. Out: a query starts again where its group stands,
after a time that doubles with each failure; the others go on. A query that a handler has stopped fails at the
same record again: it gets a few attempts, since functions may depend on more than the record. Does not know:
what queries compute.
"""

from __future__ import annotations

import sys
import time
from collections.abc import Callable
from dataclasses import dataclass, field

from barnabas.client.core.errors import ClientError
from barnabas.engine.backoff import Backoff
from barnabas.engine.catalogue.reporter import Reporter
from barnabas.engine.catalogue.statuses import QueryState
from barnabas.protocol import KafkaError
from barnabas.streams.spark.conductor import Conductor, Query

ATTEMPTS_MAX = 5  # of a query that a handler has stopped


@dataclass(slots=True)
class _Attempts:
    backoff: Backoff = field(default_factory=Backoff)
    by_handler: int = 0  # failures in a row that a handler caused; outages between them do not count
    began: float = 0.0
    retry_at: float | None = None  # None while it runs; infinity: it is left


class Retries:
    def __init__(
        self, conductor: Conductor, reporter: Reporter, clock: Callable[[], float] = time.monotonic
    ) -> None:
        self._conductor, self._reporter, self._clock = conductor, reporter, clock
        self._attempts: dict[str, _Attempts] = {}

    def look(self) -> None:
        """Note queries that failed since the last look, start those again whose time has come."""
        now = self._clock()
        for query in self._conductor.queries:
            attempts = self._attempts.get(query.name)
            if attempts is not None and attempts.retry_at is not None and now >= attempts.retry_at:
                self._start(query, attempts, now)
        self.note_failures()

    def note_failures(self) -> None:
        """Tell the catalogue of queries that failed since the last look; start none."""
        now = self._clock()
        for query in self._conductor.queries:
            attempts = self._attempts.setdefault(query.name, _Attempts(began=now))
            if attempts.retry_at is None and query.error is not None:
                self._note(query, attempts, query.error, now, is_by_handler=query.is_stopped_by_handler)

    def _note(
        self, query: Query, attempts: _Attempts, error: str, now: float, *, is_by_handler: bool
    ) -> None:
        delay_s = attempts.backoff.failed(now - attempts.began)
        if is_by_handler:
            attempts.by_handler = 1 if attempts.backoff.failures == 1 else attempts.by_handler + 1
        if attempts.by_handler >= ATTEMPTS_MAX:
            attempts.retry_at = float("inf")
            plan = f"it failed {ATTEMPTS_MAX} times in a row and starts again with the application"
        else:
            attempts.retry_at = now + delay_s
            plan = f"it starts again in {delay_s:.0f} s"
        print(f"query {query.name} failed, {plan}: {error}", file=sys.stderr, flush=True)
        self._reporter.failed(query.name, error, detail=f"{plan}: {error}")

    def _start(self, query: Query, attempts: _Attempts, now: float) -> None:
        attempts.began, attempts.retry_at = now, None
        try:
            self._conductor.restart(query)
        except (KafkaError, ClientError, OSError) as error:  # the brokers do not answer
            self._note(query, attempts, str(error) or type(error).__name__, now, is_by_handler=False)
        else:
            self._reporter.set_state(query.name, QueryState.RUNNING)
