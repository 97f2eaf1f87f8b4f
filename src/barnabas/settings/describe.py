"""Settings as in DescribeConfigs responses: value, source and synonyms.

In: a node's settings and the overrides of a topic or group. Out: entries with source and synonyms, without
secrets. Every entry equals Kafka's, including its oddities.
Does not know: requests, authorization, which topics exist.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Mapping
from dataclasses import dataclass
from enum import IntEnum

from barnabas.settings.broker import BrokerSettings
from barnabas.settings.definitions import (
    BROKER_ROWS,
    CLIENT_METRICS_ROWS,
    DYNAMIC_ONLY,
    GROUP_ROWS,
    HIDDEN,
    INTERNAL,
    TOPIC_ROWS,
    broker_defaults,
    default_value,
)
from barnabas.settings.names import LISTENER_PREFIX, listener_base_name
from barnabas.settings.synonyms import BROKER_SYNONYMS, TOPIC_TO_BROKER
from barnabas.settings.tables.row import READ_ONLY, Row
from barnabas.settings.topic import topic_values
from barnabas.settings.values import Value, parse_value, to_text


class Source(IntEnum):
    TOPIC = 1
    DYNAMIC_BROKER = 2
    DYNAMIC_DEFAULT = 3
    STATIC = 4
    DEFAULT = 5
    LOGGER = 6
    CLIENT_METRICS = 7
    GROUP = 8


# Type numbers of DescribeConfigs; 0 means an unknown setting.
TYPES = {
    "boolean": 1,
    "string": 2,
    "int": 3,
    "short": 4,
    "long": 5,
    "double": 6,
    "list": 7,
    "class": 8,
    "password": 9,
}


@dataclass(frozen=True, slots=True)
class Synonym:
    name: str
    value: str | None
    source: Source


@dataclass(frozen=True, slots=True)
class Entry:
    name: str
    value: str | None
    read_only: bool
    source: Source
    sensitive: bool
    type: int
    synonyms: tuple[Synonym, ...]
    documentation: str


def describe_topic(
    overrides: Mapping[str, str], broker: BrokerSettings, names: Collection[str] | None = None
) -> list[Entry]:
    """Entries of a topic: all settings, or those named that exist."""
    values = topic_values(overrides, broker)
    entries = []
    for name in chosen(names, (n for n in TOPIC_ROWS if n in overrides or n not in INTERNAL)):
        text = to_text(values[name])
        synonyms: tuple[Synonym, ...] = ()
        if name in TOPIC_TO_BROKER:
            synonyms = broker_synonyms(broker, TOPIC_TO_BROKER[name])
        if name in overrides:
            synonyms = (Synonym(name, text, Source.TOPIC), *synonyms)
        entries.append(entry(name, text, TOPIC_ROWS[name], synonyms, read_only=False))
    return entries


def describe_group(
    overrides: Mapping[str, str], broker: BrokerSettings, names: Collection[str] | None = None
) -> list[Entry]:
    """Entries of a group: its own values over the broker settings with the prefix `group.`."""
    entries = []
    for name in chosen(names, GROUP_ROWS):
        row = GROUP_ROWS[name]
        broker_name = f"group.{name}"
        if broker_name in BROKER_ROWS:
            text = to_text(broker[broker_name])
            synonyms = broker_synonyms(broker, broker_name)
        else:
            text = to_text(default_value(row))
            synonyms = (Synonym(name, text, Source.DEFAULT),)
        if name in overrides:
            text = to_text(parse_value(name, row[1], overrides[name]))
            synonyms = (Synonym(name, text, Source.GROUP), *synonyms)
        entries.append(entry(name, text, row, synonyms, read_only=False))
    return entries


def describe_client_metrics(
    overrides: Mapping[str, str], names: Collection[str] | None = None
) -> list[Entry]:
    """Entries of a subscription to clients' metrics."""
    entries = []
    for name in chosen(names, CLIENT_METRICS_ROWS):
        row = CLIENT_METRICS_ROWS[name]
        text = to_text(default_value(row))
        synonyms: tuple[Synonym, ...] = ()
        if name in overrides:
            text = to_text(parse_value(name, row[1], overrides[name]))
            synonyms = (Synonym(name, text, Source.CLIENT_METRICS),)
        entries.append(entry(name, text, row, synonyms, read_only=False))
    return entries


def describe_loggers(levels: Mapping[str, str]) -> list[Entry]:
    """Entries of a broker's loggers: a name and a level each."""
    return [
        Entry(name, level, False, Source.LOGGER, False, 0, (), documentation="")
        for name, level in levels.items()
    ]


def describe_broker(broker: BrokerSettings, names: Collection[str] | None = None) -> list[Entry]:
    """Entries of this node: every setting that is not internal, and all other names that are set."""
    given = {**broker.static, **broker.dynamic_default, **broker.dynamic_broker}
    known = dict.fromkeys(name for name in BROKER_ROWS if name in given or name not in HIDDEN)
    return [broker_entry(broker, name, given.get(name)) for name in chosen(names, {**known, **given})]


def describe_cluster_default(broker: BrokerSettings, names: Collection[str] | None = None) -> list[Entry]:
    """Entries of the cluster-wide default: only dynamic settings."""
    entries = []
    for name in chosen(names, broker.dynamic_default):
        row = row_of(name)
        secret = is_secret(row)
        text = None if secret else broker.dynamic_default[name]
        synonyms = (Synonym(name, text, Source.DYNAMIC_DEFAULT),)
        entries.append(entry(name, text, row, synonyms, read_only=is_read_only(name)))
    return entries


def broker_entry(broker: BrokerSettings, name: str, given: str | None) -> Entry:
    row = row_of(name)
    text = to_text(broker[name]) if name in BROKER_ROWS and name not in HIDDEN else given
    if is_secret(row):
        text = None
    return entry(name, text, row, broker_synonyms(broker, name), read_only=is_read_only(name))


def entry(
    name: str, text: str | None, row: Row | None, synonyms: tuple[Synonym, ...], *, read_only: bool
) -> Entry:
    return Entry(
        name=name,
        value=text,
        read_only=read_only,
        source=synonyms[0].source if synonyms else Source.DEFAULT,
        sensitive=is_secret(row),
        type=TYPES[row[1]] if row else 0,
        synonyms=synonyms,
        documentation=row[6] if row else "",
    )


ONLY_DYNAMIC = ("leader.replication.throttled.rate", "follower.replication.throttled.rate")


def broker_synonyms(broker: BrokerSettings, name: str) -> tuple[Synonym, ...]:
    """The sources of a broker setting's value by precedence, beginning with the name itself, as in Kafka."""
    secret = is_secret(row_of(name))
    names = BROKER_SYNONYMS.get(name) or (name,)
    if name.startswith(LISTENER_PREFIX):
        names = (name, listener_base_name(name))
    layers: tuple[tuple[Callable[[str], str | None], Source], ...] = (
        (broker.dynamic_broker.get, Source.DYNAMIC_BROKER),
        (broker.dynamic_default.get, Source.DYNAMIC_DEFAULT),
        (broker.static.get, Source.STATIC),
        (default_text, Source.DEFAULT),
    )
    found = []
    for lookup, source in layers:
        for synonym in names:
            text = lookup(synonym)
            if source is Source.DEFAULT and synonym in ONLY_DYNAMIC:
                continue  # Kafka's brokers do not list this default as one of their settings
            if text is not None:
                found.append(Synonym(synonym, None if secret else text, source))
    while found and found[0].name != name:
        del found[0]
    return tuple(found)


def default_text(name: str) -> str | None:
    value: Value = broker_defaults().get(name)
    return to_text(value)


def row_of(name: str) -> Row | None:
    return BROKER_ROWS.get(listener_base_name(name) if name.startswith(LISTENER_PREFIX) else name)


def is_secret(row: Row | None) -> bool:
    """Whether to hide the value: a password, or an unknown name, which may be a secret of a plug-in."""
    return row is None or row[1] == "password"


def is_read_only(name: str) -> bool:
    row = BROKER_ROWS.get(name)
    return row is None or row[5] == READ_ONLY or name in DYNAMIC_ONLY


def chosen(names: Collection[str] | None, existing: Iterable[str]) -> list[str]:
    return [name for name in existing if not names or name in names]
