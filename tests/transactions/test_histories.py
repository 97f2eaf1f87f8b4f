"""Random histories of one shard keep the invariants, and planted bugs are detected."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import pytest

from barnabas.transactions import adding, beginning, ending
from barnabas.transactions.outcome import TransactionOutcome
from barnabas.transactions.shard import TransactionShard
from barnabas.transactions.transaction import Transaction

from .histories import History, failure_of

SEEDS = range(40)
STEPS = 600
SEEDS_UNTIL_NOTICED = 60


@pytest.mark.parametrize("seed", SEEDS)
def test_every_history_keeps_the_invariants(seed: int) -> None:
    assert failure_of(seed, STEPS) is None


def test_a_long_history_commits_and_aborts_much() -> None:
    history = History(seed=4711)
    history.run(8_000)
    assert history.ledger.commits > 50
    assert history.ledger.aborts > 100


def fences_without_a_new_epoch(patch: pytest.MonkeyPatch) -> None:
    real = ending.fence

    def broken(transaction: Transaction, *rest: Any) -> ending.Ended:
        ended = real(transaction, *rest)
        assert ended.value is not None
        ended.value.producer_epoch = transaction.producer_epoch
        return ended

    patch.setattr(ending, "fence", broken)


def is_complete_with_the_first_marker(patch: pytest.MonkeyPatch) -> None:
    real = TransactionShard.markers_written

    def broken(shard: TransactionShard, name: str, *rest: Any) -> list[TransactionOutcome]:
        if name in shard.transactions:
            shard.transactions[name].unmarked = frozenset()
        return real(shard, name, *rest)

    patch.setattr(TransactionShard, "markers_written", broken)


def forgets_prepared_transactions(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(TransactionShard, "loaded", lambda shard, now_ms: [])


def accepts_every_producer(patch: pytest.MonkeyPatch) -> None:
    def broken(transaction: Transaction | None, producer_id: int, producer_epoch: int) -> Transaction:
        return transaction or Transaction("nobody")

    patch.setattr(adding, "check_owner", broken)


def lets_old_producers_recover(patch: pytest.MonkeyPatch) -> None:
    def broken(transaction: Transaction, given: object) -> tuple[int, int]:
        return transaction.producer_epoch + 1, transaction.producer_epoch

    patch.setattr(beginning, "next_epoch", broken)


def completes_otherwise_than_prepared(patch: pytest.MonkeyPatch) -> None:
    real = Transaction.markers

    def broken(transaction: Transaction, coordinator_epoch: int) -> Any:
        return replace(real(transaction, coordinator_epoch), is_commit=True)

    patch.setattr(Transaction, "markers", broken)


def repeats_ends_of_others(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(ending, "EPOCH_BUMPS_SINCE", 0)


def never_aborts_in_time(patch: pytest.MonkeyPatch) -> None:
    patch.setattr("barnabas.transactions.timing.is_timed_out", lambda transaction, now_ms: False)


BROKEN: list[Callable[[pytest.MonkeyPatch], None]] = [
    fences_without_a_new_epoch,
    is_complete_with_the_first_marker,
    forgets_prepared_transactions,
    accepts_every_producer,
    lets_old_producers_recover,
    completes_otherwise_than_prepared,
    repeats_ends_of_others,
    never_aborts_in_time,
]


@pytest.mark.parametrize("broken", BROKEN, ids=lambda broken: broken.__name__)
def test_planted_bugs_are_detected(
    broken: Callable[[pytest.MonkeyPatch], None], monkeypatch: pytest.MonkeyPatch
) -> None:
    broken(monkeypatch)
    assert any(failure_of(seed, STEPS) for seed in range(SEEDS_UNTIL_NOTICED))
