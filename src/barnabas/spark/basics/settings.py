"""Client settings out of a query's options: every option that begins with `kafka.` is one.

In: options as Spark hands them over, names in any case. Out: frozen values that serve as keys of caches and
travel to executors. Settings that our client has no use for are accepted, as Kafka's clients accept what they
do not know. Security settings stay as they were given, references such as `${env:NAME}` among them: the
process that connects resolves them. They are in no repr, since plans and errors show reprs.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from barnabas.client.core.address import parse_bootstrap
from barnabas.security.clients.client_security import PROTOCOLS, ClientSecurity, client_security
from barnabas.security.clients.references import resolve_properties
from barnabas.security.errors import SecuritySettingsError

PREFIX = "kafka."
ISOLATION_LEVELS = ("read_uncommitted", "read_committed")
SECURITY = ("security.", "sasl.", "ssl.", "config.providers")  # settings of `client_security`
CLIENT_ID = "barnabas-spark"
FORBIDDEN = {  # as in Spark's connector, with what to do instead
    "auto.offset.reset": "use the option startingOffsets",
    "key.deserializer": "keys are bytes; use the option key.format or cast the column",
    "value.deserializer": "values are bytes; use the option value.format or cast the column",
    "key.serializer": "keys are written as bytes or strings",
    "value.serializer": "values are written as bytes or strings",
    "enable.auto.commit": "nothing is committed to Kafka; the query's checkpoint holds the offsets",
    "interceptor.classes": "use the option interceptors",
}


class OptionError(ValueError):
    """An option is wrong: one sentence with its name."""


@dataclass(frozen=True, slots=True)
class ClientSettings:
    bootstrap_servers: str
    client_id: str = CLIENT_ID
    isolation_level: str = ISOLATION_LEVELS[0]
    request_timeout_ms: int = 30_000
    fetch_max_bytes: int = 8 * 1024 * 1024
    fetch_max_wait_ms: int = 500
    check_crcs: bool = True
    rack: str = ""
    security: tuple[tuple[str, str], ...] = field(default=(), repr=False)  # passwords among them

    def client_security(self) -> ClientSecurity:
        """TLS and SASL of this process' connections; reads stores and references of this machine."""
        try:
            return client_security(resolve_properties(dict(self.security)))
        except SecuritySettingsError as error:
            raise OptionError(f"the options kafka.*: {error}") from None

    @property
    def is_read_committed(self) -> bool:
        return self.isolation_level == ISOLATION_LEVELS[1]


def kafka_settings(options: Mapping[str, str]) -> dict[str, str]:
    """Options that begin with `kafka.`, without that prefix. Spark passes names in small letters."""
    return {name[len(PREFIX) :]: value for name, value in options.items() if name.startswith(PREFIX)}


def client_settings(options: Mapping[str, str]) -> ClientSettings:
    given = kafka_settings(options)
    for name, instead in FORBIDDEN.items():
        if name in given:
            raise OptionError(f"the option {PREFIX}{name} cannot be set: {instead}")
    servers = given.get("bootstrap.servers", "").strip()
    if not servers:
        raise OptionError("the option kafka.bootstrap.servers is missing: give host:port of a broker")
    try:
        parse_bootstrap(servers)
    except ValueError as error:
        raise OptionError(f"the option kafka.bootstrap.servers is wrong: {error}") from None
    check_security(given)
    isolation_level = given.get("isolation.level", ISOLATION_LEVELS[0])
    if isolation_level not in ISOLATION_LEVELS:
        allowed = " or ".join(ISOLATION_LEVELS)
        raise OptionError(f"the option kafka.isolation.level is {isolation_level!r}, it may be {allowed}")
    return ClientSettings(
        bootstrap_servers=servers,
        client_id=given.get("client.id") or CLIENT_ID,
        isolation_level=isolation_level,
        request_timeout_ms=number(given, "request.timeout.ms", 30_000, 1),
        fetch_max_bytes=min(
            number(given, "fetch.max.bytes", 8 * 1024 * 1024, 1),
            number(given, "max.partition.fetch.bytes", 8 * 1024 * 1024, 1),
        ),
        fetch_max_wait_ms=number(given, "fetch.max.wait.ms", 500, 0),
        check_crcs=flag(given.get("check.crcs", "true"), PREFIX + "check.crcs"),
        rack=given.get("client.rack", ""),
        security=tuple(sorted((name, given[name]) for name in given if name.startswith(SECURITY))),
    )


def check_security(given: Mapping[str, str]) -> None:
    protocol = given.get("security.protocol", PROTOCOLS[0]).upper()
    if protocol not in PROTOCOLS:
        raise OptionError(
            f"the option kafka.security.protocol is {protocol}, it may be {', '.join(PROTOCOLS)}"
        )


def number(given: Mapping[str, str], name: str, default: int, least: int, prefix: str = PREFIX) -> int:
    text = given.get(name)
    if text is None:
        return default
    try:
        value = int(text)
    except ValueError:
        raise OptionError(f"the option {prefix}{name} is {text!r}, it must be a whole number") from None
    if value < least:
        raise OptionError(f"the option {prefix}{name} is {value}, it must be at least {least}")
    return value


def flag(text: str, name: str) -> bool:
    lowered = text.strip().lower()
    if lowered not in ("true", "false"):
        raise OptionError(f"the option {name} is {text!r}, it must be true or false")
    return lowered == "true"
