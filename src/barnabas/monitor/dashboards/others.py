"""Dashboards of parts beside brokers: pipelines on Spark, Kafka Connect, Kafka Streams, services over HTTP.

Names of Connect are those of our workers, which are nearly those of Confluent's rules for the JMX exporter;
names of Streams are those of our engine. Neither depends on the dialect that brokers speak.
"""

from __future__ import annotations

from barnabas.monitor.dashboards.model import STAT, TABLE, Dashboard, Panel, Query, Row, Variable

PIPELINE = 'pipeline=~"$pipeline"'
WORKER = "kafka_connect_connect_worker_metrics"
TASK_ERRORS = "kafka_connect_task_error_metrics"

APPLICATION = 'application=~"$application"'


def of_tasks(counter: str) -> Query:
    """Events a second of all tasks of a query."""
    rate = f"rate({counter}{{{APPLICATION}}}[$__rate_interval])"
    return Query(f"sum by (application, query) ({rate})", "{{application}} {{query}}")


def of_threads(name: str, legend: str) -> Query:
    """A metric of a query, which stands for a thread."""
    metric = f"kafka_streams_stream_thread_metrics_{name}{{{APPLICATION}}}"
    return Query(f"max by (application, query) ({metric})", legend)


def of_parts(metric: str) -> Query:
    """The largest value of each task or store."""
    return Query(f"max by (application, query, part) ({metric}{{{APPLICATION}}})", "{{query}} {{part}}")


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
                    column="",
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
    "Applications of Streams on Spark: tasks, records, lag, failures.",
    (
        Row(
            "Applications",
            [
                Panel(
                    "Queries by state",
                    [Query(f"sum by (state) (barnabas_engine_query_state{{{APPLICATION}}})", "{{state}}")],
                    "A query that has failed starts again after a while; stopped ones do not.",
                ),
                Panel(
                    "Failures",
                    [
                        Query(
                            "sum by (application, query) "
                            f"(increase(barnabas_engine_query_errors_total{{{APPLICATION}}}[$__rate_interval]))",
                            "{{application}} {{query}}",
                        )
                    ],
                    "Failures of queries.",
                ),
                Panel(
                    "Restarts",
                    [
                        Query(
                            "sum by (application) (increase("
                            f"barnabas_engine_program_restarts_total{{{APPLICATION}}}[$__rate_interval]))",
                            "{{application}}",
                        )
                    ],
                    "Restarts of processes by their supervisor.",
                ),
            ],
        ),
        Row(
            "Processing",
            [
                Panel(
                    "Records in",
                    [of_tasks("kafka_streams_stream_task_metrics_process_total")],
                    "Records a second that tasks processed.",
                    "cps",
                ),
                Panel(
                    "Records out",
                    [of_tasks("barnabas_streams_task_records_sent_total")],
                    "Records a second that tasks wrote.",
                    "cps",
                ),
                Panel(
                    "Lag",
                    [
                        Query(
                            "sum by (application, query) "
                            f"(kafka_consumer_consumer_fetch_manager_metrics_records_lag{{{APPLICATION}}})",
                            "{{application}} {{query}}",
                        )
                    ],
                    "Records that wait in the topics that are read.",
                ),
                Panel(
                    "Dropped",
                    [of_tasks("kafka_streams_stream_task_metrics_dropped_records_total")],
                    "Records a second that were late, had no key, or could not be read.",
                    "cps",
                ),
                Panel(
                    "Problems",
                    [of_tasks("barnabas_streams_task_problems_total")],
                    "Records a second that a handler of failures was asked about.",
                    "cps",
                ),
                Panel(
                    "Commits",
                    [of_tasks("kafka_streams_stream_task_metrics_commit_total")],
                    "Commits of tasks a second.",
                    "cps",
                ),
                Panel(
                    "Process latency",
                    [
                        Query(
                            "max by (application, query) "
                            f"(kafka_streams_stream_task_metrics_process_latency_avg{{{APPLICATION}}})",
                            "{{application}} {{query}}",
                        )
                    ],
                    "Time for a record in the slowest task, of the last minute.",
                    "ns",
                ),
            ],
        ),
        Row(
            "Where time goes",
            [
                Panel(
                    "Phases",
                    [
                        of_threads(f"{phase}_ratio", f"{{{{query}}}} {phase}")
                        for phase in ("poll", "process", "commit")
                    ],
                    "Share of a batch's time that reading, processing and committing take.",
                    "percentunit",
                ),
                Panel(
                    "Poll latency",
                    [of_threads("poll_latency_max", "{{application}} {{query}}")],
                    "The longest time to read the records of a batch.",
                    "ms",
                ),
                Panel(
                    "Records of a batch",
                    [of_threads("poll_records_avg", "{{application}} {{query}}")],
                    "Mean of the last minute.",
                ),
                Panel(
                    "Commit latency",
                    [of_threads("commit_latency_max", "{{application}} {{query}}")],
                    "The longest commit of offsets and results.",
                    "ms",
                ),
                Panel(
                    "Age of records",
                    [
                        Query(
                            "max by (application, query) "
                            "(kafka_streams_stream_processor_node_metrics_record_e2e_latency_max"
                            f'{{{APPLICATION}, part=~".* terminal"}})',
                            "{{application}} {{query}}",
                        )
                    ],
                    "Time from the timestamp of the oldest record until its results were committed.",
                    "ms",
                ),
                Panel(
                    "Tasks that failed",
                    [of_tasks("kafka_streams_stream_thread_metrics_task_closed_total")],
                    "Tasks a second whose batch failed; they begin anew.",
                    "cps",
                ),
            ],
        ),
        Row(
            "State",
            [
                Panel(
                    "Flush latency",
                    [of_parts("kafka_streams_stream_state_metrics_flush_latency_max")],
                    "The longest time to write a task's state, of the last minute.",
                    "ns",
                ),
                Panel(
                    "Restored",
                    [of_tasks("kafka_streams_stream_task_metrics_restore_total")],
                    "Records a second that were read from changelogs because a state was lost.",
                    "cps",
                ),
                Panel(
                    "Get latency",
                    [of_parts("kafka_streams_stream_state_metrics_get_latency_avg")],
                    "Time to read a page of a store, with metrics.recording.level=DEBUG.",
                    "ns",
                ),
                Panel(
                    "Put latency",
                    [of_parts("kafka_streams_stream_state_metrics_put_latency_avg")],
                    "Time to change a page of a store, with metrics.recording.level=DEBUG.",
                    "ns",
                ),
                Panel(
                    "Pages in memory",
                    [of_parts("kafka_streams_stream_record_cache_metrics_hit_ratio_avg")],
                    "Share of pages that were in memory, with metrics.recording.level=DEBUG.",
                    "percentunit",
                ),
            ],
        ),
    ),
    (Variable("application", "Application", "label_values(barnabas_engine_query_state, application)"),),
    needs="streams",
)
