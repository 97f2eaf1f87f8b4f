"""Settings of the schema registry, in Confluent's names.

Each row: name, type, default (`...`: must be given), allowed values, documentation. `kafkastore.` before any
property of Kafka's clients sets that property for the registry's own client.
"""

from barnabas.services.settings.http_rows import Row

LEVELS = "[NONE, BACKWARD, BACKWARD_TRANSITIVE, FORWARD, FORWARD_TRANSITIVE, FULL, FULL_TRANSITIVE]"

# Rows keep two lines each, so that the table can be read as one.
# fmt: off
SETTINGS: tuple[Row, ...] = (
    ("listeners", "list", "http://0.0.0.0:8081", "",
     "URLs to listen on, with http or https."),
    ("host.name", "string", None, "",
     "Name under which other registries reach this one; the machine's name unless set."),
    ("inter.instance.protocol", "string", "http", "[http, https]",
     "Scheme of the listener that other registries use."),
    ("inter.instance.headers.whitelist", "list", "", "",
     "Headers that go along when a request is forwarded to the primary."),
    ("kafkastore.bootstrap.servers", "list", ..., "one or more",
     "Brokers to ask first: host:port, or PROTOCOL://host:port."),
    ("kafkastore.topic", "string", "_schemas", "non-empty string",
     "The topic that holds everything."),
    ("kafkastore.topic.replication.factor", "int", 3, "[1,...,32767]",
     "Replicas of the topic when it is created; fewer if the cluster has fewer brokers."),
    ("kafkastore.topic.skip.validation", "boolean", False, "",
     "Start although the topic has another cleanup policy or several partitions."),
    ("kafkastore.init.timeout.ms", "int", 60_000, "[1,...]",
     "How long the start may take: the topic made, found and read."),
    ("kafkastore.timeout.ms", "int", 500, "[1,...]",
     "How long a write to the topic may take."),
    ("kafkastore.security.protocol", "string", "PLAINTEXT",
     "[PLAINTEXT, SSL, SASL_PLAINTEXT, SASL_SSL]",
     "How the registry connects to the brokers."),
    ("schema.registry.group.id", "string", "schema-registry", "non-empty string",
     "Group in which registries elect their primary."),
    ("kafkagroup.session.timeout.ms", "int", 10_000, "[1,...]",
     "A node that the group's coordinator does not hear of for so long is no primary any more."),
    ("kafkagroup.heartbeat.interval.ms", "int", 3_000, "[1,...]",
     "How often a node tells the group's coordinator that it is alive."),
    ("kafkagroup.rebalance.timeout.ms", "int", 300_000, "[1,...]",
     "How long an election waits for all nodes."),
    ("leader.connect.timeout.ms", "int", 60_000, "[1,...]",
     "How long the connection to the primary may take when a write is forwarded."),
    ("leader.read.timeout.ms", "int", 60_000, "[1,...]",
     "How long the primary's response to a forwarded write may take."),
    ("leader.eligibility", "boolean", True, "",
     "Whether this registry can become the primary."),
    ("schema.compatibility.level", "string", "backward", f"(case insensitive) {LEVELS}",
     "Compatibility level until one is set by the API."),
    ("mode.mutability", "boolean", True, "",
     "Whether modes can be changed."),
    ("schema.validate.new.schemas", "boolean", True, "",
     "Check defaults and names of new schemas."),
    ("schema.search.default.limit", "int", 1_000, "[1,...]",
     "Schemas in a list unless `limit` says it."),
    ("schema.search.max.limit", "int", 1_000, "[1,...]",
     "Schemas in a list at most."),
    ("subject.search.default.limit", "int", 20_000, "[1,...]",
     "Subjects in a list unless `limit` says it."),
    ("subject.search.max.limit", "int", 20_000, "[1,...]",
     "Subjects in a list at most."),
    ("subject.version.search.default.limit", "int", 1_000, "[1,...]",
     "Versions in a list unless `limit` says it."),
    ("subject.version.search.max.limit", "int", 1_000, "[1,...]",
     "Versions in a list at most."),
    ("response.mediatype.default", "string", "application/vnd.schemaregistry.v1+json", "non-empty string",
     "Media type of responses to clients that name none."),
    ("barnabas.responses.classic", "boolean", False, "",
     "Respond with the fields of servers before 8.0 alone: old strict clients refuse others."),
    ("barnabas.schema.bytes.max", "int", 4_194_304, "[1,...]",
     "Characters of a schema's text at most. The topic's max.message.bytes bounds it too."),
)
# fmt: on

OWN_PREFIX = "schema.registry."
ALIASES = {
    "avro.compatibility.level": "schema.compatibility.level",
    "master.eligibility": "leader.eligibility",
}
PREFIXES = ("kafkastore.", "kafkastore.topic.config.")
WITHOUT_EFFECT = frozenset(
    {
        "debug",
        "kafkastore.checkpoint.dir",
        "kafkastore.checkpoint.version",
        "kafkastore.connection.url",
        "kafkastore.group.id",
        "kafkastore.update.handlers",
        "kafkastore.write.max.retries",
        "kafkastore.write.retry.backoff.ms",
        "metadata.encoder.secret",
        "request.logger.name",
        "resource.extension.class",
        "resource.static.locations",
        "response.mediatype.preferred",
        "schema.cache.expiry.secs",
        "schema.cache.size",
        "schema.registry.resource.extension.class",
        "schema.registry.zk.namespace",
    }
)
