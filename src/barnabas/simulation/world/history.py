"""A history: one seed lived through, with one of four verdicts.

In: a seed, and perhaps a shorter plan of faults than the seed's own. Out: a `Result`: good; wrong (an
invariant is broken), stuck (no progress after the faults), crashed (code failed in a way that nobody
expected); with the plan and how to live through it again. Does not know: what a history does.
"""

from __future__ import annotations

import gc
import traceback
from collections.abc import Callable
from dataclasses import dataclass, field
from enum import Enum
from typing import Protocol

from barnabas.simulation.world.faults import Fault, Plan
from barnabas.simulation.world.loop import Stuck
from barnabas.simulation.world.world import Unexpected, World


class Wrong(Exception):
    """An invariant does not hold."""


class Verdict(Enum):
    GOOD = "good"
    WRONG = "wrong"
    STUCK = "stuck"
    CRASHED = "crashed"


class History(Protocol):
    """Made for one seed; run once."""

    name: str
    seconds_max: float

    @property
    def faults(self) -> Plan: ...

    async def run(self, world: World, faults: Plan) -> dict[str, int]:
        """Live through it; what happened how often. Raises Wrong and Stuck."""


Make = Callable[[int], History]


@dataclass(frozen=True, slots=True)
class Result:
    history: str
    seed: int
    verdict: Verdict
    reason: str
    trace_hash: str
    events: int
    virtual_s: float
    faults: Plan
    counts: dict[str, int] = field(default_factory=dict)
    happened: dict[str, int] = field(default_factory=dict)  # faults, by their kind
    details: str = ""  # a traceback
    last_events: tuple[str, ...] = ()

    def __str__(self) -> str:
        told = f"{self.history} seed {self.seed}: {self.verdict.value}"
        if self.verdict is Verdict.GOOD:
            return f"{told} ({self.events} events, {self.virtual_s:.0f} s, trace {self.trace_hash[:12]})"
        lines = [f"{told}: {self.reason}", *(f"  {fault}" for fault in self.faults)]
        return "\n".join([*lines, f"  replay: make simulate HISTORY={self.history} SEED={self.seed}"])


def live(
    make: Make, seed: int, faults: Plan | None = None, on_line: Callable[[str], None] | None = None
) -> Result:
    """Live through the history of one seed."""
    history = make(seed)
    plan: Plan = list(history.faults if faults is None else faults)
    with PausedCollection(), World(seed) as world:
        world.trace.on_line = on_line
        verdict, reason, details, counts = Verdict.GOOD, "", "", {}
        try:
            counts = world.run(history.run(world, plan), history.seconds_max)
        except Wrong as error:
            verdict, reason = Verdict.WRONG, str(error)
        except Stuck as error:
            verdict, reason = Verdict.STUCK, str(error)
        except Unexpected as error:
            cause = error.__cause__
            if isinstance(cause, Wrong):
                verdict, reason = Verdict.WRONG, str(cause)
            else:
                verdict, reason = Verdict.CRASHED, str(error)
                details = "".join(traceback.format_exception(cause)) if cause is not None else ""
        return Result(
            history.name,
            seed,
            verdict,
            reason,
            world.trace.hexdigest(),
            world.trace.events,
            world.loop.time(),
            plan,
            counts,
            dict(world.happened),
            details,
            tuple(world.trace.lines) if verdict is not Verdict.GOOD else (),
        )


class PausedCollection:
    """No garbage is collected meanwhile, but when a history is over (see `World.run`): it is quicker, and
    what destructors have to tell is told at the same moment each time."""

    def __enter__(self) -> None:
        gc.disable()
        gc.collect()  # the last history's world, which nobody holds any more
        if not gc.get_freeze_count():
            gc.freeze()  # the code itself is no garbage, and need not be looked at again

    def __exit__(self, *_: object) -> None:
        gc.enable()


SHRINKING_RUNS_MAX = 120


def shrink(make: Make, failed: Result) -> Result:
    """The same verdict with as few faults as can be found: halves are left out first, then single ones."""
    best = failed
    runs = 0
    size = max(1, len(best.faults) // 2)
    while best.faults and runs < SHRINKING_RUNS_MAX:
        start = 0
        while start < len(best.faults) and runs < SHRINKING_RUNS_MAX:
            fewer: list[Fault] = [*best.faults[:start], *best.faults[start + size :]]
            runs += 1
            result = live(make, failed.seed, fewer)
            if result.verdict is failed.verdict:
                best = result
            else:
                start += size
        if size == 1:
            break
        size = max(1, size // 2)
    return best
