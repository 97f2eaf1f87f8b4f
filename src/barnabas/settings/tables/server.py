"""The node itself: identity, threads, topics as a whole, fetch limits, plug-ins.

Each row: name, type, default, allowed values, importance, how it can be changed, documentation.
"""

from barnabas.settings.tables.row import Row

# Rows keep two lines each, so that the table can be read as one.
# fmt: off
SETTINGS: tuple[Row, ...] = (
    ("alter.config.policy.class.name", "class", None, "", "low", "read-only",
     "Plug-in that may refuse a change of configuration."),
    ("authorizer.class.name", "string", "", "non-null string", "low", "read-only",
     "Authorizer that decides who may do what; empty allows everything."),
    ("background.threads", "int", 10, "[1,...]", "high", "cluster-wide",
     "Workers for tasks that no request waits for."),
    ("broker.heartbeat.interval.ms", "int", 2000, "", "medium", "read-only",
     "How often a broker tells the controller that it is alive."),
    ("broker.id", "int", -1, "", "high", "read-only",
     "Older name of node.id; when both are set they must agree."),
    ("broker.rack", "string", None, "", "medium", "read-only",
     "Rack of this broker, for spreading replicas and for fetching nearby."),
    ("broker.session.timeout.ms", "int", 9000, "", "medium", "read-only",
     "Silence after which the controller fences a broker."),
    ("client.quota.callback.class", "class", None, "", "low", "read-only",
     "Plug-in that decides quotas in place of the built-in rules."),
    ("config.providers", "list", "", "", "low", "cluster-wide",
     "Names of the config providers that ${name:path:key} may refer to."),
    ("controlled.shutdown.enable", "boolean", True, "", "medium", "read-only",
     "Move leadership away before the broker stops."),
    ("controller.socket.timeout.ms", "int", 30_000, "", "medium", "read-only",
     "Socket timeout for what the controller sends to brokers."),
    ("create.topic.policy.class.name", "class", None, "", "low", "read-only",
     "Plug-in that may refuse a new topic."),
    ("delete.topic.enable", "boolean", True, "", "high", "read-only",
     "Allow topics to be deleted."),
    ("fetch.max.bytes", "int", 57_671_680, "[1024,...]", "medium", "read-only",
     "Upper limit for the bytes a fetch request is answered with."),
    ("initial.broker.registration.timeout.ms", "int", 60_000, "", "medium", "read-only",
     "Time a starting broker has to register with the controller."),
    ("kafka.metrics.polling.interval.secs", "int", 10, "[1,...]", "low", "read-only",
     "Interval of the reporters named in kafka.metrics.reporters."),
    ("kafka.metrics.reporters", "list", "", "", "low", "read-only",
     "Additional reporters for the server's own metrics."),
    ("max.incremental.fetch.session.cache.slots", "int", 1000, "[0,...]", "medium", "read-only",
     "Fetch sessions that are remembered at a time."),
    ("max.request.partition.size.limit", "int", 2000, "[1,...]", "medium", "read-only",
     "Partitions one DescribeTopicPartitions request may ask for."),
    ("metric.reporters", "list", "org.apache.kafka.common.metrics.JmxReporter", "", "low", "cluster-wide",
     "Reporters that receive metrics as they are registered."),
    ("metrics.num.samples", "int", 2, "[1,...]", "low", "read-only",
     "Samples kept for each rate."),
    ("metrics.recording.level", "string", "INFO", "", "low", "read-only",
     "Detail at which metrics are recorded: INFO, DEBUG or TRACE."),
    ("metrics.sample.window.ms", "long", 30_000, "[1,...]", "low", "read-only",
     "Length of one sample of a rate."),
    ("node.id", "int", ..., "[0,...]", "high", "read-only",
     "Number of this node, unique in the cluster."),
    ("num.io.threads", "int", 8, "[1,...]", "high", "cluster-wide",
     "Kafka's request handler threads; accepted, handlers run on the event loop here."),
    ("process.roles", "list", ..., "one or more of [broker, controller]", "high", "read-only",
     "What this node is: broker, controller or both."),
    ("telemetry.max.bytes", "int", 1_048_576, "[1,...]", "low", "read-only",
     "Largest push of client metrics that is accepted."),
)

INTERNAL: tuple[Row, ...] = (
    ("unstable.api.versions.enable", "boolean", False, "", "high", "read-only",
     "Announce versions of APIs that are still in development."),
    ("unstable.feature.versions.enable", "boolean", False, "", "high", "read-only",
     "Allow feature levels that are still in development."),
)
# fmt: on
