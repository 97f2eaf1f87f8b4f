"""Supervises the processes of a run: starts them, restarts them with backoff, stops them in order.

In: programs. Out: running processes, and their states in the timeline. Each process leads a group of its
own, so that everything it leaves behind (a JVM, Python workers) is killed before it is started again.
Processes of all applications are supervised here (`applications`). Does not know: what the processes do.
"""

from __future__ import annotations

import contextlib
import os
import signal
import subprocess
import threading
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from types import FrameType
from typing import Any

from barnabas.engine.backoff import Backoff
from barnabas.engine.heartbeat import BEAT_FILE, BeatWatch
from barnabas.engine.timeline import BestEffortTimeline, Entry, Kind, State

LOOK_S = 0.1
STOP_S_MAX = 30.0
LOG_BYTES_MAX = 32 << 20  # a larger log is renamed when its process is restarted
TAIL_BYTES = 8192
PARENT = "BARNABAS_SUPERVISOR"
STOP_S = "BARNABAS_STOP_S"  # how long a process may take to end its current work


@dataclass(frozen=True, slots=True)
class Program:
    """A program of a run: one process. It is restarted whenever it ends.

    `outlives`: it is stopped after the others, because they need it until they end. `may_end`: it is done
    when it ends with status 0. `silent_s_max`: it beats (`heartbeat`); it is killed and restarted when no
    beat came for so long."""

    name: str
    command: Sequence[str]
    environment: Mapping[str, str] = field(default_factory=dict, repr=False)  # secrets among them
    outlives: bool = False
    may_end: bool = False
    silent_s_max: float | None = None


class Child:
    """The process of one program."""

    def __init__(
        self,
        program: Program,
        logs: Path,
        timeline: BestEffortTimeline,
        inherited: Sequence[int] = (),
        stop_s: float = STOP_S_MAX,
    ) -> None:
        self.program = program
        self.log = logs / f"{program.name}.log"
        self.starts = 0
        self.state = State.STARTING
        self.detail = ""
        self._beats = BeatWatch(logs / f".{program.name}.beat", program.silent_s_max)
        self._stop_s = stop_s
        self._timeline = timeline
        self._inherited = tuple(inherited)
        self._process: subprocess.Popen[bytes] | None = None
        self._backoff = Backoff()
        self._started = 0.0
        self._again = 0.0  # time of the next start, by the monotonic clock
        self._is_done = False

    @property
    def pid(self) -> int | None:
        return None if self._process is None else self._process.pid

    @property
    def restarts(self) -> int:
        return max(self.starts - 1, 0)

    @property
    def is_done(self) -> bool:
        return self._is_done

    def look(self, now: float) -> None:
        """Start the process if it is time, notice if it died or hangs."""
        if self._process is None:
            if now >= self._again and not self._is_done:
                self._start(now)
            return
        status = self._process.poll()
        if status is not None:
            self._died(status, now)
        elif silent_s := self._beats.silent_s(now):
            kill_group(self._process.pid)
            self._process.wait()
            self._process = None
            self._wait(now, now - self._started, f"killed: no sign of life for {silent_s:.0f} s")

    def _set_state(self, state: State, detail: str = "", pid: int = 0) -> None:
        self.state, self.detail = state, detail
        self._timeline.set_state(Kind.PROCESS, self.program.name, state, detail, pid)

    def _start(self, now: float) -> None:
        self.log.parent.mkdir(parents=True, exist_ok=True)
        if self.log.exists() and self.log.stat().st_size > LOG_BYTES_MAX:
            self.log.replace(self.log.with_suffix(".old.log"))
        environment = {
            **os.environ,
            **self.program.environment,
            PARENT: str(os.getpid()),
            STOP_S: str(self._stop_s),
            BEAT_FILE: str(self._beats.path),
        }
        try:
            self._beats.begin(now)
            with self.log.open("ab") as log:
                self._process = subprocess.Popen(
                    list(self.program.command),
                    stdin=subprocess.DEVNULL,
                    stdout=log,
                    stderr=subprocess.STDOUT,
                    env=environment,
                    start_new_session=True,
                    pass_fds=self._inherited,
                )
        except OSError as error:  # no memory, or no space for the log
            self._wait(now, 0.0, f"cannot be started: {error}")
            return
        self.starts += 1
        self._started = now
        self._set_state(State.RUNNING, "", self._process.pid)

    def _died(self, status: int, now: float) -> None:
        assert self._process is not None
        kill_group(self._process.pid)
        self._process = None
        if status == 0 and self.program.may_end:
            self._is_done = True
            self._set_state(State.STOPPED, "done")
            return
        how = f"killed by signal {-status}" if status < 0 else f"ended with status {status}"
        said = last_line(self.log)
        self._wait(now, now - self._started, f"{how}{f': {said}' if said else ''}")

    def _wait(self, now: float, lived_s: float, why: str) -> None:
        delay_s = self._backoff.failed(lived_s)
        self._again = now + delay_s
        ended = time.time()
        name = self.program.name
        run = f"{ended:.3f}"
        self._timeline.record(Entry(Kind.PROCESS, name, run, ended - lived_s, ended, error=why))
        self._set_state(State.FAILED, f"{why}; restart in {delay_s:g} s")

    def terminate(self) -> None:
        if self._process is not None and self._process.poll() is None:
            with contextlib.suppress(ProcessLookupError):
                self._process.terminate()

    def end(self, deadline: float) -> None:
        """Wait for the process until the deadline, then kill it."""
        if self._process is None:
            return
        try:
            self._process.wait(max(0.0, deadline - time.monotonic()))
        except subprocess.TimeoutExpired:
            pass
        kill_group(self._process.pid)
        self._process.wait()
        self._process = None
        self._set_state(State.STOPPED)


class Supervisor:
    """All processes of a run. `run` returns after `stop`."""

    def __init__(
        self,
        programs: Sequence[Program],
        logs: Path,
        timeline: BestEffortTimeline,
        inherited: Sequence[int] = (),
        stop_s: float = STOP_S_MAX,
    ) -> None:
        self.children = [Child(program, logs, timeline, inherited, stop_s) for program in programs]
        self.has_lost = False
        self._stop_s = stop_s
        self._stopping = threading.Event()

    def run(self, each_look: Callable[[], object] | None = None) -> None:
        try:
            while not self._stopping.is_set():
                now = time.monotonic()
                for child in self.children:
                    child.look(now)
                if each_look is not None:
                    each_look()
                if self.children and all(child.is_done for child in self.children):
                    break
                self._stopping.wait(LOOK_S)
        finally:
            self.end()

    def stop(self, *_: object) -> None:
        self._stopping.set()

    def lose(self) -> None:
        """Stop at once, because another host has taken over: nothing is waited for."""
        self.has_lost = True
        self._stopping.set()

    def end(self) -> None:
        """Stop all processes; those that outlive the others after them."""
        deadline = time.monotonic() + (0.0 if self.has_lost else self._stop_s)
        for outlives in (False, True):
            these = [child for child in self.children if child.program.outlives is outlives]
            for child in these:
                child.terminate()
            for child in these:
                child.end(deadline)


def kill_group(pid: int) -> None:
    """Kill what is left of a process and everything it started."""
    with contextlib.suppress(ProcessLookupError, PermissionError):
        os.killpg(pid, signal.SIGKILL)


def last_line(log: Path) -> str:
    """The last line of a log, to be shown with the state of its process."""
    try:
        with log.open("rb") as file:
            file.seek(max(0, log.stat().st_size - TAIL_BYTES))
            lines = [line.strip() for line in file.read().decode(errors="replace").splitlines()]
    except OSError:
        return ""
    return next((line[:200] for line in reversed(lines) if line), "")


def on_stop_signal(stop: Callable[[], object]) -> None:
    """Call `stop` on SIGTERM and SIGINT. For the main thread only."""

    def told(_number: int, _frame: FrameType | None) -> Any:
        stop()

    for number in (signal.SIGTERM, signal.SIGINT):
        signal.signal(number, told)


def stop_seconds() -> float:
    """How long this process may take to end its current work when it is told to stop."""
    try:
        return float(os.environ.get(STOP_S, ""))
    except ValueError:
        return STOP_S_MAX


def on_supervisor_gone(stop: Callable[[], object]) -> None:
    """Call `stop` when the supervisor that started this process is gone."""
    parent = os.environ.get(PARENT)
    if parent is None:
        return

    def watch() -> None:
        while os.getppid() == int(parent):
            time.sleep(LOOK_S * 5)
        stop()

    threading.Thread(target=watch, name="supervisor-watch", daemon=True).start()
