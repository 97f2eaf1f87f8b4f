"""The dashboard of single brokers: requests by phase, the event loop, connections, memory, descriptors."""

from __future__ import annotations

from barnabas.monitor.dashboards.model import Dashboard, Panel, Query, Row, but_zero, counter_rate
from barnabas.monitor.dashboards.variables import AND_NODES, BYTES_IN, NODES, OF_ALL_TOPICS, STATE

REQUESTS = "kafka.network:type=RequestMetrics,name"
SOCKETS = "kafka.server:type=socket-server-metrics"
PHASES = (
    ("RequestQueueTimeMs", "queue"),
    ("LocalTimeMs", "local"),
    ("RemoteTimeMs", "remote"),
    ("ThrottleTimeMs", "throttle"),
    ("ResponseQueueTimeMs", "response queue"),
    ("ResponseSendTimeMs", "send"),
)


def phases(request: str) -> Panel:
    return Panel(
        f"{request}: phases, 99 of 100",
        [
            Query(f'max(<h {REQUESTS}={name}>{{[[S]],request="{request}",quantile="0.99"}})', legend)
            for name, legend in PHASES
        ],
        "Where the slowest hundredth of requests waits; remote: for followers, or for records to fetch.",
        "ms",
        width=12,
    )


def total(request: str) -> Panel:
    return Panel(
        f"{request}: total",
        [
            Query(
                f'max(<h {REQUESTS}=TotalTimeMs>{{[[S]],request="{request}",quantile="{quantile}"}})', legend
            )
            for quantile, legend in (("0.50", "half"), ("0.95", "95 of 100"), ("0.999", "999 of 1000"))
        ],
        "Time from request to response.",
        "ms",
        width=12,
    )


BROKER = Dashboard(
    "broker",
    "brokers",
    "Requests by phase, the event loop, connections and resources of brokers.",
    (
        Row(
            "State",
            [
                Panel(
                    "State",
                    [Query(f"{STATE}{{[[S]]}}", "{{instance}}")],
                    "1 starting, 2 recovering, 3 running, 6 and 7 stopping.",
                ),
                Panel(
                    "Bytes in",
                    [counter_rate(BYTES_IN, OF_ALL_TOPICS, "instance", "{{instance}}")],
                    "Bytes of records produced.",
                    "Bps",
                ),
                Panel(
                    "Requests",
                    [counter_rate(f"{REQUESTS}=RequestsPerSec", "[[S]]", "instance", "{{instance}}")],
                    "Requests that got a response.",
                    "reqps",
                ),
            ],
        ),
        Row("Produce", [total("Produce"), phases("Produce")]),
        Row("Fetch", [total("FetchConsumer"), phases("FetchConsumer")]),
        Row(
            "Event loop",
            [
                Panel(
                    "Idle share",
                    [
                        Query(
                            "<g kafka.network:type=SocketServer,name=NetworkProcessorAvgIdlePercent>{[[S]]}",
                            "{{instance}}",
                        )
                    ],
                    "Share of time in which the loop waits for work. Below 0.2 requests begin to queue.",
                    "percentunit",
                ),
                Panel(
                    "Loop lag",
                    [Query("<g barnabas.server:type=EventLoop,name=LagMaxMs>{[[S]]}", "{{instance}}")],
                    "How late the event loop was at most in the last minutes: a callback held it that long.",
                    "ms",
                ),
                Panel(
                    "Requests in the queue",
                    [
                        Query(
                            "<g kafka.network:type=RequestChannel,name=RequestQueueSize>{[[S]]}",
                            "{{instance}}",
                        )
                    ],
                    "Requests that were read and have no response yet.",
                ),
                Panel(
                    "Slow callbacks",
                    [
                        counter_rate(
                            "barnabas.server:type=EventLoop,name=SlowCallbacksPerSec", "[[S]]", "instance"
                        )
                    ],
                    "How often a callback held the loop for about 100 ms.",
                    "cps",
                ),
                Panel(
                    "Errors by request",
                    [
                        but_zero(
                            counter_rate(
                                f"{REQUESTS}=ErrorsPerSec",
                                '[[S]],error!="NONE"',
                                "request, error",
                                "{{request}} {{error}}",
                            )
                        )
                    ],
                    "Responses with an error.",
                    "cps",
                    is_often_empty=True,
                ),
                Panel(
                    "Waiting in purgatory",
                    [
                        Query(
                            "<g kafka.server:type=DelayedOperationPurgatory,name=PurgatorySize>{[[S]]}",
                            "{{@delayedOperation}} {{instance}}",
                        )
                    ],
                    "Requests that wait for followers, for records, or for members of a group.",
                ),
            ],
        ),
        Row(
            "Connections",
            [
                Panel(
                    "Open",
                    [
                        Query(
                            f"sum by (instance, listener) (<g {SOCKETS}#connection-count>{{[[S]]}})",
                            "{{instance}} {{listener}}",
                        )
                    ],
                    "Connections by listener.",
                ),
                Panel(
                    "New",
                    [
                        Query(
                            f"sum by (instance, listener) (<g {SOCKETS}#connection-accept-rate>{{[[S]]}})",
                            "{{instance}} {{listener}}",
                        )
                    ],
                    "Connections accepted a second. Many mean clients that do not keep theirs.",
                    "cps",
                ),
                Panel(
                    "Fetch sessions",
                    [
                        Query(
                            "<g kafka.server:type=FetchSessionCache,name=NumIncrementalFetchSessions>{[[S]]}",
                            "{{instance}}",
                        )
                    ],
                    "Incremental fetch sessions.",
                ),
            ],
        ),
        Row(
            "Resources",
            [
                Panel(
                    "Memory",
                    [Query(f"process_resident_memory_bytes{{[[S]]}}{AND_NODES}", "{{instance}}")],
                    "Resident memory of the process. Its page cache is not in it.",
                    "bytes",
                ),
                Panel(
                    "Processor",
                    [
                        Query(
                            f"rate(process_cpu_seconds_total{{[[S]]}}[$__rate_interval]){AND_NODES}",
                            "{{instance}}",
                        )
                    ],
                    "Processors in use: 100 % is one of them.",
                    "percentunit",
                ),
                Panel(
                    "Descriptors",
                    [
                        Query(f"process_open_fds{{[[S]]}}{AND_NODES}", "open {{instance}}"),
                        Query(f"process_max_fds{{[[S]]}}{AND_NODES}", "limit {{instance}}"),
                    ],
                    "Files and sockets: connections and segments.",
                ),
                Panel(
                    "Disk",
                    [
                        Query(
                            "rate(<g kafka.server:type=KafkaServer,name=linux-disk-read-bytes>"
                            "{[[S]]}[$__rate_interval])",
                            "read {{instance}}",
                        ),
                        Query(
                            "rate(<g kafka.server:type=KafkaServer,name=linux-disk-write-bytes>"
                            "{[[S]]}[$__rate_interval])",
                            "written {{instance}}",
                        ),
                    ],
                    "Bytes from and to disks, by the process' own account.",
                    "Bps",
                ),
                Panel(
                    "Free space",
                    [
                        Query(
                            "<g barnabas:type=log-directory#usable-bytes>{[[S]]} "
                            "/ <g barnabas:type=log-directory#total-bytes>{[[S]]}",
                            "{{instance}} {{@logDirectory}}",
                        )
                    ],
                    "Share of the file system of each log directory that is free.",
                    "percentunit",
                ),
                Panel(
                    "Days of certificates",
                    [
                        Query(
                            "(<g barnabas:type=certificate#expiry-seconds>{[[S]]} - time()) / 86400",
                            "{{instance}} {{listener}}",
                        )
                    ],
                    "Days until the certificate of a TLS listener ends; no data without such listeners.",
                    is_often_empty=True,
                ),
                Panel(
                    "Log flushes, 99 of 100",
                    [
                        Query(
                            "<h kafka.log:type=LogFlushStats,name=LogFlushRateAndTimeMs>"
                            '{[[S]],quantile="0.99"}',
                            "{{instance}}",
                        )
                    ],
                    "Time of a sync to disk.",
                    "ms",
                ),
                Panel(
                    "Size of logs",
                    [Query("sum by (instance) (<g kafka.log:type=Log,name=Size>{[[S]]})", "{{instance}}")],
                    "Bytes of all logs of a broker.",
                    "bytes",
                ),
            ],
        ),
    ),
    NODES,
)
