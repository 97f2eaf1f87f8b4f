"""The modules of the core whose every rule is to be tested, and the quick tests that are to do it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path

from .mutants import Mutant

ROOT = Path(__file__).parents[2]


@dataclass(frozen=True, slots=True)
class Target:
    module: str
    tests: tuple[str, ...]
    # Changes that are none: what is changed, as a mutant prints it, and why no test can tell.
    same: Mapping[str, str] = field(default_factory=dict)

    def reason_for(self, mutant: Mutant) -> str | None:
        return self.same.get(mutant.change)


SHARE_STATE = ("tests/shares/state/test_shard.py", "tests/shares/state/test_needed_offsets.py")
PURGATORY = ("tests/broker/test_purgatory_rules.py",)
TARGETS = (
    Target("barnabas.shares.sessions.share_sessions", ("tests/shares/test_share_sessions.py",)),
    Target(
        "barnabas.broker.produce.purgatory",
        (*PURGATORY, "tests/broker/test_producers_give_up.py", "tests/broker/test_isolation.py"),
        same={"self._missing = 0: left out": "it is set before the first wait can end, and read then"},
    ),
    Target(
        "barnabas.decisions.commit_waits",
        (*PURGATORY, "tests/broker/test_isolation.py"),
        same={
            "super().__init__(): left out": "an empty deque is empty",
            "len(waiting) < len(self): Lt becomes LtE": "only spares putting back the same",
        },
    ),
    Target("barnabas.decisions.uncommitted", PURGATORY),
    Target(
        "barnabas.broker.replicas.isr",
        ("tests/broker/test_isr_rules.py",),
        same={
            "partition.is_leader and len(state.isr) <= len(state.followers): and and or change places": (
                "only spares a loop over followers"
            ),
            "partition.is_leader and (not partition.state.has_no_followers): and and or change places": (
                "only spares looking: there is nobody in sync beside this broker"
            ),
            "await asyncio.sleep(0): left out": "the task begins in the next turn of the loop anyhow",
        },
    ),
    Target(
        "barnabas.replication.fetch_sessions",
        ("tests/replication/test_fetch_sessions.py", "tests/replication/test_fetch_session_rules.py"),
        same={
            "len(self.partitions) > 1: Gt becomes GtE": "the only partition is last already",
        },
    ),
    Target(
        "barnabas.replication.partition_state",
        (
            "tests/replication/test_partition_state.py",
            "tests/replication/test_in_sync.py",
            "tests/replication/test_partition_rules.py",
        ),
        same={
            "follower.log_end_offset < high_watermark: Lt becomes LtE": "the minimum of equal numbers",
        },
    ),
    Target(
        "barnabas.replication.follower_progress",
        ("tests/replication/test_in_sync.py", "tests/replication/test_partition_rules.py"),
        same={
            # The second of the two comparisons.
            "fetch_offset >= self.leader_end_at_fetch >= 0: GtE becomes Gt (2)": "a fetch of an empty log"
            " was at its end: that was noted then",
        },
    ),
    Target(
        "barnabas.replication.producers",
        (
            "tests/replication/test_producers.py",
            "tests/replication/test_producer_snapshot.py",
            "tests/replication/test_producer_rules.py",
            "tests/replication/test_hanging.py",
        ),
    ),
    Target(
        "barnabas.replication.producer_state",
        ("tests/replication/test_producers.py", "tests/replication/test_producer_rules.py"),
    ),
    Target(
        "barnabas.shares.state.batches",
        ("tests/shares/state/test_batches.py",),
        same={
            "len(touched) < high - low: Lt becomes LtE": "only spares sorting what is sorted",
            "high - low: plus and minus change places": "only spares sorting what is sorted",
            "batch.first_offset >= start_offset: GtE becomes Gt": "cut where it begins, it is the same",
            "len(found) > 1: Gt becomes GtE": "one batch is swept to itself",
            "right[2:] > left[2:]: Gt becomes GtE": "equal ones were joined before",
        },
    ),
    Target("barnabas.shares.state.needed_offsets", SHARE_STATE),
    Target("barnabas.shares.state.deciding", SHARE_STATE),
    Target("barnabas.shares.state.partition_state", SHARE_STATE),
    Target("barnabas.shares.state.shard", SHARE_STATE),
)


def source_of(module: str) -> Path:
    return ROOT / "src" / Path(*module.split(".")).with_suffix(".py")
