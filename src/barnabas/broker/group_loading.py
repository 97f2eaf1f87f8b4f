"""A shard of groups comes back from its log. Offsets committed in transactions count when the marker says so.

In: batches of `__consumer_offsets`, with transactions and their markers among them. Out: the shard as it was.
Does not know: reading the log, decoding records (see `coordinator_loading`).
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from barnabas.broker.coordinator_loading import Loading
from barnabas.groups.records import Entry, decode
from barnabas.records.batch import BatchHeader
from barnabas.records.control import read_end_marker

if TYPE_CHECKING:
    from barnabas.groups.shard import GroupShard
    from barnabas.storage.log import Log


class GroupLoading(Loading):
    __slots__ = ("_newer", "_open", "_shard")

    def __init__(self, partition_log: Log, shard: GroupShard) -> None:
        super().__init__(partition_log, decode, shard.apply)
        self._shard = shard
        self._open: dict[int, list[tuple[int, bytes, Entry]]] = {}  # by producer: not yet committed
        self._newer: dict[bytes, int] = {}  # keys written outside of transactions while one was open

    def replay(self, data: bytes, position: int, header: BatchHeader) -> None:
        if header.is_control:
            marker = read_end_marker(data, position=position)
            if marker is not None:
                self._end_transaction(header.producer_id, aborted=marker.aborted)
        elif header.is_transactional:
            self._open.setdefault(header.producer_id, []).extend(self.entries(data, position))
        else:
            for offset, key, entry in self.entries(data, position):
                if self._open:
                    self._newer[key] = offset
                self._shard.apply(entry)

    def _end_transaction(self, producer_id: int, *, aborted: bool) -> None:
        for offset, key, entry in self._open.pop(producer_id, ()):
            if not aborted and self._newer.get(key, -1) < offset:
                self._shard.apply(entry)
        if not self._open:
            self._newer.clear()
