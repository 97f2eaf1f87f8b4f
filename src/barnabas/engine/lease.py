"""The lease of a lake: at most one host works on it. It lies in the lake itself, so that all hosts see it.

    none ── acquire ──> held ── release ──> free ── acquire ──> held (same epoch)
                         │ ^
                         │ └─ renew, every few seconds: the number of the record grows
                         └── not renewed for `lease_s` ── acquire ──> held by another (next epoch, unfenced)

In: records (`lease_records`), who asks. Out: a term with an epoch, or an error that names the holder. No
clocks are compared: a host that waits takes over when the number has stood still for `lease_s` by its own
clock. A holder that slept longer has lost the lease. Its commits are refused, because the next holder fences
the tables with its epoch before it works. Does not know: tables.
"""

from __future__ import annotations

import json
import logging
import threading
import time
from collections.abc import Callable
from dataclasses import asdict, dataclass, replace

from barnabas.engine.lease_records import KEPT, Records

LEASE_S = 20.0
RENEW_S = 5.0
LOOK_S = 1.0
LOG = logging.getLogger(__name__)
SAFE = 0.75  # the part of `lease_s` after the last renewal in which the holder may work


def seconds_since_boot() -> float:
    """A clock that goes on while the machine sleeps, and is the same in all processes."""
    return time.clock_gettime(getattr(time, "CLOCK_BOOTTIME", time.CLOCK_MONOTONIC))


class LeaseIsHeld(Exception):
    """Another host holds the lease; the message says which."""


class LeaseLost(Exception):
    """Another host has taken the lease over."""


@dataclass(frozen=True, slots=True)
class Timing:
    lease_s: float = LEASE_S
    renew_s: float = RENEW_S
    look_s: float = LOOK_S


@dataclass(frozen=True, slots=True)
class Term:
    """One record of a lease. `lock` identifies the holder's file lock, which only processes of the same
    machine can hold. `is_fenced`: the tables refuse commits of earlier epochs."""

    number: int
    epoch: int
    is_held: bool
    is_fenced: bool
    holder: str
    lock: str

    def data(self) -> bytes:
        return json.dumps(asdict(self)).encode()

    @classmethod
    def parse(cls, data: bytes) -> Term:
        return cls(**json.loads(data))


def next_term(newest: Term | None, holder: str, lock: str, *, has_expired: bool) -> Term | None:
    """The term of a host that asks for the lease; None if it has to wait."""
    if newest is None:
        return Term(0, 0, True, True, holder, lock)
    mine = replace(newest, number=newest.number + 1, is_held=True, holder=holder, lock=lock)
    if not newest.is_held:
        return mine
    # The holder's file lock is ours now, so its processes have ended; what they began may still be under way.
    if has_expired or newest.lock == lock:
        return replace(mine, epoch=newest.epoch + 1, is_fenced=False)
    return None


class Lease:
    """A lease that this process asks for, holds and renews. `lost` is called once, by a thread of its own."""

    def __init__(
        self,
        records: Records,
        holder: str,
        lock: str,
        *,
        timing: Timing | None = None,
        changed: Callable[[Term, float], object] = lambda term, until: None,
        lost: Callable[[], object] = lambda: None,
        is_fenced: Callable[[int], bool] = lambda epoch: False,
    ) -> None:
        self._records = records
        self._holder = holder
        self._lock = lock
        self._timing = timing or Timing()
        self._changed = changed
        self._on_lost = lost
        self._is_fenced = is_fenced
        self._stopping = threading.Event()
        self._thread: threading.Thread | None = None
        self.term: Term | None = None
        self.until = 0.0
        self.is_lost = False

    def acquire(self, *, waits: bool = False, is_stopping: Callable[[], bool] = lambda: False) -> Term:
        """Take the lease. LeaseIsHeld if its holder renews it, unless `waits`. A lease that stands still is
        watched for `lease_s` first."""
        seen, since = -1, 0.0
        while True:
            began = seconds_since_boot()
            newest = self._newest()
            if newest is not None and newest.number != seen:
                if seen >= 0 and newest.is_held and not waits:
                    raise LeaseIsHeld(newest.holder)
                seen, since = newest.number, began
            has_expired = began - since >= self._timing.lease_s
            term = next_term(newest, self._holder, self._lock, has_expired=has_expired)
            if term is not None and self._put(term, began):
                break
            if is_stopping():
                raise LeaseIsHeld("stopped while waiting")
            if term is None:
                time.sleep(self._timing.look_s)
        self._thread = threading.Thread(target=self._renew, name="lease", daemon=True)
        self._thread.start()
        return term

    def release(self) -> None:
        """Free the lease for the next host at once. Everything that this host began must have ended."""
        self.stop()
        if self.term is not None and not self.is_lost:
            self._put(replace(self._following(self.term), is_held=False), seconds_since_boot())

    def stop(self) -> None:
        """Renew the lease no more."""
        self._stopping.set()
        if self._thread is not None:
            self._thread.join()

    def _newest(self) -> Term | None:
        found = self._records.newest()
        return None if found is None else Term.parse(found[1])

    def _put(self, term: Term, began: float) -> bool:
        """Put the next record. Records are deleted later, so a number may be free again: ours counts only if
        it is the newest."""
        self._records.put(term.number, term.data())
        # A put whose answer got lost is ours too.
        if self._records.newest() != (term.number, term.data()):
            return False
        self._records.forget(term.number - KEPT)
        self.term, self.until = term, began + self._timing.lease_s * SAFE
        self._changed(term, self.until)
        return True

    def _following(self, term: Term) -> Term:
        is_fenced = term.is_fenced or self._is_fenced(term.epoch)
        return replace(term, number=term.number + 1, is_fenced=is_fenced)

    def _renew(self) -> None:
        while not self.is_lost and not self._stopping.wait(self._timing.renew_s):
            self._renew_once()

    def _renew_once(self) -> None:
        assert self.term is not None
        try:
            is_ours = self._put(self._following(self.term), seconds_since_boot())
        except Exception as error:
            # Tried again. After `until` nothing is begun; a host that takes over meanwhile is noticed then.
            LOG.warning("the lease cannot be renewed: %s", error)
            return
        if not is_ours:
            self.is_lost = True
            self._on_lost()
