"""A delta: records applied to an image, and what they changed.

In: metadata records in the order of the log. Out: the next image, and a small delta for each part that
changed (None for a part that did not), which is what listeners look at.
Does not know: offsets of single records, metadata transactions (see `transactions`), where records come from.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any

from barnabas.metadata.cluster import ClusterDelta
from barnabas.metadata.configs import ConfigsDelta
from barnabas.metadata.features import FeaturesDelta
from barnabas.metadata.image import MetadataImage, Provenance
from barnabas.metadata.quotas import QuotasDelta
from barnabas.metadata.security import SecurityDelta
from barnabas.metadata.steps import Steps
from barnabas.metadata.topics import TopicsDelta
from barnabas.protocol import Message
from barnabas.protocol.log_records import metadata as records

RECORDS_PER_STEP = 16


class MetadataDelta:
    __slots__ = (
        "cluster",
        "configs",
        "features",
        "image",
        "next_producer_id",
        "quotas",
        "security",
        "topics",
    )

    def __init__(self, image: MetadataImage) -> None:
        self.image = image
        self.features: FeaturesDelta | None = None
        self.cluster: ClusterDelta | None = None
        self.topics: TopicsDelta | None = None
        self.configs: ConfigsDelta | None = None
        self.quotas: QuotasDelta | None = None
        self.security: SecurityDelta | None = None
        self.next_producer_id: int | None = None

    @property
    def is_empty(self) -> bool:
        parts = (self.features, self.cluster, self.topics, self.configs, self.quotas, self.security)
        return all(part is None for part in parts) and self.next_producer_id is None

    def replay(self, record: Message) -> None:
        """Apply one record. A record that does not fit the image raises ValueError: the log is damaged."""
        replay = _REPLAY.get(type(record))
        if replay is None:
            raise ValueError(f"{type(record).__name__} is not a metadata record")
        replay(self, record)

    def replay_all(self, batch: Iterable[Message]) -> None:
        for record in batch:
            self.replay(record)

    def replay_in_steps(self, batch: Iterable[Message]) -> Steps[None]:
        """Apply records in steps. They become visible with `apply`."""
        for count, record in enumerate(batch, 1):
            self.replay(record)
            if not count % RECORDS_PER_STEP:
                yield

    def apply(self, provenance: Provenance | None = None) -> MetadataImage:
        """The image after the records. Parts that did not change are shared with the image before."""
        before = self.image
        return MetadataImage(
            provenance=provenance or before.provenance,
            features=before.features if self.features is None else self.features.apply(),
            cluster=before.cluster if self.cluster is None else self.cluster.apply(),
            topics=before.topics if self.topics is None else self.topics.apply(),
            configs=before.configs if self.configs is None else self.configs.apply(),
            quotas=before.quotas if self.quotas is None else self.quotas.apply(),
            next_producer_id=before.next_producer_id
            if self.next_producer_id is None
            else self.next_producer_id,
            security=before.security if self.security is None else self.security.apply(),
        )


def _features(delta: MetadataDelta) -> FeaturesDelta:
    if delta.features is None:
        delta.features = FeaturesDelta(delta.image.features)
    return delta.features


def _cluster(delta: MetadataDelta) -> ClusterDelta:
    if delta.cluster is None:
        delta.cluster = ClusterDelta(delta.image.cluster)
    return delta.cluster


def _topics(delta: MetadataDelta) -> TopicsDelta:
    if delta.topics is None:
        delta.topics = TopicsDelta(delta.image.topics)
    return delta.topics


def _configs(delta: MetadataDelta) -> ConfigsDelta:
    if delta.configs is None:
        delta.configs = ConfigsDelta(delta.image.configs)
    return delta.configs


def _quotas(delta: MetadataDelta) -> QuotasDelta:
    if delta.quotas is None:
        delta.quotas = QuotasDelta(delta.image.quotas)
    return delta.quotas


def _security(delta: MetadataDelta) -> SecurityDelta:
    if delta.security is None:
        delta.security = SecurityDelta(delta.image.security)
    return delta.security


def _remove_topic(delta: MetadataDelta, record: records.RemoveTopicRecord) -> None:
    name = _topics(delta).replay_remove_topic(record)
    _configs(delta).remove_topic(name)


def _producer_ids(delta: MetadataDelta, record: records.ProducerIdsRecord) -> None:
    delta.next_producer_id = record.next_producer_id


def _nothing(delta: MetadataDelta, record: Message) -> None:
    """Records without an effect on the image: NoOp, bounds of metadata transactions, remains of ZooKeeper."""


_REPLAY: dict[type[Message], Callable[[MetadataDelta, Any], None]] = {
    records.RegisterBrokerRecord: lambda delta, record: _cluster(delta).replay_register_broker(record),
    records.UnregisterBrokerRecord: lambda delta, record: _cluster(delta).replay_unregister_broker(record),
    records.FenceBrokerRecord: lambda delta, record: _cluster(delta).replay_fence(record),
    records.UnfenceBrokerRecord: lambda delta, record: _cluster(delta).replay_unfence(record),
    records.BrokerRegistrationChangeRecord: lambda delta, record: _cluster(delta).replay_change(record),
    records.RegisterControllerRecord: lambda delta, record: _cluster(delta).replay_controller(record),
    records.TopicRecord: lambda delta, record: _topics(delta).replay_topic(record),
    records.PartitionRecord: lambda delta, record: _topics(delta).replay_partition(record),
    records.PartitionChangeRecord: lambda delta, record: _topics(delta).replay_partition_change(record),
    records.ClearElrRecord: lambda delta, record: _topics(delta).replay_clear_elr(record),
    records.RemoveTopicRecord: _remove_topic,
    records.ConfigRecord: lambda delta, record: _configs(delta).replay(record),
    records.FeatureLevelRecord: lambda delta, record: _features(delta).replay(record),
    records.ClientQuotaRecord: lambda delta, record: _quotas(delta).replay(record),
    records.ProducerIdsRecord: _producer_ids,
    records.AccessControlEntryRecord: lambda delta, record: _security(delta).replay_acl(record),
    records.RemoveAccessControlEntryRecord: lambda delta, record: _security(delta).replay_remove_acl(record),
    records.UserScramCredentialRecord: lambda delta, record: _security(delta).replay_scram(record),
    records.RemoveUserScramCredentialRecord: lambda delta, record: _security(delta).replay_remove_scram(
        record
    ),
    records.DelegationTokenRecord: lambda delta, record: _security(delta).replay_token(record),
    records.RemoveDelegationTokenRecord: lambda delta, record: _security(delta).replay_remove_token(record),
    records.BeginTransactionRecord: _nothing,
    records.EndTransactionRecord: _nothing,
    records.AbortTransactionRecord: _nothing,
    records.NoOpRecord: _nothing,
    records.ZkMigrationStateRecord: _nothing,
}
