"""Documents for records: ids, versions, bodies and mappings.

In: a record and a plan. Out: an action of a bulk request, or DataError that says why the record does not fit.
Versions are offsets, so a write that comes again changes nothing. Does not know: requests.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import time
from typing import Any

import orjson

from barnabas.connect.connectors.search.search_settings import SearchPlan
from barnabas.connect.connectors.stores.json_values import json_bytes, moment, numeric, text_of
from barnabas.connect.data import DataError, Record, Schema, Type
from barnabas.connect.data.schema import DATE_NAME, DECIMAL_NAME, TIME_NAME, TIMESTAMP_NAME

ID_BYTES_MAX = 512
TIMESTAMP_FIELD = "@timestamp"
CONFLICT_RETRIES = 5
PRIMITIVES = {
    Type.INT8: "byte",
    Type.INT16: "short",
    Type.INT32: "integer",
    Type.INT64: "long",
    Type.FLOAT32: "float",
    Type.FLOAT64: "double",
    Type.BOOLEAN: "boolean",
    Type.BYTES: "binary",
}
LOGICAL = {DECIMAL_NAME: "double", DATE_NAME: "date", TIME_NAME: "date", TIMESTAMP_NAME: "date"}
TEXT = {"type": "text", "fields": {"keyword": {"type": "keyword", "ignore_above": 256}}}


@dataclass(frozen=True, slots=True)
class Action:
    """One action of a bulk request as its lines."""

    op: str  # index, create, update or delete
    target: str
    id: str | None
    lines: bytes
    is_versioned: bool = False


def action_of(record: Record, plan: SearchPlan, target: str) -> Action | None:
    """The action of a record; None: nothing."""
    topic = record.topic or ""
    ignores_key = plan.ignores_key_of(topic)
    if record.value is None:
        if plan.nulls == "ignore":
            return None
        if plan.nulls == "fail":
            raise DataError(
                "the record has no value, and behavior.on.null.values=fail;"
                " delete removes documents, ignore leaves such records out"
            )
        if ignores_key and (plan.is_stream or plan.id_strategy != "record.key"):
            raise DataError("the record has no value, and without its key there is nothing to delete")
    id = id_of(record, plan, ignores_key)
    about: dict[str, Any] = {"_index": target}
    if id is not None:
        about["_id"] = id
    has_key = not ignores_key or plan.id_strategy == "record.key"
    if (routing := routing_of(record, plan)) is not None:
        about["routing"] = routing
    version = version_of(record, plan) if has_key and not plan.is_upsert and not plan.is_stream else None
    if version is not None:
        about |= {"version": version, "version_type": "external"}
    if record.value is None:
        op, parts = "delete", []
    elif plan.is_stream:
        op, parts = "create", [stream_body(record, plan)]
    elif plan.is_upsert:
        op = "update"
        about["retry_on_conflict"] = CONFLICT_RETRIES
        parts = [b'{"doc":' + body(record, plan) + b',"doc_as_upsert":true}']
    else:
        op, parts = "index", [body(record, plan)]
    lines = b"\n".join([orjson.dumps({op: about}), *parts, b""])
    return Action(op, target, id, lines, version is not None)


def id_of(record: Record, plan: SearchPlan, ignores_key: bool) -> str | None:
    if ignores_key and (plan.id_strategy != "record.key" or plan.is_stream):
        if plan.id_strategy == "none":
            return None
        return f"{record.topic}+{record.partition}+{record.offset}"
    key = record.key
    if key is None:
        raise DataError(
            "the record has no key, and its key is the id of the document:"
            " produce with keys, or set key.ignore=true"
        )
    if isinstance(key, Mapping | list | bytes | bytearray) or key == "":
        what = "empty" if key == "" else f"a {type(key).__name__}"
        raise DataError(
            f"the key is {what}, and ids are texts or numbers: use StringConverter or LongConverter for keys,"
            " take a field out of the key with the transform ExtractField$Key, or set key.ignore=true"
        )
    id = ("true" if key else "false") if isinstance(key, bool) else text_of(key)
    if len(id.encode("utf-8", "surrogatepass")) > ID_BYTES_MAX:
        raise DataError(f"the key is longer than the {ID_BYTES_MAX} bytes that an id may have")
    return id


def routing_of(record: Record, plan: SearchPlan) -> str | None:
    """The text that chooses the shard. DataError if the record lacks it: its document would be elsewhere."""
    if plan.routing is None:
        return None
    side = "key" if plan.routing.by_key else "value"
    found = record.key if plan.routing.by_key else record.value
    for name in plan.routing.path:
        found = found.get(name) if isinstance(found, Mapping) else None
    if found is None:
        raise DataError(f"the {side} has nothing at routing.field.path {'.'.join(plan.routing.path)!r}")
    return text_of(found)


def version_of(record: Record, plan: SearchPlan) -> int | None:
    if not plan.version_header:
        return record.offset
    found = [each.value for each in record.headers if each.name == plan.version_header]
    try:
        version = int(found[-1].decode() if isinstance(found[-1], bytes) else found[-1])
    except (IndexError, TypeError, ValueError, UnicodeDecodeError):
        shown = repr(found[-1])[:50] if found else "missing"
        raise DataError(f"the header {plan.version_header} is {shown}: it must hold a version") from None
    if not 0 <= version < 1 << 63:
        raise DataError(f"the version {version} of the header {plan.version_header} is out of range")
    return version


def fields(record: Record, plan: SearchPlan) -> Any:
    value = record.value
    if not isinstance(value, Mapping):
        raise DataError(
            f"a document is a struct or a map, and the value is a {type(value).__name__}:"
            " use a converter for JSON or Avro, or wrap it with the transform HoistField"
        )
    schema = record.value_schema
    return written(value, schema, plan.compacts_maps) if schema is not None and differs(schema) else value


def body(record: Record, plan: SearchPlan) -> bytes:
    return json_bytes(fields(record, plan), numeric)


def stream_body(record: Record, plan: SearchPlan) -> bytes:
    """A document of a data stream, which needs a time."""
    found = dict(fields(record, plan))
    for name in plan.timestamp_fields:
        if found.get(name) is not None:
            found[TIMESTAMP_FIELD] = found[name]
            break
    else:
        if plan.timestamp_fields and TIMESTAMP_FIELD not in found:
            raise DataError(f"none of the fields {', '.join(plan.timestamp_fields)} has a time")
        if TIMESTAMP_FIELD not in found:
            if record.timestamp is None:
                raise DataError("the record has no timestamp; name a field by data.stream.timestamp.field")
            found[TIMESTAMP_FIELD] = moment(record.timestamp)
    return json_bytes(found, numeric)


def differs(schema: Schema) -> bool:
    """Whether values of this schema are written otherwise than plain JSON: maps and times of day."""
    if schema.type is Type.MAP or schema.logical == TIME_NAME:
        return True
    if schema.type is Type.ARRAY:
        assert schema.value is not None
        return differs(schema.value)
    return any(differs(one.schema) for one in schema.fields)


def written(value: Any, schema: Schema, compacts_maps: bool) -> Any:
    """A value with maps as the plan says, and times as milliseconds, which the type `date` reads."""
    if value is None:
        return None
    if schema.logical == TIME_NAME and isinstance(value, time):
        seconds = (value.hour * 60 + value.minute) * 60 + value.second
        return seconds * 1000 + value.microsecond // 1000
    if schema.type is Type.STRUCT:
        return {one.name: written(value.get(one.name), one.schema, compacts_maps) for one in schema.fields}
    if schema.type is Type.ARRAY:
        assert schema.value is not None
        return [written(each, schema.value, compacts_maps) for each in value]
    if schema.type is Type.MAP:
        assert schema.key is not None and schema.value is not None
        pairs = [
            (written(key, schema.key, compacts_maps), written(each, schema.value, compacts_maps))
            for key, each in value.items()
        ]
        if is_compact(schema, compacts_maps):
            return dict(pairs)
        return [{"key": key, "value": each} for key, each in pairs]
    return value


def is_compact(schema: Schema, compacts_maps: bool) -> bool:
    return compacts_maps and schema.key is not None and schema.key.type is Type.STRING


def mapping_of(schema: Schema, compacts_maps: bool) -> dict[str, Any]:
    """The mapping of a schema: types of fields for the server."""
    if schema.logical is not None:
        return {"type": LOGICAL[schema.logical]}
    if schema.type is Type.STRUCT:
        parts = {one.name: mapping_of(one.schema, compacts_maps) for one in schema.fields}
        return {"properties": parts} if parts else {"type": "object"}
    if schema.type is Type.ARRAY:
        assert schema.value is not None
        return mapping_of(schema.value, compacts_maps)  # a field may hold one value or several
    if schema.type is Type.MAP:
        assert schema.key is not None and schema.value is not None
        if is_compact(schema, compacts_maps):
            return {"type": "object"}
        return {
            "properties": {
                "key": mapping_of(schema.key, compacts_maps),
                "value": mapping_of(schema.value, compacts_maps),
            }
        }
    if schema.type is Type.STRING:
        return dict(TEXT)
    return {"type": PRIMITIVES[schema.type]}
