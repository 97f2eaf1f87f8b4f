"""The state that the active controller decides on: the image after everything appended, and broker sessions.

In: decided records. Out: the next image, handed to the log, which publishes it once it is committed.
Thousands of records are packed and replayed in steps first. They take effect together, at the end.
Does not know: decisions, requests.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from barnabas.controller.sessions import BrokerSessions
from barnabas.metadata.delta import MetadataDelta
from barnabas.metadata.image import MetadataImage
from barnabas.metadata.steps import Steps, at_once
from barnabas.metadata.transactions import TransactionFilter
from barnabas.protocol import Message
from barnabas.protocol.log_records.metadata import RegisterBrokerRecord
from barnabas.quorum.metadata_log import NO_TRANSACTION, MetadataLog
from barnabas.quorum.quorum_stats import ControllerStats


class ControllerState:
    """The image after everything appended, committed or not, and the controller's broker sessions."""

    def __init__(
        self, log: MetadataLog, sessions: BrokerSessions, stats: ControllerStats | None = None
    ) -> None:
        self.log = log
        self.stats = stats
        self.sessions = sessions
        self.image: MetadataImage = log.last_image
        self.registered_at = log.uncommitted.registered_at
        self.transactions: TransactionFilter = log.uncommitted.transactions.copy()

    def apply(self, records: Sequence[Message], first_offset: int) -> None:
        delta, transactions = at_once(self.replay(records))
        self._adopt(delta, transactions, records, first_offset)

    def replay(self, records: Sequence[Message]) -> Steps[tuple[MetadataDelta, TransactionFilter]]:
        """Compute what the records change, in steps. Changes nothing yet."""
        delta, transactions = MetadataDelta(self.image), self.transactions.copy()
        yield from delta.replay_in_steps(transactions.pass_on(records))
        return delta, transactions

    def _adopt(
        self,
        delta: MetadataDelta,
        transactions: TransactionFilter,
        records: Sequence[Message],
        first_offset: int,
    ) -> None:
        if self.stats is not None:
            self.stats.count_elections(self.image, records)
        for index, record in enumerate(records):
            if type(record) is RegisterBrokerRecord:
                self.registered_at[record.broker_id] = first_offset + index
        self.image = delta.apply(self.log.provenance())
        self.transactions = transactions
        held = self.transactions.copy() if self.transactions.is_open else NO_TRANSACTION
        self.log.note_applied(delta, self.image, records, held)

    def prepare(self, records: Sequence[Message]) -> Steps[Callable[[], int]]:
        """Do the slow work for many records in steps. The result appends and applies them at once."""
        batches = yield from self.log.pack(records)
        delta, transactions = yield from self.replay(records)

        def append_and_apply() -> int:
            first_offset = self.log.end_offset
            end_offset = self.log.append_packed(batches)
            self._adopt(delta, transactions, records, first_offset)
            return end_offset

        return append_and_apply
