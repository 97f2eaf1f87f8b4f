"""Settings of Confluent's brokers that Apache Kafka lacks: whether records must name a schema of a registry.

Each row: name, type, default, allowed values, importance, how it can be changed, documentation.
"""

from barnabas.settings.tables.row import Row

STRATEGIES = (
    "io.confluent.kafka.serializers.subject.TopicNameStrategy",
    "io.confluent.kafka.serializers.subject.RecordNameStrategy",
    "io.confluent.kafka.serializers.subject.TopicRecordNameStrategy",
)
_STRATEGY = f"[{', '.join(STRATEGIES)}]"

# fmt: off
SETTINGS: tuple[Row, ...] = (
    ("confluent.basic.auth.credentials.source", "string", "URL", "[URL, USER_INFO]", "medium", "read-only",
     "Where the name and password for the registry are: in its URL, or in confluent.basic.auth.user.info."),
    ("confluent.basic.auth.user.info", "password", None, "", "medium", "read-only",
     "Name and password for the schema registry, as name:password."),
    ("confluent.bearer.auth.token", "password", None, "", "medium", "read-only",
     "Bearer token for the schema registry."),
    ("confluent.missing.id.cache.ttl.sec", "long", 60, "[1,...]", "low", "read-only",
     "How long a schema id that the registry does not have is refused without asking again, in seconds."),
    ("confluent.schema.registry.max.cache.size", "int", 10000, "[1,...,1000000]", "low", "read-only",
     "How many schema ids are remembered for the keys, and for the values, of a topic."),
    ("confluent.schema.registry.max.retries", "int", 1, "[0,...,10]", "low", "read-only",
     "How often a request to the schema registry is sent again."),
    ("confluent.schema.registry.retries.wait.ms", "int", 0, "[0,...,60000]", "low", "read-only",
     "How long to wait before a request to the schema registry is sent again."),
    ("confluent.schema.registry.url", "list", "", "", "high", "read-only",
     "Addresses of schema registries, for topics whose records must name a schema."),
    ("confluent.ssl.key.password", "password", None, "", "medium", "read-only",
     "Password of the private key in confluent.ssl.keystore.location."),
    ("confluent.ssl.keystore.location", "string", None, "", "medium", "read-only",
     "Key store with the certificate that is shown to the schema registry."),
    ("confluent.ssl.keystore.password", "password", None, "", "medium", "read-only",
     "Password of that key store."),
    ("confluent.ssl.keystore.type", "string", "JKS", "", "low", "read-only",
     "Type of that key store: JKS, PKCS12 or PEM."),
    ("confluent.ssl.truststore.location", "string", None, "", "medium", "read-only",
     "Trust store with the authorities of the schema registry; those of the system if not set."),
    ("confluent.ssl.truststore.password", "password", None, "", "medium", "read-only",
     "Password of that trust store."),
    ("confluent.ssl.truststore.type", "string", "JKS", "", "low", "read-only",
     "Type of that trust store: JKS, PKCS12 or PEM."),
)

TOPIC_SETTINGS: tuple[Row, ...] = (
    ("confluent.key.schema.validation", "boolean", False, "", "medium", "read-only",
     "Whether keys must begin with the id of a schema that is registered under their subject."),
    ("confluent.key.subject.name.strategy", "string", STRATEGIES[0], _STRATEGY, "medium", "read-only",
     "How the subject of keys is named: after the topic, the record, or both."),
    ("confluent.value.schema.validation", "boolean", False, "", "medium", "read-only",
     "Whether values must begin with the id of a schema that is registered under their subject."),
    ("confluent.value.subject.name.strategy", "string", STRATEGIES[0], _STRATEGY, "medium", "read-only",
     "How the subject of values is named: after the topic, the record, or both."),
)
# fmt: on
