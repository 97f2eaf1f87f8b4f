"""The audit topic: made when it is missing.

In: a cluster. Out: a topic whose records get the broker's time (LogAppendTime), so that the clocks of
counting hosts can be compared with it. Records are kept for seven days: so long a report can look back.
Does not know: messages.
"""

from __future__ import annotations

from barnabas.client.admin.admin import Admin
from barnabas.client.admin.topics import NewTopic
from barnabas.client.core.cluster import ClusterCore
from barnabas.client.core.errors import NoTopic
from barnabas.protocol import ErrorCode, KafkaError

AUDIT_TOPIC = "_barnabas_audit"
PARTITIONS = 4
REPLICAS = 3
CONFIGS = {
    "cleanup.policy": "delete",
    "retention.ms": str(7 * 86_400_000),
    "message.timestamp.type": "LogAppendTime",
    "compression.type": "zstd",
}


async def ensure_topic(cluster: ClusterCore, name: str = AUDIT_TOPIC) -> None:
    """Make the topic if it is missing, with three replicas, or as many as there are brokers."""
    try:
        await cluster.topics([name])
        return
    except NoTopic:
        pass
    brokers = len((await cluster.retrying(cluster.refresh)).nodes)
    replicas = min(REPLICAS, max(brokers, 1))
    configs = dict(CONFIGS)
    if replicas == REPLICAS:
        configs["min.insync.replicas"] = "2"
    try:
        await Admin(cluster).create_topic(NewTopic(name, PARTITIONS, replicas, configs=configs))
    except KafkaError as error:
        if error.code != ErrorCode.TOPIC_ALREADY_EXISTS:
            raise


def is_counted(topic: str, audit_topic: str = AUDIT_TOPIC) -> bool:
    """Whether records of a topic are counted: not those of the audit itself, and of Kafka's own topics."""
    return topic != audit_topic and not topic.startswith("__")
