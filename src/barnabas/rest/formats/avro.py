"""Avro data in Avro's JSON encoding, as binary Avro and back.

In: an Avro schema. Out: a codec. `fastavro` encodes and decodes; this module converts between its values and
Avro's JSON encoding: unions are tagged, bytes are texts of code points 0 to 255, every field must be there.
The conversion is compiled once from the schema. Logical types stay the numbers and bytes that they are.

Payloads come from others, and two kinds of schemas would let a small payload cost a lot. A recursive schema
is read by fastavro's Python reader, which stops at Python's recursion limit: the compiled one has none and
would end the process. Arrays whose items take no bytes are refused: a few bytes declare billions of them.
"""

from __future__ import annotations

import io
import json
import math
from collections.abc import Callable
from typing import Any

import fastavro
from fastavro._read_py import schemaless_reader as careful_reader
from fastavro.schema import SchemaParseException

from barnabas.rest.formats.avro_wrapping import WRAPPED, prepared, primitive, shown
from barnabas.rest.formats.errors import DataMismatch, SchemaRefused
from barnabas.rest.formats.plain import json_kind
from barnabas.rest.formats.source import KnownSchema

INT_RANGE, LONG_RANGE = 1 << 31, 1 << 63
NOT_FINITE = {"NaN": math.nan, "Infinity": math.inf, "-Infinity": -math.inf}

Convert = Callable[[Any], Any]
Kinds = dict[str, Any]


class AvroCodec:
    def __init__(self, schema: KnownSchema) -> None:
        try:
            named: Kinds = {}
            for each in schema.references:
                fastavro.parse_schema(json.loads(each.text), named_schemas=named)
            parsed = fastavro.parse_schema(json.loads(schema.text), named_schemas=named)
            shape = prepared(parsed, named)
        except (SchemaParseException, ValueError, KeyError, TypeError, RecursionError) as error:
            raise SchemaRefused(f"The Avro schema {schema.schema_id} cannot be used: {error}") from None
        self._schema = shape.schema
        self._raw = primitive(parsed) == "bytes"
        self._read = careful_reader if shape.is_recursive else fastavro.schemaless_reader
        self._into = Encoding(shape.named).of(shape.schema)
        self._out = Decoding(shape.named).of(shape.schema)

    def encode(self, data: Any) -> bytes:
        try:
            value = self._into(data)
            if self._raw:
                return bytes(value)
            stream = io.BytesIO()
            fastavro.schemaless_writer(stream, self._schema, value)
        except RecursionError:
            raise DataMismatch("the data are nested too deeply") from None
        except UnicodeEncodeError:
            raise DataMismatch("a string holds half of a surrogate pair") from None
        return stream.getvalue()

    def decode(self, payload: bytes) -> Any:
        if self._raw:
            return payload.decode("latin-1")
        stream = io.BytesIO(payload)
        try:
            value = self._read(stream, self._schema, None, return_named_type=True)
            value = value if self._out is None else self._out(value)
        except RecursionError:
            raise DataMismatch("the record is nested too deeply") from None
        except (EOFError, IndexError, ValueError, OverflowError, TypeError, KeyError) as error:
            raise DataMismatch(f"the record is no Avro of its schema: {error or 'it is cut off'}") from None
        if stream.tell() != len(payload):
            raise DataMismatch(f"{len(payload) - stream.tell()} bytes are left behind the Avro data")
        return value


class Encoding:
    """Makes functions from Avro's JSON encoding to fastavro's values."""

    def __init__(self, named: Kinds) -> None:
        self._named = named
        self._records: dict[str, Convert] = {}

    def of(self, schema: Any) -> Convert:
        if isinstance(schema, list):
            return self._union(schema)
        kind = schema if isinstance(schema, str) else schema["type"]
        if kind in SIMPLE:
            return SIMPLE[kind]
        if isinstance(schema, str):
            return self._by_name(schema)
        if kind in ("record", "error"):
            return self._record(schema)
        if kind == "enum":
            return enum_from(schema)
        if kind == "fixed":
            return fixed_from(schema)
        if kind == "array":
            return list_from(self.of(schema["items"]))
        if kind == "map":
            return map_from(self.of(schema["values"]))
        return self.of(kind)

    def _by_name(self, name: str) -> Convert:
        """A named type. It may be the one whose function is being made: it is looked up when it is used."""
        if name not in self._records:
            schema = self._named[name]
            if schema["type"] not in ("record", "error"):
                return self.of(schema)
            return self._record(schema)
        return lambda data: self._records[name](data)

    def _record(self, schema: Any) -> Convert:
        name: str = schema["name"]
        self._records[name] = no_record
        fields = [(each["name"], self.of(each["type"])) for each in schema["fields"]]
        names = {each for each, _ in fields}

        def record(data: Any) -> Any:
            if not isinstance(data, dict):
                raise DataMismatch(f"the record {shown(name)} must be an object, not {json_kind(data)}")
            if len(data) != len(fields) or data.keys() != names:
                raise wrong_fields(shown(name), data, names)
            value = {}
            for field, convert in fields:
                try:
                    value[field] = convert(data[field])
                except DataMismatch as error:
                    raise error.within(field) from None
            return value

        self._records[name] = record
        return record

    def _union(self, branches: list[Any]) -> Convert:
        has_null = "null" in branches
        converts: dict[str, tuple[str, Convert]] = {}
        for branch in branches:
            if branch == "null":
                continue
            inner = branch["fields"][0]["type"] if is_wrapped(branch) else branch
            convert = self.of(inner)
            if is_wrapped(branch):
                convert = wrapped(convert)
            converts[tag_of(inner)] = (name_of(branch), convert)
        tags = ", ".join((["null"] if has_null else []) + list(converts))

        def union(data: Any) -> Any:
            if data is None and has_null:
                return None
            if isinstance(data, dict) and len(data) == 1:
                ((tag, inner),) = data.items()
                if tag in converts:
                    name, convert = converts[tag]
                    return (name, convert(inner))
            raise DataMismatch(
                f"a union needs null or an object with one of its types as the only key ({tags}), "
                f"such as {{{json.dumps(next(iter(converts), 'null'))}: ...}}"
            )

        return union


class Decoding:
    """Makes functions from fastavro's values to Avro's JSON encoding. None: the value is its own encoding."""

    def __init__(self, named: Kinds) -> None:
        self._named = named
        self._records: dict[str, Convert | None] = {}

    def of(self, schema: Any) -> Convert | None:
        if isinstance(schema, list):
            return self._union(schema)
        kind = schema if isinstance(schema, str) else schema["type"]
        if kind in ("bytes", "fixed"):
            return text_of_bytes
        if kind in ("float", "double"):
            return number_out
        if kind in SIMPLE or kind == "enum":
            return None
        if isinstance(schema, str):
            return self._by_name(schema)
        if kind in ("record", "error"):
            return self._record(schema)
        if kind == "array":
            return each_of(self.of(schema["items"]))
        if kind == "map":
            return values_of(self.of(schema["values"]))
        return self.of(kind)

    def _by_name(self, name: str) -> Convert | None:
        schema = self._named[name]
        if schema["type"] not in ("record", "error"):
            return self.of(schema)
        if name not in self._records:
            return self._record(schema)

        def later(value: Any) -> Any:
            convert = self._records[name]
            return value if convert is None else convert(value)

        return later

    def _record(self, schema: Any) -> Convert | None:
        name: str = schema["name"]
        self._records[name] = None
        made = [(each["name"], self.of(each["type"])) for each in schema["fields"]]
        fields = [(field, convert) for field, convert in made if convert is not None]
        if not fields:
            return None

        def record(value: Any) -> Any:
            for field, convert in fields:
                value[field] = convert(value[field])
            return value

        self._records[name] = record
        return record

    def _union(self, branches: list[Any]) -> Convert:
        plain: dict[type, tuple[str, Convert | None]] = {}
        named: dict[str, tuple[str, Convert | None]] = {}
        for branch in branches:
            if branch == "null":
                continue
            if is_wrapped(branch):
                inner = branch["fields"][0]["type"]
                named[branch["name"]] = (tag_of(inner), unwrapped(self.of(inner)))
            elif (python := PYTHON_TYPES.get(primitive(branch))) is not None:
                plain[python] = (tag_of(branch), self.of(branch))
            else:
                named[name_of(branch)] = (tag_of(branch), self.of(branch))

        def union(value: Any) -> Any:
            if value is None:
                return None
            if type(value) is tuple:
                tag, convert = named[value[0]]
                value = value[1]
            else:
                tag, convert = plain[type(value)]
            return {tag: value if convert is None else convert(value)}

        return union


def no_record(data: Any) -> Any:
    raise DataMismatch("the record is not there")


def is_wrapped(branch: Any) -> bool:
    return isinstance(branch, dict) and str(branch.get("name", "")).startswith(WRAPPED)


def name_of(branch: Any) -> str:
    """The name of a type in a union, as fastavro has it."""
    if isinstance(branch, str):
        return branch
    return str(branch["name"]) if "name" in branch else name_of(branch["type"])


def tag_of(branch: Any) -> str:
    """The tag of a type in a union: full names of named types, else the type itself."""
    return shown(name_of(branch))


PYTHON_TYPES = {
    "boolean": bool,
    "int": int,
    "long": int,
    "float": float,
    "double": float,
    "string": str,
    "bytes": bytes,
    "array": list,
    "map": dict,
}

# -- from JSON -------------------------------------------------------------------------------------


def expected(what: str, data: Any) -> DataMismatch:
    return DataMismatch(f"{what} was expected, not {json_kind(data)}")


def null_from(data: Any) -> None:
    if data is not None:
        raise expected("null", data)


def boolean_from(data: Any) -> bool:
    if data is not True and data is not False:
        raise expected("a boolean", data)
    return bool(data)


def integers_within(name: str, limit: int) -> Convert:
    def integer_from(data: Any) -> int:
        if type(data) is not int:
            raise expected(f"a whole number ({name})", data)
        if not -limit <= data < limit:
            raise DataMismatch(f"the number is too large for {name}")
        return data

    return integer_from


def number_from(data: Any) -> float:
    if type(data) is float:
        return data
    if type(data) is int:
        try:
            return float(data)
        except OverflowError:
            raise DataMismatch("the number is too large for a double") from None
    if isinstance(data, str) and data in NOT_FINITE:
        return NOT_FINITE[data]
    raise expected("a number", data)


def single_from(data: Any) -> float:
    number = number_from(data)
    if math.isfinite(number) and abs(number) > 3.4028235677973366e38:
        raise DataMismatch("the number is too large for a float")
    return number


def string_from(data: Any) -> str:
    if not isinstance(data, str):
        raise expected("a string", data)
    return data


def bytes_from(data: Any) -> bytes:
    if not isinstance(data, str):
        raise expected("a string (bytes as code points 0 to 255)", data)
    try:
        return data.encode("latin-1")
    except UnicodeEncodeError as error:
        code = ord(data[error.start])
        raise DataMismatch(f"bytes are a string of code points 0 to 255, and one is {code}") from None


SIMPLE: dict[str, Convert] = {
    "null": null_from,
    "boolean": boolean_from,
    "int": integers_within("int", INT_RANGE),
    "long": integers_within("long", LONG_RANGE),
    "float": single_from,
    "double": number_from,
    "string": string_from,
    "bytes": bytes_from,
}


def enum_from(schema: Any) -> Convert:
    symbols = frozenset(schema["symbols"])

    def symbol_from(data: Any) -> str:
        if not isinstance(data, str) or data not in symbols:
            raise DataMismatch(f"the enum {shown(schema['name'])} has no symbol {json.dumps(data)[:100]}")
        return data

    return symbol_from


def fixed_from(schema: Any) -> Convert:
    size = schema["size"]

    def fixed(data: Any) -> bytes:
        value = bytes_from(data)
        if len(value) != size:
            raise DataMismatch(f"the fixed {shown(schema['name'])} needs {size} bytes, not {len(value)}")
        return value

    return fixed


def list_from(convert: Convert) -> Convert:
    def array(data: Any) -> list[Any]:
        if not isinstance(data, list):
            raise expected("a list", data)
        value: list[Any] = []
        try:
            for item in data:
                value.append(convert(item))  # its length is the index in the error
        except DataMismatch as error:
            raise error.within(f"[{len(value)}]") from None
        return value

    return array


def map_from(convert: Convert) -> Convert:
    def mapping(data: Any) -> dict[str, Any]:
        if not isinstance(data, dict):
            raise expected("an object (a map)", data)
        value = {}
        for key, item in data.items():
            try:
                value[key] = convert(item)
            except DataMismatch as error:
                raise error.within(key) from None
        return value

    return mapping


def wrapped(convert: Convert) -> Convert:
    return lambda data: {"v": convert(data)}


def wrong_fields(name: str, data: dict[str, Any], names: set[str]) -> DataMismatch:
    missing = sorted(names - data.keys())
    if missing:
        return DataMismatch(f"the record {name} lacks {', '.join(missing[:5])} (defaults do not count here)")
    unknown = sorted(data.keys() - names)
    return DataMismatch(f"the record {name} has no field {', '.join(unknown[:5])}")


# -- to JSON ---------------------------------------------------------------------------------------


def text_of_bytes(value: bytes) -> str:
    return value.decode("latin-1")


def number_out(value: float) -> float | str:
    if value - value == 0.0:  # neither infinite nor NaN
        return value
    return "NaN" if value != value else ("Infinity" if value > 0 else "-Infinity")


def each_of(convert: Convert | None) -> Convert | None:
    if convert is None:
        return None
    return lambda value: [convert(item) for item in value]


def values_of(convert: Convert | None) -> Convert | None:
    if convert is None:
        return None
    return lambda value: {key: convert(item) for key, item in value.items()}


def unwrapped(convert: Convert | None) -> Convert:
    return (lambda value: value["v"]) if convert is None else (lambda value: convert(value["v"]))
