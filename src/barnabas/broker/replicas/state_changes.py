"""The log of state changes: which partitions this broker leads or follows from when on
(`state.change.logger`).

In: registrations that were applied. Out: a line for each at INFO, in Kafka's words; when very many change
within a second, the rest is counted and told in one line. Does not know: partitions.
"""

from __future__ import annotations

import logging
from collections.abc import Callable
from typing import TYPE_CHECKING

from barnabas.broker.log_lines.names import STATE_CHANGES

if TYPE_CHECKING:
    from barnabas.broker.partitions.partition import Partition
    from barnabas.metadata.partitions import PartitionRegistration

log = logging.getLogger(STATE_CHANGES)
LINES_A_SECOND = 200


class StateChanges:
    def __init__(self, node_id: int, time_s: Callable[[], float]) -> None:
        self._node_id = node_id
        self._time_s = time_s
        self._second = 0
        self._lines = 0
        self._left_out = 0

    def led(self, partition: Partition, registration: PartitionRegistration) -> None:
        if log.isEnabledFor(logging.INFO) and self._may_write():
            log.info(
                "[Broker id=%d] Leader %s starts at leader epoch %d from offset %d with partition epoch %d, "
                "high watermark %d, ISR %s",
                self._node_id,
                partition,
                registration.leader_epoch,
                partition.log.end_offset,
                registration.partition_epoch,
                partition.state.high_watermark,
                list(registration.isr),
            )

    def followed(self, partition: Partition, registration: PartitionRegistration) -> None:
        if log.isEnabledFor(logging.INFO) and self._may_write():
            log.info(
                "[Broker id=%d] Follower %s starts at leader epoch %d from offset %d with partition epoch "
                "%d, leader %d",
                self._node_id,
                partition,
                registration.leader_epoch,
                partition.log.end_offset,
                registration.partition_epoch,
                registration.leader,
            )

    def _may_write(self) -> bool:
        second = int(self._time_s())
        if second != self._second:
            self._second, self._lines = second, 0
            if self._left_out:
                log.info("[Broker id=%d] %d more partitions changed", self._node_id, self._left_out)
                self._left_out = 0
        self._lines += 1
        if self._lines > LINES_A_SECOND:
            self._left_out += 1
            return False
        return True
