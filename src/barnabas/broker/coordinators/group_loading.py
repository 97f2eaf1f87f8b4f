"""Loading a shard of groups. Offsets that were committed in a transaction become valid with its marker.

In: batches of `__consumer_offsets`, with transactions and their markers among them. Out: the shard as it was.
Does not know: reading the log, decoding records (see `loading`).
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from barnabas.broker.coordinators.loading import Loading
from barnabas.groups.basics.records import decode
from barnabas.records.batch import BatchHeader
from barnabas.records.control import read_end_marker

if TYPE_CHECKING:
    from barnabas.groups.shard import GroupShard
    from barnabas.metadata.steps import Steps
    from barnabas.storage.logs.log import Log


class GroupLoading(Loading):
    __slots__ = ("_shard",)

    def __init__(self, partition_log: Log, shard: GroupShard) -> None:
        super().__init__(partition_log, decode, shard.apply)
        self._shard = shard

    def replay_batch(self, data: bytes, position: int, header: BatchHeader) -> Steps[None]:
        if header.is_control:
            marker = read_end_marker(data, position=position)
            if marker is not None:
                self._shard.complete_transaction(
                    header.producer_id, header.producer_epoch, is_commit=not marker.aborted
                )
        elif header.is_transactional:
            for entry in self.entries(data, position):
                self._shard.apply_pending(header.producer_id, entry)
                yield
        else:
            yield from super().replay_batch(data, position, header)
