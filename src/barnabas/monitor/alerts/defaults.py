"""The rules that apply without a file: few, on what clients feel, and on disks and certificates before
they end.

Each says what to look at and the command to run. A file changes single fields by the rule's name.
"""

from __future__ import annotations

from dataclasses import replace

from barnabas.monitor.alerts.rule import Rule, Severity

CRITICAL, WARNING = Severity.CRITICAL, Severity.WARNING
MINUTE_S = 60.0
WARN_STATUS, ERROR_STATUS = 2, 3  # the numbers of Burrow's judgement

UNEXPECTED_ERRORS = Rule(
    "UnexpectedErrors",
    "metric_increase",
    WARNING,
    "{instance} met {value} exceptions that no code foresaw: {detail}",
    "the log of that broker: a line with `failed unexpectedly` names the call and its object, and the "
    "traceback follows; it is a bug, report it",
    "barnabas jmx --jmx-url http://{instance}/metrics --object-name 'barnabas:type=Node,*' --one-time",
    above=0,
    keep_s=10 * MINUTE_S,
    options={"metric": "barnabas_node_unexpectederrorplaces"},
)
# One look sees no growth: health tells what a broker met since its start.
UNEXPECTED_SINCE_START = replace(
    UNEXPECTED_ERRORS,
    check="metric",
    summary="{instance} met {value} exceptions that no code foresaw since its start: {detail}",
    keep_s=0.0,
)

REQUEST_TIME = "kafka_network_requestmetrics_totaltimems"
PRODUCE = {"request": "Produce", "quantile": "0.99"}


def probe_rule(name: str, counter: str, summary: str) -> Rule:
    """On a counter of the end-to-end probe of `barnabas lag serve`, or of kminion."""
    return Rule(
        name,
        "metric_increase",
        CRITICAL,
        f"{summary}: clients cannot use the cluster ({{detail}})",
        "the leader of that partition of the probe's topic, and the network to it",
        "curl -s 'http://{instance}/metrics?dialect=kminion' | grep end_to_end_messages",
        above=0,
        for_s=2 * MINUTE_S,  # records time out in bursts: failures of more than the span
        options={"metric": f"kminion_end_to_end_{counter}_total", "over": MINUTE_S},
    )


DEFAULTS = (
    Rule(
        "ClusterUnreachable",
        "unreachable",
        CRITICAL,
        "the cluster {cluster} does not answer: {detail}",
        "the addresses of bootstrap.servers, the brokers' processes, and the network between",
        "barnabas api-versions --bootstrap-server {bootstrap}",
        above=0,
        for_s=30,
    ),
    Rule(
        "CheckBlind",
        "check_blind",
        WARNING,
        "the check {check} cannot look, so nothing tells what it would find: {detail}",
        "the place in the labels: is it up, is its address in the file of alerts right, may the client ask?",
        "barnabas alerts rules",
        above=0,
        for_s=10 * MINUTE_S,
    ),
    Rule(
        "OfflinePartitions",
        "offline_partitions",
        CRITICAL,
        "{value} partitions of {cluster} have no leader: {detail}",
        "the brokers that held their in-sync replicas: are they up, are their disks?",
        "barnabas topics --describe --unavailable-partitions --bootstrap-server {bootstrap}",
        above=0,
        for_s=30,
    ),
    Rule(
        "UnderMinIsrPartitions",
        "under_min_isr",
        CRITICAL,
        "{value} partitions of {cluster} refuse acks=all: {detail}",
        "brokers that are down or slow, and min.insync.replicas of these topics",
        "barnabas topics --describe --under-min-isr-partitions --bootstrap-server {bootstrap}",
        above=0,
        for_s=MINUTE_S,
    ),
    Rule(
        "UnderReplicatedPartitions",
        "under_replicated",
        WARNING,
        "{value} partitions of {cluster} have replicas out of sync: {detail}",
        "one broker in all of them: that broker; many brokers: disks or the network",
        "barnabas topics --describe --under-replicated-partitions --bootstrap-server {bootstrap}",
        above=0,
        for_s=5 * MINUTE_S,
        keep_s=MINUTE_S,
    ),
    Rule(
        "NoActiveController",
        "no_controller",
        CRITICAL,
        "{cluster} has no active controller: {detail}",
        "the voters of the quorum: a majority of them must run and reach each other",
        "barnabas metadata-quorum describe --status --bootstrap-server {bootstrap}",
        above=0,
        for_s=MINUTE_S,
    ),
    Rule(
        "BrokerGone",
        "brokers_gone",
        CRITICAL,
        "{value} brokers of {cluster} are registered and do not answer: {detail}",
        "their processes and hosts; `barnabas cluster unregister --id N` forgets one that will not come back",
        "barnabas cluster list-endpoints --include-fenced-brokers --bootstrap-server {bootstrap}",
        above=0,
        for_s=MINUTE_S,
    ),
    Rule(
        "QuorumFallsBehind",
        "quorum_lag",
        WARNING,
        "{value} voters of {cluster} are more than 10 s behind the metadata log: {detail}",
        "their processes, their disks, and the network to the leader of the quorum",
        "barnabas metadata-quorum describe --replication --bootstrap-server {bootstrap}",
        above=0,
        for_s=MINUTE_S,
    ),
    Rule(
        "OfflineLogDirs",
        "offline_log_dirs",
        CRITICAL,
        "{value} log dirs of broker {broker} are offline: {detail}",
        "the broker's log for the path and the error of the operating system",
        "barnabas log-dirs --describe --bootstrap-server {bootstrap}",
        above=0,
    ),
    Rule(
        "DiskAlmostFull",
        "disk_free_percent",
        WARNING,
        "{value} % of the volume of {dir} on broker {broker} are free",
        "large topics and their retention; a full volume takes the log dir offline",
        "barnabas log-dirs --describe --bootstrap-server {bootstrap}",
        below=15,
        good_at=17,
        for_s=MINUTE_S,
    ),
    Rule(
        "DiskFullSoon",
        "disk_full_hours",
        WARNING,
        "the volume of {dir} on broker {broker} is full in {value} hours, as it grew in the last six",
        "topics that grow: their retention, and moving partitions to another broker",
        "barnabas log-dirs --describe --bootstrap-server {bootstrap}",
        below=24,
        good_at=30,
        for_s=10 * MINUTE_S,
    ),
    Rule(
        "GroupFailing",
        "group_status",
        CRITICAL,
        "group {group} of {cluster}: {detail}",
        "its members' logs: a stopped group commits nothing, a stalled one commits the same offset",
        "barnabas lag --group {group} --bootstrap-server {bootstrap}",
        above=ERROR_STATUS - 1,
        for_s=MINUTE_S,
        keep_s=MINUTE_S,
    ),
    Rule(
        "GroupFallsBehind",
        "group_status",
        WARNING,
        "group {group} of {cluster}: {detail}",
        "whether it has as many members as partitions, and how long its work on one record takes",
        "barnabas lag --group {group} --bootstrap-server {bootstrap}",
        above=WARN_STATUS - 1,
        for_s=10 * MINUTE_S,
        keep_s=5 * MINUTE_S,
    ),
    Rule(
        "RetentionOvertakesGroup",
        "retention_hours",
        CRITICAL,
        "records that group {group} did not read are deleted in {value} hours: {detail}",
        "the retention of the topic: a longer one gives the group time",
        "barnabas lag --group {group} --bootstrap-server {bootstrap}",
        below=6,
        good_at=12,
        for_s=5 * MINUTE_S,
    ),
    Rule(
        "AuditIncomplete",
        "audit",
        CRITICAL,
        "the audit of {topic}: {detail}",
        "the tier that is named: its host, its log, restarts at that time",
        "curl -s '{url}/alarms'",
        above=0,
    ),
    Rule(
        "CertificateEnds",
        "certificate_days",
        WARNING,
        "the certificate of {address} ends in {value} days ({detail})",
        "the key store of the listener: a new file is loaded without a restart",
        "openssl s_client -connect {address} </dev/null | openssl x509 -noout -enddate",
        below=14,
    ),
    Rule(
        "UncleanElections",
        "metric_increase",
        CRITICAL,
        "{value} leaders were elected that may lack records ({instance})",
        "unclean.leader.election.enable of the topics; consumers may have read records that are gone",
        "barnabas configs --describe --entity-type topics --bootstrap-server {bootstrap}",
        above=0,
        keep_s=10 * MINUTE_S,
        options={"metric": "kafka_controller_controllerstats_uncleanleaderelections_total"},
    ),
    UNEXPECTED_ERRORS,
    Rule(
        "ProduceSlow",
        "metric",
        WARNING,
        "one produce request in a hundred takes {value} ms at {instance}",
        "the phases of the request: local is the disk, remote are the followers",
        "barnabas jmx --jmx-url http://{instance}/metrics --one-time "
        "--object-name 'kafka.network:type=RequestMetrics,*,request=Produce'",
        above=500,
        good_at=400,
        for_s=10 * MINUTE_S,
        keep_s=MINUTE_S,
        options={"metric": REQUEST_TIME, "match": PRODUCE},
    ),
    Rule(
        "BrokerSlowerThanOthers",
        "metric_peers",
        WARNING,
        "produce requests take {value} times as long at {instance} as at other brokers ({detail} ms)",
        "the disk and the host of this broker: errors in the kernel's log, a neighbour that takes its share",
        "barnabas jmx --jmx-url http://{instance}/metrics --one-time "
        "--object-name 'kafka.network:type=RequestMetrics,*,request=Produce'",
        above=5,
        good_at=3,
        for_s=10 * MINUTE_S,
        keep_s=MINUTE_S,
        options={"metric": REQUEST_TIME, "match": PRODUCE, "least": 100},
    ),
    Rule(
        "LoopBusy",
        "metric",
        WARNING,
        "the network threads of {instance} are idle only {value} of the time",
        "traffic by broker: move leaders, add brokers, or let producers batch more (linger.ms)",
        "barnabas jmx --jmx-url http://{instance}/metrics --one-time "
        "--object-name 'kafka.network:type=RequestMetrics,name=RequestsPerSec,*'",
        below=0.2,
        good_at=0.25,
        for_s=10 * MINUTE_S,
        keep_s=MINUTE_S,
        options={"metric": "kafka_network_socketserver_networkprocessoravgidlepercent"},
    ),
    Rule(
        "MetadataBehind",
        "metric",
        WARNING,
        "{instance} applies metadata {value} ms late",
        "the leader of the quorum, and the network to it",
        "barnabas jmx --jmx-url http://{instance}/metrics --one-time "
        "--object-name 'kafka.controller:type=KafkaController,name=LastAppliedRecordLagMs'",
        above=10_000,
        for_s=MINUTE_S,
        options={"metric": "kafka_controller_kafkacontroller_lastappliedrecordlagms"},
    ),
    probe_rule("ProbeLosesRecords", "messages_lost", "{value} records of the probe did not come back"),
    probe_rule("ProbeIsRefused", "messages_produced_failed", "{value} records of the probe were not stored"),
    Rule(
        "ClientsThrottled",
        "metric",
        WARNING,
        "clients are throttled for {value} ms: {detail} ({instance})",
        "the quota of this user or client id: is it too small, or is the client wrong?",
        "barnabas configs --describe --entity-type clients --bootstrap-server {bootstrap}",
        above=1_000,
        for_s=10 * MINUTE_S,
        options={"metric": "kafka_server_quota_throttle_time"},
    ),
    Rule(
        "ConnectorFailed",
        "connector_failed",
        CRITICAL,
        "connector {connector}: {detail}",
        "the trace in its status; a task that failed is not restarted by itself",
        "curl -X POST '{url}/connectors/{connector:url}/restart?includeTasks=true&onlyFailed=true'",
        above=0,
        for_s=5 * MINUTE_S,
    ),
    Rule(
        "PipelineFailing",
        "metric_increase",
        WARNING,
        "{value} runs of a pipeline's part failed: {detail} ({instance})",
        "the timeline of the pipeline and the log of its application",
        "barnabas pipeline status",
        above=0,
        keep_s=5 * MINUTE_S,
        options={"metric": "barnabas_pipeline_runs_total", "match": {"result": "failed"}},
    ),
)
