"""What time does to transactions: those open for too long are to be aborted, silent ids forgotten.

In: time, and a look every so often (`transaction.abort.timed.out.transaction.cleanup.interval.ms`,
`transaction.remove.expired.transaction.cleanup.interval.ms`), some hundred ids at a time. Out: which ones.
Does not know: how a transaction is aborted, records.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from itertools import islice

from barnabas.transactions.settings import TransactionSettings
from barnabas.transactions.transaction import Transaction

IDS_A_TURN = 200
ENDED_A_TURN = 50  # each is aborted, which takes much longer than a look


class Timeouts:
    """Looks at open transactions only, so that a shard at rest has nothing to do."""

    __slots__ = ("_check_ms", "_remaining", "ongoing", "settings")

    def __init__(self, settings: TransactionSettings, now_ms: int) -> None:
        self.settings = settings
        self.ongoing: dict[str, Transaction] = {}
        self._check_ms = now_ms + settings.abort_check_interval_ms
        self._remaining: Iterator[Transaction] | None = None

    def opens(self, now_ms: int) -> None:
        """A transaction is about to begin: after a rest, the next look is not overdue."""
        if not self.ongoing:
            self._check_ms = now_ms + self.settings.abort_check_interval_ms

    def clock_was_set(self, by_ms: int) -> None:
        self._check_ms += by_ms

    def next_deadline_ms(self) -> int | None:
        return self._check_ms if self.ongoing else None

    def due(self, now_ms: int) -> list[Transaction]:
        """Transactions to abort in this turn, if it is time; more turns follow at once until all were looked
        at."""
        if now_ms < self._check_ms:
            return []
        if self._remaining is None:
            self._remaining = iter(list(self.ongoing.values()))
        found: list[Transaction] = []
        for _ in range(IDS_A_TURN):
            each = next(self._remaining, None)
            if each is None:
                self._remaining = None
                self._check_ms = now_ms + self.settings.abort_check_interval_ms
                break
            if self.ongoing.get(each.transactional_id) is each and is_timed_out(each, now_ms):
                found.append(each)
                if len(found) == ENDED_A_TURN:
                    break
        return found


class Expiry:
    """Goes through all ids, a turn at a time."""

    __slots__ = ("_check_ms", "_remaining", "settings")

    def __init__(self, settings: TransactionSettings, now_ms: int) -> None:
        self.settings = settings
        self._check_ms = now_ms + settings.id_expiration_check_interval_ms
        self._remaining: Iterator[str] | None = None

    def clock_was_set(self, by_ms: int) -> None:
        self._check_ms += by_ms

    def next_deadline_ms(self) -> int:
        return self._check_ms

    def due(self, now_ms: int, transactions: Mapping[str, Transaction]) -> list[str]:
        """Ids to forget in this turn, if it is time; more turns follow at once until all were looked at."""
        if now_ms < self._check_ms:
            return []
        if self._remaining is None:
            self._remaining = iter(list(transactions))
        turn = list(islice(self._remaining, IDS_A_TURN))
        if len(turn) < IDS_A_TURN:
            self._remaining = None
            self._check_ms = now_ms + self.settings.id_expiration_check_interval_ms
        before_ms = now_ms - self.settings.id_expiration_ms
        return [each for each in turn if each in transactions and is_expired(transactions[each], before_ms)]


def is_timed_out(transaction: Transaction, now_ms: int) -> bool:
    """Not if somebody else decides how it ends: it is open for as long as that takes."""
    return not transaction.is_two_phase and transaction.start_ms + transaction.timeout_ms < now_ms


def is_expired(transaction: Transaction, before_ms: int) -> bool:
    return transaction.state.is_idle and transaction.update_ms <= before_ms
