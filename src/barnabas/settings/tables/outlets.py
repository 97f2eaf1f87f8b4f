"""Settings of outlets for metrics and traces: where they go, how often, under which names.

`metric.reporters` names the outlets that are used: otlp, graphite, statsd, cloudwatch, or a reporter of one's
own. Each row: name, type, default, allowed values, importance, how it can be changed, documentation.
"""

from barnabas.settings.tables.row import Row

# fmt: off
SETTINGS: tuple[Row, ...] = (
    ("barnabas.cloudwatch.log.group", "string", "barnabas", "non-empty string", "low", "read-only",
     "Log group that the CloudWatch agent at barnabas.cloudwatch.target writes to."),
    ("barnabas.cloudwatch.namespace", "string", "Barnabas", "non-empty string", "low", "read-only",
     "Namespace of metrics in CloudWatch."),
    ("barnabas.cloudwatch.target", "string", "stdout", "non-empty string", "medium", "read-only",
     "Where lines in CloudWatch's embedded metric format go: stdout, file:PATH, or tcp://HOST:PORT."),
    ("barnabas.graphite.host", "string", "127.0.0.1", "non-empty string", "medium", "read-only",
     "Host of Graphite's receiver."),
    ("barnabas.graphite.port", "int", 2003, "[1,...,65535]", "medium", "read-only",
     "Port of Graphite's receiver: usually 2003 for plaintext, 2004 for pickle."),
    ("barnabas.graphite.prefix", "string", "barnabas", "", "low", "read-only",
     "First part of each path; cluster and node follow it."),
    ("barnabas.graphite.protocol", "string", "plaintext", "[plaintext, pickle]", "low", "read-only",
     "Graphite's protocol."),
    ("barnabas.graphite.tags", "boolean", False, "", "low", "read-only",
     "Send labels as Graphite's tags (name;label=value) instead of parts of the path."),
    ("barnabas.otlp.ca.file", "string", None, "", "low", "read-only",
     "File with the certificates that the OTLP receiver's certificate is checked with."),
    ("barnabas.otlp.compression", "string", "gzip", "[none, gzip]", "low", "read-only",
     "Compression of OTLP requests."),
    ("barnabas.otlp.endpoint", "string", None, "", "medium", "read-only",
     "Address of the OTLP receiver; if not set, OTEL_EXPORTER_OTLP_ENDPOINT, or http://127.0.0.1:4318."),
    ("barnabas.otlp.headers", "password", None, "", "low", "read-only",
     "Headers of OTLP requests, such as api-key=..., separated by commas."),
    ("barnabas.otlp.protocol", "string", "http/protobuf", "[http/protobuf, grpc]", "low", "read-only",
     "OTLP's transport."),
    ("barnabas.otlp.timeout.ms", "int", 10_000, "[100,...]", "low", "read-only",
     "Longest time for one OTLP request with its repetitions."),
    ("barnabas.outlets.client.metrics", "boolean", True, "", "low", "read-only",
     "Whether outlets get the metrics that clients push (KIP-714)."),
    ("barnabas.outlets.exclude", "string", "", "", "low", "read-only",
     "MBeans that outlets do not get, as patterns such as kafka.log:*; separated by semicolons."),
    ("barnabas.outlets.include", "string", "", "", "low", "read-only",
     "MBeans that outlets get, as patterns separated by semicolons; empty: all."),
    ("barnabas.outlets.interval.ms", "int", 10_000, "[100,...]", "medium", "read-only",
     "How often outlets get all values."),
    ("barnabas.outlets.labels", "list", "", "", "low", "read-only",
     "Labels for each value, such as env=production. Outlets add cluster and node themselves."),
    ("barnabas.outlets.partitions", "boolean", False, "", "medium", "read-only",
     "Whether outlets get the metrics of single partitions: eleven for each partition."),
    ("barnabas.statsd.host", "string", "127.0.0.1", "non-empty string", "medium", "read-only",
     "Host of the StatsD server."),
    ("barnabas.statsd.port", "int", 8125, "[1,...,65535]", "medium", "read-only",
     "UDP port of the StatsD server."),
    ("barnabas.statsd.prefix", "string", "", "", "low", "read-only",
     "Text before each name."),
    ("barnabas.statsd.tags", "string", "datadog", "[datadog, none]", "low", "read-only",
     "How labels are sent: as Datadog's tags, or as parts of the name."),
)
# fmt: on
