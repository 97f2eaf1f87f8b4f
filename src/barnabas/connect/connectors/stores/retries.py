"""A count of retries: the same records are tried again with a growing pause, up to a bound.

The runtime gives a sink the same records again after a RetriableError; this says when, and when to stop.
Pauses are drawn from their upper half, so that tasks do not come back to a store all at once. Does not know:
stores.
"""

from __future__ import annotations

import random

from barnabas.connect.config import ConfigDef, Settings, one_of_any_case
from barnabas.connect.plugins import ConnectError, RetriableError, SinkContext

PAUSE_MS_MAX = 60_000
CONSTANT = "CONSTANT_VALUE"


class Pauses:
    """Milliseconds before each try: they double up to `ms_max`, or all are as long as the first."""

    def __init__(self, first_ms: int, ms_max: int = PAUSE_MS_MAX, *, is_constant: bool = False) -> None:
        self._first_ms = max(1, first_ms)  # 0 would be a loop without a pause
        self._ms_max = max(1, ms_max)
        self._is_constant = is_constant

    def after(self, failures: int) -> int:
        if self._is_constant:
            return self._first_ms
        longest = min(self._first_ms << min(failures - 1, 16), self._ms_max)
        return random.randint(-(-longest // 2), longest)


class Retries:
    """Retries of one sink task. `retries_max` of -1: without end."""

    def __init__(self, context: SinkContext, retries_max: int, pauses: Pauses) -> None:
        self._context = context
        self._retries_max = retries_max
        self._pauses = pauses
        self._failures = 0
        self.pause_ms = 0  # before the next try

    def succeeded(self) -> None:
        self._failures = 0

    def failed(self, what: str, error: BaseException | None = None) -> ConnectError:
        """The error to raise: a RetriableError until the retries are used up."""
        self._failures += 1
        if 0 <= self._retries_max < self._failures:
            return ConnectError(f"{what}; gave up after {self._retries_max} retries")
        self.pause_ms = self._pauses.after(self._failures)
        self._context.retry_after_ms(self.pause_ms)
        return RetriableError(what)


def define_policy(found: ConfigDef) -> ConfigDef:
    return found.define(
        "retry.backoff.policy", "STRING", "EXPONENTIAL_WITH_JITTER", "MEDIUM",
        "How pauses grow: they double, or all are retry.backoff.ms long.",
        validator=one_of_any_case("EXPONENTIAL_WITH_JITTER", CONSTANT),
    )  # fmt: skip


def pauses_of(settings: Settings) -> Pauses:
    is_constant = settings.text("retry.backoff.policy").upper() == CONSTANT
    return Pauses(settings.integer("retry.backoff.ms"), is_constant=is_constant)
