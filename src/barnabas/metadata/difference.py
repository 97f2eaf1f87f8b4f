"""The difference of two images as records, for a node that skipped a part of the log.

In: the image it has, the image of the snapshot it fetched. Out: records that turn the first into the second,
so that listeners see exactly what changed; None for what is the same in both, because a caller that works in
steps has to pause there too.
Does not know: snapshots, files, offsets.
"""

from __future__ import annotations

from collections.abc import Iterator

from barnabas.metadata.configs import ConfigResource, ResourceType
from barnabas.metadata.image import MetadataImage
from barnabas.metadata.security import SecurityImage
from barnabas.metadata.snapshot import image_records
from barnabas.protocol import Message
from barnabas.protocol.log_records import metadata as records

Compared = Iterator[Message | None]


def difference(before: MetadataImage, after: MetadataImage) -> Iterator[Message]:
    """Removals first, then everything that is new or has another value."""
    return (record for record in compared(before, after) if record is not None)


def compared(before: MetadataImage, after: MetadataImage) -> Compared:
    """The difference, with None for each thing that is the same in both images."""
    yield from _removed(before, after)
    for record in image_records(after):
        if isinstance(record, records.TopicRecord):
            yield record if record.topic_id not in before.topics.by_id else None
        elif isinstance(record, records.PartitionRecord):
            known = before.topics.by_id.get(record.topic_id)
            now = after.topics.by_id[record.topic_id].partitions[record.partition_id]
            is_same = known is not None and known.partitions.get(record.partition_id) == now
            yield None if is_same else record
        elif isinstance(record, records.ConfigRecord):
            resource = ConfigResource(record.resource_type, record.resource_name)
            is_old = resource.type != ResourceType.TOPIC or _same_topic(before, after, resource.name)
            is_same = is_old and before.configs.of(resource).get(record.name) == record.value
            yield None if is_same else record
        elif isinstance(record, records.RegisterBrokerRecord):
            now_registered = after.cluster.brokers[record.broker_id]
            yield record if before.cluster.brokers.get(record.broker_id) != now_registered else None
        else:
            yield record


def _same_topic(before: MetadataImage, after: MetadataImage, name: str) -> bool:
    one, other = before.topics.by_name.get(name), after.topics.by_name.get(name)
    return one is not None and other is not None and one.id == other.id


def _removed(before: MetadataImage, after: MetadataImage) -> Compared:
    for topic in before.topics.by_id.values():
        is_kept = topic.id in after.topics.by_id
        yield None if is_kept else records.RemoveTopicRecord(topic_id=topic.id)
    for broker in before.cluster.brokers.values():
        if broker.id not in after.cluster.brokers:
            yield records.UnregisterBrokerRecord(broker_id=broker.id, broker_epoch=broker.epoch)
    for resource, values in before.configs.by_resource.items():
        kept = after.configs.of(resource)
        for name in values:
            if name in kept:
                yield None
            else:
                yield records.ConfigRecord(
                    resource_type=resource.type, resource_name=resource.name, name=name, value=None
                )
    for feature in before.features.finalized:
        if feature not in after.features.finalized:
            yield records.FeatureLevelRecord(name=feature, feature_level=0)
    yield from _removed_quotas(before, after)
    yield from _removed_security(before.security, after.security)


def _removed_quotas(before: MetadataImage, after: MetadataImage) -> Compared:
    for entity, values in before.quotas.by_entity.items():
        kept = after.quotas.by_entity.get(entity, {})
        parts = [
            records.ClientQuotaRecord.EntityData(entity_type=kind, entity_name=name) for kind, name in entity
        ]
        for key, value in values.items():
            if key in kept:
                yield None
            else:
                yield records.ClientQuotaRecord(entity=parts, key=key, value=value, remove=True)


def _removed_security(before: SecurityImage, after: SecurityImage) -> Compared:
    for acl_id in before.acls:
        yield None if acl_id in after.acls else records.RemoveAccessControlEntryRecord(id=acl_id)
    for user in before.scram:
        if user not in after.scram:
            yield records.RemoveUserScramCredentialRecord(name=user.name, mechanism=user.mechanism)
    for token_id in before.tokens:
        is_kept = token_id in after.tokens
        yield None if is_kept else records.RemoveDelegationTokenRecord(token_id=token_id)
