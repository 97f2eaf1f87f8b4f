"""Running of one history for one seed, with one of four verdicts.

In: a seed, and optionally a shorter plan of faults than the seed's own. Out: a `Result`: good, wrong (an
invariant is broken), stuck (no progress after the faults) or crashed (an unexpected exception), with the plan
and the command to replay it.
Does not know: what a history does.
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
    """A history of one seed. It is run once."""

    name: str
    seconds_max: float

    @property
    def faults(self) -> Plan: ...

    async def run(self, world: World, faults: Plan) -> dict[str, int]:
        """Run the history. Returns counts of what happened. Raises Wrong and Stuck."""


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
        header = f"{self.history} seed {self.seed}: {self.verdict.value}"
        if self.verdict is Verdict.GOOD:
            return f"{header} ({self.events} events, {self.virtual_s:.0f} s, trace {self.trace_hash[:12]})"
        lines = [f"{header}: {self.reason}", *(f"  {fault}" for fault in self.faults)]
        return "\n".join([*lines, f"  replay: make simulate HISTORY={self.history} SEED={self.seed}"])


def live(
    make: Make, seed: int, faults: Plan | None = None, on_line: Callable[[str], None] | None = None
) -> Result:
    """Run the history of one seed."""
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
    """Disables garbage collection during a history; `World.run` collects at its end. This is faster, and
    destructors run at the same moment in every replay."""

    def __enter__(self) -> None:
        gc.disable()
        gc.collect()  # frees the world of the last history
        if not gc.get_freeze_count():
            gc.freeze()  # objects of the code are never garbage

    def __exit__(self, *_: object) -> None:
        gc.enable()


SHRINKING_RUNS_MAX = 120


def shrink(make: Make, failed: Result) -> Result:
    """Find a small subset of the faults with the same verdict: remove halves first, then single faults."""
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
