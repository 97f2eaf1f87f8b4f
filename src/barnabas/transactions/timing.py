"""Timeouts of transactions: those open for too long are aborted, ids idle for too long are deleted.

In: time. At intervals (`transaction.abort.timed.out.transaction.cleanup.interval.ms`,
`transaction.remove.expired.transaction.cleanup.interval.ms`) it checks some hundred ids at a time. Out: the
ids that are due.
Does not know: how a transaction is aborted, records.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from itertools import islice

from barnabas.transactions.settings import TransactionSettings
from barnabas.transactions.transaction import Transaction

IDS_PER_TURN = 200
ENDED_PER_TURN = 50  # each is aborted, which takes much longer than a check


class Timeouts:
    """Checks only open transactions, so that an idle shard has nothing to do."""

    __slots__ = ("_check_ms", "_remaining", "ongoing", "settings")

    def __init__(self, settings: TransactionSettings, now_ms: int) -> None:
        self.settings = settings
        self.ongoing: dict[str, Transaction] = {}
        self._check_ms = now_ms + settings.abort_check_interval_ms
        self._remaining: Iterator[Transaction] | None = None

    def note_begin(self, now_ms: int) -> None:
        """Note that a transaction is about to begin. After an idle time, the next check is not overdue."""
        if not self.ongoing:
            self._check_ms = now_ms + self.settings.abort_check_interval_ms

    def on_clock_set(self, by_ms: int) -> None:
        self._check_ms += by_ms

    def next_deadline_ms(self) -> int | None:
        return self._check_ms if self.ongoing else None

    def due(self, now_ms: int) -> list[Transaction]:
        """The transactions to abort in this turn, if a check is due. More turns follow at once until all
        were checked."""
        if now_ms < self._check_ms:
            return []
        if self._remaining is None:
            self._remaining = iter(list(self.ongoing.values()))
        found: list[Transaction] = []
        for _ in range(IDS_PER_TURN):
            each = next(self._remaining, None)
            if each is None:
                self._remaining = None
                self._check_ms = now_ms + self.settings.abort_check_interval_ms
                break
            if self.ongoing.get(each.transactional_id) is each and is_timed_out(each, now_ms):
                found.append(each)
                if len(found) == ENDED_PER_TURN:
                    break
        return found


class Expiry:
    """Checks all ids, a bounded number per turn."""

    __slots__ = ("_check_ms", "_remaining", "settings")

    def __init__(self, settings: TransactionSettings, now_ms: int) -> None:
        self.settings = settings
        self._check_ms = now_ms + settings.id_expiration_check_interval_ms
        self._remaining: Iterator[str] | None = None

    def on_clock_set(self, by_ms: int) -> None:
        self._check_ms += by_ms

    def next_deadline_ms(self) -> int:
        return self._check_ms

    def due(self, now_ms: int, transactions: Mapping[str, Transaction]) -> list[str]:
        """The ids to delete in this turn, if a check is due. More turns follow at once until all were
        checked."""
        if now_ms < self._check_ms:
            return []
        if self._remaining is None:
            self._remaining = iter(list(transactions))
        turn = list(islice(self._remaining, IDS_PER_TURN))
        if len(turn) < IDS_PER_TURN:
            self._remaining = None
            self._check_ms = now_ms + self.settings.id_expiration_check_interval_ms
        before_ms = now_ms - self.settings.id_expiration_ms
        return [each for each in turn if each in transactions and is_expired(transactions[each], before_ms)]


def is_timed_out(transaction: Transaction, now_ms: int) -> bool:
    """Whether an open transaction has timed out. A two-phase transaction never does: an external
    coordinator ends it."""
    return not transaction.is_two_phase and transaction.start_ms + transaction.timeout_ms < now_ms


def is_expired(transaction: Transaction, before_ms: int) -> bool:
    return transaction.state.is_idle and transaction.update_ms <= before_ms
