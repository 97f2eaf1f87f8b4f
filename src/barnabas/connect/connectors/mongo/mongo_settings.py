"""Settings of the MongoDB sink, with the names of MongoDB's own connector, and what they mean together."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import orjson

from barnabas.connect.config import (
    REQUIRED,
    ConfigDef,
    Settings,
    at_least,
    between,
    non_empty,
    one_of_any_case,
)
from barnabas.connect.connectors.mongo.change_events import HANDLERS, handler_of
from barnabas.connect.connectors.mongo.documents import (
    ID_STRATEGIES,
    PROCESSORS,
    DocumentPlan,
)
from barnabas.connect.connectors.mongo.mongo_address import define_address
from barnabas.connect.connectors.mongo.projections import Projection
from barnabas.connect.connectors.mongo.relaxed_json import strict
from barnabas.connect.plugins import ConnectError

OVERRIDE = "topic.override."
OLD_NAMES = {
    "RenameByRegex": "RenameByRegExp",
    "WhitelistKeyProjector": "AllowListKeyProjector",
    "WhitelistValueProjector": "AllowListValueProjector",
    "BlacklistKeyProjector": "BlockListKeyProjector",
    "BlacklistValueProjector": "BlockListValueProjector",
}
WRITES = (
    "DefaultWriteModelStrategy",
    "InsertOneDefaultStrategy",
    "ReplaceOneDefaultStrategy",
    "ReplaceOneBusinessKeyStrategy",
    "UpdateOneDefaultStrategy",
    "UpdateOneTimestampsStrategy",
    "UpdateOneBusinessKeyTimestampStrategy",
    "DeleteOneDefaultStrategy",
    "DeleteOneBusinessKeyStrategy",
)
BUSINESS = frozenset(each for each in WRITES if "BusinessKey" in each)
ID = "com.mongodb.kafka.connect.sink.processor.id.strategy.BsonOidStrategy"
ADDER = "com.mongodb.kafka.connect.sink.processor.DocumentIdAdder"
WRITE = "com.mongodb.kafka.connect.sink.writemodel.strategy"
GRANULARITIES = ("", "none", "seconds", "minutes", "hours")


@dataclass(frozen=True, slots=True)
class TimeSeries:
    """How a collection of time series is created."""

    field: str
    meta: str = ""
    granularity: str = ""
    expire_s: int = 0

    def options(self) -> dict[str, Any]:
        found: dict[str, Any] = {"timeField": self.field}
        if self.meta:
            found["metaField"] = self.meta
        if self.granularity not in ("", "none"):
            found["granularity"] = self.granularity
        more = {"expireAfterSeconds": self.expire_s} if self.expire_s > 0 else {}
        return {"timeseries": found, **more}


@dataclass(frozen=True, slots=True)
class TopicPlan:
    """How records of a topic are written."""

    database: str
    collection: str  # empty: the topic's name
    documents: DocumentPlan
    write: str
    delete: str
    deletes_nulls: bool
    handler: str | None
    series: TimeSeries | None
    mapped: Mapping[str, str]  # key or value, database or collection: the field that names it
    mapped_fails: bool
    batch: int
    is_ordered: bool
    tolerates: bool
    logs_errors: bool
    pause_s: float
    pause_every: int


def definitions() -> ConfigDef:
    return (
        define_address(ConfigDef())
        .define("database", "STRING", REQUIRED, "HIGH", "The database.", validator=non_empty())
        .define("collection", "STRING", "", "HIGH", "The collection; empty: the topic's name.")
        .define("document.id.strategy", "CLASS", ID, "HIGH", "Where _id comes from.")
        .define("document.id.strategy.overwrite.existing", "BOOLEAN", False, "LOW", "Replace an _id.")
        .define("document.id.strategy.uuid.format", "STRING", "string", "LOW", "Ids of UuidStrategy.",
                validator=one_of_any_case("string", "binary"))
        .define("document.id.strategy.partial.key.projection.type", "STRING", "", "LOW",
                "allowlist, blocklist.")
        .define("document.id.strategy.partial.key.projection.list", "LIST", "", "LOW", "Fields.")
        .define("document.id.strategy.partial.value.projection.type", "STRING", "", "LOW", "The same.")
        .define("document.id.strategy.partial.value.projection.list", "LIST", "", "LOW", "Fields.")
        .define("post.processor.chain", "LIST", ADDER, "LOW", "What is done with documents, in order.")
        .define("key.projection.type", "STRING", "none", "LOW", "none, allowlist, blocklist.")
        .define("key.projection.list", "LIST", "", "LOW", "Fields.")
        .define("value.projection.type", "STRING", "none", "LOW", "none, allowlist, blocklist.")
        .define("value.projection.list", "LIST", "", "LOW", "Fields.")
        .define("field.renamer.mapping", "STRING", "[]", "LOW", '[{"oldName": "value.a", "newName": "b"}]')
        .define("field.renamer.regexp", "STRING", "[]", "LOW", '[{"regexp", "pattern", "replace"}]')
        .define("writemodel.strategy", "CLASS", f"{WRITE}.DefaultWriteModelStrategy", "LOW", "The write.")
        .define("delete.on.null.values", "BOOLEAN", False, "MEDIUM", "A record without a value deletes.")
        .define("delete.writemodel.strategy", "CLASS", f"{WRITE}.DeleteOneDefaultStrategy", "LOW",
                "The deletion.")
        .define("change.data.capture.handler", "CLASS", None, "LOW", "Values are change events.")
        .define("namespace.mapper", "CLASS", "", "LOW", "FieldPathNamespaceMapper: fields name collections.")
        .define("namespace.mapper.key.database.field", "STRING", "", "LOW", "A field of the key.")
        .define("namespace.mapper.key.collection.field", "STRING", "", "LOW", "A field of the key.")
        .define("namespace.mapper.value.database.field", "STRING", "", "LOW", "A field of the value.")
        .define("namespace.mapper.value.collection.field", "STRING", "", "LOW", "A field of the value.")
        .define("namespace.mapper.error.if.invalid", "BOOLEAN", False, "LOW", "Refuse records without it.")
        .define("timeseries.timefield", "STRING", "", "LOW", "The field with the time: a time series.")
        .define("timeseries.metafield", "STRING", "", "LOW", "The field that tells series apart.")
        .define("timeseries.granularity", "STRING", "", "LOW", "seconds, minutes, hours.",
                validator=one_of_any_case(*GRANULARITIES))
        .define("timeseries.expire.after.seconds", "LONG", 0, "LOW", "When rows go.", validator=at_least(0))
        .define("max.batch.size", "INT", 0, "MEDIUM", "Writes of a request; 0: no bound.",
                validator=at_least(0))
        .define("bulk.write.ordered", "BOOLEAN", True, "MEDIUM",
                "Keep the order of all writes; false: of those of a document.")
        .define("max.num.retries", "INT", -1, "MEDIUM", "Retries until the task fails; -1: without end.",
                validator=at_least(-1))
        .define("retries.defer.timeout", "INT", 5000, "MEDIUM", "The first pause; the next ones double.",
                validator=at_least(0))
        .define("mongo.errors.tolerance", "STRING", "", "MEDIUM", "all: leave out what cannot be written.",
                validator=one_of_any_case("", "none", "all"))
        .define("mongo.errors.log.enable", "BOOLEAN", False, "LOW", "Log each record that cannot be written.")
        .define("rate.limiting.timeout", "INT", 0, "LOW", "Milliseconds of a pause; 0: none.",
                validator=between(0, 60_000))
        .define("rate.limiting.every.n", "INT", 0, "LOW", "Requests of a topic between pauses; 0: no pauses.",
                validator=at_least(0))
        .without_effect(
            {
                "timeseries.timefield.auto.convert": (None, "texts and numbers always become times"),
                "timeseries.timefield.auto.convert.date.format": (None, "texts are read as ISO 8601"),
                "timeseries.timefield.auto.convert.locale.language.tag": (None, "ISO 8601 has no languages"),
            }
        )
    )  # fmt: skip


def simple(name: str) -> str:
    return name.rpartition(".")[2]


def settings_for(config: ConfigDef, settings: Settings, topic: str) -> Settings:
    """Settings with `topic.override.<topic>.` applied."""
    given = {name: value for name, value in settings.raw.items() if not name.startswith(OVERRIDE)}
    given |= settings.prefixed(f"{OVERRIDE}{topic}.")
    return config.parse(given)


def plan_of(settings: Settings) -> TopicPlan:
    write = strategy(settings, "writemodel.strategy", WRITES)
    delete = strategy(settings, "delete.writemodel.strategy", WRITES[-2:])
    documents = documents_of(settings)
    handler_name = settings.text("change.data.capture.handler")
    handler = handler_of(handler_name) if handler_name else None
    if handler_name and handler is None:
        raise ConnectError(f"change.data.capture.handler: {handler_name} is none of {', '.join(HANDLERS)}")
    if write in BUSINESS and not documents.id_strategy.startswith("Partial"):
        raise ConnectError(
            f"writemodel.strategy: {write} needs document.id.strategy PartialKeyStrategy or"
            " PartialValueStrategy"
        )
    if settings.flag("delete.on.null.values") and not documents.id_strategy.startswith(
        ("FullKey", "PartialKey", "ProvidedInKey", "UuidProvidedInKey")
    ):
        raise ConnectError(
            "delete.on.null.values needs an id from the key: document.id.strategy FullKeyStrategy"
        )
    return TopicPlan(
        settings.text("database"),
        settings.text("collection"),
        documents,
        write,
        delete,
        settings.flag("delete.on.null.values"),
        handler,
        series_of(settings, write),
        mapped_of(settings),
        settings.flag("namespace.mapper.error.if.invalid"),
        settings.integer("max.batch.size"),
        settings.flag("bulk.write.ordered"),
        settings.text("mongo.errors.tolerance").lower() == "all",
        settings.flag("mongo.errors.log.enable"),
        settings.integer("rate.limiting.timeout") / 1000,
        settings.integer("rate.limiting.every.n"),
    )


def strategy(settings: Settings, name: str, known: tuple[str, ...]) -> str:
    found = simple(settings.text(name))
    if found not in known:
        raise ConnectError(f"{name}: {settings.text(name)} is none of {', '.join(known)}")
    return found


def series_of(settings: Settings, write: str) -> TimeSeries | None:
    if not (field := settings.text("timeseries.timefield")):
        return None
    if write not in ("DefaultWriteModelStrategy", "InsertOneDefaultStrategy"):
        raise ConnectError("timeseries.timefield: a time series only takes inserts")
    return TimeSeries(
        field,
        settings.text("timeseries.metafield"),
        settings.text("timeseries.granularity").lower(),
        settings.integer("timeseries.expire.after.seconds"),
    )


def mapped_of(settings: Settings) -> dict[str, str]:
    name = simple(settings.text("namespace.mapper"))
    if name in ("", "DefaultNamespaceMapper"):
        return {}
    if name != "FieldPathNamespaceMapper":
        raise ConnectError(
            f"namespace.mapper: {name} is none of DefaultNamespaceMapper, FieldPathNamespaceMapper"
        )
    found = {
        f"{side}.{part}": settings.text(f"namespace.mapper.{side}.{part}.field")
        for side in ("key", "value")
        for part in ("database", "collection")
    }
    return {each: field for each, field in found.items() if field}


def documents_of(settings: Settings) -> DocumentPlan:
    id_strategy = strategy(settings, "document.id.strategy", ID_STRATEGIES)
    chain = tuple(simple(each) for each in settings.entries("post.processor.chain"))
    chain = tuple(OLD_NAMES.get(each, each) for each in chain)
    if unknown := [each for each in chain if each not in PROCESSORS]:
        raise ConnectError(f"post.processor.chain: {unknown[0]} is none of {', '.join(PROCESSORS)}")
    if "DocumentIdAdder" not in chain:
        chain = ("DocumentIdAdder", *chain)
    partial = "document.id.strategy.partial"
    found = DocumentPlan(
        id_strategy=id_strategy,
        overwrites_id=settings.flag("document.id.strategy.overwrite.existing"),
        binary_uuids=settings.text("document.id.strategy.uuid.format").lower() == "binary",
        processors=chain,
        key_projection=projection_of(settings, "key.projection"),
        value_projection=projection_of(settings, "value.projection"),
        partial_key=projection_of(settings, f"{partial}.key.projection"),
        partial_value=projection_of(settings, f"{partial}.value.projection"),
        renames=tuple(
            (each["oldName"], each["newName"])
            for each in listed(settings, "field.renamer.mapping", ("oldName", "newName"))
        ),
        patterns=tuple(
            (re.compile(each["regexp"]), each["pattern"], each["replace"])
            for each in listed(settings, "field.renamer.regexp", ("regexp", "pattern", "replace"))
        ),
    )
    for side in ("key", "value"):
        wanted = found.partial_key if side == "key" else found.partial_value
        if id_strategy == f"Partial{side.title()}Strategy" and wanted.kind == "none":
            raise ConnectError(f"{partial}.{side}.projection.type is needed with {id_strategy}: allowlist")
    return found


def projection_of(settings: Settings, name: str) -> Projection:
    kind = settings.text(f"{name}.type").lower() or "none"
    kind = {"whitelist": "allowlist", "blacklist": "blocklist"}.get(kind, kind)
    if kind not in ("none", "allowlist", "blocklist"):
        raise ConnectError(f"{name}.type: {kind!r} must be none, allowlist or blocklist")
    return Projection(kind, tuple(settings.entries(f"{name}.list")))


def listed(settings: Settings, name: str, wanted: tuple[str, ...]) -> list[dict[str, str]]:
    """A setting that is a JSON list of objects with these texts."""
    try:
        found: Any = orjson.loads(strict(settings.text(name) or "[]"))
        for each in found:
            if "regexp" in wanted:
                re.compile(each["regexp"]), re.compile(each["pattern"])
        return [{part: str(each[part]) for part in wanted} for each in found]
    except (ValueError, KeyError, TypeError, re.error) as error:
        raise ConnectError(
            f"{name} must be a JSON list of objects with {', '.join(wanted)}: {error}"
        ) from error
