"""Some seeds of every history; `make simulate` tries more of them."""

import functools
import json
import os
import subprocess
import sys
from collections.abc import Sequence
from typing import Any

import pytest

from barnabas.simulation.histories.catalogue import HISTORIES
from barnabas.simulation.histories.stage import SYNCED
from barnabas.simulation.histories.transactions import TransactionsHistory
from barnabas.simulation.world.faults import Fault, Kind, Plan
from barnabas.simulation.world.history import Result, Verdict, Wrong, live, shrink
from barnabas.simulation.world.loop import Stuck
from barnabas.simulation.world.world import World

SEEDS = {
    "records": range(5),
    "encrypted-records": range(2),
    "guarded-records": range(3),
    "groups": range(8),
    "streams": range(4),
    "transactions": range(5),
    "registry": range(3),
    "shares": range(3),
}
SEEDS_SHORT = 2  # of each history in `make test`
REPLAYED = 1
CRASH_POINTS = 20
CRASH_POINTS_SHORT = 4  # every so many operations in `make test`, for each kind

# Seeds that once found a bug; what they do changes with the code, and they may find another one.
REMEMBERED = [("records", 20), ("groups", 13), ("transactions", 5), ("transactions", 11)]


@functools.cache
def lived(name: str, seed: int) -> Result:
    """What a seed does, for tests that ask for the same one."""
    return live(HISTORIES[name], seed)


@pytest.mark.parametrize(
    ("name", "seed"),
    [
        pytest.param(name, seed, marks=[pytest.mark.long] if seed >= SEEDS_SHORT else [])
        for name, seeds in SEEDS.items()
        for seed in seeds
    ],
)
def test_a_seed_is_good(name: str, seed: int) -> None:
    result = lived(name, seed)

    assert result.verdict is Verdict.GOOD, f"{result}\n{result.details}"


@pytest.mark.parametrize(("name", "seed"), REMEMBERED)
def test_a_seed_that_found_a_bug_finds_it_no_more(name: str, seed: int) -> None:
    result = live(HISTORIES[name], seed)

    assert result.verdict is Verdict.GOOD, f"{result}\n{result.details}"


KINDS = {"kill": Kind.KILL_AT_OPERATION, "power": Kind.POWER_AT_OPERATION}


def crash_points() -> list[Any]:
    """Both kinds at each operation; in `make test` some operations, one kind at each."""
    return [
        pytest.param(
            operation,
            kind,
            id=f"{operation}-{name}",
            marks=[] if operation % CRASH_POINTS_SHORT == 2 * place else [pytest.mark.long],
        )
        for operation in range(1, CRASH_POINTS + 1)
        for place, (name, kind) in enumerate(KINDS.items())
    ]


@pytest.mark.parametrize(("operation", "kind"), crash_points())
def test_transactions_outlive_an_end_at_any_operation_of_the_disk(operation: int, kind: Kind) -> None:
    seed = next(
        seed
        for seed, history in ((seed, TransactionsHistory(seed)) for seed in range(100))
        if history.promise is SYNCED and history.inputs and history.writers
    )

    result = live(TransactionsHistory, seed, [Fault(0.4, kind, 0.3, operation)])

    assert result.counts["lives"] == 2, f"{result}\n{result.details}"


@pytest.mark.parametrize(
    "name",
    [
        # `make test` compares the others with those of another process, below.
        pytest.param(name, marks=[] if name in ("records", "transactions") else [pytest.mark.long])
        for name in HISTORIES
    ],
)
def test_a_seed_is_one_history(name: str) -> None:
    first, again = lived(name, REPLAYED), live(HISTORIES[name], REPLAYED)

    assert first.trace_hash == again.trace_hash
    assert first.events == again.events > 100


@pytest.fixture(scope="module")
def of_another_process() -> dict[str, str]:
    """The hash of each history, lived through with another order of sets."""
    program = (
        "import json\n"
        "from barnabas.simulation.histories.catalogue import HISTORIES\n"
        "from barnabas.simulation.world.history import live\n"
        f"print(json.dumps({{name: live(HISTORIES[name], {REPLAYED}).trace_hash for name in HISTORIES}}))"
    )
    environment = {**os.environ, "PYTHONHASHSEED": "4711"}
    told = subprocess.run(
        [sys.executable, "-c", program], env=environment, capture_output=True, text=True, check=True
    )
    hashes: dict[str, str] = json.loads(told.stdout)
    return hashes


@pytest.mark.parametrize("name", HISTORIES)
def test_another_process_lives_through_the_same_history(
    name: str, of_another_process: dict[str, str]
) -> None:
    """Nothing depends on the order of sets or on addresses of objects."""
    assert of_another_process[name] == lived(name, REPLAYED).trace_hash


def test_different_seeds_are_different_histories() -> None:
    hashes = {lived("groups", seed).trace_hash for seed in range(SEEDS_SHORT)}

    assert len(hashes) == SEEDS_SHORT


class Fragile:
    """Breaks when the node is killed while a client is cut off, and only then."""

    name = "fragile"
    seconds_max = 60.0

    def __init__(self, seed: int) -> None:
        self.faults: Sequence[Fault] = [
            Fault(float(place), kind, 1.0, seed)
            for place, kind in enumerate(
                (Kind.SLOW, Kind.RESET, Kind.KILL, Kind.PAUSE, Kind.STOP, Kind.CUT, Kind.POWER)
            )
        ]

    async def run(self, world: World, faults: Plan) -> dict[str, int]:
        kinds = {fault.kind for fault in faults}
        world.trace.note(len(faults))
        if {Kind.KILL, Kind.CUT} <= kinds:
            raise Wrong("broken")
        if Kind.STOP in kinds:
            raise Stuck("slow")
        return {}


def test_a_failing_schedule_is_made_short() -> None:
    failed = live(Fragile, 1)

    short = shrink(Fragile, failed)

    assert short.verdict is Verdict.WRONG
    assert [fault.kind for fault in short.faults] == [Kind.KILL, Kind.CUT]


def test_a_failed_result_has_the_reason_and_the_replay_command() -> None:
    told = str(live(Fragile, 5))

    assert told.startswith("fragile seed 5: wrong: broken\n  at 0.000 s slow down client (5) for 1.000 s\n")
    assert told.endswith("replay: make simulate HISTORY=fragile SEED=5")


def test_each_kind_of_failure_has_its_verdict() -> None:
    class Crashing(Fragile):
        async def run(self, world: World, faults: Plan) -> dict[str, int]:
            world.loop.call_soon(lambda: 1 // 0)
            return await super().run(world, [])

    class Waiting(Fragile):
        async def run(self, world: World, faults: Plan) -> dict[str, int]:
            await world.loop.create_future()
            raise AssertionError

    stop = [fault for fault in Fragile(1).faults if fault.kind is Kind.STOP]

    assert live(Fragile, 1).verdict is Verdict.WRONG
    assert live(Fragile, 1, stop).verdict is Verdict.STUCK
    assert live(Waiting, 1).verdict is Verdict.STUCK
    assert live(Crashing, 1).verdict is Verdict.CRASHED
