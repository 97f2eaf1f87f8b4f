"""Settings of the search sinks, with Confluent's names and with Aiven's, and what both mean."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from urllib.parse import quote

from barnabas.connect.config import REQUIRED, ConfigDef, Settings, at_least, between, one_of_any_case
from barnabas.connect.connectors.stores.aws_signing import define_signing, signed_login
from barnabas.connect.connectors.stores.http_client import HttpClient, tls_properties
from barnabas.connect.connectors.stores.http_logins import FixedLogin, Login, NoLogin, basic
from barnabas.connect.plugins import ConnectError

BATCH_MAX = 1_000_000
NAME_BYTES_MAX = 255  # of an index
PART_CHARS_MAX = 100  # of each part of a data stream's name
NOT_IN_NAMES = set('\\/*?"<>| ,#:')
STREAM_USAGES = ("DATASTREAM", "ALIAS_DATASTREAM")
UNUSED = {  # settings of Confluent's and Aiven's connectors that have no meaning here
    "linger.ms": 1,
    "max.buffered.records": 20_000,
    "flush.timeout.ms": 180_000,
    "max.connection.idle.time.ms": 60_000,
}


@dataclass(frozen=True, slots=True)
class Routing:
    """The part of a record that chooses the shard: its key or its value, or a field of it."""

    by_key: bool
    path: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class SearchPlan:
    """How records become documents."""

    urls: tuple[str, ...]
    batch_size: int = 2000
    batch_bytes: int = 5 << 20
    retries_max: int = 5
    backoff_ms: int = 100
    in_flight: int = 1  # requests side by side
    ignores_keys: bool = False
    topics_without_keys: frozenset[str] = frozenset()
    id_strategy: str = "topic.partition.offset"  # of documents whose key is ignored; or record.key, none
    ignores_schemas: bool = False
    topics_without_schemas: frozenset[str] = frozenset()
    compacts_maps: bool = True
    drops_invalid: bool = False
    is_upsert: bool = False
    nulls: str = "fail"
    malformed: str = "fail"
    conflicts: str = "ignore"
    version_header: str = ""
    stream: str = ""  # the name of the data stream, may hold ${topic}; empty: documents go to an index
    timestamp_fields: tuple[str, ...] = ()
    is_stream: bool = False
    needs_resource: bool = False  # indexes, streams and aliases must exist
    resources: Mapping[str, str] = field(default_factory=dict)
    template: str = ""  # the index template that is made for data streams without one
    routing: Routing | None = None

    def ignores_key_of(self, topic: str) -> bool:
        return self.is_stream or self.ignores_keys or topic in self.topics_without_keys

    def ignores_schema_of(self, topic: str) -> bool:
        return self.ignores_schemas or topic in self.topics_without_schemas

    def resource_of(self, topic: str) -> str:
        """The index, data stream or alias of a topic. ConnectError if the topic cannot name one."""
        mapped = self.resources.get(topic)
        if mapped is None and self.needs_resource:
            raise ConnectError(
                f"the topic {topic} is not in topic.to.external.resource.mapping: add {topic}:<resource>"
            )
        name = mapped or (self.stream.replace("${topic}", topic.lower()) if self.stream else topic.lower())
        reason = reason_against(name)
        if reason:
            raise ConnectError(
                f"{name!r} cannot be the name of an index: {reason}."
                " Rename the topic on its way with the transform RegexRouter"
            )
        return name


def reason_against(name: str) -> str:
    """Why a text cannot name an index; empty if it can."""
    if name in ("", ".", "..") or name[0] in "-_+":
        return "it must not be empty, . or .., nor begin with -, _ or +"
    if len(name.encode()) > NAME_BYTES_MAX:
        return f"it has more than {NAME_BYTES_MAX} bytes"
    if name != name.lower():
        return "it has capital letters"
    if found := sorted(set(name) & NOT_IN_NAMES):
        return f"it has the character {found[0]!r}"
    return ""


def definitions(nulls: str) -> ConfigDef:
    found = (
        ConfigDef()
        .define("connection.url", "LIST", REQUIRED, "HIGH", "http:// or https:// addresses of nodes.")
        .define("connection.username", "STRING", "", "MEDIUM", "The user.")
        .define("connection.password", "PASSWORD", None, "MEDIUM", "The password.")
        .define("connection.api.key", "PASSWORD", None, "MEDIUM",
                "An API key of Elasticsearch, as it is given encoded, in place of user and password.")
        .define("batch.size", "INT", 2000, "MEDIUM", "Documents of one bulk request.",
                validator=between(1, BATCH_MAX))
        .define("bulk.size.bytes", "LONG", 5 << 20, "LOW", "Bytes of one bulk request; -1: no bound.",
                validator=at_least(-1))
        .define("max.in.flight.requests", "INT", 5, "MEDIUM", "Bulk requests side by side.",
                validator=between(1, 100))
        .define("max.retries", "INT", 5, "LOW", "Retries without progress until the task fails; -1: no end.",
                validator=at_least(-1))
        .define("retry.backoff.ms", "LONG", 100, "LOW", "The first pause; each one after it doubles.",
                validator=at_least(0))
        .define("connection.compression", "BOOLEAN", False, "LOW", "Send requests with gzip.")
        .define("connection.timeout.ms", "INT", 1000, "LOW", "Time to connect.", validator=at_least(1))
        .define("read.timeout.ms", "INT", 3000, "LOW", "Time for a response.", validator=at_least(1))
        .define("flush.synchronously", "BOOLEAN", False, "LOW")
        .define("key.ignore", "BOOLEAN", False, "HIGH",
                "true: ids are topic+partition+offset; false: ids are keys of records.")
        .define("topic.key.ignore", "LIST", "", "LOW", "Topics for which key.ignore is true.")
        .define("key.ignore.id.strategy", "STRING", "topic.partition.offset", "LOW",
                "Ids of documents whose key is ignored.",
                validator=one_of_any_case("none", "record.key", "topic.partition.offset"))
        .define("use.autogenerated.ids", "BOOLEAN", False, "LOW",
                "Where keys are ignored, the server makes ids: retries can write documents twice.")
        .define("schema.ignore", "BOOLEAN", False, "LOW", "The server guesses types of fields.")
        .define("topic.schema.ignore", "LIST", "", "LOW", "Topics for which schema.ignore is true.")
        .define("compact.map.entries", "BOOLEAN", True, "LOW",
                "Maps with text keys are objects; otherwise lists of key and value.")
        .define("drop.invalid.message", "BOOLEAN", False, "LOW",
                "Leave out records that cannot become documents.")
        .define("behavior.on.null.values", "STRING", nulls, "LOW", "What records without a value do.",
                validator=one_of_any_case("ignore", "delete", "fail"))
        .define("behavior.on.malformed.documents", "STRING", "fail", "LOW",
                "What documents do that the server refuses; fail: as errors.tolerance says.",
                validator=one_of_any_case("ignore", "warn", "report", "fail"))
        .define("behavior.on.version.conflict", "STRING", "ignore", "LOW",
                "What documents do of which the server has a newer version.",
                validator=one_of_any_case("ignore", "warn", "fail", "report"))
        .define("write.method", "STRING", "INSERT", "LOW", "INSERT replaces documents, UPSERT merges fields.",
                validator=one_of_any_case("INSERT", "UPSERT"))
        .define("index.write.method", "STRING", "", "LOW", "Aiven's name of write.method.",
                validator=one_of_any_case("", "INSERT", "UPSERT"))
        .define("external.version.header", "STRING", "", "LOW",
                "The header with the version of a document, in place of the offset.")
        .define("data.stream.type", "STRING", "NONE", "LOW", "The kind of data stream; NONE: indexes.",
                validator=one_of_any_case("NONE", "LOGS", "METRICS", "TRACES", "SYNTHETICS"))
        .define("data.stream.dataset", "STRING", "", "LOW", "The middle of a data stream's name.")
        .define("data.stream.namespace", "STRING", "${topic}", "LOW", "The end of a data stream's name.")
        .define("data.stream.timestamp.field", "LIST", "", "LOW",
                "Fields for @timestamp, the first that has a value; none: the timestamp of the record.")
        .define("data.stream.enabled", "BOOLEAN", False, "LOW", "Aiven's: write to a data stream.")
        .define("data.stream.prefix", "STRING", "", "LOW", "Aiven's: the stream is <prefix>-<topic>.")
        .define("data.streams.existing.index.template.name", "STRING", "", "LOW",
                "Aiven's: the index template of data streams; made if it is missing.")
        .define("routing.enabled", "BOOLEAN", False, "LOW", "Aiven's: choose shards by a part of records.")
        .define("routing.key", "BOOLEAN", False, "LOW", "true: the part is in the key, otherwise the value.")
        .define("routing.field.path", "STRING", "", "LOW", "Its path, such as customer.id; empty: the whole.")
        .define("external.resource.usage", "STRING", "DISABLED", "LOW",
                "What topics are mapped to: resources that exist.",
                validator=one_of_any_case("INDEX", "DATASTREAM", "ALIAS_INDEX", "ALIAS_DATASTREAM",
                                          "DISABLED"))
        .define("topic.to.external.resource.mapping", "LIST", "", "LOW", "topic:resource, several.")
        .define("topic.index.map", "LIST", "", "LOW", "topic:index, several; RegexRouter does the same.")
        .define("elastic.security.protocol", "STRING", "PLAINTEXT", "MEDIUM",
                "SSL: use elastic.https.ssl.*; https:// addresses use TLS in any case.",
                validator=one_of_any_case("PLAINTEXT", "SSL"))
        .define("proxy.host", "STRING", "", "LOW", "A proxy.")
        .define("proxy.port", "INT", 8080, "LOW", "The port of the proxy.", validator=between(1, 65535))
        .define("proxy.username", "STRING", "", "LOW", "The user of the proxy.")
        .define("proxy.password", "PASSWORD", None, "LOW", "The password of the proxy.")
    )  # fmt: skip
    found = define_signing(found)
    no_kerberos = "logins by Kerberos are not built; use a password"
    every = "certificates are always checked: name the authority by connection.ssl.truststore.location"
    found.refused(
        {
            "kerberos.user.principal": ("", no_kerberos),
            "kerberos.keytab.path": ("", no_kerberos),
            "connection.trust.all.certificates": ("false", every),
        }
    )
    for name, default in UNUSED.items():
        found.define(name, "LONG", default, "LOW")
    unused: dict[str, tuple[str | None, str]] = {
        name: (str(default), "requests follow the polls of the topic") for name, default in UNUSED.items()
    }
    return found.without_effect(
        {
            **unused,
            "flush.synchronously": ("false", "it is always so"),
            "type.name": (None, "documents have no types since Elasticsearch 7"),
            "auto.create.indices.at.start": ("true", "indexes are created for their first record"),
            "log.sensitive.data": ("false", "documents are not logged"),
            "max.external.resource.mappings": (None, "there is no bound"),
        }
    )


def plan_of(settings: Settings) -> SearchPlan:
    urls = tuple(each.rstrip("/") for each in settings.entries("connection.url"))
    for each in urls:
        if not each.startswith(("http://", "https://")):
            raise ConnectError(
                f"connection.url: {each!r} must begin with http:// or https://, such as http://localhost:9200"
            )
    if not urls:
        raise ConnectError("connection.url needs an address, such as http://localhost:9200")
    stream, usage = stream_of(settings), settings.text("external.resource.usage").upper()
    resources = pairs(settings, "topic.to.external.resource.mapping") | pairs(settings, "topic.index.map")
    if usage != "DISABLED" and stream:
        raise ConnectError("external.resource.usage and data streams by name exclude each other: keep one")
    if usage != "DISABLED" and not resources:
        raise ConnectError(
            f"topic.to.external.resource.mapping is needed with external.resource.usage={usage}"
        )
    is_stream = bool(stream) or usage in STREAM_USAGES
    ids = settings.text("key.ignore.id.strategy").lower()
    plan = SearchPlan(
        urls=urls,
        batch_size=settings.integer("batch.size"),
        batch_bytes=settings.integer("bulk.size.bytes"),
        retries_max=settings.integer("max.retries"),
        backoff_ms=settings.integer("retry.backoff.ms"),
        in_flight=settings.integer("max.in.flight.requests"),
        ignores_keys=settings.flag("key.ignore"),
        topics_without_keys=frozenset(settings.entries("topic.key.ignore")),
        id_strategy="none" if settings.flag("use.autogenerated.ids") else ids,
        ignores_schemas=settings.flag("schema.ignore"),
        topics_without_schemas=frozenset(settings.entries("topic.schema.ignore")),
        compacts_maps=settings.flag("compact.map.entries"),
        drops_invalid=settings.flag("drop.invalid.message"),
        is_upsert=(settings.text("index.write.method") or settings.text("write.method")).upper() == "UPSERT",
        nulls=settings.text("behavior.on.null.values").lower(),
        malformed=settings.text("behavior.on.malformed.documents").lower(),
        conflicts=settings.text("behavior.on.version.conflict").lower(),
        version_header=settings.text("external.version.header"),
        stream=stream,
        timestamp_fields=tuple(settings.entries("data.stream.timestamp.field")),
        is_stream=is_stream,
        needs_resource=usage != "DISABLED",
        resources=resources,
        template=settings.text("data.streams.existing.index.template.name"),
        routing=routing_of(settings),
    )
    check_fit(plan)
    return plan


def check_fit(plan: SearchPlan) -> None:
    """Settings that exclude each other."""
    if plan.is_stream and plan.is_upsert:
        raise ConnectError("write.method: a data stream only takes new documents; use INSERT")
    if plan.is_stream and plan.nulls == "delete":
        raise ConnectError("behavior.on.null.values: nothing is deleted in a data stream; ignore or fail")
    if plan.nulls == "delete" and plan.ignores_keys and plan.id_strategy != "record.key":
        raise ConnectError(
            "behavior.on.null.values: delete needs ids that are keys; set key.ignore=false, or ignore"
        )
    if plan.is_upsert and plan.ignores_keys and plan.id_strategy == "none":
        raise ConnectError("write.method: UPSERT needs ids; documents of use.autogenerated.ids are all new")
    if plan.version_header and plan.is_upsert:
        raise ConnectError("external.version.header: an UPSERT has no versions; use INSERT")


def routing_of(settings: Settings) -> Routing | None:
    if not settings.flag("routing.enabled"):
        return None
    path = settings.text("routing.field.path")
    return Routing(settings.flag("routing.key"), tuple(path.split(".")) if path else ())


def stream_of(settings: Settings) -> str:
    """The name of data streams as a template, empty for indexes."""
    kind = settings.text("data.stream.type").lower()
    if settings.flag("data.stream.enabled"):
        prefix = settings.text("data.stream.prefix").lower()
        return f"{prefix}-${{topic}}" if prefix else "${topic}"
    if kind == "none":
        if settings.text("data.stream.dataset"):
            raise ConnectError("data.stream.dataset needs a data.stream.type, such as logs")
        return ""
    dataset, space = settings.text("data.stream.dataset"), settings.text("data.stream.namespace")
    if not dataset:
        raise ConnectError(f"data.stream.dataset is needed with data.stream.type={kind}")
    for name, text in (("data.stream.dataset", dataset), ("data.stream.namespace", space)):
        plain = text.replace("${topic}", "")
        if plain != plain.lower() or set(plain) & NOT_IN_NAMES or len(text) > PART_CHARS_MAX:
            raise ConnectError(f"{name}: {text!r} must have at most 100 small letters, digits, dots, _ or -")
    return f"{kind}-{dataset}-{space}"


def pairs(settings: Settings, name: str) -> dict[str, str]:
    found: dict[str, str] = {}
    for each in settings.entries(name):
        topic, colon, resource = each.partition(":")
        if not (colon and topic.strip() and resource.strip()):
            raise ConnectError(f"{name}: {each!r} is no pair; write topic:resource")
        found[topic.strip()] = resource.strip()
    return found


def login_of(settings: Settings) -> Login:
    user, password = settings.text("connection.username"), settings.text("connection.password")
    if bool(user) != bool(password):
        raise ConnectError("connection.username and connection.password belong together: set both")
    if (signed := signed_login(settings)) is not None:
        if user or settings.text("connection.api.key"):
            raise ConnectError("aws.region and connection.username exclude each other: keep one login")
        return signed
    if key := settings.text("connection.api.key"):
        if user:
            raise ConnectError("connection.api.key and connection.username exclude each other: keep one")
        return FixedLogin({"authorization": f"ApiKey {key}"})
    return basic(user, password) if user else NoLogin()


def client_of(settings: Settings) -> HttpClient:
    host = settings.text("proxy.host")
    user = settings.text("proxy.username")
    password = quote(settings.text("proxy.password"), safe="")
    access = f"{quote(user, safe='')}:{password}@" if user else ""
    return HttpClient(
        login=login_of(settings),
        connect_s=settings.integer("connection.timeout.ms") / 1000,
        read_s=settings.integer("read.timeout.ms") / 1000,
        tls=tls_properties(settings, "elastic.https.") | tls_properties(settings, "connection."),
        proxy=f"http://{access}{host}:{settings.integer('proxy.port')}" if host else None,
    )
