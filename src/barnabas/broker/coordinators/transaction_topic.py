"""`__transaction_state`: how the topic of the transaction coordinator is created.

In: the settings `transaction.state.log.*`. Out: its layout.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from barnabas.broker.coordinators.topic import FittedSettings, TopicLayout

if TYPE_CHECKING:
    from barnabas.settings import BrokerSettings

TRANSACTION_TOPIC = "__transaction_state"


def configs(settings: BrokerSettings, fitted: FittedSettings) -> dict[str, str]:
    return {
        "cleanup.policy": "compact",
        "compression.type": "uncompressed",
        "min.insync.replicas": str(fitted["transaction.state.log.min.isr"]),
        "segment.bytes": str(settings["transaction.state.log.segment.bytes"]),
        "unclean.leader.election.enable": "false",
    }


LAYOUT = TopicLayout(
    TRANSACTION_TOPIC,
    "transaction.state.log.num.partitions",
    "transaction.state.log.replication.factor",
    configs,
)
