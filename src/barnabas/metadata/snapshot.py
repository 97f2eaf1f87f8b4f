"""Writes an image as records: the content of a snapshot of the metadata log, in Kafka's order."""

from __future__ import annotations

from collections.abc import Iterator

from barnabas.metadata.image import MetadataImage
from barnabas.metadata.security import SecurityImage
from barnabas.metadata.versions import METADATA_VERSION
from barnabas.protocol import Message
from barnabas.protocol.log_records import metadata as records


def image_records(image: MetadataImage) -> Iterator[Message]:
    level = image.features.metadata_level
    yield from _features(image)
    for broker in image.cluster.brokers.values():
        yield broker.to_record(level)
    for controller in image.cluster.controllers.values():
        yield controller.to_record()
    for topic in image.topics.by_id.values():
        yield records.TopicRecord(name=topic.name, topic_id=topic.id)
        for number, partition in topic.partitions.items():
            yield partition.to_record(topic.id, number, level)
    for resource, values in image.configs.by_resource.items():
        for name, value in values.items():
            yield records.ConfigRecord(
                resource_type=resource.type, resource_name=resource.name, name=name, value=value
            )
    yield from _quotas(image)
    if image.next_producer_id > 0:
        yield records.ProducerIdsRecord(
            broker_id=-1, broker_epoch=-1, next_producer_id=image.next_producer_id
        )
    yield from _security(image.security)


def _features(image: MetadataImage) -> Iterator[Message]:
    """`metadata.version` first, because it determines how the rest is read."""
    finalized = image.features.finalized
    if METADATA_VERSION in finalized:
        yield records.FeatureLevelRecord(name=METADATA_VERSION, feature_level=finalized[METADATA_VERSION])
    for name, level in finalized.items():
        if name != METADATA_VERSION:
            yield records.FeatureLevelRecord(name=name, feature_level=level)


def _quotas(image: MetadataImage) -> Iterator[Message]:
    for entity, values in image.quotas.by_entity.items():
        parts = [
            records.ClientQuotaRecord.EntityData(entity_type=kind, entity_name=name) for kind, name in entity
        ]
        for key, value in values.items():
            yield records.ClientQuotaRecord(entity=parts, key=key, value=value, remove=False)


def _security(security: SecurityImage) -> Iterator[Message]:
    for acl_id, acl in security.acls.items():
        yield records.AccessControlEntryRecord(
            id=acl_id,
            resource_type=acl.resource_type,
            resource_name=acl.resource_name,
            pattern_type=acl.pattern_type,
            principal=acl.principal,
            host=acl.host,
            operation=acl.operation,
            permission_type=acl.permission_type,
        )
    for user, credential in security.scram.items():
        yield records.UserScramCredentialRecord(
            name=user.name,
            mechanism=user.mechanism,
            salt=credential.salt,
            stored_key=credential.stored_key,
            server_key=credential.server_key,
            iterations=credential.iterations,
        )
    for token in security.tokens.values():
        yield records.DelegationTokenRecord(
            owner=token.owner,
            requester=token.requester,
            renewers=list(token.renewers),
            issue_timestamp=token.issue_timestamp,
            max_timestamp=token.max_timestamp,
            expiration_timestamp=token.expiration_timestamp,
            token_id=token.id,
        )
