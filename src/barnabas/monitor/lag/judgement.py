"""Burrow's judgement of a group: by its commits over time, not by a threshold of its lag.

In: the window of commits to a partition, the recent ends of the partition, the present lag, the time.
Out: a `Status`. The rules are asked in order, and the first that matches decides:

1. the present lag is allowed                                                                        OK
2. no commit for longer than the window lasted, and records were there to read all the time          STOP
3. the group went back, and did not reach the offset before that again                               REWIND
4. some commit of the window had an allowed lag                                                      OK
5. all committed offsets are the same                                                                STALL
6. the lag never became smaller                                                                      WARN
7. otherwise                                                                                         OK

Does not know: where the numbers come from.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from enum import IntEnum

from barnabas.monitor.lag.commit_window import NO_LAG, WIDTH, Window


class Status(IntEnum):
    """The names and numbers that Burrow's API and metrics use."""

    NOTFOUND = 0
    OK = 1
    WARN = 2
    ERR = 3
    STOP = 4
    STALL = 5
    REWIND = 6


def judge(
    window: Window[int],
    ends: Sequence[int],
    lag: int,
    now_ms: int,
    allowed_lag: int = 0,
    silence_ms_min: int = 0,
) -> Status:
    """The status of a partition with at least one commit. `ends` are the ends seen of late, the newest last;
    `lag` is the present one. A silence shorter than `silence_ms_min` is no stop."""
    if lag <= allowed_lag:
        return Status.OK
    offsets = window[0::WIDTH]
    first_ms, last_ms = window[1], window[-4]
    if has_stopped(first_ms, last_ms, now_ms, silence_ms_min) and not was_at_the_end(offsets[-1], ends):
        return Status.STOP
    if has_rewound(offsets):
        return Status.REWIND
    lags = window[3::WIDTH]
    if had_allowed_lag(lags, allowed_lag):
        return Status.OK
    if has_stalled(offsets):
        return Status.STALL
    return Status.WARN if never_decreased(lags) else Status.OK


def judge_by_silence(
    window: Window[int], ends: Sequence[int], lag: int, now_ms: int, allowed_lag: int, silence_ms_max: int
) -> Status:
    """The status of a partition with too few commits to know how often the group commits."""
    last_ms = window[-4]
    is_silent = lag > allowed_lag and now_ms - last_ms > silence_ms_max
    return Status.STOP if is_silent and not was_at_the_end(window[-5], ends) else Status.OK


def has_stopped(first_ms: int, last_ms: int, now_ms: int, silence_ms_min: int = 0) -> bool:
    """Whether the group is silent for longer than its window of commits lasted."""
    return now_ms - last_ms > max(last_ms - first_ms, silence_ms_min)


def was_at_the_end(committed: int, ends: Iterable[int]) -> bool:
    """Whether there was nothing to read at one of the recent looks: then silence is no stop yet."""
    return any(end <= committed for end in ends)


def has_rewound(offsets: Sequence[int]) -> bool:
    """Whether the first step back of the window is not made up for."""
    for index in range(1, len(offsets)):
        if offsets[index] < offsets[index - 1]:
            return max(offsets[index:]) < offsets[index - 1]
    return False


def had_allowed_lag(lags: Iterable[int], allowed_lag: int) -> bool:
    return any(NO_LAG < lag <= allowed_lag for lag in lags)


def has_stalled(offsets: Sequence[int]) -> bool:
    return min(offsets) == max(offsets)


def never_decreased(lags: Iterable[int]) -> bool:
    previous = NO_LAG
    for lag in lags:
        if lag == NO_LAG:
            continue
        if lag < previous:
            return False
        previous = lag
    return True


def group_status(partitions: Iterable[Status]) -> Status:
    """The worst partition decides; everything that is worse than a warning is an error of the group."""
    worst = max(partitions, default=Status.OK)
    return min(max(worst, Status.OK), Status.ERR)
