"""Measurements of the quorum and its controller: records and their commits, elections, decisions.

In: calls where it happens. Out: counters and histograms (nanoseconds), for metrics. The times are real even
in a simulation, whose course they do not touch. Does not know: names of metrics.
"""

from __future__ import annotations

from collections import deque
from time import perf_counter_ns
from typing import TYPE_CHECKING

from barnabas.metrics import Histogram
from barnabas.protocol.log_records.metadata import PartitionChangeRecord
from barnabas.raft.roles import Candidate, Prospective

if TYPE_CHECKING:
    from collections.abc import Sequence

    from barnabas.metadata.image import MetadataImage
    from barnabas.protocol import Message
    from barnabas.raft.member import Member

APPENDS_MAX = 10_000  # whose commit is waited for
RECOVERING = 1  # the leader of a partition was elected uncleanly
NO_LEADER_CHANGE = -2


class QuorumStats:
    __slots__ = (
        "_appends", "_election_ns", "appended_records", "batch_records", "batch_us", "commits", "elections",
        "fetched_records", "leader_epochs", "snapshots_loaded",
    )  # fmt: skip

    def __init__(self) -> None:
        self.appended_records = 0  # by this node as leader
        self.fetched_records = 0  # from the leader
        self.commits = Histogram()  # from the append to the commit
        self.elections = Histogram()  # from the campaign to the leader that is known then
        self.batch_records = Histogram()  # of one change of the committed image
        self.batch_us = Histogram()  # the time to apply it
        self.snapshots_loaded = 0
        self.leader_epochs = 0  # how often this node saw a new leader
        self._appends: deque[tuple[int, int]] = deque(maxlen=APPENDS_MAX)  # end offset and time
        self._election_ns = 0  # since when this node campaigns

    def appended(self, end_offset: int, records: int) -> None:
        self.appended_records += records
        self._appends.append((end_offset, perf_counter_ns()))

    def committed(self, high_watermark: int) -> None:
        appends = self._appends
        if appends and appends[0][0] <= high_watermark:
            now_ns = perf_counter_ns()
            while appends and appends[0][0] <= high_watermark:
                self.commits.observe(now_ns - appends.popleft()[1])

    def lost(self) -> None:
        """This node stopped leading: it does not learn when its appends are committed."""
        self._appends.clear()

    def noticed(self, member: Member) -> None:
        """The role of this node, or the leader that it knows, may have changed."""
        if isinstance(member.role, Prospective | Candidate):
            self._election_ns = self._election_ns or perf_counter_ns()
        elif self._election_ns and member.leader.leader_id >= 0:
            self.elections.observe(perf_counter_ns() - self._election_ns)
            self._election_ns = 0


class ControllerStats:
    __slots__ = (
        "activations", "eligible_elections", "operations", "processing", "queued", "timed_out",
        "timed_out_heartbeats", "unclean_elections",
    )  # fmt: skip

    def __init__(self) -> None:
        self.queued = Histogram()  # how long a decision waited for earlier ones
        self.processing = Histogram()  # how long it took until its records were applied
        self.operations = 0  # decisions begun
        self.timed_out = 0
        self.timed_out_heartbeats = 0  # brokers fenced because they were silent
        self.activations = 0  # how often this controller became the active one
        self.unclean_elections = 0
        self.eligible_elections = 0  # of eligible leader replicas that were not in sync

    def decided(self, asked_ns: int, began_ns: int) -> None:
        self.operations += 1
        self.queued.observe(began_ns - asked_ns)
        self.processing.observe(perf_counter_ns() - began_ns)

    def count_elections(self, before: MetadataImage, records: Sequence[Message]) -> None:
        """Count leaders that were not in sync, by the image before the records."""
        for record in records:
            if type(record) is not PartitionChangeRecord or record.leader < 0:
                continue
            topic = before.topics.by_id.get(record.topic_id)
            partition = topic.partitions.get(record.partition_id) if topic is not None else None
            if partition is None or record.leader in partition.isr:
                continue
            if record.leader in partition.elr:
                self.eligible_elections += 1
            elif record.leader_recovery_state == RECOVERING:
                self.unclean_elections += 1
