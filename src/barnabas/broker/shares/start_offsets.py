"""The start offset of a share group that has not begun to read a partition: `share.auto.offset.reset`.

In: the setting, the partition. Out: an offset. A thread looks up timestamps in the log.
Does not know: groups.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from barnabas.broker.shares.share_settings import BY_DURATION, EARLIEST, duration_ms

if TYPE_CHECKING:
    from barnabas.broker.broker import Broker
    from barnabas.broker.partitions.partition import Partition


async def first_start_offset(partition: Partition, offset_reset: str, broker: Broker) -> int:
    if offset_reset == EARLIEST:
        return partition.log.log_start_offset
    if offset_reset.startswith(BY_DURATION):
        timestamp = broker.clock.now_ms() - duration_ms(offset_reset)
        found = await broker.threads.reads.run(partition.log.offset_for_timestamp, timestamp)
        if found is not None and found.offset < partition.high_watermark:
            return found.offset
    return partition.high_watermark
