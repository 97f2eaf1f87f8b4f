"""Retention of all partitions: deletes expired segments every `log.retention.check.interval.ms`.

In: the partitions with their high watermarks. Out: segments taken out of logs, files renamed for removal.
Threads look up expired segments, for some logs at a time; the loop takes the segments out with a new list. A
log that other work holds (compaction, a move) waits for the next round.
Does not know: the rules (see `storage.retention`), when to run.
"""

from __future__ import annotations

import logging
from typing import TYPE_CHECKING

from barnabas.protocol import KafkaError
from barnabas.storage.logs import retention

if TYPE_CHECKING:
    from barnabas.broker.broker import Broker
    from barnabas.broker.partitions.partition import Partition
    from barnabas.storage.logs.log import Log

log = logging.getLogger("barnabas.retention")
LOGS_AT_A_TIME = 64

Look = tuple["Log", int]


class Retention:
    def __init__(self, broker: Broker) -> None:
        self._broker = broker
        self.is_stopping = False

    async def run(self) -> None:
        """Apply retention to all partitions once."""
        partitions = list(self._broker.partitions)
        for first in range(0, len(partitions), LOGS_AT_A_TIME):
            if self.is_stopping:
                return
            some = partitions[first : first + LOGS_AT_A_TIME]
            claimed = [partition for partition in some if partition.log.claim()]
            claims = [partition.log for partition in claimed]
            try:
                looks = [(partition.log, partition.high_watermark) for partition in claimed]
                cuts = [partition.log.truncations for partition in claimed]
                now_ms = self._broker.clock.now_ms()
                counts = await self._count(looks, now_ms)
                for partition, count, truncations in zip(claimed, counts, cuts, strict=True):
                    try:
                        await self._delete(partition, count, truncations, now_ms)
                    except KafkaError as error:  # continue with the others
                        log.error("retention of %s failed: %s", partition, error.message)
            finally:
                for each in claims:
                    each.release()

    async def _count(self, looks: list[Look], now_ms: int) -> list[int]:
        def count() -> list[int]:
            return [count_expired(each, now_ms, upper_offset) for each, upper_offset in looks]

        return await self._broker.threads.run(count)

    async def _delete(self, partition: Partition, count: int, truncations: int, now_ms: int) -> None:
        found = partition.log
        if not count or self._broker.log_dirs.logs.get(found.topic_partition) is not found:
            return  # nothing to do, or deleted meanwhile
        if found.truncation is not None or found.truncations != truncations:
            return  # the count may be wrong now: the next round counts again
        # Records of a transaction that may still be committed stay, however old.
        count = min(count, retention.count_below(found, partition.last_stable_offset))
        detached = retention.detach_oldest(found, count)
        if detached:
            partition.wake_followers()
            await self._broker.threads.run(retention.delete_detached, found, detached, now_ms)


def count_expired(found: Log, now_ms: int, upper_offset: int) -> int:
    """Count expired segments; none if files cannot be read, which the next read or write reports."""
    try:
        return retention.count_expired(found, now_ms, upper_offset)
    except KafkaError:
        return 0
