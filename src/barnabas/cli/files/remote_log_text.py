"""Records of `__remote_log_metadata` as text, in the format of Kafka's own classes.

In: the value of a record: frame version, type and version as varints, then the fields. Out: one line; any
other value raises ValueError. Does not know: files, offsets.
"""

from collections.abc import Callable
from typing import Any

from barnabas.protocol import KafkaError, Message, ProtocolError, uuid
from barnabas.protocol.log_records import storage

FRAME_VERSION = 1
SEGMENT_STATES = (
    "COPY_SEGMENT_STARTED",
    "COPY_SEGMENT_FINISHED",
    "DELETE_SEGMENT_STARTED",
    "DELETE_SEGMENT_FINISHED",
)
PARTITION_STATES = ("DELETE_PARTITION_MARKED", "DELETE_PARTITION_STARTED", "DELETE_PARTITION_FINISHED")


def text_of(value: bytes) -> str:
    if not value:
        raise ValueError("Error while reading frame version")
    if value[0] != FRAME_VERSION:
        raise ValueError(
            f"Could not deserialize metadata record due to unknown frame version {value[0]}"
            f"(only frame version {FRAME_VERSION} is supported)"
        )
    kind, version = (*value[1:3], 0, 0)[:2]
    if kind not in TEXTS:
        raise ValueError(f"Unknown metadata id {kind}")
    cls, describe = TEXTS[kind]
    try:
        return describe(cls.decode(value[3:], version))
    except (KafkaError, ProtocolError) as error:
        raise ValueError(str(error)) from None


def segment(record: Any) -> str:
    return (
        f"RemoteLogSegmentMetadata{{remoteLogSegmentId={segment_id(record)}, "
        f"startOffset={record.start_offset}, endOffset={record.end_offset}, brokerId={record.broker_id}, "
        f"maxTimestampMs={record.max_timestamp_ms}, eventTimestampMs={record.event_timestamp_ms}, "
        f"segmentLeaderEpochs={{{epochs(record)}}}, segmentSizeInBytes={record.segment_size_in_bytes}, "
        f"customMetadata={custom(record)}, state={segment_state(record)}, "
        f"txnIdxEmpty={truth(record.txn_index_empty)}}}"
    )


def update(record: Any) -> str:
    return (
        f"RemoteLogSegmentMetadataUpdate{{remoteLogSegmentId={segment_id(record)}, "
        f"customMetadata={custom(record)}, state={segment_state(record)}, "
        f"eventTimestampMs={record.event_timestamp_ms}, brokerId={record.broker_id}}}"
    )


def partition_delete(record: Any) -> str:
    state = record.remote_partition_delete_state
    if not 0 <= state < len(PARTITION_STATES):
        raise ValueError("state can not be null")
    return (
        f"RemotePartitionDeleteMetadata{{topicPartition={partition(record.topic_id_partition)}, "
        f"state={PARTITION_STATES[state]}, eventTimestampMs={record.event_timestamp_ms}, "
        f"brokerId={record.broker_id}}}"
    )


def snapshot(record: Any) -> str:
    return (
        f"RemoteLogSegmentMetadataSnapshot{{segmentId={uuid.to_text(record.segment_id)}, "
        f"startOffset={record.start_offset}, endOffset={record.end_offset}, "
        f"maxTimestampMs={record.max_timestamp_ms}, segmentLeaderEpochs={{{epochs(record)}}}, "
        f"segmentSizeInBytes={record.segment_size_in_bytes}, customMetadata={custom(record)}, "
        f"state={segment_state(record)}, txnIdxEmpty={truth(record.txn_index_empty)}}}"
    )


TEXTS: dict[int, tuple[type[Message], Callable[[Any], str]]] = {
    0: (storage.RemoteLogSegmentMetadataRecord, segment),
    1: (storage.RemoteLogSegmentMetadataUpdateRecord, update),
    2: (storage.RemotePartitionDeleteMetadataRecord, partition_delete),
    3: (storage.RemoteLogSegmentMetadataSnapshotRecord, snapshot),
}


def segment_id(record: Any) -> str:
    entry = record.remote_log_segment_id
    where = partition(entry.topic_id_partition)
    return f"RemoteLogSegmentId{{topicIdPartition={where}, id={uuid.to_text(entry.id)}}}"


def partition(entry: Any) -> str:
    return f"{uuid.to_text(entry.id)}:{entry.name}-{entry.partition}"


def epochs(record: Any) -> str:
    return ", ".join(f"{each.leader_epoch}={each.offset}" for each in record.segment_leader_epochs)


def custom(record: Any) -> str:
    data = record.custom_metadata
    return "Optional.empty" if data is None else f"Optional[CustomMetadata{{{len(data)} bytes}}]"


def segment_state(record: Any) -> str:
    if not 0 <= record.remote_log_segment_state < len(SEGMENT_STATES):
        raise ValueError("state can not be null")
    return SEGMENT_STATES[record.remote_log_segment_state]


def truth(value: bool) -> str:
    return "true" if value else "false"
