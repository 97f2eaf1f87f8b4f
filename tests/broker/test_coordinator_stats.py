"""What coordinators count of the records that they write."""

from __future__ import annotations

import pytest

from barnabas.broker.coordinators.stats import CoordinatorStats
from barnabas.groups.consumer import entries
from barnabas.protocol import Message
from barnabas.protocol.messages.consumer_group_heartbeat import ConsumerGroupHeartbeatRequest
from barnabas.protocol.messages.join_group import JoinGroupRequest


@pytest.mark.parametrize(
    ("request_", "count"),
    [
        (ConsumerGroupHeartbeatRequest(member_epoch=0), 1),
        (ConsumerGroupHeartbeatRequest(member_epoch=7), 1),
        (ConsumerGroupHeartbeatRequest(member_epoch=-1), 0),
        (ConsumerGroupHeartbeatRequest(member_epoch=-2), 0),
        (JoinGroupRequest(), 1),
        (None, 0),
    ],
    ids=["joins", "stays", "leaves", "leaves for a while", "classic", "times out"],
)
def test_a_new_epoch_of_a_consumer_group_is_a_rebalance_unless_a_member_leaves(
    request_: Message | None, count: int
) -> None:
    """Apache Kafka counts so."""
    stats = CoordinatorStats()
    stats.count_group_records([entries.epoch("g", 3, 5)], request_)
    assert stats.consumer_rebalances == count
