"""JsonConverter: JSON with schemas in an envelope, or without schemas.

Reading has two roads that give the same values. Records of one producer begin with the same bytes, their
schema: then the payloads are cut out and read by Arrow's own reader, all at once. Everything else (mixed
schemas, bad records, rare types) goes record by record, and errors keep their index. Writing joins columns
of texts.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Mapping
from typing import Any

import orjson
import pyarrow as pa
import pyarrow.compute as pc

from barnabas.connect.config import ConfigType, Importance, Width, invalid, one_of_any_case
from barnabas.connect.convert import json_reader
from barnabas.connect.convert.contract import Converted, Converter, Encoded, Part, runs, with_type
from barnabas.connect.convert.json_schemas import schema_of_json, schema_to_json, value_of_json
from barnabas.connect.convert.json_texts import plain_json, texts
from barnabas.connect.data import Column, DataError, Headers, Schema

ENVELOPE = (
    'JsonConverter with schemas.enable requires "schema" and "payload" fields and may not contain additional '
    "fields. If you are trying to deserialize plain JSON data, set schemas.enable=false in your converter "
    "configuration."
)
SCHEMAS, SERIALIZATION = "Schemas", "Serialization"


class JsonConverter(Converter):
    """Settings as Apache Kafka has them."""

    JAVA_NAMES = ("org.apache.kafka.connect.json.JsonConverter",)
    CONFIG = (
        with_type()
        .define("schemas.enable", ConfigType.BOOLEAN, True, Importance.HIGH,
                "Records carry their schema.", SCHEMAS, Width.MEDIUM, "Enable Schemas", order=0)
        .define("schemas.cache.size", ConfigType.INT, 1000, Importance.HIGH,
                "How many schemas are remembered.", SCHEMAS, Width.MEDIUM, "Schema Cache Size", order=1)
        .define("schema.content", ConfigType.STRING, None, Importance.HIGH,
                "A fixed schema for all records; records are then plain payloads.", SCHEMAS, Width.MEDIUM,
                "Schema Content", order=2)
        .define("decimal.format", ConfigType.STRING, "BASE64", Importance.LOW,
                "Decimals are written as base64 of their bytes or as numbers.", SERIALIZATION, Width.MEDIUM,
                "Decimal Format", validator=one_of_any_case("NUMERIC", "BASE64"), order=0)
        .define("replace.null.with.default", ConfigType.BOOLEAN, True, Importance.LOW,
                "A field that is null gets the default of its schema.", SERIALIZATION, Width.MEDIUM,
                "Replace null with default", order=1)
    )  # fmt: skip

    def configure(self, config: Mapping[str, str], is_key: bool) -> None:
        super().configure(config, is_key)
        self.has_envelope = self.settings.flag("schemas.enable")
        self.is_numeric = self.settings.text("decimal.format").upper() == "NUMERIC"
        self.defaults = self.settings.flag("replace.null.with.default")
        self.fixed = fixed_schema(self.settings.text("schema.content"))
        self._schemas: OrderedDict[bytes, Schema | None] = OrderedDict()
        self._written: OrderedDict[Schema, str] = OrderedDict()
        self._size_max = max(1, self.settings.integer("schemas.cache.size"))

    def from_bytes(self, topic: str, data: pa.Array, headers: list[Headers] | None = None) -> Converted:
        fast = self._read_at_once(data)
        return fast if fast is not None else self._read_one_by_one(data)

    def _read_at_once(self, data: pa.Array) -> Converted | None:
        """All records of one schema by Arrow's reader; None if some of them need the other road."""
        if self.fixed is not None:
            schema, payloads = self.fixed, data
        elif self.has_envelope:
            prefix = json_reader.envelope_prefix(data)
            if prefix is None or not json_reader.all_have(data, prefix):
                return None
            try:
                found = self._schema(prefix[len(json_reader.BEGIN) : -len(json_reader.MIDDLE)])
            except (DataError, orjson.JSONDecodeError):
                return None
            if found is None:
                return None
            schema, payloads = found, pc.binary_slice(data, len(prefix), -1)
        else:
            return None
        column = json_reader.read(payloads, schema, defaults=self.defaults)
        return None if column is None else Converted([Part(list(range(len(data))), column)])

    def _read_one_by_one(self, data: pa.Array) -> Converted:
        schemas: list[Schema | None] = []
        values: list[Any] = []
        failures: dict[int, Exception] = {}
        for index, raw in enumerate(data.to_pylist()):
            schema, value = None, None
            try:
                if raw is not None:
                    schema, value = self._record(raw)
            except (DataError, ValueError, OverflowError, RecursionError) as error:
                failures[index] = error if isinstance(error, DataError) else not_json(error)
            schemas.append(schema)
            values.append(value)
        return runs(schemas, values, failures)

    def _record(self, raw: bytes) -> tuple[Schema | None, Any]:
        found = orjson.loads(raw)
        if self.fixed is not None:
            return self.fixed, value_of_json(found, self.fixed, defaults=self.defaults)
        if not self.has_envelope:
            return None, found
        if found is None:
            return None, None
        if not isinstance(found, dict) or found.keys() != {"schema", "payload"}:
            raise DataError(ENVELOPE)
        if found["schema"] is None:
            return None, found["payload"]
        schema = self._schema(orjson.dumps(found["schema"]))
        assert schema is not None
        return schema, value_of_json(found["payload"], schema, defaults=self.defaults)

    def _schema(self, text: bytes) -> Schema | None:
        if text in self._schemas:
            self._schemas.move_to_end(text)
            return self._schemas[text]
        schema = schema_of_json(orjson.loads(text))
        self._schemas[text] = schema
        while len(self._schemas) > self._size_max:
            self._schemas.popitem(last=False)
        return schema

    def to_bytes(self, topic: str, column: Column, headers: list[Headers] | None = None) -> Encoded:
        if column.schema is None:
            return self._write_plain(column.data)
        schema = column.schema
        try:
            found = texts(column.data, schema, numeric=self.is_numeric, defaults=self.defaults)
        except (DataError, pa.ArrowException) as error:
            return Encoded(pa.nulls(len(column), pa.binary()), dict.fromkeys(range(len(column)), error))
        if self.has_envelope:
            before = f'{{"schema":{self._schema_text(schema)},"payload":'
            found = pc.binary_join_element_wise(before, found, "}", "")
        if column.data.null_count and not schema.optional and schema.default is None:
            found = pc.if_else(column.data.is_valid(), found, pa.scalar(None, pa.string()))
        return Encoded(found.cast(pa.binary()))

    def _schema_text(self, schema: Schema) -> str:
        text = self._written.get(schema)
        if text is None:
            text = plain_json(schema_to_json(schema, numeric=self.is_numeric)).decode()
            self._written[schema] = text
            while len(self._written) > self._size_max:
                self._written.popitem(last=False)
        return text

    def _write_plain(self, values: list[Any]) -> Encoded:
        made: list[bytes | None] = []
        failures: dict[int, Exception] = {}
        for index, value in enumerate(values):
            try:
                if value is None:
                    made.append(None)
                else:
                    text = plain_json(value)
                    made.append(b'{"schema":null,"payload":%s}' % text if self.has_envelope else text)
            except (TypeError, ValueError) as error:
                failures[index] = DataError(f"the value cannot be written as JSON: {error}")
                made.append(None)
        return Encoded(pa.array(made, pa.binary()), failures)


def fixed_schema(text: str) -> Schema | None:
    if not text:
        return None
    try:
        return schema_of_json(orjson.loads(text))
    except ValueError as error:
        raise invalid(
            "schema.content", text, f"it must be a schema as JsonConverter writes it: {error}"
        ) from None


def not_json(error: Exception) -> DataError:
    return DataError(f"the record is no JSON: {error}")
