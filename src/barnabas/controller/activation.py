"""Activation: the first records of a controller that becomes the active one.

In: its image, whether a metadata transaction was left open, the bootstrap records of a formatted folder. Out:
an abort of the open transaction; for an empty log the bootstrap records, in a transaction where the level
supports it, so that a crash in between leaves nothing behind.
Does not know: elections, files.
"""

from __future__ import annotations

from collections.abc import Sequence

from barnabas.metadata.configs import CLUSTER_DEFAULT
from barnabas.metadata.delta import MetadataDelta
from barnabas.metadata.image import EMPTY_IMAGE, MetadataImage
from barnabas.metadata.versions import METADATA_TRANSACTIONS
from barnabas.protocol import Message
from barnabas.protocol.log_records.metadata import (
    AbortTransactionRecord,
    BeginTransactionRecord,
    ConfigRecord,
    EndTransactionRecord,
)


def activate(
    image: MetadataImage, transaction_open: bool, bootstrap: Sequence[Message], min_insync_replicas: int
) -> list[Message]:
    records: list[Message] = []
    if transaction_open:
        records.append(AbortTransactionRecord(reason="failed to complete: the controller changed"))
    if not image.is_empty:
        return records
    delta = MetadataDelta(EMPTY_IMAGE)
    delta.replay_all(bootstrap)
    features = delta.apply().features
    in_transaction = features.metadata_level >= METADATA_TRANSACTIONS
    if in_transaction:
        records.append(BeginTransactionRecord(name="Bootstrap records"))
    records.extend(bootstrap)
    if features.elr_enabled:
        # With eligible leader replicas this is a setting of the cluster, not of a broker's file (KIP-966).
        records.append(
            ConfigRecord(
                resource_type=CLUSTER_DEFAULT.type,
                resource_name=CLUSTER_DEFAULT.name,
                name="min.insync.replicas",
                value=str(min_insync_replicas),
            )
        )
    if in_transaction:
        records.append(EndTransactionRecord())
    return records
