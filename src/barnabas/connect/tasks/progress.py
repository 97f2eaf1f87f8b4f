"""Reports of a running task: counts, times, states, progress of a snapshot, the last error and its record.

Loops add numbers; metrics, the REST API and the command line read them. One writer, many readers: numbers may
be a moment old. Does not know: how metrics are named.
"""

from __future__ import annotations

import time
from collections import defaultdict, deque
from collections.abc import Callable
from dataclasses import asdict, dataclass, field
from typing import Any

from barnabas.connect.tasks.task_clients import ExecutorClients

WINDOW_S = 30.0  # of rates
STEP_S = 1.0


@dataclass(slots=True)
class Spread:
    """The smallest, the largest and the mean of what was measured."""

    count: int = 0
    total: float = 0.0
    highest: float = 0.0
    lowest: float = 0.0

    def add(self, value: float) -> None:
        self.lowest = min(self.lowest, value) if self.count else value
        self.count += 1
        self.total += value
        self.highest = max(self.highest, value)

    @property
    def mean(self) -> float:
        return self.total / self.count if self.count else 0.0


@dataclass(frozen=True, slots=True)
class LastError:
    """An error, and the coordinates of the record that it belongs to."""

    message: str
    stage: str
    at_ms: int
    topic: str | None = None
    partition: int | None = None
    offset: int | None = None

    def __str__(self) -> str:
        where = "" if self.topic is None else f" at {self.topic}-{self.partition} offset {self.offset}"
        return f"{self.stage}{where}: {self.message}"


@dataclass(slots=True)
class Progress:
    connector: str
    task: int
    kind: str  # source or sink
    state: str = "UNASSIGNED"
    road: str = "thread"  # or spark
    now_s: Callable[[], float] = time.monotonic
    records_in: int = 0  # polled by a source, read by a sink
    records_out: int = 0  # written to topics, handed to `put`
    batches: Spread = field(default_factory=Spread)
    call_ms: Spread = field(default_factory=Spread)  # of `poll` or `put`
    commit_ms: Spread = field(default_factory=Spread)
    transactions: Spread = field(default_factory=Spread)
    commits: int = 0
    commit_failures: int = 0
    commits_skipped: int = 0
    partitions: int = 0
    lag: int = 0
    active: Spread = field(default_factory=Spread)  # records taken and not committed, at each step
    in_flight: int = 0
    failures: int = 0
    errors: int = 0
    skipped: int = 0
    retries: int = 0
    errors_logged: int = 0
    dead_letters: int = 0
    dead_letter_failures: int = 0
    last_error: LastError | None = None
    done: int | None = None  # of a snapshot
    total: int | None = None
    topics: set[str] = field(default_factory=set)  # that the task has used
    plan: str | None = None  # of the last Spark job
    places: str | None = None  # where its rows are
    executors: dict[str, ExecutorClients] = field(default_factory=lambda: defaultdict(ExecutorClients))
    _since: float = 0.0
    _running_s: float = 0.0
    _paused_s: float = 0.0
    _seen: deque[tuple[float, int, int]] = field(default_factory=lambda: deque(maxlen=64))

    def tick(self) -> None:
        """Note counts for rates, at most once a second. Loops call it in each turn."""
        now = self.now_s()
        if not self._seen or now - self._seen[-1][0] >= STEP_S:
            self._seen.append((now, self.records_in, self.records_out))
            self.active.add(self.in_flight)

    def rates(self) -> tuple[float, float]:
        """Records a second in and out over the last half minute."""
        now = self.now_s()
        first = next((each for each in list(self._seen) if now - each[0] <= WINDOW_S), None)
        if first is None or now <= first[0]:
            return 0.0, 0.0
        passed_s = now - first[0]
        return (self.records_in - first[1]) / passed_s, (self.records_out - first[2]) / passed_s

    def moved(self, state: str) -> None:
        """Note a new state; running and paused times are summed."""
        now = self.now_s()
        if self._since:
            if self.state == "RUNNING":
                self._running_s += now - self._since
            elif self.state == "PAUSED":
                self._paused_s += now - self._since
        self.state, self._since = state, now

    def ratio(self, state: str) -> float:
        """How much of its time the task was running or paused."""
        now = self.now_s()
        current = now - self._since if self._since and self.state == state else 0.0
        spent = (self._running_s if state == "RUNNING" else self._paused_s) + current
        other = now - self._since if self._since and self.state in ("RUNNING", "PAUSED") else 0.0
        whole = self._running_s + self._paused_s + other
        return spent / whole if whole else 0.0

    def per_second(self, count: int) -> float:
        """A count over the time that the task has run."""
        current = self.now_s() - self._since if self._since and self.state == "RUNNING" else 0.0
        spent = self._running_s + current
        return count / spent if spent else 0.0

    def waits_for_broker(self, error: BaseException) -> None:
        """A producer cannot reach a broker, and tries again."""
        self.retries += 1
        self.last_error = LastError(str(error), "KAFKA_PRODUCE", int(time.time() * 1000))

    def report(self, done: int, total: int | None) -> None:
        self.done, self.total = done, total

    def as_dict(self) -> dict[str, Any]:
        """The progress as JSON, for the command line."""
        return {
            "connector": self.connector,
            "task": self.task,
            "type": self.kind,
            "state": self.state,
            "road": self.road,
            "records_in": self.records_in,
            "records_out": self.records_out,
            "records_per_second": round(self.rates()[1], 3),
            "lag": self.lag if self.kind == "sink" else None,
            "commits": self.commits,
            "errors": self.errors,
            "skipped": self.skipped,
            "dead_letters": self.dead_letters,
            "retries": self.retries,
            "last_error": None if self.last_error is None else asdict(self.last_error),
            "done": self.done,
            "total": self.total,
            "topics": sorted(self.topics),
            "plan": self.plan,
            "places": self.places,
        }
