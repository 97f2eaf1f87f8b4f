"""Applications under a supervisor: one host at a time, clean stops, upgrades, signs of life."""

from __future__ import annotations

import json
import sys
import threading
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("cronsim", reason="needs the extra `pipeline`")

from barnabas.engine.applications import Application, lease_of, own_lock, run_application
from barnabas.engine.catalogue.catalogue import Catalogue
from barnabas.engine.checkpoints import WrongName, checkpoint_of
from barnabas.engine.lease import Timing
from barnabas.engine.lock import LakeIsBusy
from barnabas.engine.places.place import FolderPlace
from barnabas.engine.supervisor import Program
from barnabas.engine.upgrades import (
    Continuation,
    IncompatibleState,
    QueryPlan,
    continue_plans,
    reset_query,
)
from barnabas.testing.waiting import wait_until

FAST = Timing(lease_s=1.0, renew_s=0.1, look_s=0.05)
# Finishes its current work when it is told to stop.
WORK = """
import signal, sys, threading, pathlib
stopping = threading.Event()
signal.signal(signal.SIGTERM, lambda *_: stopping.set())
place = pathlib.Path(sys.argv[1])
place.write_text("began")
stopping.wait()
place.write_text("finished its batch")
"""
HANG = "import time, sys; print('hangs', flush=True); time.sleep(3600)"


def application(folder: Path, host: str, programs: Sequence[Program], **more: Any) -> Application:
    @contextmanager
    def prepare() -> Iterator[Sequence[Program]]:
        yield programs

    place = FolderPlace(folder / "data")
    state = folder / host
    lock = own_lock(state, "copies", lease_of(place, "copies"), FAST)
    return Application(
        name="copies", kind="test", place=place, folder=state, prepare=prepare, lock=lock, **more
    )


@contextmanager
def running(app: Application, **options: Any) -> Iterator[threading.Event]:
    stopping = threading.Event()
    failures: list[BaseException] = []

    def run() -> None:
        try:
            run_application(app, stopping=stopping, **options)
        except BaseException as error:
            failures.append(error)

    thread = threading.Thread(target=run)
    thread.start()
    try:
        yield stopping
    finally:
        stopping.set()
        thread.join()
    assert not failures, failures


def state_of(app: Application) -> tuple[str, str]:
    entry = Catalogue(app.place).application(app.name)
    if entry is None:
        return "", ""
    return entry.status.state, str(entry.status.programs.get("work", {}).get("state", ""))


def worker(path: Path) -> Program:
    return Program("work", [sys.executable, "-c", WORK, str(path)])


def test_a_stop_from_another_host_lets_the_batch_finish_and_frees_the_lease(tmp_path: Path) -> None:
    done = tmp_path / "done"
    app = application(tmp_path, "one", [worker(done)])
    with running(app):
        wait_until(lambda: state_of(app) == ("running", "running") and done.exists())
        other = Catalogue(FolderPlace(tmp_path / "data"))
        other.request_stop("copies", "somebody")
        wait_until(lambda: state_of(app) == ("stopped", "stopped"))
    assert done.read_text() == "finished its batch"
    newest = lease_of(app.place, "copies").newest()
    assert newest is not None and json.loads(newest[1])["is_held"] is False


def test_a_second_host_is_refused_or_stands_by_and_takes_over(tmp_path: Path) -> None:
    first = application(tmp_path, "one", [worker(tmp_path / "a")])
    second = application(tmp_path, "two", [worker(tmp_path / "b")])
    with running(first) as stop_first:
        wait_until(lambda: (tmp_path / "a").exists())
        with pytest.raises(LakeIsBusy):
            run_application(second)
        with running(second, standby=True):
            stop_first.set()
            wait_until(lambda: (tmp_path / "b").exists())
            entry = Catalogue(second.place).application("copies")
            assert entry is not None


def test_a_host_that_stands_by_does_not_undo_a_stop(tmp_path: Path) -> None:
    first = application(tmp_path, "one", [worker(tmp_path / "a")])
    second = application(tmp_path, "two", [worker(tmp_path / "b")])

    def is_given_back() -> bool:
        """Whether the second host had the lease, and has it no more."""
        newest = lease_of(first.place, "copies").newest()
        assert newest is not None
        term, file = json.loads(newest[1]), (tmp_path / "two" / "run.lock").stat()
        return term["lock"].endswith(f":{file.st_dev}:{file.st_ino}") and not term["is_held"]

    with running(first):
        wait_until(lambda: (tmp_path / "a").exists())
        with running(second, standby=True):
            wait_until(lambda: (tmp_path / "two" / "run.lock").exists())  # it waits for the lease
            Catalogue(first.place).request_stop("copies", "somebody")
            wait_until(is_given_back)
    assert not (tmp_path / "b").exists()


def test_a_run_that_is_refused_does_not_undo_a_stop(tmp_path: Path) -> None:
    first = application(tmp_path, "one", [worker(tmp_path / "a")])
    second = application(tmp_path, "two", [worker(tmp_path / "b")])
    with running(first):
        wait_until(lambda: (tmp_path / "a").exists())
        Catalogue(first.place).request_stop("other", "somebody")
        with pytest.raises(LakeIsBusy):
            run_application(replace(second, name="other"))
        assert Catalogue(first.place).is_stop_wanted("other")


def test_hosts_that_stand_by_respect_a_wanted_stop_until_somebody_runs_it_again(tmp_path: Path) -> None:
    app = application(tmp_path, "one", [worker(tmp_path / "a")])
    catalogue = Catalogue(app.place)
    catalogue.request_stop("copies", "somebody")
    with running(app, standby=True):
        wait_until(lambda: catalogue.is_stop_wanted("copies"))
        assert not (tmp_path / "a").exists()
    with running(app):
        wait_until(lambda: (tmp_path / "a").exists())
    assert not catalogue.is_stop_wanted("copies")


def test_a_program_without_a_sign_of_life_is_killed_and_restarted(tmp_path: Path) -> None:
    program = Program("work", [sys.executable, "-c", HANG], silent_s_max=0.3)
    app = application(tmp_path, "one", [program])

    def has_restarted() -> bool:
        entry = Catalogue(app.place).application("copies")
        return entry is not None and entry.restarts_of("work") >= 1

    with running(app):
        wait_until(has_restarted)


BEAT = "import signal; from barnabas.engine.heartbeat import beat_while; beat_while(lambda: True, 0.05);"
BEAT += " signal.pause()"


def test_a_program_that_beats_is_left_alone(tmp_path: Path) -> None:
    from barnabas.engine.supervisor import Supervisor
    from barnabas.engine.timeline import BestEffortTimeline, Timeline

    program = Program("work", [sys.executable, "-c", BEAT], silent_s_max=20.0)
    supervisor = Supervisor([program], tmp_path, BestEffortTimeline(Timeline(tmp_path)))
    thread = threading.Thread(target=supervisor.run)
    thread.start()
    beats: set[int] = set()
    path = tmp_path / ".work.beat"

    def has_beaten() -> bool:
        if path.exists():
            beats.add(path.stat().st_mtime_ns)
        return len(beats) > 3

    wait_until(has_beaten)
    supervisor.stop()
    thread.join()
    assert supervisor.children[0].restarts == 0


def test_an_application_whose_programs_are_done_ends(tmp_path: Path) -> None:
    program = Program("work", [sys.executable, "-c", "print('done')"], may_end=True)
    app = application(tmp_path, "one", [program])
    run_application(app, stopping=threading.Event())
    assert state_of(app) == ("stopped", "stopped")


# -- upgrades --------------------------------------------------------------------------------------

SUM = QueryPlan("sums", {"keys": ["shop"], "window_s": 60})


def wider(old: Any, new: Any) -> str:
    return "" if old["keys"] == new["keys"] else f"keys {old['keys']} became {new['keys']}"


def test_the_same_plan_continues_and_a_change_is_judged(tmp_path: Path) -> None:
    place = FolderPlace(tmp_path)
    assert continue_plans(place, "a", [SUM]) == {"sums": Continuation.NEW}
    assert continue_plans(place, "a", [SUM]) == {"sums": Continuation.UNCHANGED}
    longer = QueryPlan("sums", {"keys": ["shop"], "window_s": 90})
    with pytest.raises(IncompatibleState, match=r"query sums: window_s changed.*engine reset a QUERY"):
        continue_plans(place, "a", [longer])
    assert continue_plans(place, "a", [longer], wider) == {"sums": Continuation.CHANGED}
    assert continue_plans(place, "a", [longer]) == {"sums": Continuation.UNCHANGED}


def test_a_refused_upgrade_stores_nothing_and_a_reset_starts_anew(tmp_path: Path) -> None:
    place = FolderPlace(tmp_path)
    continue_plans(place, "a", [SUM])
    other = QueryPlan("sums", {"keys": ["town"], "window_s": 60})
    with pytest.raises(IncompatibleState):
        continue_plans(place, "a", [QueryPlan("new", {}), other], wider)
    assert continue_plans(place, "a", [QueryPlan("new", {})]) == {"new": Continuation.NEW}
    state = Path(checkpoint_of(place.root, "a", "sums")) / "offsets"
    state.mkdir(parents=True)
    (state / ".0.crc").write_text("x")
    assert reset_query(place, "a", "sums") == 2
    assert not state.exists()
    assert continue_plans(place, "a", [other]) == {"sums": Continuation.NEW}


def test_an_application_with_an_incompatible_plan_does_not_start(tmp_path: Path) -> None:
    continue_plans(FolderPlace(tmp_path / "data"), "copies", [SUM])
    app = application(
        tmp_path, "one", [worker(tmp_path / "a")], plans=[QueryPlan("sums", {"keys": [], "window_s": 1})]
    )
    with pytest.raises(IncompatibleState):
        run_application(app, stopping=threading.Event())
    assert not (tmp_path / "a").exists()


@pytest.mark.parametrize("name", ["", "../up", "a/b", ".hidden", "x" * 201])
def test_names_that_cannot_be_folders_are_refused(name: str) -> None:
    with pytest.raises(WrongName):
        checkpoint_of("s3a://bucket", "app", name)
    assert checkpoint_of("s3a://bucket/", "app", "sums") == "s3a://bucket/checkpoints/app/sums"
