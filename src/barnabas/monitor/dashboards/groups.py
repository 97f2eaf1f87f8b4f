"""Dashboards of groups (coordinators on brokers; lag, from `barnabas lag serve`) and of the audit."""

from __future__ import annotations

from barnabas.monitor.dashboards.model import TABLE, Dashboard, Panel, Query, Row, Variable
from barnabas.monitor.dashboards.variables import NODES

MANAGER = "kafka.coordinator.group:type=GroupMetadataManager,name"
COORDINATOR = "kafka.server:type=group-coordinator-metrics"
OF_GROUPS = 'cluster=~"$cluster",group=~"$group"'
LAG_CLUSTER = Variable("cluster", "Cluster", "label_values(barnabas_lag_groups, cluster)")
LAG_GROUP = Variable("group", "Group", 'label_values(barnabas_lag_group_records{cluster=~"$cluster"}, group)')
STATES = ("Stable", "Empty", "PreparingRebalance", "CompletingRebalance", "Dead")

GROUPS = Dashboard(
    "groups",
    "groups",
    "Groups and their coordinators.",
    (
        Row(
            "Groups",
            [
                Panel(
                    "Groups by type",
                    [Query(f"sum by (protocol) (<g {COORDINATOR}#group-count>{{[[S]]}})", "{{protocol}}")],
                    "Groups of all coordinators.",
                    width=6,
                ),
                Panel(
                    "Classic groups by state",
                    [Query(f"sum(<g {MANAGER}=NumGroups{state}>{{[[S]]}})", state) for state in STATES],
                    "A group that stays in PreparingRebalance waits for a member.",
                    width=6,
                ),
                Panel(
                    "Consumer groups by state",
                    [Query(f"sum by (state) (<g {COORDINATOR}#consumer-group-count>{{[[S]]}})", "{{state}}")],
                    "Groups of the consumer protocol (KIP-848).",
                    width=6,
                ),
                Panel(
                    "Committed offsets",
                    [Query(f"<g {MANAGER}=NumOffsets>{{[[S]]}}", "{{instance}}")],
                    "Offsets in the memory of each coordinator.",
                    width=6,
                ),
            ],
        ),
        Row(
            "Coordinators",
            [
                Panel(
                    "Partitions of __consumer_offsets",
                    [Query(f"sum by (state) (<g {COORDINATOR}#num-partitions>{{[[S]]}})", "{{state}}")],
                    "Partitions whose groups are loaded, being loaded, or failed to load.",
                ),
                Panel(
                    "OffsetCommit, 99 of 100",
                    [
                        Query(
                            "max by (instance) (<h kafka.network:type=RequestMetrics,name=TotalTimeMs>"
                            '{[[S]],request="OffsetCommit",quantile="0.99"})',
                            "{{instance}}",
                        )
                    ],
                    "Time of the slowest hundredth of commits.",
                    "ms",
                ),
                Panel(
                    "Heartbeats",
                    [
                        Query(
                            "sum by (request) (rate(<c kafka.network:type=RequestMetrics,name=RequestsPerSec>"
                            '{[[S]],request=~"Heartbeat|ConsumerGroupHeartbeat|ShareGroupHeartbeat"}'
                            "[$__rate_interval]))",
                            "{{request}}",
                        )
                    ],
                    "Heartbeats of members.",
                    "reqps",
                ),
            ],
        ),
    ),
    NODES,
)
LAG = Dashboard(
    "lag",
    "lag of groups",
    "Consumer lag in records and in time, with Burrow's verdict; from `barnabas lag serve`.",
    (
        Row(
            "Verdict",
            [
                Panel(
                    "Groups by status",
                    [
                        Query(
                            'count(barnabas_lag_group_status{cluster=~"$cluster"} == 1) or vector(0)', "OK"
                        ),
                        Query(
                            'count(barnabas_lag_group_status{cluster=~"$cluster"} == 2) or vector(0)', "WARN"
                        ),
                        Query(
                            'count(barnabas_lag_group_status{cluster=~"$cluster"} >= 3) or vector(0)', "ERR"
                        ),
                    ],
                    "Burrow's rules: WARN consumes and falls behind, ERR has stopped or does not advance.",
                    width=12,
                ),
                Panel(
                    "Largest lag",
                    [Query('topk(20, barnabas_lag_group_records{cluster=~"$cluster"})')],
                    "Groups that are behind the most.",
                    kind=TABLE,
                    width=12,
                    column="records",
                ),
            ],
        ),
        Row(
            "Lag",
            [
                Panel(
                    "Records",
                    [Query(f"barnabas_lag_group_records{{{OF_GROUPS}}}", "{{group}}")],
                    "Records that a group has not consumed.",
                ),
                Panel(
                    "Time",
                    [Query(f"barnabas_lag_group_seconds{{{OF_GROUPS}}}", "{{group}}")],
                    "Age of the oldest record that is not consumed.",
                    "s",
                ),
                Panel(
                    "Caught up in",
                    [Query(f"barnabas_lag_group_caught_up_seconds{{{OF_GROUPS}}}", "{{group}}")],
                    "Forecast from the last minutes; missing while the group falls behind.",
                    "s",
                ),
            ],
        ),
    ),
    (LAG_CLUSTER, LAG_GROUP),
    needs="lag",
)
OF_AUDIT = 'topic=~"$topic"'
AUDIT = Dashboard(
    "audit",
    "audit",
    "Completeness of topics between tiers, from `barnabas audit serve`.",
    (
        Row(
            "Completeness",
            [
                Panel(
                    "Completeness",
                    [Query(f"barnabas_audit_completeness_ratio{{{OF_AUDIT}}}", "{{topic}} {{tier}}")],
                    "Share of records of the last judged bucket that arrived. Below 1: some are missing.",
                    "percentunit",
                ),
                Panel(
                    "Missing",
                    [Query(f"barnabas_audit_missing{{{OF_AUDIT}}}", "{{topic}} {{tier}}")],
                    "Records that did not arrive in time.",
                ),
                Panel(
                    "Too many",
                    [Query(f"barnabas_audit_extra{{{OF_AUDIT}}}", "{{topic}} {{tier}}")],
                    "Records that arrived twice.",
                ),
                Panel(
                    "Counted",
                    [
                        Query(
                            "sum by (topic, tier) "
                            f"(rate(barnabas_audit_messages_total{{{OF_AUDIT}}}[$__rate_interval]))",
                            "{{topic}} {{tier}}",
                        )
                    ],
                    "Records that each tier counted.",
                    "cps",
                ),
                Panel(
                    "Delay, 99 of 100",
                    [
                        Query(
                            f'barnabas_audit_delay_seconds{{{OF_AUDIT},quantile="0.99"}}',
                            "{{topic}} {{tier}}",
                        )
                    ],
                    "From a record's own time to its count.",
                    "s",
                ),
                Panel("Alarms", [Query("barnabas_audit_alarms")], "Alarms that hold now."),
            ],
        ),
    ),
    (Variable("topic", "Topic", "label_values(barnabas_audit_messages_total, topic)"),),
    needs="audit",
)
