"""The topic of a log: created where it is missing, refused where records could be lost.

In: a cluster and the topic's name. Out: the topic's id, or WrongTopic with a sentence for the operator. The
topic has one partition, because all nodes must see records in one order. The registry's is compacted alone: a
topic with retention forgets schemas. Does not know: records.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from barnabas.client.admin.admin import Admin
from barnabas.client.admin.configs import ConfigResource, ResourceType
from barnabas.client.admin.topics import NewTopic
from barnabas.client.core.cluster import ClusterCore
from barnabas.client.core.errors import ClientError, NoTopic
from barnabas.client.core.patience import Patience
from barnabas.protocol import ErrorCode, KafkaError

REPLICAS = 3
COMPACT = "compact"
REPLICAS_OF_SAFE_TOPIC = 2  # in-sync replicas that must have a record before it is acknowledged


class WrongTopic(ClientError):
    """The registry cannot work with the topic as it is."""


@dataclass(frozen=True, slots=True)
class TopicSettings:
    name: str = "_schemas"
    replicas: int = REPLICAS  # at most; fewer where there are fewer brokers
    configs: Mapping[str, str] = field(default_factory=dict)  # of a topic that is created
    is_checked: bool = True
    policy: str = COMPACT  # the cleanup policy without which records are lost
    service: str = "registry"  # in messages, as the two below
    setting: str = "kafkastore.topic"
    records: str = "schemas"


async def ensure_topic(cluster: ClusterCore, settings: TopicSettings, patience: Patience) -> bytes:
    """Create the topic if it is missing, and check it. Returns its id."""

    async def attempt() -> bytes:
        try:
            found = (await cluster.topics([settings.name]))[settings.name]
        except NoTopic:
            await create_topic(cluster, settings)
            raise
        if not settings.is_checked:
            return found.topic_id
        if found.partition_count != 1:
            raise WrongTopic(
                f"the topic {settings.name} has {found.partition_count} partitions, but the "
                f"{settings.service} needs exactly one: choose another topic with {settings.setting}"
            )
        policy = await cleanup_policy(cluster, settings.name)
        if policy != settings.policy:
            raise WrongTopic(
                f"the topic {settings.name} has cleanup.policy={policy}, which deletes "
                f"{settings.records}: set cleanup.policy={settings.policy}, or choose another topic with "
                f"{settings.setting}"
            )
        return found.topic_id

    return await cluster.retrying(attempt, patience=patience)


async def create_topic(cluster: ClusterCore, settings: TopicSettings) -> None:
    replicas = min(settings.replicas, max(len(cluster.topology.nodes), 1))
    configs = {**settings.configs, "cleanup.policy": settings.policy}
    if replicas > REPLICAS_OF_SAFE_TOPIC:
        configs.setdefault("min.insync.replicas", str(REPLICAS_OF_SAFE_TOPIC))
    try:
        await Admin(cluster).create_topic(NewTopic(settings.name, 1, replicas, configs=configs))
    except KafkaError as error:
        if error.code != ErrorCode.TOPIC_ALREADY_EXISTS:
            raise


async def cleanup_policy(cluster: ClusterCore, topic: str) -> str:
    resource = ConfigResource(ResourceType.TOPIC, topic)
    entries = (await Admin(cluster).describe_configs([resource]))[resource]
    return next((entry.value or "" for entry in entries if entry.name == "cleanup.policy"), "")
