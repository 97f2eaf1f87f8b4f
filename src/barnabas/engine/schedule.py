"""Schedules: which jobs are due, by cron expressions and the time of their last run.

In: jobs with a cron expression, the time. Out: the due jobs in the given order, and how long until the
next one. A job that never ran is due at once; a job that missed several times is due once. One small file,
always replaced as a whole, keeps when each job ran. Does not know: what a job does.
"""

from __future__ import annotations

import contextlib
import json
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path

from cronsim import CronSim

FILE_NAME = "schedule.json"


@dataclass(frozen=True, slots=True)
class Job:
    """A job. `every` is a cron expression in UTC, or None for a job that is due on request only.

    A job that never ran is due at once, unless `is_due_at_first` is False. A job that `is_once` is due after
    `make_due`, once."""

    kind: str
    name: str
    every: str | None
    is_due_at_first: bool = True
    is_once: bool = False

    @property
    def key(self) -> str:
        return f"{self.kind}/{self.name}"


def next_time(expression: str, after: datetime) -> datetime:
    return next(CronSim(expression, after))


WANTED = datetime.fromtimestamp(0, UTC)  # stands for the last run of a job that was made due


def is_due(expression: str | None, ran: datetime | None, now: datetime) -> bool:
    if expression is None:
        return False
    return ran is None or next_time(expression, ran) <= now


class Schedule:
    """Jobs, and when each of them began last."""

    def __init__(self, folder: Path, jobs: Sequence[Job]) -> None:
        self.path = folder / FILE_NAME
        self.jobs = tuple(jobs)
        self._ran = read(self.path)

    def due(self, now: datetime) -> list[Job]:
        return [job for job in self.jobs if self.is_due(job, now)]

    def is_due(self, job: Job, now: datetime) -> bool:
        if not job.is_due_at_first and self.ran(job) is None:
            self.done(job, now)
        return self.ran(job) == WANTED if job.is_once else is_due(job.every, self.ran(job), now)

    def ran(self, job: Job) -> datetime | None:
        return self._ran.get(job.key)

    def next_of(self, job: Job, now: datetime) -> datetime | None:
        """When the job is due next; now if it is due already."""
        if job.every is None:
            return None
        ran = self.ran(job)
        return now if ran is None else max(now, next_time(job.every, ran))

    def seconds_until_next(self, now: datetime, most: float) -> float:
        times = [at for job in self.jobs if (at := self.next_of(job, now)) is not None]
        return min([most, *((at - now).total_seconds() for at in times)])

    def done(self, job: Job, began: datetime) -> None:
        """The job began at `began` and succeeded. If a full disk prevents writing this, the next process
        repeats the job, which is harmless."""
        self._ran[job.key] = began
        with contextlib.suppress(OSError):
            write(self.path, self._ran)

    def make_due(self, keys: Iterable[str]) -> None:
        """Make these jobs due at once."""
        once = {job.key for job in self.jobs if job.is_once}
        for key in keys:
            if key in once:
                self._ran[key] = WANTED
            else:
                self._ran.pop(key, None)
        write(self.path, self._ran)


def read(path: Path) -> dict[str, datetime]:
    try:
        found = json.loads(path.read_text())
        return {str(key): datetime.fromisoformat(at).astimezone(UTC) for key, at in found.items()}
    except (OSError, ValueError, AttributeError, TypeError):
        return {}  # missing or damaged: every job is due, and repeating one is harmless


def write(path: Path, ran: dict[str, datetime]) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    beside = path.with_suffix(".new")
    beside.write_text(json.dumps({key: at.isoformat() for key, at in sorted(ran.items())}, indent=1))
    beside.replace(path)
