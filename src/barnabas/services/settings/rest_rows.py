"""Settings of the REST proxy, in Confluent's names.

Each row: name, type, default (`...`: must be given), allowed values, documentation. `client.` before any
property of Kafka's clients sets it for all clients of the proxy; `producer.`, `consumer.` and `admin.` set it
for one kind. `schema.registry.` does so for the client of the registry.
"""

from barnabas.services.settings.http_rows import Row

# Rows keep two lines each, so that the table can be read as one.
# fmt: off
SETTINGS: tuple[Row, ...] = (
    ("listeners", "list", "http://0.0.0.0:8082", "",
     "URLs to listen on, with http or https."),
    ("advertised.listeners", "list", "", "",
     "URLs of this proxy in responses; those of the request unless set."),
    ("id", "string", "", "",
     "Name of this proxy, a part of consumer instances' names."),
    ("host.name", "string", "", "",
     "Host of this proxy in responses where advertised.listeners is not set."),
    ("bootstrap.servers", "list", ..., "one or more",
     "Brokers to ask first: host:port, or PROTOCOL://host:port."),
    ("schema.registry.url", "string", "http://localhost:8081", "",
     "URL of the schema registry; several may be separated by commas."),
    ("api.v2.enable", "boolean", True, "",
     "Serve the API v2."),
    ("api.v3.enable", "boolean", True, "",
     "Serve the API v3."),
    ("api.v3.produce.batch.maximum.entries", "int", 10, "[1,...,10000]",
     "Records of one records:batch request."),
    ("api.v3.produce.rate.limit.max.requests.per.sec", "int", 10_000, "[1,...]",
     "Records a second of all v3 produce requests."),
    ("api.v3.produce.rate.limit.max.bytes.per.sec", "int", 10_000_000, "[1,...]",
     "Bytes a second of all v3 produce requests."),
    ("api.v3.produce.rate.limit.enabled", "boolean", False, "",
     "Apply the two limits above."),
    ("confluent.rest.auth.propagate.method", "string", "NONE", "(case insensitive) [NONE, JETTY_AUTH, SSL]",
     "JETTY_AUTH: log in at the brokers with the name and the password, or the token, of the caller."),
    ("barnabas.propagate.sasl.mechanism", "string", "PLAIN",
     "[PLAIN, SCRAM-SHA-256, SCRAM-SHA-512]",
     "The mechanism for the names and passwords of callers."),
    ("barnabas.propagate.clients.max", "int", 100, "[1,...]",
     "Callers that have clients at once."),
    ("barnabas.propagate.clients.idle.ms", "int", 300_000, "[1,...]",
     "Clients of a caller that does nothing for so long are closed."),
    ("consumer.instance.timeout.ms", "int", 300_000, "[1,...]",
     "An instance that gets no request for so long is closed."),
    ("consumer.request.max.bytes", "long", 64 * 1024 * 1024, "[1,...]",
     "Bytes of records in one response at most."),
    ("consumer.request.timeout.ms", "int", 1_000, "[0,...]",
     "How long a read of records waits at most."),
    ("fetch.min.bytes", "int", -1, "[-1,...,10000000]",
     "Bytes that a read of records waits for; -1 means any."),
    ("barnabas.consumer.instances.max", "int", 1_000, "[1,...]",
     "Consumer instances at once."),
    ("barnabas.consumer.instances.per.principal.max", "int", 100, "[1,...]",
     "Consumer instances of one principal at once."),
    ("barnabas.consumer.responses.bytes.max", "long", 256 * 1024 * 1024, "[1048576,...]",
     "Bytes of records in all responses together that are not sent yet."),
    ("streaming.connection.max.duration.ms", "long", 86_400_000, "[1,...]",
     "How long a produce stream may be open."),
    ("streaming.connection.max.duration.grace.period.ms", "long", 500, "[0,...]",
     "How long a produce stream has to end behind that."),
    ("barnabas.stream.idle.ms", "long", 300_000, "[1,...]",
     "A produce stream on which nothing arrives for so long is ended."),
    ("barnabas.stream.record.max.bytes", "int", 10 * 1024 * 1024, "[100,...]",
     "Characters of one object of a produce stream."),
    ("barnabas.stream.records.in.flight.max", "int", 10_000, "[1,...]",
     "Records of a produce stream without a result; then the proxy stops reading."),
    ("barnabas.stream.bytes.in.flight.max", "int", 8 * 1024 * 1024, "[1,...]",
     "Bytes of these records."),
    ("barnabas.tail.connections.max", "int", 200, "[0,...]",
     "Tails at once, over HTTP and WebSocket."),
    ("barnabas.tail.keep.alive.ms", "int", 15_000, "[10,...]",
     "How often a tail without records gets a sign of life."),
    ("barnabas.tail.fetch.max.bytes", "int", 1024 * 1024, "[1,...]",
     "Bytes that a tail fetches at once, which bounds what a slow reader costs."),
    ("barnabas.audit.enable", "boolean", False, "",
     "Count the records that the proxy produces, for `barnabas audit`."),
    ("crn.authority.name", "string", "", "",
     "The authority in resource names: crn://AUTHORITY/kafka=..."),
)
# fmt: on

OWN_PREFIX = "kafka.rest."
ALIASES: dict[str, str] = {"max.batch.size": "api.v3.produce.batch.maximum.entries"}
PREFIXES = ("client.", "producer.", "consumer.", "admin.", "schema.registry.")
WITHOUT_EFFECT = frozenset(
    {
        "consumer.iterator.backoff.ms",
        "consumer.iterator.timeout.ms",
        "consumer.threads",
        "debug",
        "kafka.rest.context.class",
        "kafka.rest.resource.extension.class",
        "producer.threads",
        "request.logger.name",
        "simple.consumer.pool.size.max",
        "simple.consumer.pool.timeout.ms",
        "zookeeper.connect",
    }
)
