"""Measurements of coordinators: records by what they mean, times of events and of batches.

In: the records of decisions, calls of hosts. Out: counters and histograms (nanoseconds), for metrics. One
object for all shards of a coordinator. Does not know: names of metrics.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from barnabas.metrics import Histogram
from barnabas.protocol import Message
from barnabas.protocol.log_records.consumer_offsets import (
    ConsumerGroupMetadataKey,
    GroupMetadataKey,
    OffsetCommitKey,
)
from barnabas.protocol.messages.consumer_group_heartbeat import ConsumerGroupHeartbeatRequest
from barnabas.protocol.messages.join_group import JoinGroupRequest
from barnabas.protocol.messages.sync_group import SyncGroupRequest
from barnabas.transactions.states import State

NS_A_SECOND = 1_000_000_000
SAMPLED = 7  # the time of an event is measured if the correlation id of its request has none of these bits


class CoordinatorStats:
    __slots__ = (
        "batches", "completed_rebalances", "consumer_rebalances", "flushes", "offset_commits",
        "offset_deletions", "offset_expirations", "processing", "purgatory", "queued", "transaction_timeouts",
        "verifications",
    )  # fmt: skip

    def __init__(self) -> None:
        self.offset_commits = 0
        self.offset_expirations = 0
        self.offset_deletions = 0
        self.completed_rebalances = 0  # of classic groups
        self.consumer_rebalances = 0  # new epochs of consumer groups that members bring about by staying
        self.transaction_timeouts = 0
        self.batches = 0
        self.processing = Histogram()  # of an event by its shard; sampled
        self.queued = Histogram()  # of requests behind a long one
        self.flushes = Histogram()  # building and staging a batch
        self.purgatory = Histogram()  # of the oldest of the responses that one commit lets go
        self.verifications = Histogram()  # of partitions of a transaction, where they need time

    def waited_for_commit(self, seconds: float) -> None:
        self.purgatory.observe(max(int(seconds * NS_A_SECOND), 0))

    def count_group_records(self, records: Sequence[Any], request: Message | None) -> None:
        """Without a request, it is the coordinator itself that expires offsets."""
        for key, value in records:
            kind = type(key)
            if kind is OffsetCommitKey:
                if value is not None:
                    self.offset_commits += 1
                elif request is None:
                    self.offset_expirations += 1
                else:
                    self.offset_deletions += 1
            elif kind is ConsumerGroupMetadataKey:
                self.consumer_rebalances += value is not None and is_of_member(request)
            elif kind is GroupMetadataKey and value is not None and type(request) is SyncGroupRequest:
                self.completed_rebalances += 1

    def count_transaction_records(self, records: Sequence[Any], request: Message | None) -> None:
        """Without a request, it is the coordinator itself that aborts transactions that took too long."""
        if request is not None:
            return
        for entry in records:
            if entry.value is not None:
                self.transaction_timeouts += entry.value.transaction_status == State.PREPARE_ABORT


def is_of_member(request: Message | None) -> bool:
    """Whether a member joins or stays. As in Apache Kafka, an epoch for one that leaves is none."""
    if isinstance(request, ConsumerGroupHeartbeatRequest):
        return request.member_epoch >= 0
    return isinstance(request, JoinGroupRequest)
