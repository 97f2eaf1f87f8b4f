"""Settings of Redis connectors: the address in the three spellings that users know, and a client for it."""

from __future__ import annotations

import weakref
from collections.abc import Mapping
from contextlib import ExitStack
from typing import Any

import redis
from redis.backoff import NoBackoff
from redis.cluster import ClusterNode
from redis.retry import Retry

from barnabas.connect.config import ConfigDef, Settings, at_least, between
from barnabas.connect.plugins import ConnectError
from barnabas.security.errors import SecuritySettingsError
from barnabas.security.tls.contexts import private_file
from barnabas.security.tls.stores import StoreSettings, load_key_store, load_trust_store

PORT = 6379
AWAY = (
    redis.ConnectionError,
    redis.TimeoutError,
    redis.BusyLoadingError,
    redis.ReadOnlyError,
    redis.exceptions.ClusterDownError,
    redis.exceptions.TryAgainError,
    redis.exceptions.MasterDownError,
    redis.exceptions.RedisClusterException,  # no node of the cluster answers, or a slot has none
    redis.exceptions.AskError,  # a slot goes to another node; MovedError is one of these
)
DENIED = (redis.AuthenticationError, redis.exceptions.AuthorizationError, redis.exceptions.NoPermissionError)
TLS_FILES = {  # arguments of the client, and settings: ours, and those of Redis' own connector
    "ssl_ca_certs": ("redis.tls.ca", "redis.cacert"),
    "ssl_certfile": ("redis.tls.cert", "redis.key.cert"),
    "ssl_keyfile": ("redis.tls.key", "redis.key.file"),
    "ssl_password": ("redis.tls.key.password", "redis.key.password"),
}
ALONE = "a task has one connection, and connects again by itself"
WITHOUT_EFFECT: dict[str, tuple[str | None, str]] = {
    "redis.pool": (None, ALONE),
    "redis.auto.reconnect.enabled": ("true", ALONE),
    "redis.request.queue.size": (None, "a task waits for its responses"),
    "redis.socket.tcp.no.delay.enabled": ("true", "it is always so"),
    "redis.ssl.provider": (None, "TLS is OpenSSL's"),
    "redis.connection.attempts": (None, "max.retries bounds the tries"),
    "redis.connection.retry.delay.ms": (None, "retry.backoff.ms is the pause"),
}
STORES = "redis.ssl."
STORE_PATHS = (f"{STORES}truststore.path", f"{STORES}keystore.path")
PEM_NAMES = (".pem", ".crt", ".cer")
FULL = "OOM"  # the beginning of Redis' error when its memory is used up


def is_away(error: BaseException) -> bool:
    """Whether the same command may work in a moment."""
    return not isinstance(error, DENIED) and (isinstance(error, AWAY) or str(error).startswith(FULL))


def define_address(found: ConfigDef, database: int = 0) -> ConfigDef:
    found.define(
        "redis.uri", "PASSWORD", None, "HIGH",
        "redis://[user:password@]host:port/database, rediss:// with TLS, unix://path.",
    )  # fmt: skip
    found.define("redis.hosts", "LIST", "", "HIGH", "host:port of one node, or of some nodes of a cluster.")
    found.define("redis.host", "STRING", "localhost", "MEDIUM", "The host, if neither of the others is set.")
    found.define(
        "redis.port", "INT", PORT, "MEDIUM", "The port to `redis.host`.", validator=between(1, 65535)
    )
    found.define(
        "redis.database", "INT", database, "MEDIUM", "The number of the database.", validator=at_least(0)
    )
    found.define("redis.username", "STRING", "", "MEDIUM", "The user.")
    found.define("redis.password", "PASSWORD", None, "MEDIUM", "The password.")
    found.define("redis.cluster", "BOOLEAN", False, "MEDIUM", "The address is a Redis Cluster.")
    found.define("redis.client.mode", "STRING", "", "LOW", "`Cluster` is the same as redis.cluster=true.")
    found.define("redis.tls", "BOOLEAN", False, "MEDIUM", "Connect with TLS.")
    found.define("redis.ssl.enabled", "BOOLEAN", False, "LOW", "The same as redis.tls.")
    found.define("redis.insecure", "BOOLEAN", False, "LOW", "Do not check the certificate of the server.")
    found.define("redis.tls.ca", "STRING", "", "LOW", "The file with certificates of authorities.")
    found.define("redis.tls.cert", "STRING", "", "LOW", "The file with the own certificate, if asked for.")
    found.define("redis.tls.key", "STRING", "", "LOW", "The file with its key.")
    found.define("redis.tls.key.password", "PASSWORD", None, "LOW", "The password of the key.")
    for store, text in (("truststore", "certificates of authorities"), ("keystore", "the own certificate")):
        found.define(f"{STORES}{store}.path", "STRING", "", "LOW",
                     f"The file with {text} in PKCS #12, JKS or PEM, in place of redis.tls.*.")  # fmt: skip
        found.define(f"{STORES}{store}.password", "PASSWORD", None, "LOW", "Its password.")
    found.define("redis.cacert", "STRING", "", "LOW", "The same as redis.tls.ca.")
    found.define("redis.key.cert", "STRING", "", "LOW", "The same as redis.tls.cert.")
    found.define("redis.key.file", "STRING", "", "LOW", "The same as redis.tls.key.")
    found.define("redis.key.password", "PASSWORD", None, "LOW", "The same as redis.tls.key.password.")
    found.define("redis.socket.keep.alive.enabled", "BOOLEAN", False, "LOW", "Probe idle connections.")
    found.define("redis.socket.connect.timeout.ms", "INT", 0, "LOW",
                 "Time to connect; 0: that of redis.timeout.", validator=at_least(0))  # fmt: skip
    found.define("redis.operation.timeout.ms", "INT", 0, "LOW",
                 "Milliseconds until a command fails; 0: redis.timeout.", validator=at_least(0))  # fmt: skip
    found.define("redis.timeout", "INT", 10, "LOW", "Seconds until a command fails.", validator=at_least(1))
    return found.without_effect(WITHOUT_EFFECT)


def address_errors(config: Mapping[str, str]) -> dict[str, list[str]]:
    """Hosts that are none, and addresses that say two things."""
    errors: dict[str, list[str]] = {}
    hosts = [each.strip() for each in (config.get("redis.hosts") or "").split(",") if each.strip()]
    for each in hosts:
        try:
            host_and_port(each)
        except ConnectError as error:
            errors.setdefault("redis.hosts", []).append(str(error))
    uri = config.get("redis.uri") or ""
    if uri and hosts:
        errors.setdefault("redis.uri", []).append("redis.uri and redis.hosts are both set: keep one")
    if uri and not uri.startswith(("redis://", "rediss://", "unix://")):
        errors.setdefault("redis.uri", []).append(
            "redis.uri must begin with redis://, rediss:// or unix://, for example redis://localhost:6379/0"
        )
    if len(hosts) > 1 and not wants_cluster(config):
        errors.setdefault("redis.hosts", []).append("several hosts need redis.cluster=true")
    return errors


def wants_cluster(config: Mapping[str, Any]) -> bool:
    mode = str(config.get("redis.client.mode") or "").lower()
    return mode == "cluster" or str(config.get("redis.cluster") or "").lower() == "true"


def host_and_port(text: str) -> tuple[str, int]:
    host, _, port = text.rpartition(":") if ":" in text else (text, "", str(PORT))
    if not host or not port.isdecimal() or not 0 < int(port) < 65536:
        raise ConnectError(f"redis.hosts: {text!r} is no host:port")
    return host.strip("[]"), int(port)


def client_of(settings: Settings) -> Any:
    """A client that has not connected yet. It does not retry by itself: tasks do."""
    files = ExitStack()  # of the client's connections, as long as it lives
    try:
        client = made_client(settings, files)
    except SecuritySettingsError as error:
        files.close()
        raise ConnectError(f"{STORES[:-1]}: {error}") from error
    except BaseException:
        files.close()
        raise
    weakref.finalize(client, files.close)
    return client


def made_client(settings: Settings, files: ExitStack) -> Any:
    wait_s = settings.integer("redis.operation.timeout.ms") / 1000 or settings.integer("redis.timeout")
    connect_s = settings.integer("redis.socket.connect.timeout.ms") / 1000 or wait_s
    access: dict[str, Any] = {
        "username": settings.text("redis.username") or None,
        "password": settings.text("redis.password") or None,
        "socket_timeout": wait_s,
        "socket_connect_timeout": connect_s,
        "socket_keepalive": settings.flag("redis.socket.keep.alive.enabled"),
        "retry": Retry(NoBackoff(), 0),
    }
    uri = settings.text("redis.uri")
    if settings.flag("redis.tls") or settings.flag("redis.ssl.enabled") or uri.startswith("rediss://"):
        access |= {} if uri else {"ssl": True}
        access |= (
            {"ssl_cert_reqs": "none", "ssl_check_hostname": False} if settings.flag("redis.insecure") else {}
        )
        names = {name: first_of(settings, *given) for name, given in TLS_FILES.items()}
        access |= {name: text for name, text in names.items() if text} | stores_of(settings, files)
    elif first_of(settings, *(each for given in TLS_FILES.values() for each in given), *STORE_PATHS):
        raise ConnectError(
            "redis.tls.*: files of certificates need redis.tls=true, redis.ssl.enabled=true or a uri with"
            " rediss://"
        )
    if uri:
        access = {name: value for name, value in access.items() if value is not None}
    hosts = [host_and_port(each) for each in settings.entries("redis.hosts")]
    hosts = hosts or [(settings.text("redis.host"), settings.integer("redis.port"))]
    if wants_cluster(settings):
        if uri:
            return redis.RedisCluster.from_url(uri, **access)
        nodes: Any = ClusterNode  # untyped
        return redis.RedisCluster(startup_nodes=[nodes(*each) for each in hosts], **access)
    if uri:
        return redis.Redis.from_url(uri, **access)
    host, port = hosts[0]
    return redis.Redis(host=host, port=port, db=settings.integer("redis.database"), **access)


def first_of(settings: Settings, *names: str) -> str:
    """The first of these settings that is given; empty where none is."""
    return next((text for name in names if (text := settings.text(name))), "")


def stores_of(settings: Settings, files: ExitStack) -> dict[str, str]:
    """Arguments of the client for Java's stores. SecuritySettingsError if a store cannot be read."""
    found: dict[str, str] = {}
    trusted, own = store_of(settings, "truststore"), store_of(settings, "keystore")
    if trusted.is_set:
        pem = load_trust_store(trusted).to_pem()
        found["ssl_ca_certs"] = files.enter_context(private_file(pem))
    if own.is_set:
        path = files.enter_context(private_file(load_key_store(own).to_pem()))
        found |= {"ssl_certfile": path, "ssl_keyfile": path}
    return found


def store_of(settings: Settings, which: str) -> StoreSettings:
    path = settings.text(f"{STORES}{which}.path")
    kind = "PEM" if path.endswith(PEM_NAMES) else "JKS"  # PKCS #12 is known by its bytes
    return StoreSettings(which, kind, path or None, settings.text(f"{STORES}{which}.password") or None)
