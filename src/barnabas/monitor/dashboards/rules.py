"""Rules for Prometheus: alerts with what to look at and the command to run, and rates worth recording.

In: nothing. Out: values of `model`. The conditions and patiences are those that operators of Kafka use: few
alerts, on what clients feel, and disks before they are full. Does not know: YAML.
"""

from __future__ import annotations

from barnabas.monitor.dashboards.model import CRITICAL, WARNING, Alert, Recording
from barnabas.monitor.dashboards.variables import BYTES_IN, STATE

REPLICAS = "kafka.server:type=ReplicaManager,name"
CONTROLLER = "kafka.controller:type=KafkaController,name"
TOPICS = "kafka.server:type=BrokerTopicMetrics,name"
TIMES = "kafka.network:type=RequestMetrics,name=TotalTimeMs"
IDLE = "kafka.network:type=SocketServer,name=NetworkProcessorAvgIdlePercent"
PRODUCE_MS_MAX = 500
HOUR_S = 3600
USABLE, TOTAL = (f"<g barnabas:type=log-directory#{name}-bytes>" for name in ("usable", "total"))
# Names may hold any character: between quotes of a shell they stay one word.
GROUP, CONNECTOR = (
    f"""'{{{{ $labels.{label} | reReplaceAll "'" "'\\\\''" }}}}'""" for label in ("group", "connector")
)
FAILED_TASKS = "kafka_connect_connect_worker_metrics_connector_failed_task_count"
FAILED_CONNECTORS = '{__name__=~"kafka_connect_connector_metrics(_status)?",status="failed"}'

RECORDINGS = (
    Recording("job:barnabas_bytes_in:rate5m", f'sum by (job) (rate(<c {BYTES_IN}>{{topic=""}}[5m]))'),
    Recording(
        "job:barnabas_bytes_out:rate5m", f'sum by (job) (rate(<c {TOPICS}=BytesOutPerSec>{{topic=""}}[5m]))'
    ),
    Recording(
        "job:barnabas_messages_in:rate5m",
        f'sum by (job) (rate(<c {TOPICS}=MessagesInPerSec>{{topic=""}}[5m]))',
    ),
    Recording(
        "job_topic:barnabas_bytes_in:rate5m", f'sum by (job, topic) (rate(<c {BYTES_IN}>{{topic!=""}}[5m]))'
    ),
    Recording(
        "job_request:barnabas_requests:rate5m",
        "sum by (job, request) (rate(<c kafka.network:type=RequestMetrics,name=RequestsPerSec>[5m]))",
    ),
    Recording(
        "job:barnabas_produce_time_ms:p99", f'max by (job) (<h {TIMES}>{{request="Produce",quantile="0.99"}})'
    ),
)
ALERTS = (
    Alert(
        "BarnabasOfflinePartitions",
        f"max by (job) (<g {CONTROLLER}=OfflinePartitionsCount>) > 0",
        30,
        CRITICAL,
        "{{ $value }} partitions have no leader",
        "the brokers that held their in-sync replicas: are they up, are their disks?",
        "barnabas topics --describe --unavailable-partitions",
    ),
    Alert(
        "BarnabasUnderMinIsr",
        f"sum by (job) (<g {REPLICAS}=UnderMinIsrPartitionCount>) > 0",
        60,
        CRITICAL,
        "{{ $value }} partitions refuse acks=all",
        "brokers that are down or slow, and min.insync.replicas of the topics",
        "barnabas topics --describe --under-min-isr-partitions",
    ),
    Alert(
        "BarnabasUnderReplicated",
        f"sum by (job) (<g {REPLICAS}=UnderReplicatedPartitions>) > 0",
        300,
        WARNING,
        "{{ $value }} partitions have replicas out of sync for 5 minutes",
        "one broker in all of them: that broker; many brokers: disks or network",
        "barnabas topics --describe --under-replicated-partitions",
    ),
    Alert(
        "BarnabasNoActiveController",
        f"sum by (job) (<g {CONTROLLER}=ActiveControllerCount>) != 1",
        60,
        CRITICAL,
        "{{ $value }} active controllers instead of 1",
        "the voters of the quorum: a majority of them must run and reach each other",
        "barnabas metadata-quorum describe --status",
    ),
    Alert(
        "BarnabasUncleanElection",
        "sum by (job) (increase("
        "<c kafka.controller:type=ControllerStats,name=UncleanLeaderElectionsPerSec>[10m])) > 0",
        0,
        CRITICAL,
        "{{ $value }} leaders were elected that may lack records",
        "unclean.leader.election.enable of the topics; consumers may have read records that are gone",
        "barnabas configs --describe --entity-type topics",
    ),
    Alert(
        "BarnabasOfflineLogDir",
        "sum by (job, instance) (<g kafka.log:type=LogManager,name=OfflineLogDirectoryCount>) > 0",
        0,
        CRITICAL,
        "{{ $value }} log dirs of {{ $labels.instance }} are offline",
        "the broker's log for the path and the error of the operating system",
        "barnabas log-dirs --describe",
    ),
    Alert(
        "BarnabasBrokerGone",
        f"up * on (job, instance) group_left() (last_over_time({STATE}[1h]) > bool -1) == 0",
        60,
        CRITICAL,
        "{{ $labels.instance }} does not answer",
        "its process and its host; partitions that only it holds are offline",
        "barnabas api-versions",
    ),
    Alert(
        "BarnabasFencedBroker",
        f"max by (job) (<g {CONTROLLER}=FencedBrokerCount>) > 0",
        120,
        WARNING,
        "{{ $value }} brokers are registered and send no heartbeats",
        "brokers that stopped without being unregistered, or cannot reach the controller",
        "barnabas cluster list-endpoints --include-fenced-brokers",
    ),
    Alert(
        "BarnabasProduceSlow",
        f'max by (job, instance) (<h {TIMES}>{{request="Produce",quantile="0.99"}}) > {PRODUCE_MS_MAX}',
        600,
        WARNING,
        "one produce request in a hundred takes {{ $value }} ms at {{ $labels.instance }}",
        "the phases of Produce in the dashboard of brokers: local is the disk, remote are followers",
        "barnabas jmx --object-name 'kafka.network:type=RequestMetrics,*,request=Produce' --one-time",
    ),
    Alert(
        "BarnabasLoopBusy",
        f"<g {IDLE}> < 0.2",
        600,
        WARNING,
        "the event loop of {{ $labels.instance }} is idle only {{ $value | humanizePercentage }} of the time",
        "traffic by broker: move leaders, add brokers, or let producers batch more (linger.ms)",
        "barnabas jmx --object-name 'kafka.network:type=RequestMetrics,name=RequestsPerSec,*' --one-time",
    ),
    Alert(
        "BarnabasMetadataBehind",
        f"max by (job, instance) (<g {CONTROLLER}=LastAppliedRecordLagMs>) > 10000",
        60,
        WARNING,
        "{{ $labels.instance }} applies metadata {{ $value }} ms late",
        "the quorum's leader, and the network to it",
        "barnabas metadata-quorum describe --replication",
    ),
    Alert(
        "BarnabasDescriptorsShort",
        "process_open_fds / process_max_fds and on (job, instance) " + STATE + " > 0.85",
        300,
        WARNING,
        "{{ $labels.instance }} uses {{ $value | humanizePercentage }} of its descriptors",
        "connections and segments; the limit of open files (ulimit -n)",
        "barnabas doctor",
    ),
    Alert(
        "BarnabasUnexpectedErrors",
        "increase(<g barnabas:type=Node,name=UnexpectedErrors>[10m]) > 0",
        0,
        WARNING,
        "{{ $labels.instance }} met {{ $value }} exceptions that no code foresaw",
        "the log of that broker: a line with `failed unexpectedly` names the call and its object, and the "
        "traceback follows; it is a bug, report it. Since its start:"
        '{{ range printf "barnabas_node_unexpectederrorplaces{instance=%q}" $labels.instance | query }}'
        " {{ .Value }} times {{ .Labels.error }} at {{ .Labels.place }} ({{ .Labels.doing }}){{ end }}",
        "barnabas jmx --object-name 'barnabas:type=Node,*' --one-time",
    ),
    Alert(
        "BarnabasThrottling",
        "max by (job, request) "
        '(<h kafka.network:type=RequestMetrics,name=ThrottleTimeMs>{quantile="0.99"}) > 1000',
        600,
        WARNING,
        "{{ $labels.request }} requests are throttled for {{ $value }} ms",
        "clients above their quota",
        "barnabas configs --describe --entity-type clients",
    ),
    Alert(
        "BarnabasDiskAlmostFull",
        f"{USABLE} / {TOTAL} < 0.15",
        60,
        WARNING,
        "{{ $value | humanizePercentage }} of the volume of {{ $labels.@logDirectory }} are free "
        "on {{ $labels.instance }}",
        "large topics and their retention; a full volume takes the log directory offline",
        "barnabas log-dirs --describe",
    ),
    Alert(
        "BarnabasDiskFull",
        f"predict_linear({USABLE}[6h], {24 * HOUR_S}) < 0",
        1800,
        WARNING,
        "the volume of {{ $labels.@logDirectory }} on {{ $labels.instance }} is full in less than a day",
        "retention of the largest topics, or larger disks",
        "barnabas log-dirs --describe",
    ),
    Alert(
        "BarnabasCertificateEnds",
        f"<g barnabas:type=certificate#expiry-seconds> - time() < {14 * 24 * HOUR_S}",
        0,
        WARNING,
        "the certificate of {{ $labels.listener }} at {{ $labels.instance }} ends in "
        "{{ $value | humanizeDuration }}",
        "the key store of the listener: a new file is loaded without a restart",
        "barnabas configs --describe --entity-type brokers --all",
    ),
    Alert(
        "BarnabasGroupFallsBehind",
        "barnabas_lag_group_status == 2",
        300,
        WARNING,
        "the group {{ $labels.group }} consumes and falls behind",
        "members of the group: are there enough, is one partition hot?",
        f"barnabas lag --group {GROUP}",
        "lag",
    ),
    Alert(
        "BarnabasGroupStopped",
        "barnabas_lag_group_status >= 3",
        60,
        CRITICAL,
        "the group {{ $labels.group }} has stopped or does not advance",
        "logs of its members; a record that cannot be processed",
        f"barnabas consumer-groups --describe --group {GROUP}",
        "lag",
    ),
    Alert(
        "BarnabasAuditIncomplete",
        "barnabas_audit_completeness_ratio < 1",
        0,
        CRITICAL,
        "{{ $labels.topic }} is incomplete at {{ $labels.tier }}: {{ $value | humanizePercentage }}",
        "the report of the audit, which names the bucket and the host",
        "barnabas audit report",
        "audit",
    ),
    Alert(
        "BarnabasAuditDuplicates",
        "barnabas_audit_duplicate_ratio > 0",
        0,
        CRITICAL,
        "{{ $value | humanizePercentage }} of {{ $labels.topic }} came more than once to {{ $labels.tier }}",
        "producers without enable.idempotence, and restarts of the tier at that time",
        "barnabas audit report",
        "audit",
    ),
    Alert(
        "BarnabasPipelineFailing",
        'sum by (pipeline, name) (increase(barnabas_pipeline_runs_total{result="failed"}[15m])) > 0',
        0,
        WARNING,
        "{{ $labels.name }} of the pipeline {{ $labels.pipeline }} failed",
        "the report of the pipeline, and the log of the run",
        "barnabas pipeline status",
        "pipelines",
    ),
    Alert(
        "BarnabasConnectorFailed",
        f"sum by (connector) ({FAILED_TASKS}) > 0 or max by (connector) ({FAILED_CONNECTORS}) > 0",
        300,
        CRITICAL,
        "{{ $labels.connector }} failed, or {{ $value }} of its tasks",
        "the trace in the status; what failed is not restarted by itself",
        f"barnabas connect status {CONNECTOR}",
        "connect",
    ),
)
