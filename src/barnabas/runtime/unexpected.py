"""Exceptions that a callback raised although it must not: counted, logged, and kept from stopping others.

In: an exception that is being handled, and words for what failed. Out: a log line with the traceback for the
first of its kind; of the following ones only the second, fourth, eighth, ... so that a callback that always
fails cannot fill a disk. A simulated world hears the traceback and fails its history.
Does not know: what failed, how its caller goes on.
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
        """Call each with the arguments, also when one before has raised."""
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
            log.exception("%s %s failed unexpectedly; everything else goes on", doing, what)
        elif not seen & (seen - 1):
            log.error("%s %s failed unexpectedly, for the %dth time: %r", doing, what, seen, error)
