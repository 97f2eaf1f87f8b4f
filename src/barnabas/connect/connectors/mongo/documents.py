"""Documents for records: values as BSON has them, ids by strategy, processors in their order.

In: a record. Out: a document whose `_id` is set, or DataError that says why there is none. Does not know:
writes.
"""

from __future__ import annotations

import json
import re
import uuid
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from datetime import UTC, date, datetime, time
from decimal import Decimal
from typing import Any

from bson import json_util
from bson.binary import Binary
from bson.codec_options import DatetimeConversion
from bson.decimal128 import Decimal128
from bson.errors import BSONError
from bson.int64 import Int64
from bson.objectid import ObjectId

from barnabas.connect.connectors.mongo.projections import Document, Projection
from barnabas.connect.connectors.mongo.relaxed_json import strict
from barnabas.connect.connectors.stores.json_values import text_of
from barnabas.connect.data import DataError, Record, Schema, Type

# Dates that Python has no year for stay numbers.
EXTENDED = json_util.JSONOptions(datetime_conversion=DatetimeConversion.DATETIME_AUTO, tz_aware=True)
INT64_MAX = (1 << 63) - 1
ID_STRATEGIES = (
    "BsonOidStrategy",
    "KafkaMetaDataStrategy",
    "FullKeyStrategy",
    "ProvidedInKeyStrategy",
    "ProvidedInValueStrategy",
    "PartialKeyStrategy",
    "PartialValueStrategy",
    "UuidStrategy",
    "UuidProvidedInKeyStrategy",
    "UuidProvidedInValueStrategy",
)
PROCESSORS = (
    "DocumentIdAdder",
    "AllowListKeyProjector",
    "AllowListValueProjector",
    "BlockListKeyProjector",
    "BlockListValueProjector",
    "KafkaMetaAdder",
    "RenameByMapping",
    "RenameByRegExp",
    "NullFieldValueRemover",
)


@dataclass(frozen=True, slots=True)
class DocumentPlan:
    """How records of a topic become documents."""

    id_strategy: str = "BsonOidStrategy"
    overwrites_id: bool = False
    binary_uuids: bool = False
    processors: tuple[str, ...] = ("DocumentIdAdder",)
    key_projection: Projection = field(default_factory=lambda: Projection("none"))
    value_projection: Projection = field(default_factory=lambda: Projection("none"))
    partial_key: Projection = field(default_factory=lambda: Projection("none"))
    partial_value: Projection = field(default_factory=lambda: Projection("none"))
    renames: tuple[tuple[str, str], ...] = ()  # paths beginning with key or value, and new names
    patterns: tuple[tuple[re.Pattern[str], str, str], ...] = ()  # path, part of a name, replacement

    def id_of(self, record: Record, key: Document | None, value: Document | None) -> Any:
        """The id by the strategy. DataError if the record lacks it."""
        name = self.id_strategy
        if name == "BsonOidStrategy":
            return ObjectId()
        if name == "UuidStrategy":
            return Binary.from_uuid(uuid.uuid4()) if self.binary_uuids else str(uuid.uuid4())
        if name == "KafkaMetaDataStrategy":
            return f"{record.topic}#{record.partition}#{record.offset}"
        if name.endswith("InKeyStrategy") or name in ("FullKeyStrategy", "PartialKeyStrategy"):
            side, document = "key", key
        else:
            side, document = "value", value
        if document is None:
            raise DataError(f"the {side} is no struct or map, and {name} takes the id from it")
        if name == "FullKeyStrategy":
            return document
        if name.startswith("Partial"):
            return (self.partial_key if side == "key" else self.partial_value).of(document)
        if document.get("_id") is None:
            raise DataError(f"the {side} has no field _id, which {name} takes")
        found = document["_id"]
        if name.startswith("Uuid"):
            try:
                return Binary.from_uuid(uuid.UUID(str(found)))
            except ValueError as error:
                raise DataError(f"the _id {found!r} of the {side} is no UUID") from error
        return found

    def projected(self, key: Document) -> Document:
        """The key, of which ids are made: by its projection where the processors have one."""
        is_wanted = any(name.endswith("KeyProjector") for name in self.processors)
        return self.key_projection.of(key) if is_wanted else key

    def processed(self, record: Record, key: Document | None, value: Document) -> Document:
        for name in self.processors:
            if name == "DocumentIdAdder":
                if self.overwrites_id or "_id" not in value:
                    value = {"_id": self.id_of(record, key, value), **without(value, "_id")}
            elif name == "KafkaMetaAdder":
                value["topic-partition-offset"] = f"{record.topic}-{record.partition}-{record.offset}"
                if record.timestamp is not None:
                    value["CREATE_TIME"] = Int64(record.timestamp)
            elif name == "NullFieldValueRemover":
                value = without_nulls(value)
            elif name == "RenameByMapping":
                value = self._renamed(value, "value", self._by_mapping)
            elif name == "RenameByRegExp":
                value = self._renamed(value, "value", self._by_pattern)
            elif name.endswith("ValueProjector"):
                value = {
                    **({"_id": value["_id"]} if "_id" in value else {}),
                    **self.value_projection.of(value),
                }
        return value

    def _renamed(self, document: Document, path: str, rename: Callable[[str, str], str]) -> Document:
        """Fields under new names, where no other field has the new name. Paths below have the new names."""
        found: Document = {}
        taken = set(document)
        for name, value in document.items():
            new = rename(f"{path}.{name}", name)
            if isinstance(value, dict):
                value = self._renamed(value, f"{path}.{new}", rename)
            if new == name or new not in taken:
                found[new] = value
                taken.add(new)
        return found

    def _by_mapping(self, path: str, name: str) -> str:
        return next((new for old, new in self.renames if old == path), name)

    def _by_pattern(self, path: str, name: str) -> str:
        for pattern, part, replacement in self.patterns:
            if pattern.fullmatch(path):
                name = re.sub(part, replacement, name)
        return name


def without(document: Mapping[str, Any], name: str) -> Document:
    return {each: value for each, value in document.items() if each != name}


def without_nulls(document: Document) -> Document:
    return {
        name: without_nulls(value) if isinstance(value, dict) else value
        for name, value in document.items()
        if value is not None
    }


def document_of(value: Any, side: str, schema: Schema | None = None) -> Document | None:
    """A struct, a map, or a text with a JSON document (extended JSON too); None where there is none."""
    if value is None:
        return None
    if isinstance(value, bytes | str):
        try:
            found = parsed(value)
        except DataError as error:
            if side == "key":
                return None  # a plain text: only strategies of ids that need a document miss it
            raise DataError(f"the {side} is a text, but no JSON document: {error}") from error
        if isinstance(found, dict):
            return found
        if side == "key":
            return None
        raise DataError(f"the {side} is a {type(found).__name__}, and a document is needed")
    if isinstance(value, Mapping):
        return {text_of(name): bson_value(each, below(schema, name)) for name, each in value.items()}
    if side == "key":
        return None
    raise DataError(f"the {side} is a {type(value).__name__}, and a document is a struct or a map")


def parsed(text: str | bytes) -> Any:
    """A value of a text with JSON, extended JSON and that of MongoDB's shell too. DataError if it is none."""
    try:
        found = text if isinstance(text, str) else text.decode()
        try:
            return json_util.loads(found, json_options=EXTENDED)
        except json.JSONDecodeError:
            if not found.lstrip().startswith("{"):
                raise
            return json_util.loads(strict(found), json_options=EXTENDED)
    except (ValueError, TypeError, ArithmeticError, BSONError, RecursionError) as error:
        raise DataError(str(error) or type(error).__name__) from error


def below(schema: Schema | None, name: Any) -> Schema | None:
    """The schema of a field, or of a map's values."""
    if schema is None:
        return None
    return schema.value if schema.type is Type.MAP else schema.field(str(name))


def bson_value(value: Any, schema: Schema | None = None) -> Any:
    """A value of Connect as BSON has it. A schema tells 64 bits from 32; else small numbers have 32."""
    if isinstance(value, Mapping):
        return {text_of(name): bson_value(each, below(schema, name)) for name, each in value.items()}
    if isinstance(value, list | tuple | set | frozenset):
        return [bson_value(each, None if schema is None else schema.value) for each in value]
    if isinstance(value, Decimal):
        try:
            return Decimal128(value)
        except (ArithmeticError, ValueError) as error:
            raise DataError(f"the decimal {value} has more than 34 digits") from error
    if isinstance(value, datetime):
        return value if value.tzinfo else value.replace(tzinfo=UTC)
    if isinstance(value, date):
        return datetime(value.year, value.month, value.day, tzinfo=UTC)
    if isinstance(value, time):
        return datetime(1970, 1, 1, value.hour, value.minute, value.second, value.microsecond, tzinfo=UTC)
    if isinstance(value, int) and not isinstance(value, bool) and abs(value) > INT64_MAX:
        raise DataError(f"the number {value} does not fit 64 bits")
    if schema is not None and schema.type is Type.INT64 and isinstance(value, int):
        return Int64(value)
    return value
