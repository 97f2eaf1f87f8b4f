"""Records of `__cluster_metadata` as bytes: frame version, type and version as varints, then the body.

In: a record and the cluster's `metadata.version`. Out: the value of a log record, and back.
Does not know: batches, offsets, control records.
"""

from __future__ import annotations

from barnabas.metadata.versions import record_version
from barnabas.protocol import Message, ProtocolError
from barnabas.protocol.log_records import metadata as records

FRAME_VERSION = 1

_BY_TYPE: dict[int, type[Message]] = {
    0: records.RegisterBrokerRecord,
    1: records.UnregisterBrokerRecord,
    2: records.TopicRecord,
    3: records.PartitionRecord,
    4: records.ConfigRecord,
    5: records.PartitionChangeRecord,
    7: records.FenceBrokerRecord,
    8: records.UnfenceBrokerRecord,
    9: records.RemoveTopicRecord,
    10: records.DelegationTokenRecord,
    11: records.UserScramCredentialRecord,
    12: records.FeatureLevelRecord,
    14: records.ClientQuotaRecord,
    15: records.ProducerIdsRecord,
    17: records.BrokerRegistrationChangeRecord,
    18: records.AccessControlEntryRecord,
    19: records.RemoveAccessControlEntryRecord,
    20: records.NoOpRecord,
    21: records.ZkMigrationStateRecord,
    22: records.RemoveUserScramCredentialRecord,
    23: records.BeginTransactionRecord,
    24: records.EndTransactionRecord,
    25: records.AbortTransactionRecord,
    26: records.RemoveDelegationTokenRecord,
    27: records.RegisterControllerRecord,
    28: records.ClearElrRecord,
}
_TYPES = {cls: number for number, cls in _BY_TYPE.items()}


def encode(record: Message, level: int) -> bytes:
    """Encode the record as a cluster at this `metadata.version` writes it."""
    version = record_version(record, level)
    # All three numbers are below 128, so each varint is one byte.
    return bytes((FRAME_VERSION, _TYPES[type(record)], version)) + record.encode(version)


def decode(value: bytes | memoryview) -> Message:
    if len(value) < 3 or value[0] != FRAME_VERSION or value[1] > 127 or value[2] > 127:
        raise ProtocolError("metadata record", "unknown frame")
    cls = _BY_TYPE.get(value[1])
    if cls is None:
        raise ProtocolError("metadata record", f"unknown type {value[1]}")
    return cls.decode(value[3:], value[2])
