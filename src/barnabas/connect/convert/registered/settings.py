"""Settings that all converters with a registry share, in Confluent's names, and the registry's client.

In: settings of a converter. Out: a client, and settings of the serializers' subjects. Does not know: formats.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from barnabas.connect.config import REQUIRED, ConfigDef, ConfigType, Importance, Settings, invalid
from barnabas.connect.convert.contract import with_type
from barnabas.schemas.serdes.settings import SerializerSettings

if TYPE_CHECKING:
    from barnabas.schemas import SchemaRegistryClient

URL = "schema.registry.url"
OWN = "schema.registry."
STRATEGY = "io.confluent.kafka.serializers.subject.TopicNameStrategy"
LOGIN = ("basic.auth.credentials.source", "basic.auth.user.info", "bearer.auth.credentials.source",
         "bearer.auth.token", "bearer.auth.logical.cluster", "bearer.auth.identity.pool.id")  # fmt: skip
STORES = {"ssl.truststore.location": "ssl.ca.location", "ssl.keystore.location": "ssl.certificate.location"}
DIRECT = ("ssl.ca.location", "ssl.certificate.location", "ssl.key.location", "ssl.key.password")


def registry_settings() -> ConfigDef:
    """Settings of every converter with a registry."""
    found = with_type()
    found.define(
        URL,
        ConfigType.LIST,
        REQUIRED,
        Importance.HIGH,
        "Addresses of the registry, with commas between them.",
    )
    for name, kind, default, doc in (
        ("auto.register.schemas", ConfigType.BOOLEAN, True, "Register schemas that the registry lacks."),
        ("normalize.schemas", ConfigType.BOOLEAN, False, "Let the registry bring schemas into one form."),
        ("use.schema.id", ConfigType.INT, -1, "Write with the schema of this id."),
        ("use.latest.version", ConfigType.BOOLEAN, False, "Write with the latest schema of the subject."),
        ("latest.compatibility.strict", ConfigType.BOOLEAN, True, "Values must fit the latest schema."),
        ("latest.cache.ttl.sec", ConfigType.INT, -1, "How long the latest version is remembered."),
        ("key.subject.name.strategy", ConfigType.CLASS, STRATEGY, "The subject of keys."),
        ("value.subject.name.strategy", ConfigType.CLASS, STRATEGY, "The subject of values."),
        ("max.schemas.per.subject", ConfigType.INT, 1000, "How many schemas are remembered."),
        ("schemas.cache.config", ConfigType.INT, 1000, "How many translated schemas are remembered."),
        ("basic.auth.credentials.source", ConfigType.STRING, "URL", "Where the password comes from."),
        ("basic.auth.user.info", ConfigType.PASSWORD, None, "User and password, with a colon between."),
        ("schema.registry.basic.auth.user.info", ConfigType.PASSWORD, None, "The same, an older name."),
        ("bearer.auth.credentials.source", ConfigType.STRING, None, "Where the token comes from."),
        ("bearer.auth.token", ConfigType.PASSWORD, None, "A token."),
    ):
        found.define(name, kind, default, Importance.MEDIUM, doc)
    return found


def client_of(settings: Settings) -> SchemaRegistryClient:
    """The client of the registry, as the converter's settings say."""
    from barnabas.schemas import SchemaRegistryClient

    raw = settings.raw
    found: dict[str, Any] = {
        "url": ",".join(settings.entries(URL)),
        "cache.capacity": settings.integer("max.schemas.per.subject"),
        "cache.latest.ttl.sec": settings.integer("latest.cache.ttl.sec"),
    }
    for name in (*LOGIN, *DIRECT):
        given = raw.get(name) or raw.get(OWN + name)
        if given:
            found[name] = given
    for store, name in STORES.items():
        place = raw.get(OWN + store)
        kind = raw.get(f"{OWN}{store.removesuffix('location')}type") or "JKS"
        if place and kind.upper() != "PEM":
            raise invalid(OWN + store, place, f"stores of type {kind} are not read here: use PEM files")
        if place:
            found[name] = place
    try:
        return SchemaRegistryClient(found)
    except ValueError as error:
        raise invalid(URL, found["url"], str(error)) from None


def writing(settings: Settings, is_key: bool) -> SerializerSettings:
    """How schemas of written records are found or registered."""
    schema_id = settings.integer("use.schema.id")
    latest = settings.flag("use.latest.version")
    found: dict[str, Any] = {
        "auto.register.schemas": settings.flag("auto.register.schemas") and not latest and schema_id < 0,
        "normalize.schemas": settings.flag("normalize.schemas"),
        "use.latest.version": latest,
        "subject.name.strategy": settings.text(f"{'key' if is_key else 'value'}.subject.name.strategy"),
    }
    if schema_id >= 0:
        found["use.schema.id"] = schema_id
    try:
        return SerializerSettings.of(found)
    except ValueError as error:
        name = f"{'key' if is_key else 'value'}.subject.name.strategy"
        raise invalid(name, settings.text(name), str(error)) from None
