"""Dashboards of parts beside brokers: pipelines on Spark, Kafka Connect, Kafka Streams, services over HTTP.

Connect and Streams are Java processes; the names are those of the JMX exporter's rules of Confluent's
monitoring stack, whatever dialect the brokers speak.
"""

from __future__ import annotations

from barnabas.monitor.dashboards.model import STAT, TABLE, Dashboard, Panel, Query, Row, Variable

PIPELINE = 'pipeline=~"$pipeline"'
WORKER = "kafka_connect_connect_worker_metrics"
TASK_ERRORS = "kafka_connect_task_error_metrics"
STREAMS = "kafka_streams_stream"

PIPELINES = Dashboard(
    "pipelines",
    "pipelines",
    "Pipelines on Spark: rows, lag, runs, freshness of views.",
    (
        Row(
            "Sources",
            [
                Panel(
                    "Rows",
                    [
                        Query(
                            "sum by (pipeline, source, outcome) "
                            f"(rate(barnabas_pipeline_rows_total{{{PIPELINE}}}[$__rate_interval]))",
                            "{{source}} {{outcome}}",
                        )
                    ],
                    "Rows of each source, by what became of them.",
                    "rowsps",
                ),
                Panel(
                    "Lag",
                    [Query(f"barnabas_pipeline_lag_rows{{{PIPELINE}}}", "{{name}}")],
                    "Rows that waited in a source after its last batch.",
                ),
                Panel(
                    "Quarantined",
                    [
                        Query(
                            "sum by (pipeline, source) (increase(barnabas_pipeline_rows_total"
                            f'{{{PIPELINE},outcome="quarantined"}}[$__rate_interval]))',
                            "{{source}}",
                        )
                    ],
                    "Rows that do not parse or break a rule; `barnabas pipeline release` lets them back in.",
                ),
                Panel(
                    "Bytes",
                    [
                        Query(
                            "sum by (source) "
                            f"(rate(barnabas_pipeline_bytes_total{{{PIPELINE}}}[$__rate_interval]))",
                            "{{source}}",
                        )
                    ],
                    "Bytes read from sources.",
                    "Bps",
                ),
                Panel(
                    "Velocity",
                    [Query(f"barnabas_pipeline_velocity_rows_per_second{{{PIPELINE}}}", "{{name}}")],
                    "Rows a second in the last batch of a source.",
                    "rowsps",
                ),
                Panel(
                    "Delay of views",
                    [Query(f"barnabas_pipeline_delay_seconds{{{PIPELINE}}}", "{{name}}")],
                    "Age of the newest event in a view after a run.",
                    "s",
                ),
            ],
        ),
        Row(
            "Runs",
            [
                Panel(
                    "Runs",
                    [
                        Query(
                            "sum by (name, result) "
                            f"(increase(barnabas_pipeline_runs_total{{{PIPELINE}}}[$__rate_interval]))",
                            "{{name}} {{result}}",
                        )
                    ],
                    "Runs of each part.",
                ),
                Panel(
                    "Time at work",
                    [
                        Query(
                            "sum by (name) "
                            f"(rate(barnabas_pipeline_run_seconds_total{{{PIPELINE}}}[$__rate_interval]))",
                            "{{name}}",
                        )
                    ],
                    "Share of time in which a part works. At 1 it cannot keep up.",
                    "percentunit",
                ),
                Panel(
                    "Since the last run",
                    [
                        Query(
                            f"time() - barnabas_pipeline_last_run_timestamp_seconds{{{PIPELINE}}}", "{{name}}"
                        )
                    ],
                    "Time since a part ended its last run.",
                    "s",
                ),
                Panel(
                    "States",
                    [Query(f"barnabas_pipeline_up{{{PIPELINE}}} == 1")],
                    "The state of each part.",
                    kind=TABLE,
                    width=24,
                ),
            ],
        ),
    ),
    (Variable("pipeline", "Pipeline", "label_values(barnabas_pipeline_runs_total, pipeline)"),),
    needs="pipelines",
)
CONNECT = Dashboard(
    "connect",
    "Connect",
    "Kafka Connect: workers, connectors, tasks and their errors.",
    (
        Row(
            "Connectors",
            [
                Panel(
                    "Connectors",
                    [Query(f"sum({WORKER}_connector_count{{[[J]]}})")],
                    "Connectors of all workers.",
                    kind=STAT,
                    width=6,
                    height=4,
                ),
                Panel(
                    "Tasks",
                    [Query(f"sum({WORKER}_task_count{{[[J]]}})")],
                    "Tasks of all workers.",
                    kind=STAT,
                    width=6,
                    height=4,
                ),
                Panel(
                    "Failed tasks",
                    [Query(f"sum({WORKER}_connector_failed_task_count{{[[J]]}})")],
                    "Tasks that gave up: restart them when the reason is mended.",
                    kind=STAT,
                    width=6,
                    height=4,
                    red_above=0.5,
                ),
                Panel(
                    "Since the last rebalance",
                    [
                        Query(
                            "min(kafka_connect_connect_worker_rebalance_metrics_time_since_last_rebalance_ms{[[J]]})"
                        )
                    ],
                    "Workers that rebalance often do not work.",
                    "ms",
                    STAT,
                    width=6,
                    height=4,
                ),
                Panel(
                    "Tasks by state",
                    [
                        Query(f"sum({WORKER}_connector_{state}_task_count{{[[J]]}})", state)
                        for state in ("running", "paused", "failed", "unassigned", "destroyed")
                    ],
                    "Tasks of all connectors.",
                ),
                Panel(
                    "Records of sources",
                    [
                        Query(
                            "sum by (connector) "
                            "(kafka_connect_source_task_metrics_source_record_write_rate{[[J]]})",
                            "{{connector}}",
                        )
                    ],
                    "Records a second that sources wrote.",
                    "cps",
                ),
                Panel(
                    "Records of sinks",
                    [
                        Query(
                            "sum by (connector) "
                            "(kafka_connect_sink_task_metrics_sink_record_send_rate{[[J]]})",
                            "{{connector}}",
                        )
                    ],
                    "Records a second that sinks got.",
                    "cps",
                ),
                Panel(
                    "Errors",
                    [
                        Query(
                            f"sum by (connector) ({TASK_ERRORS}_total_record_failures{{[[J]]}})",
                            "failed {{connector}}",
                        ),
                        Query(
                            f"sum by (connector) ({TASK_ERRORS}_total_records_skipped{{[[J]]}})",
                            "skipped {{connector}}",
                        ),
                        Query(
                            f"sum by (connector) ({TASK_ERRORS}_deadletterqueue_produce_requests{{[[J]]}})",
                            "dead letter queue {{connector}}",
                        ),
                    ],
                    "Records that failed, were skipped, or went to the dead letter queue.",
                ),
                Panel(
                    "Offset commits",
                    [
                        Query(
                            "max by (connector) "
                            "(kafka_connect_connector_task_metrics_offset_commit_avg_time_ms{[[J]]})",
                            "{{connector}}",
                        )
                    ],
                    "Time of a commit.",
                    "ms",
                ),
                Panel(
                    "Batches of sinks",
                    [
                        Query(
                            "max by (connector) "
                            "(kafka_connect_sink_task_metrics_put_batch_avg_time_ms{[[J]]})",
                            "{{connector}}",
                        )
                    ],
                    "Time that a sink takes for a batch.",
                    "ms",
                ),
            ],
        ),
    ),
    (Variable("job", "Job", f"label_values({WORKER}_connector_count, job)"),),
    needs="connect",
)
STREAMS_DASHBOARD = Dashboard(
    "streams",
    "Streams",
    "Kafka Streams applications: threads, tasks, processing.",
    (
        Row(
            "Processing",
            [
                Panel(
                    "Records",
                    [
                        Query(
                            f"sum by (client_id) ({STREAMS}_processor_node_metrics_process_rate{{[[J]]}})",
                            "{{client_id}}",
                        )
                    ],
                    "Records a second that processors handled.",
                    "cps",
                ),
                Panel(
                    "Dropped",
                    [
                        Query(
                            f"sum by (client_id) ({STREAMS}_task_metrics_dropped_records_rate{{[[J]]}})",
                            "{{client_id}}",
                        )
                    ],
                    "Records a second that were late or could not be read.",
                    "cps",
                ),
                Panel(
                    "Process latency",
                    [
                        Query(
                            f"max by (client_id) ({STREAMS}_thread_metrics_process_latency_avg{{[[J]]}})",
                            "{{client_id}}",
                        )
                    ],
                    "Average time to process a record.",
                    "ms",
                ),
                Panel(
                    "Poll latency",
                    [
                        Query(
                            f"max by (client_id) ({STREAMS}_thread_metrics_poll_latency_avg{{[[J]]}})",
                            "{{client_id}}",
                        )
                    ],
                    "Average time of a poll.",
                    "ms",
                ),
                Panel(
                    "Records of a poll",
                    [
                        Query(
                            f"max by (client_id) ({STREAMS}_thread_metrics_poll_records_avg{{[[J]]}})",
                            "{{client_id}}",
                        )
                    ],
                    "Records that a poll returned.",
                ),
                Panel(
                    "Tasks",
                    [
                        Query(
                            f"sum by (client_id) ({STREAMS}_thread_metrics_task_created_rate{{[[J]]}})",
                            "created {{client_id}}",
                        ),
                        Query(
                            f"sum by (client_id) ({STREAMS}_thread_metrics_task_closed_rate{{[[J]]}})",
                            "closed {{client_id}}",
                        ),
                    ],
                    "Tasks created and closed a second: rebalances.",
                    "cps",
                ),
            ],
        ),
    ),
    (Variable("job", "Job", f"label_values({STREAMS}_thread_metrics_process_latency_avg, job)"),),
    needs="streams",
)
