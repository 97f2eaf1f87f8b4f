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
from pathlib import Path
from types import TracebackType
from typing import NamedTuple

log = logging.getLogger("barnabas.unexpected")
KINDS_MAX = 100
OWN_CODE = f"{Path(__file__).parents[1]}/"


class ErrorKind(NamedTuple):
    """Errors that are told apart: the kind of call that failed, the exception, and where it was raised."""

    doing: str
    error: str
    place: str


OTHERS = ErrorKind("other calls", "", "")  # all kinds after the first ones


class UnexpectedErrors:
    __slots__ = ("by_kind", "count")

    def __init__(self) -> None:
        self.count = 0
        self.by_kind: dict[ErrorKind, int] = {}

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
        kind = ErrorKind(doing, type(error).__name__, place_of(error.__traceback__ if error else None))
        if kind not in self.by_kind and len(self.by_kind) >= KINDS_MAX:
            kind = OTHERS
        seen = self.by_kind[kind] = self.by_kind.get(kind, 0) + 1
        if seen == 1:
            log.exception("%s %s failed unexpectedly; other work continues", doing, what)
        elif not seen & (seen - 1):
            log.error("%s %s failed unexpectedly, for the %dth time: %r", doing, what, seen, error)


def place_of(trace: TracebackType | None) -> str:
    """The innermost line of our own code below the call that caught the error: `broker/node.py:209`. Where
    none is ours, of any."""
    if trace is not None and trace.tb_next is not None:
        trace = trace.tb_next
    own = other = ""
    while trace is not None:
        path = trace.tb_frame.f_code.co_filename
        if path.startswith(OWN_CODE):
            own = f"{path[len(OWN_CODE) :]}:{trace.tb_lineno}"
        else:
            other = f"{Path(path).name}:{trace.tb_lineno}"
        trace = trace.tb_next
    return own or other
