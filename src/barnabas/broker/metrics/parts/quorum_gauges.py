"""Metrics of the quorum, looked up at each scrape, under Kafka's names.

In: the node's quorum. Out: callbacks registered with the broker's metrics.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from barnabas.broker.metrics.parts.totals import average_and_max, rate_of
from barnabas.protocol import uuid
from barnabas.raft.messages import ReplicaKey

if TYPE_CHECKING:
    from barnabas.broker.broker import Broker
    from barnabas.quorum.quorum import Quorum

RAFT = "kafka.server", "raft-metrics"


def register(broker: Broker) -> None:
    metrics, quorum = broker.metrics, broker.quorum
    member, log = quorum.member, quorum.log
    metrics.gauge(
        *RAFT,
        "current-leader",
        "The node that leads the quorum; -1 while none is known.",
        lambda: quorum.leader_hint.leader_id,
    )
    metrics.gauge(*RAFT, "current-epoch", "The quorum's epoch.", lambda: member.epoch)
    metrics.gauge(
        *RAFT,
        "current-vote",
        "The node that this node voted for in the epoch; -1 for none.",
        lambda: voted(quorum).id,
    )
    metrics.text(*RAFT, "current-state", "The role that this node has in the quorum.", lambda: state(quorum))
    metrics.gauge(
        *RAFT, "high-watermark", "Where committed metadata ends; -1 unknown.", lambda: log.high_watermark
    )
    metrics.gauge(*RAFT, "log-end-offset", "Where the metadata log ends here.", lambda: log.end_offset)
    metrics.gauge(*RAFT, "log-end-epoch", "The epoch of its last batch.", lambda: log.last_epoch)
    metrics.gauge(
        *RAFT,
        "number-of-voters",
        "Nodes that vote.",
        lambda: len(log.membership.voters.ids),
    )
    metrics.gauge(
        *RAFT,
        "number-of-observers",
        "Nodes that follow the metadata log and do not vote, as the leader sees them; 0 on others.",
        lambda: observers(quorum),
    )
    metrics.gauge(
        *RAFT,
        "uncommitted-voter-change",
        "1 while a change of voters is not committed.",
        lambda: int(log.membership is not log.committed_membership),
    )
    metrics.text(
        *RAFT,
        "current-vote-directory-id",
        "The directory id of the node that this node voted for.",
        lambda: uuid.to_text(voted(quorum).directory_id),
    )
    metrics.gauge(
        *RAFT,
        "number-unknown-voter-connections",
        "Voters whose address is unknown.",
        lambda: sum(not voter.endpoints for voter in log.membership.voters.voters.values()),
    )
    stats = log.stats
    for name, help, count in (
        ("append-records-rate", "Records that the leader appends a second.", lambda: stats.appended_records),
        ("fetch-records-rate", "Records fetched from the leader a second.", lambda: stats.fetched_records),
    ):
        rate_of(metrics, *RAFT, name, help, count)
    average_and_max(metrics, *RAFT, "commit-latency", "Time to commit a record.", lambda: stats.commits)
    average_and_max(metrics, *RAFT, "election-latency", "Time to elect a leader.", lambda: stats.elections)
    metrics.gauge(
        "barnabas",
        "Node",
        "UnexpectedErrors",
        "Unexpected exceptions, which were isolated. More than 0 means a bug.",
        lambda: broker.unexpected.count,
    )
    metrics.gauges(
        "barnabas",
        "Node",
        "UnexpectedErrorPlaces",
        "Unexpected exceptions by the call that failed, the exception, and the line that raised it.",
        lambda: [(kind._asdict(), count) for kind, count in list(broker.unexpected.by_kind.items())],
    )


def state(quorum: Quorum) -> str:
    """Kafka's name of the role."""
    name = type(quorum.member.role).__name__.lower()
    if name == "elected":
        return "leader"
    return "observer" if name == "follower" and not quorum.member.is_voter else name


def voted(quorum: Quorum) -> ReplicaKey:
    """The node that this node voted for. As in Kafka, leaders and candidates voted for themselves."""
    member = quorum.member
    if state(quorum) in ("leader", "candidate"):
        return member.key
    return ReplicaKey(member.state.voted_id, member.state.voted_directory_id)


def observers(quorum: Quorum) -> int:
    leader = quorum.log.leader
    return len(leader.observers) if leader is not None else 0
