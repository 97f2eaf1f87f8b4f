"""The dashboard of the quorum and the controller: leader, epochs, committed metadata, queues."""

from __future__ import annotations

from barnabas.monitor.dashboards.model import Dashboard, Panel, Query, Row, counter_rate
from barnabas.monitor.dashboards.variables import NODES

CONTROLLER = "kafka.controller:type=KafkaController,name"
RAFT = "kafka.server:type=raft-metrics"
EVENTS = "kafka.controller:type=ControllerEventManager,name"


def raft(title: str, attribute: str, help: str, unit: str = "short") -> Panel:
    return Panel(title, [Query(f"<g {RAFT}#{attribute}>{{[[S]]}}", "{{instance}}")], help, unit)


def controller(title: str, name: str, help: str, unit: str = "short") -> Panel:
    return Panel(title, [Query(f"<g {CONTROLLER}={name}>{{[[S]]}}", "{{instance}}")], help, unit)


CONTROLLER_DASHBOARD = Dashboard(
    "controller",
    "quorum and controller",
    "The metadata quorum and the active controller.",
    (
        Row(
            "Quorum",
            [
                raft(
                    "Leader",
                    "current-leader",
                    "The node that leads the quorum. All nodes should agree; -1: none.",
                ),
                raft("Epoch", "current-epoch", "Rises with each election."),
                raft("High watermark", "high-watermark", "Where committed metadata ends."),
                Panel(
                    "Metadata behind",
                    [
                        Query(
                            f"max(<g {RAFT}#high-watermark>{{[[J]]}}) - on() group_right() "
                            f"<g {RAFT}#log-end-offset>{{[[S]]}}",
                            "{{instance}}",
                        )
                    ],
                    "Metadata records that a node has not fetched. Below 0 on the leader: not committed yet.",
                ),
                Panel(
                    "Role",
                    [
                        Query(
                            f"<t {RAFT}#current-state>{{[[S]]}}",
                            f"{{{{<l {RAFT}#current-state>}}}} {{{{instance}}}}",
                        )
                    ],
                    "1 for the role that a node has in the quorum.",
                ),
                raft(
                    "Commit latency", "commit-latency-avg", "Time until appended metadata is committed.", "ms"
                ),
                raft("Records appended", "append-records-rate", "Metadata records a second.", "cps"),
                raft(
                    "Records fetched",
                    "fetch-records-rate",
                    "Metadata records a second that a node fetched.",
                    "cps",
                ),
                raft("Election latency", "election-latency-max", "The longest election.", "ms"),
            ],
        ),
        Row(
            "Controller",
            [
                controller("Active controller", "ActiveControllerCount", "1 on exactly one node."),
                controller("Active brokers", "ActiveBrokerCount", "Brokers that send heartbeats."),
                controller("Fenced brokers", "FencedBrokerCount", "Brokers that send no heartbeats."),
                controller("Offline partitions", "OfflinePartitionsCount", "Partitions without a leader."),
                controller(
                    "Metadata lag",
                    "LastAppliedRecordLagMs",
                    "Age of the last metadata record that was applied.",
                    "ms",
                ),
                controller(
                    "Metadata errors", "MetadataErrorCount", "Metadata that could not be applied: a bug."
                ),
                Panel(
                    "Event queue, 99 of 100",
                    [
                        Query(
                            f'<h {EVENTS}=EventQueueTimeMs>{{[[S]],quantile="0.99"}}', "waits {{instance}}"
                        ),
                        Query(
                            f'<h {EVENTS}=EventQueueProcessingTimeMs>{{[[S]],quantile="0.99"}}',
                            "takes {{instance}}",
                        ),
                    ],
                    "How long changes wait in the controller's queue, and how long they take.",
                    "ms",
                ),
                Panel(
                    "Unclean elections",
                    [
                        counter_rate(
                            "kafka.controller:type=ControllerStats,name=UncleanLeaderElectionsPerSec",
                            "[[S]]",
                            "instance",
                        )
                    ],
                    "Leaders that may lack records.",
                    "cps",
                ),
                controller(
                    "Preferred replica imbalance",
                    "PreferredReplicaImbalanceCount",
                    "Partitions that another replica leads than the preferred one.",
                ),
            ],
        ),
    ),
    NODES,
)
