"""Settings that only Barnabas has; their names begin with `barnabas.`.

Each row: name, type, default, allowed values, importance, how it can be changed, documentation.
"""

from barnabas.settings.tables.row import Row

# fmt: off
SETTINGS: tuple[Row, ...] = (
    ("barnabas.audit.counts.bucket.ms", "int", 600000, "[1000,...,86400000]", "low", "read-only",
     "Width of the buckets of time by which the audit counts records: a divisor of a day."),
    ("barnabas.audit.counts.enable", "boolean", False, "", "medium", "read-only",
     "Whether this broker counts the records of the partitions that it leads, for `barnabas audit`."),
    ("barnabas.audit.counts.interval.ms", "int", 10000, "[100,...]", "low", "read-only",
     "How often new records are counted."),
    ("barnabas.audit.counts.read", "string", "headers", "[headers, records, contents]", "low", "read-only",
     "What is read to count a batch: its header if its timestamps lie in one bucket, or all its records. "
     "With contents, sums of what records hold are made too."),
    ("barnabas.audit.counts.tier", "string", "cluster", "non-empty string", "low", "read-only",
     "The tier that this cluster is in the audit; mirror/NAME for a cluster that a mirror fills."),
    ("barnabas.audit.counts.topic", "string", "_barnabas_audit", "non-empty string", "low", "read-only",
     "Topic that gets the counts of the audit."),
    ("barnabas.audit.topic", "string", "", "", "low", "read-only",
     "Topic that gets the decisions of the authorizer as JSON: denied ones, and a sample of the others."),
    ("barnabas.busy.poll.us", "int", 60, "[0,...,1000]", "low", "read-only",
     "How long to wait awake for the next request of a producer that sends them one by one; 0: never."),
    ("barnabas.encryption.enabled", "boolean", False, "", "medium", "read-only",
     "Encrypt new segments, indexes and snapshots on the disk. Files that exist stay as they are."),
    ("barnabas.encryption.key.file", "string", None, "", "medium", "read-only",
     "File with master keys for the key provider 'file': a line id=key for each, the last one is current."),
    ("barnabas.encryption.key.provider", "string", "file", "non-empty string", "medium", "read-only",
     "Provider of master keys: file, env, the name of an entry point, or package.module:Name."),
    ("barnabas.encryption.key.variable", "string", "BARNABAS_MASTER_KEYS", "non-empty string", "low",
     "read-only", "Environment variable with the master keys of the key provider 'env': id=key,id=key."),
    ("barnabas.jaas.file", "string", None, "", "medium", "read-only",
     "JAAS file for listeners without sasl.jaas.config; if not set, the file that KAFKA_OPTS names."),
    ("barnabas.logs.dir", "string", None, "", "medium", "read-only",
     "Folder of server.log, controller.log and others; standard error if not set. Also -Dkafka.logs.dir."),
    ("barnabas.logs.file.bytes", "long", 104857600, "[4096,...]", "low", "read-only",
     "Size at which a file of log lines is rolled."),
    ("barnabas.logs.files", "int", 10, "[2,...,1000]", "low", "read-only",
     "Files of log lines that are kept of each kind, the open one included."),
    ("barnabas.logs.format", "string", "text", "[text, json]", "low", "read-only",
     "Form of log lines: Kafka's text, or a JSON object a line."),
    ("barnabas.logs.request.every", "int", 1, "[1,...]", "low", "read-only",
     "One of so many requests is a line, while kafka.request.logger is at DEBUG or TRACE."),
    ("barnabas.metrics.dialect", "string", "jmx", "[jmx, strimzi, confluent]", "low", "read-only",
     "Names of metrics at the endpoint: those of the JMX exporter's examples, of Strimzi or of Confluent."),
    ("barnabas.metrics.host", "string", "127.0.0.1", "non-empty string", "low", "read-only",
     "Address of the metrics endpoint."),
    ("barnabas.metrics.partitions", "boolean", True, "", "low", "read-only",
     "Whether the endpoint shows metrics of single partitions; its query may say partitions=true."),
    ("barnabas.metrics.port", "int", -1, "[-1,...,65535]", "medium", "read-only",
     "Port of the Prometheus endpoint at /metrics; -1 turns it off, 0 takes a free port."),
    ("barnabas.metrics.requests", "boolean", True, "", "low", "read-only",
     "Whether times, phases and sizes of requests are measured; their number and errors always are."),
    ("barnabas.produce.validation", "string", "relaxed", "[none, relaxed, strict]", "medium", "cluster-wide",
     "How closely produced records are looked at: all (strict), batches at both ends (relaxed), none."),
    ("barnabas.roles.enable", "boolean", False, "", "medium", "read-only",
     "Whether roles allow operations beside ACLs: the node reads their bindings from _barnabas_roles."),
    ("barnabas.secret.key", "password", None, "", "medium", "read-only",
     "Key that passwords set while running are sealed with; the same on every node. A file if not set."),
    ("barnabas.secret.old.key", "password", None, "", "low", "read-only",
     "The key before this one: what it sealed is opened with it, and sealed anew."),
)

TOPIC_SETTINGS: tuple[Row, ...] = (
    ("barnabas.produce.validation", "string", "relaxed", "[none, relaxed, strict]", "medium", "read-only",
     "How closely produced records are looked at: all (strict), batches at both ends (relaxed), none."),
)
# fmt: on
