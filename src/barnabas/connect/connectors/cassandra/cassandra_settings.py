"""Settings of the Cassandra sinks, with DataStax' names and with Confluent's, and what both mean."""

from __future__ import annotations

import ssl
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from cassandra.auth import PlainTextAuthProvider
from cassandra.cluster import EXEC_PROFILE_DEFAULT, Cluster, ExecutionProfile
from cassandra.policies import (
    DCAwareRoundRobinPolicy,
    LoadBalancingPolicy,
    RoundRobinPolicy,
    TokenAwarePolicy,
)

from barnabas.connect.config import REQUIRED, ConfigDef, Settings, at_least, between, one_of_any_case
from barnabas.connect.connectors.cassandra.mapping import quoted
from barnabas.connect.connectors.cassandra.tables import CONSISTENCIES, rules_of
from barnabas.connect.connectors.stores.licence import LICENCE
from barnabas.connect.plugins import ConnectError
from barnabas.security.clients.client_security import client_tls
from barnabas.security.errors import SecuritySettingsError

JAVA_DRIVER = "datastax-java-driver."
STORES = {  # settings of TLS, and Kafka's names for them
    "truststore.path": "ssl.truststore.location",
    "truststore.type": "ssl.truststore.type",
    "truststore.password": "ssl.truststore.password",
    "keystore.path": "ssl.keystore.location",
    "keystore.type": "ssl.keystore.type",
    "keystore.password": "ssl.keystore.password",
}


@dataclass(frozen=True, slots=True)
class Access:
    """The cluster and the login."""

    hosts: tuple[str, ...]
    port: int
    datacenter: str = ""
    user: str = ""
    password: str = field(default="", repr=False)
    tls: dict[str, str] = field(default_factory=dict, repr=False)
    has_tls: bool = False
    compression: str = "NONE"
    timeout_s: float = 30.0

    def cluster(self) -> Cluster:
        """A cluster that has not connected yet. It does not retry by itself beyond its own policy."""
        policy: LoadBalancingPolicy = RoundRobinPolicy()
        if self.datacenter:
            policy = DCAwareRoundRobinPolicy(local_dc=self.datacenter)
        profile = ExecutionProfile(TokenAwarePolicy(policy), request_timeout=self.timeout_s)
        more: dict[str, Any] = {}
        if self.user:
            more["auth_provider"] = PlainTextAuthProvider(self.user, self.password)
        if self.has_tls:
            more["ssl_context"] = self.tls_context()
        return Cluster(
            list(self.hosts),
            port=self.port,
            execution_profiles={EXEC_PROFILE_DEFAULT: profile},
            compression=self.compression.lower() if self.compression != "NONE" else False,
            connect_timeout=min(self.timeout_s, 30.0),
            **more,
        )

    def tls_context(self) -> ssl.SSLContext:
        try:
            return client_tls(self.tls) if self.tls else ssl.create_default_context()
        except SecuritySettingsError as error:
            raise ConnectError(f"the settings of TLS are wrong: {error}") from error


def define_retries(found: ConfigDef) -> ConfigDef:
    found.define("max.retries", "INT", -1, "MEDIUM", "Retries until the task fails; -1: without end.",
                 validator=at_least(-1))  # fmt: skip
    found.define("retry.backoff.ms", "INT", 500, "LOW", "The first pause; each one after it doubles.",
                 validator=at_least(0))  # fmt: skip
    return found.define(
        "barnabas.write.timestamps", "STRING", "written", "LOW",
        "written: of two changes the one written last wins; record: the one with the later timestamp.",
        validator=one_of_any_case("written", "record"),
    )  # fmt: skip


def mapped_definitions() -> ConfigDef:
    found = (
        ConfigDef()
        .define("contactPoints", "LIST", "localhost", "HIGH", "Hosts of the cluster.")
        .define("port", "INT", 9042, "HIGH", "Their port.", validator=between(1, 65535))
        .define("loadBalancing.localDc", "STRING", "", "HIGH", "The datacenter that is near.")
        .define("cloud.secureConnectBundle", "STRING", "", "LOW", "Refused: Astra's bundles are not built.")
        .define("auth.provider", "STRING", "None", "MEDIUM", "None or PLAIN.",
                validator=one_of_any_case("None", "PLAIN", "DSE", "GSSAPI"))
        .define("auth.username", "STRING", "", "MEDIUM", "The user.")
        .define("auth.password", "PASSWORD", None, "MEDIUM", "The password.")
        .define("ssl.provider", "STRING", "None", "MEDIUM", "JDK or OpenSSL: use TLS.",
                validator=one_of_any_case("None", "JDK", "OpenSSL"))
        .define("ssl.hostnameValidation", "BOOLEAN", True, "MEDIUM",
                "Whether the certificate of a node must have its name.")
        .define("ssl.cipherSuites", "LIST", "", "LOW", "Cipher suites by their names in Java; empty: all.")
        .define("ssl.openssl.keyCertChain", "STRING", "", "LOW", "The own certificate and its chain in PEM.")
        .define("ssl.openssl.privateKey", "STRING", "", "LOW", "The file with its key in PEM.")
        .define("maxConcurrentRequests", "INT", 500, "LOW", "Requests that run side by side.",
                validator=between(1, 10_000))
        .define("maxNumberOfRecordsInBatch", "INT", 32, "LOW", "Records of one partition in a batch.",
                validator=between(1, 10_000))
        .define("queryExecutionTimeout", "INT", 30, "LOW", "Seconds.", validator=at_least(1))
        .define("connectionPoolLocalSize", "INT", 4, "LOW")
        .define("compression", "STRING", "None", "LOW", "None, Snappy or LZ4.",
                validator=one_of_any_case("None", "Snappy", "LZ4"))
        .define("ignoreErrors", "STRING", "None", "LOW",
                "All: log records that do not fit, and go on; Driver: those that Cassandra refuses.",
                validator=one_of_any_case("None", "All", "Driver", "true", "false"))
    )  # fmt: skip
    found.without_effect(
        {
            "connectionPoolLocalSize": ("4", "there is one connection to each node"),
            "jmx": ("true", "Connect's metrics tell of the task"),
            "metricsHighestLatency": (None, "Connect's metrics tell of the task"),
        }
    )
    no_kerberos = "logins by Kerberos are not built; use auth.provider=PLAIN"
    defaults = {"keyTab": "", "principal": "", "service": "dse"}
    found.refused({f"auth.gssapi.{name}": (text, no_kerberos) for name, text in defaults.items()})
    return define_retries(define_stores(found, "ssl."))


def mapped_access(settings: Settings) -> Access:
    if settings.text("cloud.secureConnectBundle"):
        raise ConnectError("cloud.secureConnectBundle: Astra's bundles are not built; name contactPoints")
    if foreign := [each for each in settings.raw if each.startswith(JAVA_DRIVER)]:
        raise ConnectError(
            f"{foreign[0]}: this driver is not Java's; contactPoints, queryExecutionTimeout, consistencyLevel"
            " and the other settings of the connector say the same"
        )
    provider, user = settings.text("auth.provider").upper(), settings.text("auth.username")
    if provider in ("DSE", "GSSAPI"):
        raise ConnectError("auth.provider: only None and PLAIN are built")
    if provider == "PLAIN" and not user:
        raise ConnectError("auth.username is needed with auth.provider=PLAIN")
    return Access(
        tuple(each.strip("[] ") for each in settings.entries("contactPoints")),
        settings.integer("port"),
        settings.text("loadBalancing.localDc"),
        user,
        settings.text("auth.password"),
        {**tls_of(settings, "ssl."), **mapped_tls(settings)},
        settings.text("ssl.provider").upper() != "NONE",
        settings.text("compression").upper(),
        settings.integer("queryExecutionTimeout"),
    )


def checked_rules(settings: Settings) -> None:
    rules = rules_of(settings.raw)
    topics = [each.strip() for each in (settings.raw.get("topics") or "").split(",") if each.strip()]
    if missing := [each for each in topics if each not in rules]:
        raise ConnectError(
            f"topic.{missing[0]}.<keyspace>.<table>.mapping is missing: it says which columns the topic has"
        )
    if not rules:
        raise ConnectError("topic.<topic>.<keyspace>.<table>.mapping is needed for each topic")


def table_definitions() -> ConfigDef:
    found = (
        ConfigDef()
        .define("cassandra.contact.points", "LIST", "localhost", "HIGH", "Hosts of the cluster.")
        .define("cassandra.port", "INT", 9042, "MEDIUM", "Their port.", validator=between(1, 65535))
        .define("cassandra.local.datacenter", "STRING", "", "MEDIUM", "The datacenter that is near.")
        .define("cassandra.keyspace", "STRING", REQUIRED, "HIGH", "The keyspace of the tables.")
        .define("cassandra.security.enabled", "BOOLEAN", False, "HIGH", "Log in with a password.")
        .define("cassandra.username", "STRING", "cassandra", "HIGH", "The user.")
        .define("cassandra.password", "PASSWORD", None, "HIGH", "The password.")
        .define("cassandra.ssl.enabled", "BOOLEAN", False, "HIGH", "Use TLS.")
        .define("cassandra.compression", "STRING", "NONE", "LOW", "NONE, SNAPPY or LZ4.",
                validator=one_of_any_case("NONE", "SNAPPY", "LZ4"))
        .define("cassandra.consistency.level", "STRING", "LOCAL_QUORUM", "HIGH", "Of writes.",
                validator=one_of_any_case(*CONSISTENCIES))
        .define("cassandra.keyspace.create.enabled", "BOOLEAN", True, "HIGH",
                "Create the keyspace if it is missing.")
        .define("cassandra.keyspace.create.replication.factor", "INT", 3, "LOW",
                "Replicas of a keyspace that is created.", validator=at_least(1))
        .define("cassandra.table.manage.enabled", "BOOLEAN", True, "HIGH",
                "Create tables and add columns by the schemas of records.")
        .define("cassandra.table.create.compression.enabled", "BOOLEAN", True, "MEDIUM",
                "Compress tables that are created.")
        .define("cassandra.table.create.compression.algorithm", "STRING", "NONE", "MEDIUM",
                "NONE: Cassandra's default.",
                validator=one_of_any_case("NONE", "SNAPPY", "LZ4", "DEFLATE", "ZSTD"))
        .define("cassandra.table.create.caching", "STRING", "NONE", "LOW", "Cache of new tables.",
                validator=one_of_any_case("NONE", "ALL", "KEYS_ONLY", "ROWS_ONLY"))
        .define("cassandra.write.mode", "STRING", "INSERT", "HIGH", "Both write fields as columns.",
                validator=one_of_any_case("INSERT", "UPDATE"))
        .define("cassandra.deletes.enabled", "BOOLEAN", True, "HIGH",
                "A record without a value deletes its row.")
        .define("cassandra.ttl", "INT", 0, "LOW", "Seconds until rows expire; 0: never.",
                validator=at_least(0))
        .define("cassandra.execute.timeout.ms", "LONG", 30_000, "LOW", "Time for a request.",
                validator=at_least(1))
        .define("cassandra.offset.storage.table.enable", "BOOLEAN", True, "MEDIUM")
        .define("cassandra.offset.storage.table", "STRING", "kafka_connect_offsets", "LOW")
        .define("max.concurrent.requests", "INT", 500, "LOW", "Requests that run side by side.",
                validator=between(1, 10_000))
    )  # fmt: skip
    unused = "offsets are those of the group"
    found.without_effect(
        {
            **LICENCE,
            "cassandra.ssl.provider": (None, "TLS is OpenSSL's"),
            "cassandra.offset.storage.table.enable": ("true", unused),
            "cassandra.offset.storage.table": ("kafka_connect_offsets", unused),
        }
    )
    return define_retries(define_stores(found, "cassandra.ssl."))


def table_access(settings: Settings) -> Access:
    has_login = settings.flag("cassandra.security.enabled")
    if has_login and not settings.text("cassandra.password"):
        raise ConnectError("cassandra.password is needed with cassandra.security.enabled=true")
    return Access(
        tuple(settings.entries("cassandra.contact.points")),
        settings.integer("cassandra.port"),
        settings.text("cassandra.local.datacenter"),
        settings.text("cassandra.username") if has_login else "",
        settings.text("cassandra.password"),
        tls_of(settings, "cassandra.ssl."),
        settings.flag("cassandra.ssl.enabled"),
        settings.text("cassandra.compression").upper(),
        settings.integer("cassandra.execute.timeout.ms") / 1000,
    )


def table_options(settings: Settings) -> str:
    """The clause of CREATE TABLE behind its columns."""
    found = []
    algorithm = settings.text("cassandra.table.create.compression.algorithm").upper()
    if not settings.flag("cassandra.table.create.compression.enabled"):
        found.append("compression = {'enabled': 'false'}")
    elif algorithm != "NONE":
        name = {"SNAPPY": "Snappy", "LZ4": "LZ4", "DEFLATE": "Deflate", "ZSTD": "Zstd"}[algorithm]
        found.append(f"compression = {{'class': '{name}Compressor'}}")
    caching = settings.text("cassandra.table.create.caching").upper()
    if caching != "NONE":
        keys = "ALL" if caching in ("ALL", "KEYS_ONLY") else "NONE"
        rows = "ALL" if caching in ("ALL", "ROWS_ONLY") else "NONE"
        found.append(f"caching = {{'keys': '{keys}', 'rows_per_partition': '{rows}'}}")
    return f" WITH {' AND '.join(found)}" if found else ""


def create_keyspace(name: str, replicas: int) -> str:
    return (
        f"CREATE KEYSPACE IF NOT EXISTS {quoted(name)} WITH replication ="
        f" {{'class': 'SimpleStrategy', 'replication_factor': {replicas}}}"
    )


def define_stores(found: ConfigDef, prefix: str) -> ConfigDef:
    for store, text in (("truststore", "Certificates of authorities"), ("keystore", "The own certificate")):
        found.define(f"{prefix}{store}.path", "STRING", "", "MEDIUM", f"{text}: JKS, PKCS #12 or PEM.")
        found.define(f"{prefix}{store}.type", "STRING", "JKS", "LOW", "PEM, or a store of Java.")
        found.define(f"{prefix}{store}.password", "PASSWORD", None, "MEDIUM", "Its password.")
    return found


def mapped_tls(settings: Settings) -> dict[str, str]:
    """DataStax' other settings of TLS."""
    found: dict[str, str] = {}
    if not settings.flag("ssl.hostnameValidation"):
        found["ssl.endpoint.identification.algorithm"] = ""
    if suites := settings.entries("ssl.cipherSuites"):
        found["ssl.cipher.suites"] = ",".join(suites)
    chain, key = settings.text("ssl.openssl.keyCertChain"), settings.text("ssl.openssl.privateKey")
    if chain and key:
        try:
            found["ssl.keystore.certificate.chain"] = Path(chain).read_text()
            found["ssl.keystore.key"] = Path(key).read_text()
        except OSError as error:
            raise ConnectError(f"ssl.openssl.keyCertChain: {error}") from error
        found["ssl.keystore.type"] = "PEM"
    elif chain or key:
        raise ConnectError("ssl.openssl.keyCertChain and ssl.openssl.privateKey belong together: set both")
    return found


def tls_of(settings: Settings, prefix: str) -> dict[str, str]:
    given = settings.prefixed(prefix)
    return {name: value for each, name in STORES.items() if (value := given.get(each))}
