"""Schemas as JsonConverter writes them, and back: `{"type":"struct","fields":[…],"optional":false}`.

Also single values against a schema, in both directions: defaults in schemas, and records that come one by
one.
"""

from __future__ import annotations

import base64
import binascii
import datetime as dt
from collections.abc import Mapping
from dataclasses import replace
from decimal import Decimal
from typing import Any

import numpy as np

from barnabas.connect.data import DECIMAL_CONTEXT, DataError, Field, Schema, Type
from barnabas.connect.data.schema import DATE_NAME, DECIMAL_NAME, TIME_NAME, TIMESTAMP_NAME

NAMES = {kind: kind.value for kind in Type} | {Type.FLOAT32: "float", Type.FLOAT64: "double"}
TYPES = {name: kind for kind, name in NAMES.items()}
EPOCH, MIDNIGHT = dt.datetime(1970, 1, 1, tzinfo=dt.UTC), dt.date(1970, 1, 1)
RANGES = {Type.INT8: 1 << 7, Type.INT16: 1 << 15, Type.INT32: 1 << 31, Type.INT64: 1 << 63}


def schema_to_json(schema: Schema, *, numeric: bool = False) -> dict[str, Any]:
    """The JSON of a schema, with its keys in the order that Connect writes. `numeric` is for decimals."""
    made: dict[str, Any] = {"type": NAMES[schema.type]}
    if schema.type is Type.ARRAY:
        assert schema.value is not None
        made["items"] = schema_to_json(schema.value, numeric=numeric)
    elif schema.type is Type.MAP:
        assert schema.key is not None and schema.value is not None
        made["keys"] = schema_to_json(schema.key, numeric=numeric)
        made["values"] = schema_to_json(schema.value, numeric=numeric)
    elif schema.type is Type.STRUCT:
        made["fields"] = [
            schema_to_json(one.schema, numeric=numeric) | {"field": one.name} for one in schema.fields
        ]
    made["optional"] = schema.optional
    for name in ("name", "version", "doc"):
        if (value := getattr(schema, name)) is not None:
            made[name] = value
    if schema.parameters:
        made["parameters"] = dict(schema.parameters)
    if schema.default is not None:
        made["default"] = value_to_json(schema.default, schema, numeric=numeric)
    return made


def schema_of_json(found: Any) -> Schema | None:
    """The schema of its JSON; None for null. DataError says what is wrong."""
    if found is None:
        return None
    if not isinstance(found, Mapping) or not isinstance(found.get("type"), str):
        raise DataError('a schema must be an object with a text "type"')
    kind = TYPES.get(found["type"])
    if kind is None:
        raise DataError(f"Unknown schema type: {found['type']}; known are {', '.join(TYPES)}")
    more: dict[str, Any] = {}
    if kind is Type.ARRAY:
        more["value"] = needed(found, "items")
    elif kind is Type.MAP:
        more |= {"key": needed(found, "keys"), "value": needed(found, "values")}
    elif kind is Type.STRUCT:
        if not isinstance(found.get("fields"), list):
            raise DataError('Struct schema\'s "fields" argument is not an array.')
        more["fields"] = tuple(struct_field(one) for one in found["fields"])
    plain = Schema(
        type=kind,
        optional=bool(found.get("optional", False)),
        name=text_or_none(found, "name"),
        version=found.get("version"),
        doc=text_or_none(found, "doc"),
        parameters={str(name): str(value) for name, value in (found.get("parameters") or {}).items()},
        **more,
    )
    if found.get("default") is None:
        return plain
    default = value_of_json(found["default"], plain)
    if kind is Type.FLOAT32 and isinstance(default, float):
        default = float(str(np.float32(default)))  # the digits that a float of 32 bits has
    return replace(plain, default=default)


def needed(found: Mapping[str, Any], name: str) -> Schema:
    inner = schema_of_json(found.get(name))
    if inner is None:
        raise DataError(f'a schema of type {found["type"]} needs "{name}"')
    return inner


def struct_field(found: Any) -> Field:
    if not isinstance(found, Mapping) or not isinstance(found.get("field"), str):
        raise DataError('Struct schema\'s field name not specified properly: a text "field" is needed')
    schema = schema_of_json(found)
    assert schema is not None
    return Field(found["field"], schema)


def text_or_none(found: Mapping[str, Any], name: str) -> str | None:
    value = found.get(name)
    if value is not None and not isinstance(value, str):
        raise DataError(f'Invalid schema: "{name}" must be a text, not {value!r}')
    return value


def decimal_bytes(value: Decimal, scale: int) -> bytes:
    """The unscaled number as Java's BigInteger writes it: two's complement, as short as possible."""
    number = int(value.scaleb(scale, DECIMAL_CONTEXT))
    return number.to_bytes(((number + (number < 0)).bit_length() // 8) + 1, "big", signed=True)


def decimal_of_bytes(data: bytes, scale: int) -> Decimal:
    return Decimal(int.from_bytes(data, "big", signed=True)).scaleb(-scale, DECIMAL_CONTEXT)


def value_to_json(value: Any, schema: Schema, *, numeric: bool = False) -> Any:
    """One Python value as JSON has it."""
    if value is None:
        return None
    logical = schema.logical
    if logical == DECIMAL_NAME:
        if numeric:
            return value
        return base64.b64encode(decimal_bytes(value, schema.scale)).decode()
    if logical == DATE_NAME:
        return (value - MIDNIGHT).days
    if logical == TIME_NAME:
        return ((value.hour * 60 + value.minute) * 60 + value.second) * 1000 + value.microsecond // 1000
    if logical == TIMESTAMP_NAME:
        return (value - EPOCH) // dt.timedelta(milliseconds=1)
    if schema.type is Type.BYTES:
        return base64.b64encode(value).decode()
    if schema.type is Type.STRUCT:
        return {
            one.name: value_to_json(value.get(one.name), one.schema, numeric=numeric) for one in schema.fields
        }
    if schema.type is Type.ARRAY:
        assert schema.value is not None
        return [value_to_json(one, schema.value, numeric=numeric) for one in value]
    if schema.type is Type.MAP:
        assert schema.key is not None and schema.value is not None
        key, item = schema.key, schema.value
        pairs = [(value_to_json(k, key), value_to_json(v, item, numeric=numeric)) for k, v in value.items()]
        return dict(pairs) if key.type is Type.STRING else [list(pair) for pair in pairs]
    return value


def value_of_json(found: Any, schema: Schema, path: str = "", *, defaults: bool = True) -> Any:
    """The Python value of its JSON. DataError names the field that does not fit.

    Java's converter turns a text where a number belongs into zero; here it is an error.
    """
    if found is None:
        if defaults and schema.default is not None:
            return schema.default
        if not schema.optional and schema.default is None:
            raise DataError(f"Invalid null value for required {NAMES[schema.type]} field {path}".rstrip())
        return None
    logical = schema.logical
    if logical is not None:
        return logical_of_json(found, schema, logical, path)
    if schema.type is Type.STRUCT:
        if not isinstance(found, dict):
            raise misfit(found, schema, path)
        return {
            one.name: value_of_json(
                found.get(one.name), one.schema, f"{path}.{one.name}" if path else one.name, defaults=defaults
            )
            for one in schema.fields
        }
    if schema.type is Type.ARRAY:
        if not isinstance(found, list):
            raise misfit(found, schema, path)
        assert schema.value is not None
        return [value_of_json(one, schema.value, f"{path}[]", defaults=defaults) for one in found]
    if schema.type is Type.MAP:
        return map_of_json(found, schema, path, defaults)
    return primitive_of_json(found, schema, path)


def primitive_of_json(found: Any, schema: Schema, path: str) -> Any:
    if schema.type in RANGES:
        limit = RANGES[schema.type]
        if isinstance(found, bool) or not isinstance(found, int) or not -limit <= found < limit:
            raise misfit(found, schema, path)
        return found
    if schema.type in (Type.FLOAT32, Type.FLOAT64):
        if isinstance(found, str) and found in NOT_FINITE:
            return float(NOT_FINITE[found])
        if isinstance(found, bool) or not isinstance(found, int | float):
            raise misfit(found, schema, path)
        return float(found)
    if schema.type is Type.BYTES:
        if not isinstance(found, str):
            raise misfit(found, schema, path)
        try:
            return base64.b64decode(found, validate=True)
        except binascii.Error as error:
            raise DataError(f"bytes of {path or 'the value'} are no base64: {error}") from None
    if not isinstance(found, bool if schema.type is Type.BOOLEAN else str):
        raise misfit(found, schema, path)
    return found


NOT_FINITE = {"NaN": "nan", "Infinity": "inf", "-Infinity": "-inf"}


def logical_of_json(found: Any, schema: Schema, logical: str, path: str) -> Any:
    try:
        if logical == DECIMAL_NAME:
            if isinstance(found, str):
                return decimal_of_bytes(base64.b64decode(found, validate=True), schema.scale)
            if isinstance(found, int | float | Decimal) and not isinstance(found, bool):
                return Decimal(str(found)).quantize(Decimal(1).scaleb(-schema.scale), context=DECIMAL_CONTEXT)
        elif isinstance(found, int) and not isinstance(found, bool):
            if logical == DATE_NAME:
                return MIDNIGHT + dt.timedelta(days=found)
            if logical == TIME_NAME:
                if not 0 <= found < 86_400_000:
                    raise misfit(found, schema, path)
                return (EPOCH + dt.timedelta(milliseconds=found)).time()
            return EPOCH + dt.timedelta(milliseconds=found)
    except (ValueError, ArithmeticError) as error:
        raise DataError(
            f"{found!r} is no {logical.rpartition('.')[2]} ({path or 'value'}): {error}"
        ) from None
    raise misfit(found, schema, path)


def map_of_json(found: Any, schema: Schema, path: str, defaults: bool) -> dict[Any, Any]:
    assert schema.key is not None and schema.value is not None
    if schema.key.type is Type.STRING and isinstance(found, dict):
        return {
            name: value_of_json(one, schema.value, f"{path}.{name}", defaults=defaults)
            for name, one in found.items()
        }
    if isinstance(found, list) and all(isinstance(one, list) and len(one) == 2 for one in found):
        return {
            value_of_json(k, schema.key, f"{path} key"): value_of_json(
                v, schema.value, path, defaults=defaults
            )
            for k, v in found
        }
    raise misfit(found, schema, path)


def misfit(found: Any, schema: Schema, path: str) -> DataError:
    text = repr(found)
    shown = text if len(text) < 60 else text[:57] + "..."
    return DataError(f"{path or 'the value'} must be {schema.name or NAMES[schema.type]}, not {shown}")
