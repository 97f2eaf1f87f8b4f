"""`__consumer_offsets`: how the topic of the group coordinator is created.

In: the settings `offsets.topic.*`. Out: its layout.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from barnabas.broker.coordinators.topic import FittedSettings, TopicLayout

if TYPE_CHECKING:
    from barnabas.settings import BrokerSettings

OFFSETS_TOPIC = "__consumer_offsets"


def configs(settings: BrokerSettings, fitted: FittedSettings) -> dict[str, str]:
    return {
        "cleanup.policy": "compact",
        "compression.type": "producer",  # batches carry `offsets.topic.compression.codec` already
        "segment.bytes": str(settings["offsets.topic.segment.bytes"]),
    }


LAYOUT = TopicLayout(
    OFFSETS_TOPIC, "offsets.topic.num.partitions", "offsets.topic.replication.factor", configs
)
