"""Unexpected exceptions of callbacks: counted and logged, without affecting other callbacks.

In: the exception that is being handled, and a description of the failed call. Out: a log line with the
traceback for the first of its kind, then only for the second, fourth, eighth and so on, so that a callback
that always fails cannot fill the disk. A simulation treats such a log line as a failure.
Does not know: what failed, how the caller continues.
"""

from __future__ import annotations

import logging
import sys
from collections.abc import Callable, Iterable

log = logging.getLogger("barnabas.unexpected")
KINDS_MAX = 1_000


class UnexpectedErrors:
    __slots__ = ("_by_kind", "count")

    def __init__(self) -> None:
        self.count = 0
        self._by_kind: dict[tuple[str, str, int], int] = {}

    def call_all(
        self, calls: Iterable[Callable[..., None]], doing: str, what: object = "", *arguments: object
    ) -> None:
        """Call each of them with the arguments, even if an earlier one raised."""
        for call in calls:
            try:
                call(*arguments)
            except Exception:
                self.note(doing, what)

    def note(self, doing: str, what: object = "") -> None:
        """Call this in an `except` block; `doing` names the kind of call, `what` the object it was for."""
        self.count += 1
        error = sys.exception()
        trace = error.__traceback__ if error is not None else None
        while trace is not None and trace.tb_next is not None:
            trace = trace.tb_next
        kind = doing, type(error).__name__, trace.tb_lineno if trace is not None else 0
        seen = self._by_kind.get(kind, 0) + 1
        if seen > 1 or len(self._by_kind) < KINDS_MAX:
            self._by_kind[kind] = seen
        if seen == 1:
            log.exception("%s %s failed unexpectedly; other work continues", doing, what)
        elif not seen & (seen - 1):
            log.error("%s %s failed unexpectedly, for the %dth time: %r", doing, what, seen, error)
