"""Settings of the SQL server as its parts use them.

In: `ServiceSettings`. Out: names of topics and groups, defaults of properties, limits. Pure.
"""

from __future__ import annotations

import socket
from collections.abc import Mapping
from dataclasses import dataclass, field

from barnabas.services.settings.client_properties import sql_client
from barnabas.services.settings.listeners import Listener
from barnabas.services.settings.service_settings import ServiceSettings
from barnabas.settings.values import Password
from barnabas.sql.server.settings.properties import CLIENT_NAMES, STREAMS_NAMES, plain_name

ANY_HOST = ("0.0.0.0", "::", "")
SECRET_WORDS = ("password", "secret", "jaas", "credential", "keystore.key", "user.info", "token")
HIDDEN = "[hidden]"


@dataclass(frozen=True, slots=True)
class ServerSettings:
    """`defaults` are properties of every statement. `shown` has all settings as texts, without secrets."""

    service_id: str
    url: str
    client: Mapping[str, str] = field(repr=False)
    defaults: Mapping[str, str]
    shown: Mapping[str, str]
    given: frozenset[str]
    registry_url: str
    registry: Mapping[str, str] = field(repr=False)
    connect_url: str
    connect_timeout_s: float
    queries_file: str
    max_push_queries: int
    pull_queries_max: int
    pull_queries_per_s: int
    persistent_max: int
    response_timeout_s: float
    topic_timeout_ms: float
    topic_init_timeout_ms: float
    session_timeout_ms: int
    internal_replicas: int
    substitutes_variables: bool
    takes_spark: bool
    node_user: str | None = field(repr=False)
    node_tls: Mapping[str, str] = field(repr=False)  # for nodes with https

    @property
    def command_topic(self) -> str:
        return f"_confluent-ksql-{self.service_id}_command_topic"

    @property
    def group(self) -> str:
        """The group in which nodes elect the one that runs queries."""
        return f"_confluent-ksql-{self.service_id}_nodes"


def server_settings(settings: ServiceSettings) -> ServerSettings:
    return ServerSettings(
        service_id=settings["ksql.service.id"],
        url=settings["ksql.advertised.listener"] or own_url(settings.listeners[0]),
        client=sql_client(settings),
        defaults=defaults_of(settings),
        shown=shown(settings),
        given=frozenset(settings.given),
        registry_url=settings["ksql.schema.registry.url"],
        registry=settings.below("ksql.schema.registry."),
        connect_url=settings["ksql.connect.url"],
        connect_timeout_s=settings["ksql.connect.request.timeout.ms"] / 1000,
        queries_file=settings["ksql.queries.file"],
        max_push_queries=settings["ksql.max.push.queries"],
        pull_queries_max=settings["ksql.query.pull.max.concurrent.requests"],
        pull_queries_per_s=settings["ksql.query.pull.max.qps"],
        persistent_max=settings["ksql.query.persistent.active.limit"],
        response_timeout_s=settings["ksql.server.command.response.timeout.ms"] / 1000,
        topic_timeout_ms=settings["ksql.server.command.topic.timeout.ms"],
        topic_init_timeout_ms=settings["ksql.server.command.topic.init.timeout.ms"],
        session_timeout_ms=settings["ksql.heartbeat.session.timeout.ms"],
        internal_replicas=settings["ksql.internal.topic.replicas"],
        substitutes_variables=settings["ksql.variable.substitution.enable"],
        takes_spark=settings["barnabas.sql.spark.enabled"],
        node_user=settings.secret("barnabas.sql.node.user"),
        node_tls={name: text for name, text in settings.given.items() if name.startswith("ssl.")},
    )


def own_url(listener: Listener) -> str:
    host = socket.gethostname() if listener.host in ANY_HOST else listener.host
    return str(listener._replace(host=host))


def defaults_of(settings: ServiceSettings) -> dict[str, str]:
    """Settings that statements look at: ksqlDB's own ones, and those of Kafka Streams, with plain names."""
    found = {}
    for name, text in shown(settings).items():
        plain = plain_name(name)
        is_streams = (
            plain in STREAMS_NAMES or plain in CLIENT_NAMES or plain.startswith(("producer.", "consumer."))
        )
        is_own = name.startswith("ksql.") and name in settings.given
        if text != HIDDEN and (is_streams or is_own):
            found[plain] = text
    return found


def shown(settings: ServiceSettings) -> dict[str, str]:
    """All settings as texts; secrets are hidden."""
    found = {}
    for name in sorted({*settings.names(), *settings.given}):
        value = settings[name] if settings.knows(name) else settings.given[name]
        is_secret = isinstance(value, Password) or any(word in name.lower() for word in SECRET_WORDS)
        found[name] = HIDDEN if is_secret and value is not None else settings.given.get(name, text_of(value))
    return found


def text_of(value: object) -> str:
    match value:
        case None:
            return ""
        case bool():
            return str(value).lower()
        case tuple() | list():
            return ",".join(map(str, value))
    return str(value)
