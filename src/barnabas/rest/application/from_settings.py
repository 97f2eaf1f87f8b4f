"""The REST proxy made from its settings.

In: `ServiceSettings` of the service `rest`. Out: a `Service`. SettingsError names a setting that is wrong.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TypeVar

from barnabas.client.consumers.fetcher import FetchSettings
from barnabas.client.consumers.group_consumer import OffsetReset
from barnabas.client.core.address import parse_bootstrap
from barnabas.client.core.interceptors import ProducerInterceptor
from barnabas.client.producer import ProducerSettings
from barnabas.records.compression import Compression
from barnabas.rest.application.registry_source import RegistrySource
from barnabas.rest.application.service import RestOptions, rest_service
from barnabas.rest.kafka import CLIENT_ID, TOPIC_WAIT_MS, Kafka, KafkaSettings
from barnabas.rest.proxy import Proxy, ProxySettings
from barnabas.rest.v2.consumers.instances import ConsumerSettings
from barnabas.schemas.client.faces import AsyncSchemaRegistryClient
from barnabas.security.clients.client_security import client_security
from barnabas.services.app import Service
from barnabas.services.caller import Caller
from barnabas.services.callers.broker_logins import security_of_caller
from barnabas.services.callers.building import carries_identity
from barnabas.services.callers.client_pool import ClientPool
from barnabas.services.settings.client_properties import rest_client
from barnabas.services.settings.service_settings import ServiceSettings
from barnabas.settings import SettingsError

T = TypeVar("T")

ACKS = {"all": -1, "-1": -1, "0": 0, "1": 1}
CODECS = {codec.name.lower(): codec for codec in Compression}
BOOLEANS = {"true": True, "false": False}
ISOLATION = {"read_uncommitted": False, "read_committed": True}
RESETS = {each.value: each for each in OffsetReset}
BATCH_BYTES = 256 * 1024
REGISTRY_TIMEOUT_S = 10
LATEST_SECONDS = 1  # formats remember the latest version themselves
REQUEST_SLACK_MS = 5_000  # a read of records ends so long before the limit of requests


def service(settings: ServiceSettings) -> Service:
    kafka = kafka_settings(settings)
    proxy = Proxy(
        Kafka(kafka),
        proxy_settings(settings),
        pool=client_pool(settings, kafka),
        schemas=registry_source(settings),
    )
    options = RestOptions(consumer_settings(settings), settings["api.v2.enable"], settings["api.v3.enable"])
    return rest_service(proxy, options=options)


def kafka_settings(settings: ServiceSettings) -> KafkaSettings:
    properties = rest_client(settings, "admin")
    try:
        bootstrap = parse_bootstrap(properties["bootstrap.servers"])
    except ValueError as error:
        raise SettingsError(f"bootstrap.servers: {error}", name="bootstrap.servers") from None
    return KafkaSettings(
        bootstrap,
        client_security(properties),
        producer_settings(rest_client(settings, "producer")),
        interceptors=audit_of(properties) if settings["barnabas.audit.enable"] else (),
    )


def audit_of(properties: Mapping[str, str]) -> tuple[ProducerInterceptor, ...]:
    """Counts the records that the proxy produces, for the audit. It sends its last counts when the process
    ends."""
    from barnabas.audit.clients.interceptors import AuditProducer
    from barnabas.audit.core.tiers import PRODUCER
    from barnabas.audit.counters.audit_counter import AuditCounter, AuditSettings

    settings = AuditSettings.of_client({"client.id": CLIENT_ID, **properties})
    return (AuditProducer(AuditCounter(settings, PRODUCER)),)


def producer_settings(properties: Mapping[str, str]) -> ProducerSettings:
    """The producer of the proxy. It waits less than Kafka's for topics that do not exist."""
    default = ProducerSettings()
    acks = choice(properties, "acks", ACKS, "all")
    return ProducerSettings(
        acks=acks,
        linger_ms=number(properties, "linger.ms", 0),
        batch_size_bytes=number(properties, "batch.size", BATCH_BYTES),
        compression=choice(properties, "compression.type", CODECS, "none"),
        idempotence=choice(properties, "enable.idempotence", BOOLEANS, "false"),
        request_timeout_ms=number(properties, "request.timeout.ms", default.request_timeout_ms),
        delivery_timeout_ms=number(properties, "delivery.timeout.ms", 30_000),
        request_size_bytes_max=number(properties, "max.request.size", default.request_size_bytes_max),
        buffer_bytes_max=number(properties, "buffer.memory", default.buffer_bytes_max),
        block_ms_max=number(properties, "max.block.ms", TOPIC_WAIT_MS),
    )


def consumer_settings(settings: ServiceSettings) -> ConsumerSettings:
    properties = rest_client(settings, "consumer")
    default, fetch = ConsumerSettings(), FetchSettings()
    return ConsumerSettings(
        instances_max=settings["barnabas.consumer.instances.max"],
        instances_per_owner_max=settings["barnabas.consumer.instances.per.principal.max"],
        instance_timeout_ms=settings["consumer.instance.timeout.ms"],
        request_timeout_ms=settings["consumer.request.timeout.ms"],
        request_bytes_max=settings["consumer.request.max.bytes"],
        response_bytes_max=settings["barnabas.consumer.responses.bytes.max"],
        bytes_min=settings["fetch.min.bytes"],
        wait_ms_max=max(1, settings["barnabas.http.request.timeout.ms"] - REQUEST_SLACK_MS),
        reset=choice(properties, "auto.offset.reset", RESETS, default.reset.value),
        session_timeout_ms=number(properties, "session.timeout.ms", default.session_timeout_ms),
        heartbeat_interval_ms=number(properties, "heartbeat.interval.ms", default.heartbeat_interval_ms),
        rebalance_timeout_ms=number(properties, "max.poll.interval.ms", default.rebalance_timeout_ms),
        fetch=FetchSettings(
            wait_ms_max=number(properties, "fetch.max.wait.ms", fetch.wait_ms_max),
            bytes_max=number(properties, "fetch.max.bytes", fetch.bytes_max),
            partition_bytes_max=number(properties, "max.partition.fetch.bytes", fetch.partition_bytes_max),
            read_committed=choice(properties, "isolation.level", ISOLATION, "read_uncommitted"),
        ),
    )


def proxy_settings(settings: ServiceSettings) -> ProxySettings:
    limit = "api.v3.produce.rate.limit"
    is_limited = settings[f"{limit}.enabled"]
    return ProxySettings(
        advertised_url=advertised_url(settings),
        crn_authority=settings["crn.authority.name"],
        produce_records_per_s=settings[f"{limit}.max.requests.per.sec"] if is_limited else 0,
        produce_bytes_per_s=settings[f"{limit}.max.bytes.per.sec"] if is_limited else 0,
        batch_entries_max=settings["api.v3.produce.batch.maximum.entries"],
        record_chars_max=settings["barnabas.stream.record.max.bytes"],
        stream_ms_max=settings["streaming.connection.max.duration.ms"],
        stream_grace_ms=settings["streaming.connection.max.duration.grace.period.ms"],
        stream_idle_ms=settings["barnabas.stream.idle.ms"],
        stream_in_flight_max=settings["barnabas.stream.records.in.flight.max"],
        stream_in_flight_bytes_max=settings["barnabas.stream.bytes.in.flight.max"],
        tails_max=settings["barnabas.tail.connections.max"],
        tail_idle_ms=settings["barnabas.tail.keep.alive.ms"],
        tail_fetch_bytes_max=settings["barnabas.tail.fetch.max.bytes"],
        origins=tuple(settings["access.control.allow.origin"]),
    )


def advertised_url(settings: ServiceSettings) -> str:
    """The address in responses; empty: that of the request."""
    for url in settings["advertised.listeners"]:
        return str(url).rstrip("/")
    if settings["host.name"]:
        listener = settings.listeners[0]
        return f"{listener.scheme}://{settings['host.name']}:{listener.port}"
    return ""


def client_pool(settings: ServiceSettings, kafka: KafkaSettings) -> ClientPool[Kafka] | None:
    """Clients that log in at the brokers as their callers, where a setting asks for them."""
    if not carries_identity(settings):
        return None
    properties = rest_client(settings, "admin")
    mechanism = settings["barnabas.propagate.sasl.mechanism"]

    async def make(caller: Caller) -> Kafka:
        return Kafka(kafka, security_of_caller(caller, properties, mechanism))

    return ClientPool(
        make,
        Kafka.close,
        clients_max=settings["barnabas.propagate.clients.max"],
        idle_s=settings["barnabas.propagate.clients.idle.ms"] / 1000,
    )


def registry_source(settings: ServiceSettings) -> RegistrySource | None:
    url = settings["schema.registry.url"]
    if not url:
        return None
    properties = {
        "timeout": REGISTRY_TIMEOUT_S,
        "max.retries": 1,
        "cache.latest.ttl.sec": LATEST_SECONDS,
        **settings.below("schema.registry."),
        "url": url,
    }
    try:
        return RegistrySource(AsyncSchemaRegistryClient(properties))
    except (ValueError, OSError) as error:
        raise SettingsError(f"schema.registry.*: {error}", name="schema.registry.url") from None


def choice(properties: Mapping[str, str], name: str, values: Mapping[str, T], default: str) -> T:
    given = properties.get(name, default).strip()
    found = values.get(given.lower())
    if found is None:
        raise SettingsError(f"{name} is {given!r}: use one of {', '.join(values)}", name=name)
    return found


def number(properties: Mapping[str, str], name: str, default: int) -> int:
    given = properties.get(name, "").strip()
    if not given:
        return default
    if not (given.isascii() and given.isdigit() and len(given) < 19):
        raise SettingsError(f"{name} is {given!r}: a whole number is needed", name=name)
    return int(given)
