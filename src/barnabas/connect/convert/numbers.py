"""Numbers, booleans and bytes as Kafka's own serializers write them: fixed widths, big endian."""

from __future__ import annotations

from typing import Any, ClassVar

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from barnabas.connect.convert.contract import Converted, Converter, Encoded, Part, whole
from barnabas.connect.data import (
    OPTIONAL_BOOLEAN,
    OPTIONAL_BYTES,
    OPTIONAL_FLOAT32,
    OPTIONAL_FLOAT64,
    OPTIONAL_INT16,
    OPTIONAL_INT32,
    OPTIONAL_INT64,
    Column,
    DataError,
    Headers,
    Schema,
)


class ByteArrayConverter(Converter):
    """Bytes as they are."""

    JAVA_NAMES = ("org.apache.kafka.connect.converters.ByteArrayConverter",)

    def from_bytes(self, topic: str, data: pa.Array, headers: list[Headers] | None = None) -> Converted:
        return whole(Column(OPTIONAL_BYTES, data))

    def to_bytes(self, topic: str, column: Column, headers: list[Headers] | None = None) -> Encoded:
        if column.schema is not None:
            if column.schema.type is not OPTIONAL_BYTES.type or column.schema.logical:
                error = DataError(f"Invalid schema type for ByteArrayConverter: {column.schema.type}")
                return Encoded(pa.nulls(len(column), pa.binary()), dict.fromkeys(range(len(column)), error))
            return Encoded(column.data)
        values, failures = [], {}
        for index, value in enumerate(column.data):
            fits = value is None or isinstance(value, bytes | bytearray | memoryview)
            values.append(bytes(value) if fits and value is not None else None)
            if not fits:
                failures[index] = DataError(f"ByteArrayConverter takes bytes, not {type(value).__name__}")
        return Encoded(pa.array(values, pa.binary()), dict[int, Exception](failures))


class FixedConverter(Converter):
    """Values of one width; null bytes are null."""

    SCHEMA: ClassVar[Schema]
    CODE: ClassVar[str]  # numpy's name of the type in big endian

    def from_bytes(self, topic: str, data: pa.Array, headers: list[Headers] | None = None) -> Converted:
        width = np.dtype(self.CODE).itemsize
        lengths = pc.binary_length(data)
        wrong = pc.indices_nonzero(pc.coalesce(pc.not_equal(lengths, width), pa.scalar(False))).to_pylist()
        failures: dict[int, Exception] = {
            index: DataError(f"{self.SCHEMA.type} needs {width} bytes, the record has {lengths[index]}")
            for index in wrong
        }
        kept = [index for index in range(len(data)) if index not in failures] if wrong else range(len(data))
        chosen = data.take(pa.array(kept, pa.int64())) if wrong else data
        filled = chosen.fill_null(bytes(width))
        raw = b"".join(filled.to_pylist())
        numbers = self.values(np.frombuffer(raw, self.CODE))
        array = pa.array(numbers, self.SCHEMA.arrow, mask=np.asarray(chosen.is_null()))
        return Converted([Part(list(kept), Column(self.SCHEMA, array))] if len(kept) else [], failures)

    def values(self, numbers: Any) -> Any:
        return numbers.astype(numbers.dtype.newbyteorder("="))

    def to_bytes(self, topic: str, column: Column, headers: list[Headers] | None = None) -> Encoded:
        count = len(column)
        if column.schema is not None and column.schema.type is not self.SCHEMA.type:
            error = DataError(f"this converter writes {self.SCHEMA.type}, the schema is {column.schema.type}")
            return Encoded(pa.nulls(count, pa.binary()), dict.fromkeys(range(count), error))
        failures: dict[int, Exception] = {}
        if column.schema is None:
            values = []
            for index, value in enumerate(column.data):
                try:
                    values.append(pa.scalar(value, self.SCHEMA.arrow).as_py())
                except (pa.ArrowException, TypeError, ValueError):
                    values.append(None)
                    failures[index] = DataError(f"{value!r} does not fit {self.SCHEMA.type}")
            data = pa.array(values, self.SCHEMA.arrow)
        else:
            data = column.data.cast(self.SCHEMA.arrow)
        width = np.dtype(self.CODE).itemsize
        filled = data.fill_null(pa.scalar(0, pa.int8()).cast(self.SCHEMA.arrow))
        raw = filled.to_numpy(zero_copy_only=False).astype(self.CODE).tobytes()
        fixed = pa.FixedSizeBinaryArray.from_buffers(pa.binary(width), count, [None, pa.py_buffer(raw)])
        binary = pc.if_else(data.is_valid(), fixed.cast(pa.binary()), pa.scalar(None, pa.binary()))
        return Encoded(binary, failures)


class BooleanConverter(FixedConverter):
    JAVA_NAMES = ("org.apache.kafka.connect.converters.BooleanConverter",)
    SCHEMA, CODE = OPTIONAL_BOOLEAN, "u1"

    def values(self, numbers: Any) -> Any:
        return numbers != 0


class ShortConverter(FixedConverter):
    JAVA_NAMES = ("org.apache.kafka.connect.converters.ShortConverter",)
    SCHEMA, CODE = OPTIONAL_INT16, ">i2"


class IntegerConverter(FixedConverter):
    JAVA_NAMES = ("org.apache.kafka.connect.converters.IntegerConverter",)
    SCHEMA, CODE = OPTIONAL_INT32, ">i4"


class LongConverter(FixedConverter):
    JAVA_NAMES = ("org.apache.kafka.connect.converters.LongConverter",)
    SCHEMA, CODE = OPTIONAL_INT64, ">i8"


class FloatConverter(FixedConverter):
    JAVA_NAMES = ("org.apache.kafka.connect.converters.FloatConverter",)
    SCHEMA, CODE = OPTIONAL_FLOAT32, ">f4"


class DoubleConverter(FixedConverter):
    JAVA_NAMES = ("org.apache.kafka.connect.converters.DoubleConverter",)
    SCHEMA, CODE = OPTIONAL_FLOAT64, ">f8"
