"""At most one host holds the lease of a lake; another takes over when it dies, and it notices when it wakes.

Hosts are processes with state folders of their own: their file locks do not see each other.
"""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace

import pytest

from barnabas.engine import lease as lease_module
from barnabas.engine.lease import Lease, LeaseIsHeld, Term, Timing, next_term, seconds_since_boot
from barnabas.engine.lease_records import FolderRecords, ObjectRecords, Records
from barnabas.engine.lease_status import (
    LeaseStatus,
    NotOurLease,
    check_lease,
    lease_status,
    note_fenced,
)
from barnabas.engine.lock import LakeIsBusy, LakeLock
from barnabas.engine.places.object_store import NoRecords, options_of
from barnabas.testing.waiting import wait_until
from s3_server import s3_server

FAST = Timing(lease_s=1.0, renew_s=0.1, look_s=0.05)
HELD = Term(7, 3, True, True, "a", "lock-a")


def test_a_free_lease_keeps_its_epoch_and_one_that_was_held_gets_the_next() -> None:
    assert next_term(None, "b", "lock-b", has_expired=False) == Term(0, 0, True, True, "b", "lock-b")
    free = replace(HELD, is_held=False)
    assert next_term(free, "b", "lock-b", has_expired=False) == Term(8, 3, True, True, "b", "lock-b")
    assert next_term(HELD, "b", "lock-b", has_expired=False) is None
    taken = Term(8, 4, True, False, "b", "lock-b")
    assert next_term(HELD, "b", "lock-b", has_expired=True) == taken
    # Whoever has the file lock of the holder knows that its processes have ended.
    assert next_term(HELD, "b", "lock-a", has_expired=False) == replace(taken, lock="lock-a")
    # An unfenced lease stays unfenced, also when it was released.
    unfenced = replace(taken, is_held=False)
    following = next_term(unfenced, "c", "lock-c", has_expired=False)
    assert following is not None and (following.epoch, following.is_fenced) == (4, False)


@pytest.fixture(params=["folder", "url"])
def records(request: pytest.FixtureRequest, tmp_path: Path) -> Callable[[], Records]:
    """Makes clients of one place."""
    if request.param == "folder":
        return lambda: FolderRecords(tmp_path / "lease")
    url, settings = request.getfixturevalue("object_store")
    return lambda: ObjectRecords(f"{url}/{tmp_path.name}/lease", settings)


@pytest.fixture(scope="module")
def object_store() -> Iterator[tuple[str, dict[str, str]]]:
    with s3_server() as found:
        yield found


def test_one_of_several_writers_puts_a_record(records: Callable[[], Records]) -> None:
    assert records().newest() is None
    barrier, won = threading.Barrier(4), list[int]()

    def put(name: int) -> None:
        mine = records()
        barrier.wait()
        if mine.put(5, str(name).encode()):
            won.append(name)

    threads = [threading.Thread(target=put, args=(name,)) for name in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(won) == 1 and records().newest() == (5, str(won[0]).encode())
    assert records().put(11, b"later")
    records().forget(11)
    assert records().newest() == (11, b"later") and records().put(5, b"free again")
    assert records().newest() == (11, b"later")


def test_a_second_host_is_refused_while_the_first_renews_and_follows_when_it_ends(
    records: Callable[[], Records],
) -> None:
    first, second = (Lease(records(), name, name, timing=FAST) for name in ("first", "second"))
    assert first.acquire().epoch == 0
    with pytest.raises(LeaseIsHeld, match="first"):
        second.acquire()
    first.release()
    assert second.acquire().epoch == 0
    second.release()


def test_a_number_that_became_free_again_is_not_taken_for_a_renewal(tmp_path: Path) -> None:
    records = FolderRecords(tmp_path)
    sleeping = Lease(records, "sleeping", "a", timing=Timing(lease_s=60, renew_s=60))
    term = sleeping.acquire()
    for number in range(1, 4):
        records.put(number, replace(HELD, number=number, holder="other").data())
    records.forget(3)
    sleeping._renew_once()  # its next number is free
    assert sleeping.is_lost and sleeping.term == term
    sleeping.release()
    assert Term.parse(records.newest()[1]).holder == "other"  # type: ignore[index]


def test_a_holder_whose_store_does_not_answer_waits_and_goes_on_if_nobody_took_over(tmp_path: Path) -> None:
    class Away(FolderRecords):
        is_away = False

        def put(self, number: int, data: bytes) -> bool:
            if self.is_away:
                raise OSError("no answer")
            return super().put(number, data)

    records = Away(tmp_path)
    lease = Lease(records, "a", "a", timing=FAST)
    lease.acquire()
    records.is_away = True
    wait_until(lambda: seconds_since_boot() > lease.until, what="the time in which it may work ends")
    assert not lease.is_lost
    records.is_away = False
    wait_until(lambda: seconds_since_boot() < lease.until, what="the lease is renewed")
    lease.release()


def test_a_host_that_waits_takes_over_within_half_a_minute(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """With the default timing, by a clock that goes on when the host sleeps. The other half is for Spark."""
    now = [1000.0]

    def sleep(seconds: float) -> None:
        now[0] += seconds

    monkeypatch.setattr(lease_module, "seconds_since_boot", lambda: now[0])
    # Not `time.sleep` of everybody: threads that earlier tests left would move the clock.
    monkeypatch.setattr(lease_module, "time", SimpleNamespace(sleep=sleep))
    records = FolderRecords(tmp_path / "lease")
    dead = Lease(records, "a", "a")
    assert dead.acquire().epoch == 0
    dead.stop()  # it renews no more, and does not release
    waiting = Lease(records, "b", "b")
    assert waiting.acquire(waits=True).epoch == 1
    assert lease_module.LEASE_S <= now[0] - 1000.0 <= 30.0
    waiting.stop()


# -- hosts ------------------------------------------------------------------------------------------

HOST = """
import sys
from pathlib import Path
from barnabas.engine.lease import Timing
from barnabas.engine.lease_records import FolderRecords
from barnabas.engine.lease_status import check_lease
from barnabas.engine.lock import LakeLock
state = Path(sys.argv[1])
lock = LakeLock(state, "test", FolderRecords(Path(sys.argv[2])), waits=True, timing=Timing(2.0, 0.2, 0.05))
lock.on_lost = lambda: print("lost", flush=True)
lock.acquire()
print("epoch", lock.epoch, flush=True)
for line in sys.stdin:
    try:
        print("works in", check_lease(state, lock.epoch).epoch, flush=True)
    except Exception as error:
        print(type(error).__name__, flush=True)
lock.release()
"""


class Host:
    def __init__(self, state: Path, lease: Path) -> None:
        command = [sys.executable, "-c", HOST, str(state), str(lease)]
        self.process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)

    def line(self) -> str:
        assert self.process.stdout is not None
        return self.process.stdout.readline().strip()

    def ask(self) -> str:
        assert self.process.stdin is not None
        self.process.stdin.write("?\n")
        self.process.stdin.flush()
        return self.line()

    def send(self, number: signal.Signals) -> None:
        os.kill(self.process.pid, number)


@contextmanager
def hosts(folder: Path, *names: str) -> Iterator[list[Host]]:
    found: list[Host] = []
    try:
        for name in names:
            found.append(Host(folder / name, folder / "lease"))
            if len(found) == 1:
                assert found[0].line() == "epoch 0"
        yield found
    finally:
        for host in found:
            host.process.kill()
            host.process.wait()
            for pipe in (host.process.stdin, host.process.stdout):
                assert pipe is not None
                pipe.close()


@pytest.mark.timeout(120)
def test_another_host_takes_over_when_the_holder_dies(tmp_path: Path) -> None:
    with hosts(tmp_path, "one", "two") as (one, two):
        assert one.ask() == "works in 0"
        one.send(signal.SIGKILL)
        assert two.line() == "epoch 1" and two.ask() == "works in 1"


@pytest.mark.timeout(120)
def test_a_host_that_was_paused_knows_that_it_lost_the_lease_before_it_works(tmp_path: Path) -> None:
    with hosts(tmp_path, "one", "two") as (one, two):
        one.send(signal.SIGSTOP)
        assert two.line() == "epoch 1"
        one.send(signal.SIGCONT)
        said = {one.ask(), one.line()}  # the thread that renews and the one that works run in any order
        assert said == {"lost", "NotOurLease"}
        assert two.ask() == "works in 1"


@pytest.mark.timeout(120)
def test_a_host_that_ends_hands_the_lease_over_without_a_new_epoch(tmp_path: Path) -> None:
    with hosts(tmp_path, "one", "two") as (one, two):
        assert one.process.stdin is not None
        one.process.stdin.close()
        assert two.line() == "epoch 0"


def test_a_run_on_the_same_machine_takes_over_from_a_dead_one_at_once(tmp_path: Path) -> None:
    records = FolderRecords(tmp_path / "lease")
    slow = Timing(lease_s=3600, renew_s=0.1)
    hold = HOST.replace("Timing(2.0, 0.2, 0.05)", "Timing(3600, 0.1)")
    command = [sys.executable, "-c", hold, str(tmp_path / "state"), str(tmp_path / "lease")]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE) as other:
        assert other.stdout is not None and other.stdout.readline() == b"epoch 0\n"
        with pytest.raises(LakeIsBusy, match="another run has this lake"):
            LakeLock(tmp_path / "state", "run", records, timing=slow).acquire()
        with pytest.raises(LakeIsBusy, match="another host works on this lake"):
            LakeLock(tmp_path / "elsewhere", "run", records, timing=slow).acquire()
        other.kill()
    with LakeLock(tmp_path / "state", "run", records, timing=slow) as lock:
        assert lock.epoch == 1 and not lease_status(tmp_path / "state").is_fenced
        note_fenced(tmp_path / "state", 1)
        wait_until(lambda: lease_status(tmp_path / "state").is_fenced, what="the next renewal says it")
    with LakeLock(tmp_path / "elsewhere", "run", records, timing=slow) as lock:
        assert lock.epoch == 1 and lease_status(tmp_path / "elsewhere").is_fenced


def test_a_lease_of_another_machine_or_epoch_is_not_ours(tmp_path: Path) -> None:
    assert check_lease(tmp_path).epoch == 0  # no run yet
    LeaseStatus(3, True, True, until=1e12, boot="of another machine").write(tmp_path)
    with pytest.raises(NotOurLease, match="another host may work"):
        check_lease(tmp_path)
    LeaseStatus(3, False, True).write(tmp_path)
    assert check_lease(tmp_path, 3).epoch == 3
    with pytest.raises(NotOurLease, match="epoch 3, this process is of 2"):
        check_lease(tmp_path, 2)


def test_settings_of_spark_are_those_of_the_store() -> None:
    given = {"spark.hadoop.fs.s3a.endpoint": "minio:9000", "spark.hadoop.fs.s3a.access.key": "k"}
    assert options_of(given)[0] == {
        "aws_endpoint": "https://minio:9000",
        "aws_access_key_id": "k",
        "aws_virtual_hosted_style_request": "false",
    }
    with pytest.raises(NoRecords, match="not at ftp"):
        ObjectRecords("ftp://lake/x")
