"""Transactions in a log that is being cleaned: which data was aborted, and which markers are obsolete.

In: the aborted transactions of a log, then its batches in order. Out: whether a batch may be removed. Data of
aborted transactions is removed at once. A marker is obsolete when the log holds no batch of its transaction
any more; it is removed `delete.retention.ms` later (KIP-534).
Does not know: keys, delete horizons, files.
"""

import heapq
from collections.abc import Iterable

from barnabas.records.batch import TRANSACTIONAL_FLAG, BatchHeader
from barnabas.records.control import ControlType, read_control
from barnabas.records.crc32c import Buffer
from barnabas.storage.segments.transaction_index import AbortedTransaction


class CleanedTransactions:
    """`kept` collects the aborted transactions that consumers still need to know: their marker was visited,
    and the log still holds batches of them."""

    __slots__ = ("_aborted", "_committed", "_ongoing", "_seen", "kept")

    def __init__(self, aborted: Iterable[AbortedTransaction]) -> None:
        self._aborted = [(entry.first_offset, entry) for entry in aborted]
        heapq.heapify(self._aborted)
        self._ongoing: dict[int, AbortedTransaction] = {}  # by producer; its abort marker comes later
        self._seen: set[int] = set()  # producers whose aborted transaction still has a batch
        self._committed: set[int] = set()  # producers with a batch in a transaction that is not aborted
        self.kept: list[AbortedTransaction] = []

    def visit_data(self, header: BatchHeader) -> bool:
        """Whether the records of this batch were aborted."""
        if not header.attributes & TRANSACTIONAL_FLAG:
            return False
        self._reach(header)
        aborted = self._ongoing.get(header.producer_id)
        if aborted is not None and header.base_offset < aborted.last_offset:
            self._seen.add(header.producer_id)
            return True
        self._committed.add(header.producer_id)
        return False

    def visit_control(self, header: BatchHeader, batch: Buffer) -> bool:
        """Whether this control batch is obsolete."""
        self._reach(header)
        found = read_control(batch)
        if not found:
            return True  # emptied by an earlier pass
        producer_id = header.producer_id
        if found[0].control_type == ControlType.ABORT:
            aborted = self._ongoing.pop(producer_id, None)
            if aborted is None or producer_id not in self._seen:
                return True
            self._seen.discard(producer_id)
            self.kept.append(aborted)
            return False
        if found[0].control_type == ControlType.COMMIT:
            if producer_id not in self._committed:
                return True
            self._committed.discard(producer_id)
        return False

    def pop_kept(self) -> list[AbortedTransaction]:
        """Return `kept` and empty it."""
        kept, self.kept = self.kept, []
        return kept

    def _reach(self, header: BatchHeader) -> None:
        """Add the aborted transactions that begin up to this batch. The first pass begins in the middle of
        the log: transactions that ended before are skipped, although their marker was not visited."""
        while self._aborted and self._aborted[0][0] <= header.last_offset:
            _, entry = heapq.heappop(self._aborted)
            if header.base_offset <= entry.last_offset:
                self._ongoing[entry.producer_id] = entry
