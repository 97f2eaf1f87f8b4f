"""Settings of the MongoDB source, with the names of MongoDB's own connector, and what they mean together."""

from __future__ import annotations

import base64
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any

import bson
import orjson
from bson import json_util
from bson.datetime_ms import DatetimeMS
from bson.decimal128 import Decimal128
from bson.objectid import ObjectId
from bson.timestamp import Timestamp
from pymongo.collation import Collation

from barnabas.connect.config import ConfigDef, Settings, at_least, one_of_any_case
from barnabas.connect.connectors.mongo.mongo_address import define_address, nodes_of
from barnabas.connect.connectors.mongo.mongo_settings import simple
from barnabas.connect.connectors.mongo.relaxed_json import strict
from barnabas.connect.connectors.mongo.schemas import EPOCH, KEY, VALUE, schema_of_setting
from barnabas.connect.data import Schema
from barnabas.connect.plugins import ConnectError

FULL = ("", "default", "updateLookup", "whenAvailable", "required")
BEFORE = ("", "default", "off", "whenAvailable", "required")
# The calendar repeats itself.
CYCLE_YEARS, CYCLE_MS = 400, 146_097 * 86_400_000
DEFAULT_MAPPER = "com.mongodb.kafka.connect.source.topic.mapping.DefaultTopicMapper"
COPY_UNUSED = {
    "max.threads": "one thread copies",
    "queue.size": "documents are read as they are sent",
    "allow.disk.use": "the server's default holds",
}
FORMATTER = "com.mongodb.kafka.connect.source.json.formatter.DefaultJson"
STRICT = json_util.JSONOptions(
    json_mode=json_util.JSONMode.LEGACY,
    strict_number_long=True,
    datetime_representation=json_util.DatetimeRepresentation.LEGACY,
)


@dataclass(frozen=True, slots=True)
class Output:
    """How keys or values are written. `schema`: that of the settings; None: inferred from each document."""

    format: str  # json, bson or schema
    schema: Schema | None = None


@dataclass(frozen=True, slots=True)
class SourcePlan:
    """The collections to follow, and how events are written."""

    database: str
    collection: str
    source: Mapping[str, Any]  # the source partition
    pipeline: list[dict[str, Any]]
    options: Mapping[str, Any]  # of the change stream
    mode: str  # latest, timestamp, copy_existing
    start_at: Timestamp | None
    copy_pipeline: list[dict[str, Any]]
    copy_names: re.Pattern[str] | None
    prefix: str
    suffix: str
    separator: str
    topics: Mapping[str, str]
    only_documents: bool
    tombstones: bool
    key_is_document_key: bool
    key: Output
    value: Output
    formatter: Callable[[Any], str]
    batch: int
    await_ms: int
    heartbeat_s: float
    heartbeat_topic: str
    tolerates: bool
    logs_errors: bool
    dead_letters: str  # the topic; empty: none

    def topic_of(self, space: str) -> str:
        """The topic of a namespace, `database.collection`."""
        database = space.partition(".")[0]
        name = self.topics.get(space) or self.topics.get(database) or self.topics.get("*")
        if name is not None and space not in self.topics and "." in space and name != self.topics.get("*"):
            name = self.separator.join((name, space.partition(".")[2]))
        name = name or self.separator.join(part for part in space.split(".", 1) if part)
        return self.separator.join(part for part in (self.prefix, name, self.suffix) if part)


def definitions() -> ConfigDef:
    return (
        define_address(ConfigDef())
        .define("database", "STRING", "", "MEDIUM", "The database; empty: all.")
        .define("collection", "STRING", "", "MEDIUM", "The collection; empty: all.")
        .define("pipeline", "STRING", "[]", "MEDIUM", "Stages of the change stream, as JSON.")
        .define("change.stream.full.document", "STRING", "", "HIGH", "Documents of updates.",
                validator=one_of_any_case(*FULL))
        .define("change.stream.full.document.before.change", "STRING", "", "HIGH",
                "Documents before changes.",
                validator=one_of_any_case(*BEFORE))
        .define("publish.full.document.only", "BOOLEAN", False, "HIGH", "Values are documents, not events.")
        .define("publish.full.document.only.tombstone.on.delete", "BOOLEAN", False, "HIGH",
                "With that: keys are those of documents, and deletions have no value.")
        .define("startup.mode", "STRING", "latest", "MEDIUM", "latest, timestamp or copy_existing.",
                validator=one_of_any_case("", "latest", "timestamp", "copy_existing"))
        .define("copy.existing", "BOOLEAN", False, "LOW", "The old name of startup.mode=copy_existing.")
        .define("startup.mode.timestamp.start.at.operation.time", "STRING", "", "MEDIUM",
                "Seconds, ISO 8601, or BSON's timestamp as JSON.")
        .define("startup.mode.copy.existing.pipeline", "STRING", "[]", "MEDIUM", "Stages of the copy.")
        .define("startup.mode.copy.existing.namespace.regex", "STRING", "", "MEDIUM", "What is copied.")
        .define("copy.existing.pipeline", "STRING", "", "LOW", "Its old name.")
        .define("copy.existing.namespace.regex", "STRING", "", "LOW", "Its old name.")
        .define("collation", "STRING", "", "MEDIUM", "The collation of the change stream, as JSON.")
        .define("change.stream.show.expanded.events", "BOOLEAN", False, "LOW",
                "Also events of indexes and collections (MongoDB 6).")
        .define("topic.prefix", "STRING", "", "LOW", "Before names of topics.")
        .define("topic.suffix", "STRING", "", "LOW", "Behind names of topics.")
        .define("topic.separator", "STRING", ".", "LOW", "Between the parts.")
        .define("topic.namespace.map", "STRING", "", "LOW", "Topics of namespaces, as JSON.")
        .define("change.stream.document.key.as.key", "BOOLEAN", True, "HIGH",
                "Keys are those of documents; otherwise tokens of the stream.")
        .define("output.format.key", "STRING", "json", "HIGH", "json, bson or schema.",
                validator=one_of_any_case("json", "bson", "schema"))
        .define("output.format.value", "STRING", "json", "HIGH", "json, bson or schema.",
                validator=one_of_any_case("json", "bson", "schema"))
        .define("output.schema.key", "STRING", KEY, "HIGH", "The Avro schema of keys, for the format schema.")
        .define("output.schema.value", "STRING", VALUE, "HIGH",
                "The Avro schema of values, for the format schema.")
        .define("output.schema.infer.value", "BOOLEAN", False, "HIGH",
                "The schema of each value is that of its document.")
        .define("output.json.formatter", "CLASS", FORMATTER, "MEDIUM",
                "DefaultJson, ExtendedJson, SimplifiedJson.")
        .define("poll.max.batch.size", "INT", 1000, "LOW", "Events of one poll.", validator=at_least(1))
        .define("poll.await.time.ms", "LONG", 5000, "LOW", "How long a poll waits.", validator=at_least(1))
        .define("batch.size", "INT", 0, "LOW", "Events of one response.", validator=at_least(0))
        .define("heartbeat.interval.ms", "LONG", 0, "MEDIUM", "Store offsets without events; 0: never.",
                validator=at_least(0))
        .define("heartbeat.topic.name", "STRING", "__mongodb_heartbeats", "MEDIUM", "Where heartbeats go.")
        .define("offset.partition.name", "STRING", "", "MEDIUM", "Another name to store offsets under.")
        .define("mongo.errors.tolerance", "STRING", "", "MEDIUM",
                "all: go on from now where the server has forgotten the position, and behind events that"
                " do not fit the schema.",
                validator=one_of_any_case("", "none", "all"))
        .define("mongo.errors.log.enable", "BOOLEAN", False, "LOW", "With all: log events that do not fit.")
        .define("mongo.errors.deadletterqueue.topic.name", "STRING", "", "MEDIUM",
                "With all: the topic for events that do not fit, as JSON.")
        .refused({"topic.mapper": (DEFAULT_MAPPER, "mappers are classes of Java; use topic.namespace.map")})
        .without_effect(
            {
                f"{prefix}.{each}": (None, reason)
                for prefix in ("copy.existing", "startup.mode.copy.existing")
                for each, reason in COPY_UNUSED.items()
            }
        )
    )  # fmt: skip


def plan_of(settings: Settings) -> SourcePlan:
    database, collection = settings.text("database"), settings.text("collection")
    if collection and not database:
        raise ConnectError("database is needed with collection")
    mode = settings.text("startup.mode").lower() or "latest"
    mode = "copy_existing" if settings.flag("copy.existing") else mode
    start_at = timestamp_of(settings.text("startup.mode.timestamp.start.at.operation.time"))
    if mode == "timestamp" and start_at is None:
        raise ConnectError(
            "startup.mode.timestamp.start.at.operation.time is needed with startup.mode=timestamp"
        )
    named = copying(settings, "namespace.regex")
    try:
        pattern = re.compile(settings.text(named)) if settings.text(named) else None
    except re.error as error:
        raise ConnectError(f"{named}: {error}") from error
    tombstones = settings.flag("publish.full.document.only.tombstone.on.delete")
    if tombstones and not settings.flag("publish.full.document.only"):
        raise ConnectError(
            "publish.full.document.only.tombstone.on.delete needs publish.full.document.only=true"
        )
    return SourcePlan(
        database,
        collection,
        {"ns": settings.text("offset.partition.name") or address(settings, database, collection)},
        stages(settings, "pipeline"),
        options_of(settings),
        mode,
        start_at,
        stages(settings, copying(settings, "pipeline")),
        pattern,
        settings.text("topic.prefix"),
        settings.text("topic.suffix"),
        settings.text("topic.separator"),
        topics_of(settings),
        settings.flag("publish.full.document.only"),
        tombstones,
        settings.flag("change.stream.document.key.as.key"),
        output_of(settings, "key"),
        output_of(settings, "value"),
        formatter_of(simple(settings.text("output.json.formatter"))),
        settings.integer("poll.max.batch.size"),
        settings.integer("poll.await.time.ms"),
        settings.integer("heartbeat.interval.ms") / 1000,
        settings.text("heartbeat.topic.name"),
        settings.text("mongo.errors.tolerance").lower() == "all",
        settings.flag("mongo.errors.log.enable"),
        settings.text("mongo.errors.deadletterqueue.topic.name"),
    )


def output_of(settings: Settings, side: str) -> Output:
    form = settings.text(f"output.format.{side}").lower()
    if form != "schema" or (side == "value" and settings.flag("output.schema.infer.value")):
        return Output(form)
    name = f"output.schema.{side}"
    return Output(form, schema_of_setting(settings.text(name), name))


def options_of(settings: Settings) -> dict[str, Any]:
    found: dict[str, Any] = {}
    for name, setting, known in (
        ("full_document", "change.stream.full.document", FULL),
        ("full_document_before_change", "change.stream.full.document.before.change", BEFORE),
    ):
        text = settings.text(setting).lower()
        if text not in ("", "default"):
            found[name] = next(each for each in known if each.lower() == text)
    if settings.flag("publish.full.document.only"):
        found.setdefault("full_document", "updateLookup")
    if batch := settings.integer("batch.size"):
        found["batch_size"] = batch
    if settings.flag("change.stream.show.expanded.events"):
        found["show_expanded_events"] = True
    if text := settings.text("collation"):
        try:
            found["collation"] = Collation(**orjson.loads(strict(text)))
        except (orjson.JSONDecodeError, TypeError, ValueError) as error:
            raise ConnectError(
                f'collation must be a JSON object, such as {{"locale": "de"}}: {error}'
            ) from error
    return found


def address(settings: Settings, database: str, collection: str) -> str:
    """The address without login and options, as offsets have it."""
    hosts = ",".join(f"{host}:{port}" for host, port in nodes_of(settings))
    return f"mongodb://{hosts}/{'.'.join(each for each in (database, collection) if each)}"


def copying(settings: Settings, part: str) -> str:
    """The name of a setting of copies: the new one, or the old one where that is given alone."""
    new, old = f"startup.mode.copy.existing.{part}", f"copy.existing.{part}"
    return old if settings.raw.get(old) and not settings.raw.get(new) else new


def stages(settings: Settings, name: str) -> list[dict[str, Any]]:
    try:
        found = json_util.loads(strict(settings.text(name) or "[]"))
        if isinstance(found, list) and all(isinstance(each, dict) for each in found):
            return found
    except (ValueError, TypeError):
        pass
    raise ConnectError(f"{name} must be a JSON list of stages, such as [{{$match: ...}}]")


def topics_of(settings: Settings) -> dict[str, str]:
    text = settings.text("topic.namespace.map")
    try:
        found = orjson.loads(strict(text or "{}"))
        if isinstance(found, dict) and all(isinstance(each, str) for each in found.values()):
            return found
    except ValueError:
        pass
    raise ConnectError('topic.namespace.map must be a JSON object, such as {"shop.orders": "orders"}')


def timestamp_of(text: str) -> Timestamp | None:
    if not text:
        return None
    try:
        if text.isdecimal():
            return Timestamp(int(text), 0)
        if text.startswith("{"):
            found = json_util.loads(strict(text))
            return found if isinstance(found, Timestamp) else json_util.loads(f'{{"$timestamp": {text}}}')
        return Timestamp(int(datetime.fromisoformat(text).timestamp()), 0)
    except (ValueError, TypeError, KeyError) as error:
        raise ConnectError(
            f"startup.mode.timestamp.start.at.operation.time: {text!r} is no time: {error}"
        ) from error


def formatter_of(name: str) -> Callable[[Any], str]:
    known: dict[str, Callable[[Any], str]] = {
        "DefaultJson": lambda value: dumped(value, STRICT),
        "ExtendedJson": lambda value: dumped(value, json_util.CANONICAL_JSON_OPTIONS),
        "SimplifiedJson": lambda value: dumped(simplified(value), json_util.RELAXED_JSON_OPTIONS),
    }
    if name not in known:
        raise ConnectError(f"output.json.formatter: {name} is none of {', '.join(known)}")
    return known[name]


def dumped(value: Any, options: json_util.JSONOptions) -> str:
    return json_util.dumps(value, json_options=options, ensure_ascii=False)


def simplified(value: Any) -> Any:
    """Plain JSON: ids, decimals and bytes as texts, dates in ISO form."""
    if isinstance(value, Mapping):
        return {name: simplified(each) for name, each in value.items()}
    if isinstance(value, list):
        return [simplified(each) for each in value]
    if isinstance(value, ObjectId | Decimal128):
        return str(value)
    if isinstance(value, bytes):
        return base64.b64encode(value).decode()
    if isinstance(value, datetime | DatetimeMS):
        return iso_text(value)
    return value


def iso_text(value: datetime | DatetimeMS) -> str:
    """A date in ISO form, as Java writes it, also where Python has no such year."""
    cycles = 0
    if isinstance(value, DatetimeMS):
        cycles, within = divmod(int(value), CYCLE_MS)
        value = EPOCH + timedelta(milliseconds=within)
    text = value.replace(tzinfo=None).isoformat()
    text = f"{text.rstrip('0') if '.' in text else text}Z"
    year = int(text[:4]) + cycles * CYCLE_YEARS
    sign = "+" if year > 9999 else "-" if year < 0 else ""
    return f"{sign}{abs(year):04}{text[4:]}"


def encoded(document: Mapping[str, Any]) -> bytes:
    return bson.encode(document)
