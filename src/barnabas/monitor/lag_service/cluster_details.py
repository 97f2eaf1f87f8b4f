"""Facts of a cluster that change rarely: settings of topics, sizes of logs, its version.

In: an Admin. Out: retention in the topics of a `ClusterLag`, sizes, a version. A cluster that refuses a part
of it is read without that part. Does not know: lag.
"""

from __future__ import annotations

import logging
from collections.abc import Mapping

from barnabas.client.admin.admin import Admin
from barnabas.client.admin.configs import ConfigResource, ResourceType
from barnabas.client.core.errors import ClientError
from barnabas.metadata.versions import METADATA_VERSION, RELEASES
from barnabas.monitor.lag.cluster_lag import ClusterLag
from barnabas.protocol import KafkaError

TOPICS_AT_ONCE = 20
UNKNOWN_VERSION = "unknown"
SETTINGS = "the settings of topics"

log = logging.getLogger("barnabas.lag")


class ClusterDetails:
    def __init__(self, admin: Admin, lag: ClusterLag) -> None:
        self._admin = admin
        self._lag = lag
        self.version = UNKNOWN_VERSION
        self.broker_bytes: Mapping[int, int] = {}
        self.topic_bytes: Mapping[str, int] = {}
        self._refused: set[str] = set()

    async def read(self) -> None:
        for name, part in (
            ("its version", self._read_version),
            (SETTINGS, self.read_settings),
            ("the sizes of logs", self._read_sizes),
        ):
            try:
                await part()
            except (KafkaError, ClientError) as error:
                if name not in self._refused:
                    log.info("%s: %s cannot be read: %s", self._lag.name, name, error)
                self._refused.add(name)
            else:
                self._refused.discard(name)

    async def _read_version(self) -> None:
        level = (await self._admin.describe_features()).finalized.get(METADATA_VERSION)
        names = {number: name for name, number in RELEASES.items()}
        if level in names:
            self.version = f"v{names[level].partition('-')[0]}"

    async def read_settings(self, *, only_new: bool = False) -> None:
        names = [
            topic.name
            for topic in self._lag.topics.values()
            if topic.is_known and not (only_new and topic.cleanup_policy is not None)
        ]
        for at in range(0, len(names), TOPICS_AT_ONCE):
            part = [ConfigResource(ResourceType.TOPIC, each) for each in names[at : at + TOPICS_AT_ONCE]]
            for resource, entries in (await self._admin.describe_configs(part)).items():
                topic = self._lag.topics.get(resource.name)
                if topic is None:
                    continue
                values = {each.name: each.value for each in entries}
                topic.cleanup_policy = values.get("cleanup.policy")
                topic.retention_ms = int(values.get("retention.ms") or -1)

    async def read_new_settings(self) -> None:
        """Learn the settings of topics that were made since the last reading, unless they are refused."""
        if SETTINGS not in self._refused:
            await self.read_settings(only_new=True)

    async def _read_sizes(self) -> None:
        topology = self._admin.cluster.topology
        brokers: dict[int, int] = {}
        topics: dict[str, int] = {}
        for broker, dirs in (await self._admin.describe_log_dirs(topology.nodes.values())).items():
            for each in dirs:
                for at, replica in each.replicas.items():
                    brokers[broker] = brokers.get(broker, 0) + replica.size_bytes
                    topics[at.topic] = topics.get(at.topic, 0) + replica.size_bytes
        self.broker_bytes, self.topic_bytes = brokers, topics
