"""Records of `__share_group_state`: the records that share groups have acquired and acknowledged.

Each key follows two bytes with the record type (`key` here). Each value follows two bytes with its version.
"""

from __future__ import annotations

from barnabas.protocol.message import Message, Struct
from barnabas.protocol.schema import since, tag
from barnabas.protocol.types import NULL_UUID, Int8, Int16, Int32, Int64, String, Uuid


class ShareSnapshotKey(Message, key=0, versions="0"):
    group_id: String = since("0", "")
    topic_id: Uuid = since("0", NULL_UUID)
    partition: Int32 = since("0", 0)


class ShareSnapshotValue(Message, key=0, versions="0", flexible="0+"):
    class StateBatch(Struct):
        first_offset: Int64 = 0
        last_offset: Int64 = 0
        delivery_state: Int8 = 0
        delivery_count: Int16 = 0

    snapshot_epoch: Int32 = 0
    state_epoch: Int32 = 0
    leader_epoch: Int32 = 0
    start_offset: Int64 = 0
    delivery_complete_count: Int32 = tag(0, "0+", -1)
    create_timestamp: Int64 = 0
    write_timestamp: Int64 = 0
    state_batches: list[StateBatch] = []


class ShareUpdateKey(Message, key=1, versions="0"):
    group_id: String = since("0", "")
    topic_id: Uuid = since("0", NULL_UUID)
    partition: Int32 = since("0", 0)


class ShareUpdateValue(Message, key=1, versions="0", flexible="0+"):
    class StateBatch(Struct):
        first_offset: Int64 = 0
        last_offset: Int64 = 0
        delivery_state: Int8 = 0
        delivery_count: Int16 = 0

    snapshot_epoch: Int32 = 0
    leader_epoch: Int32 = 0
    start_offset: Int64 = 0
    delivery_complete_count: Int32 = tag(0, "0+", -1)
    state_batches: list[StateBatch] = []
