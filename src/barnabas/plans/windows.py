"""Windows as values: how time is cut, how long late records are waited for, and keys of windows.

In: sizes in milliseconds, or as a `timedelta`. Out: checked definitions, `Windowed` keys. Times are
milliseconds everywhere. Does not know: records, stores.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from datetime import timedelta
from typing import TYPE_CHECKING, Any, Generic, NamedTuple

from barnabas.plans.type_variables import K


class Windowed(NamedTuple, Generic[K]):
    """A key with its window. Time windows end before `end`; sliding and session windows include it."""

    key: K
    start: int
    end: int


class WindowError(ValueError):
    """A size, an advance, a gap or a grace that cannot be."""


MILLISECOND = timedelta(milliseconds=1)


def milliseconds(duration: Any) -> Any:
    """A `timedelta` in milliseconds, anything else as it is."""
    return duration // MILLISECOND if isinstance(duration, timedelta) else duration


def _in_milliseconds(windows: Any, *names: str) -> None:
    for name in names:
        object.__setattr__(windows, name, milliseconds(getattr(windows, name)))  # it is frozen


def _at_least(least: int, **values: int) -> None:
    for name, value in values.items():
        if not isinstance(value, int) or isinstance(value, bool):
            raise WindowError(f"{name} is {value!r}: milliseconds as an int, or a timedelta, are needed")
        if value < least:
            raise WindowError(f"{name} is {value} ms; it must be at least {least} ms")


@dataclass(frozen=True, slots=True)
class TimeWindows:
    """Tumbling windows (`advance_ms` equals the size) and hopping ones; aligned to the epoch."""

    size_ms: int
    advance_ms: int
    grace_ms: int = 0

    if TYPE_CHECKING:  # a duration may be a timedelta; fields are milliseconds

        def __init__(
            self, size_ms: int | timedelta, advance_ms: int | timedelta, grace_ms: int | timedelta = 0
        ) -> None: ...

    def __post_init__(self) -> None:
        _in_milliseconds(self, "size_ms", "advance_ms", "grace_ms")
        _at_least(1, size_ms=self.size_ms, advance_ms=self.advance_ms)
        _at_least(0, grace_ms=self.grace_ms)
        if self.advance_ms > self.size_ms:
            raise WindowError(
                f"advance_ms {self.advance_ms} is larger than size_ms {self.size_ms}: records would be lost"
            )

    def advance_by(self, advance_ms: int | timedelta) -> TimeWindows:
        return replace(self, advance_ms=milliseconds(advance_ms))

    @property
    def retention_ms(self) -> int:
        return self.size_ms + self.grace_ms


@dataclass(frozen=True, slots=True)
class SlidingWindows:
    """Windows that records define: both ends are included, and they are at most `difference_ms` apart."""

    difference_ms: int
    grace_ms: int = 0

    if TYPE_CHECKING:  # a duration may be a timedelta; fields are milliseconds

        def __init__(self, difference_ms: int | timedelta, grace_ms: int | timedelta = 0) -> None: ...

    def __post_init__(self) -> None:
        _in_milliseconds(self, "difference_ms", "grace_ms")
        _at_least(0, difference_ms=self.difference_ms, grace_ms=self.grace_ms)

    @property
    def retention_ms(self) -> int:
        return 2 * self.difference_ms + self.grace_ms


@dataclass(frozen=True, slots=True)
class SessionWindows:
    """Sessions of a key: they end after `gap_ms` without a record."""

    gap_ms: int
    grace_ms: int = 0

    if TYPE_CHECKING:  # a duration may be a timedelta; fields are milliseconds

        def __init__(self, gap_ms: int | timedelta, grace_ms: int | timedelta = 0) -> None: ...

    def __post_init__(self) -> None:
        _in_milliseconds(self, "gap_ms", "grace_ms")
        _at_least(1, gap_ms=self.gap_ms)
        _at_least(0, grace_ms=self.grace_ms)

    @property
    def retention_ms(self) -> int:
        return self.gap_ms + self.grace_ms


@dataclass(frozen=True, slots=True)
class UnlimitedWindows:
    """One window from `start_ms` to the end of time; records before it are in no window."""

    start_ms: int = 0

    if TYPE_CHECKING:  # a duration may be a timedelta; fields are milliseconds

        def __init__(self, start_ms: int | timedelta = 0) -> None: ...

    def __post_init__(self) -> None:
        _in_milliseconds(self, "start_ms")
        _at_least(0, start_ms=self.start_ms)

    @property
    def retention_ms(self) -> int:
        return (1 << 63) - 1


@dataclass(frozen=True, slots=True)
class JoinWindows:
    """The right record's time lies in [left - before, left + after], both ends included."""

    before_ms: int
    after_ms: int
    grace_ms: int = 0

    if TYPE_CHECKING:  # a duration may be a timedelta; fields are milliseconds

        def __init__(
            self, before_ms: int | timedelta, after_ms: int | timedelta, grace_ms: int | timedelta = 0
        ) -> None: ...

    def __post_init__(self) -> None:
        _in_milliseconds(self, "before_ms", "after_ms", "grace_ms")
        _at_least(-(1 << 62), before_ms=self.before_ms, after_ms=self.after_ms)
        _at_least(0, grace_ms=self.grace_ms)
        if self.before_ms + self.after_ms < 0:
            raise WindowError(
                f"the join window ends before it starts: before_ms {self.before_ms}, after_ms {self.after_ms}"
            )

    def before(self, before_ms: int | timedelta) -> JoinWindows:
        return replace(self, before_ms=milliseconds(before_ms))

    def after(self, after_ms: int | timedelta) -> JoinWindows:
        return replace(self, after_ms=milliseconds(after_ms))

    @property
    def size_ms(self) -> int:
        return self.before_ms + self.after_ms

    @property
    def retention_ms(self) -> int:
        return self.size_ms + self.grace_ms


Windows = TimeWindows | SlidingWindows | SessionWindows | UnlimitedWindows
