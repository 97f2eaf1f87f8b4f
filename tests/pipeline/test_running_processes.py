"""One lock a lake, schedules that catch up once, and processes that are started again."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import UTC, datetime
from pathlib import Path

import psutil
import pytest

pytest.importorskip("cronsim", reason="needs the extra `pipeline`")

from barnabas.engine.backoff import Backoff
from barnabas.engine.lock import LakeIsBusy, LakeLock, holder, is_held
from barnabas.engine.schedule import Job, Schedule
from barnabas.engine.supervisor import Child, Program, Supervisor, kill_group
from barnabas.engine.timeline import BestEffortTimeline, Kind, State, Timeline
from barnabas.testing.waiting import wait_until

HOLD = "import sys, signal; from pathlib import Path; from barnabas.engine.lock import LakeLock;"
HOLD += " LakeLock(Path(sys.argv[1]), 'test').acquire(); print('held', flush=True); signal.pause()"
WAIT = [sys.executable, "-c", "import signal; print('hello', flush=True); signal.pause()"]
FAIL = [sys.executable, "-c", "import sys; print('out of luck'); sys.exit(3)"]


def test_a_second_run_is_refused_and_names_the_holder(tmp_path: Path) -> None:
    with LakeLock(tmp_path, "run shop.yaml"):
        with pytest.raises(LakeIsBusy, match=rf"pid {os.getpid()} on .* \(run shop\.yaml\)"):
            LakeLock(tmp_path, "run").acquire()
        assert is_held(tmp_path)
    assert not is_held(tmp_path)
    with LakeLock(tmp_path, "again"):
        found = holder(tmp_path)
        assert found is not None and found.what == "again"


def test_a_killed_run_leaves_the_lake_free(tmp_path: Path) -> None:
    process = subprocess.Popen([sys.executable, "-c", HOLD, str(tmp_path)], stdout=subprocess.PIPE)
    assert process.stdout is not None
    with process.stdout:
        assert process.stdout.readline() == b"held\n"
        assert is_held(tmp_path)
        process.kill()
        process.wait()
    assert not is_held(tmp_path)


def at(text: str) -> datetime:
    return datetime.fromisoformat(text).replace(tzinfo=UTC)


def test_a_job_is_due_at_first_and_then_by_its_schedule(tmp_path: Path) -> None:
    job, never = Job("view", "revenue", "0 * * * *"), Job("view", "by hand", None)
    schedule = Schedule(tmp_path, [job, never])
    now = at("2026-01-01T10:20:00")
    assert schedule.due(now) == [job]
    schedule.done(job, now)
    assert schedule.due(at("2026-01-01T10:59:59")) == []
    assert schedule.seconds_until_next(at("2026-01-01T10:59:00"), 600) == 60
    again = Schedule(tmp_path, [job, never])  # another process
    assert again.due(at("2026-01-01T11:00:00")) == [job]


def test_a_job_that_missed_several_times_is_due_once(tmp_path: Path) -> None:
    job = Job("source", "customers", "*/5 * * * *")
    schedule = Schedule(tmp_path, [job])
    schedule.done(job, at("2026-01-01T10:00:00"))
    later = at("2026-01-03T00:01:00")
    assert schedule.due(later) == [job]
    schedule.done(job, later)
    assert schedule.due(later) == []
    schedule.make_due([job.key])
    assert schedule.due(later) == [job]


def test_a_job_that_runs_once_is_due_after_a_request(tmp_path: Path) -> None:
    job = Job("refined", "large", None, is_once=True)
    schedule = Schedule(tmp_path, [job])
    now = at("2026-01-01T10:20:00")
    assert schedule.due(now) == []
    schedule.make_due([job.key])
    assert Schedule(tmp_path, [job]).due(now) == [job]
    schedule.done(job, now)
    assert Schedule(tmp_path, [job]).due(now) == []


def test_delays_double_and_start_over_after_a_healthy_time() -> None:
    backoff = Backoff(1.0, 8.0, 60.0)
    assert [backoff.failed(0.1) for _ in range(5)] == [1, 2, 4, 8, 8]
    assert backoff.failed(61.0) == 1.0


@contextmanager
def supervised(folder: Path, *parts: Program) -> Iterator[tuple[Supervisor, Timeline]]:
    timeline = Timeline(folder)
    supervisor = Supervisor(parts, folder / "logs", BestEffortTimeline(timeline))
    thread = threading.Thread(target=supervisor.run)
    thread.start()
    try:
        yield supervisor, timeline
    finally:
        supervisor.stop()
        thread.join()


def state_of(timeline: Timeline, name: str) -> tuple[str, str]:
    found = {each.name: (each.state, each.detail) for each in timeline.states()}
    return found.get(name, ("", ""))


def test_a_killed_process_comes_back_and_the_others_go_on(tmp_path: Path) -> None:
    with supervised(tmp_path, Program("serving", WAIT), Program("batch", WAIT)) as (supervisor, timeline):
        serving, batch = supervisor.children
        wait_until(lambda: serving.pid and batch.pid)
        first, other = batch.pid, serving.pid
        assert first is not None
        os.kill(first, signal.SIGKILL)
        wait_until(lambda: batch.starts == 2 and batch.pid not in (None, first))
        assert serving.pid == other
        [died] = timeline.entries(Kind.PROCESS, "batch")
        assert "killed by signal 9" in died.error
        wait_until(lambda: state_of(timeline, "batch")[0] == State.RUNNING)
    assert state_of(timeline, "batch")[0] == State.STOPPED


def test_a_process_that_cannot_start_is_shown_with_its_last_line(tmp_path: Path) -> None:
    with supervised(tmp_path, Program("streaming", FAIL), Program("absent", ["/no/such/program"])) as (
        _,
        timeline,
    ):
        wait_until(lambda: state_of(timeline, "streaming")[0] == State.FAILED)
        wait_until(lambda: state_of(timeline, "absent")[0] == State.FAILED)
        assert "ended with status 3: out of luck; restart in" in state_of(timeline, "streaming")[1]
        assert "cannot be started" in state_of(timeline, "absent")[1]


def test_children_of_a_dead_process_are_ended_before_it_starts_again(tmp_path: Path) -> None:
    nested = "import signal, subprocess, sys; wait = 'import signal; signal.pause()';"
    nested += " c = subprocess.Popen([sys.executable, '-c', wait]); print(c.pid, flush=True);"
    nested += " signal.pause()"
    child = Child(
        Program("batch", [sys.executable, "-c", nested]), tmp_path, BestEffortTimeline(Timeline(tmp_path))
    )
    child.look(0.0)
    try:
        wait_until(lambda: child.log.read_text().strip())
        grandchild = psutil.Process(int(child.log.read_text()))
        assert child.pid is not None
        os.kill(child.pid, signal.SIGKILL)
        wait_until(lambda: [child.look(1.0)] and child.pid is None)
        wait_until(lambda: not grandchild.is_running() or grandchild.status() == psutil.STATUS_ZOMBIE)
    finally:
        if child.pid is not None:
            kill_group(child.pid)
        child.end(0.0)
