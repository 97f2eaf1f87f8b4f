"""Spark SQL over streams and tables of the metastore, beside tables of a lake and views.

In: a text of Spark SQL, a metastore. Out: rows. Each stream or table that the text names becomes a temporary
view of its topic, read from its start to its present end: a stream's rows in order of offsets, a table's last
row of each key. Names in the text are free of case, as Spark has them. Does not know: persistent queries.
"""

from __future__ import annotations

import re
import struct
from collections.abc import Callable, Iterator, Sequence
from typing import TYPE_CHECKING, Any

from barnabas.sql.errors import SqlError
from barnabas.sql.execution.port import PullResult
from barnabas.sql.formats.contract import BadBytes
from barnabas.sql.formats.serdes import ColumnsSerde
from barnabas.sql.metastore.metastore import DataSource, Metastore
from barnabas.sql.metastore.schemas import ROWTIME, WINDOWEND, WINDOWSTART, Column, Schema
from barnabas.sql.running.pulls import windowed
from barnabas.sql.running.settings import EngineSettings
from barnabas.sql.types.sql_types import (
    BIGINT,
    BOOLEAN,
    BYTES,
    DATE,
    DOUBLE,
    INTEGER,
    STRING,
    TIME,
    TIMESTAMP,
    Array,
    Decimal,
    Map,
    SqlType,
    Struct,
)

if TYPE_CHECKING:
    import pyarrow as pa
    from pyspark.sql import DataFrame, SparkSession

ROWS_MAX = 100_000  # of one answer
PRECISION_MAX = 38
TO_SPARK: dict[SqlType, str] = {
    BOOLEAN: "boolean",
    INTEGER: "int",
    BIGINT: "bigint",
    DOUBLE: "double",
    STRING: "string",
    BYTES: "binary",
    DATE: "date",
    TIME: "string",
    TIMESTAMP: "timestamp_ntz",
}
OF_SPARK: dict[str, SqlType] = {
    "boolean": BOOLEAN,
    "tinyint": INTEGER,
    "smallint": INTEGER,
    "int": INTEGER,
    "bigint": BIGINT,
    "float": DOUBLE,
    "double": DOUBLE,
    "string": STRING,
    "binary": BYTES,
    "date": DATE,
    "timestamp_ntz": TIMESTAMP,
}


def spark_rows(
    spark: SparkSession, settings: EngineSettings, text: str, metastore: Metastore, limit: int | None
) -> PullResult:
    """All rows of a query, or the first of them. SqlError with Spark's words for what is wrong."""
    from pyspark.errors import PySparkException

    try:
        for source in named_in(text, metastore):
            frame_of(spark, settings, source).createOrReplaceTempView(quoted_name(source.name))
        found = plain_types(spark.sql(text))
        wanted = ROWS_MAX if limit is None else limit
        rows = found.limit(wanted + 1).collect()
        if limit is None and len(rows) > ROWS_MAX:
            raise SqlError(
                f"The query gives more than {ROWS_MAX} rows: add a LIMIT, or write them to a table"
            )
        schema = Schema(tuple(Column(each.name, type_of(each.dataType)) for each in found.schema.fields))
        return PullResult(schema, [plain(row) for row in rows[:wanted]])
    except PySparkException as error:
        raise SqlError(str(error).split("\nJVM stacktrace", 1)[0].strip()) from error


def named_in(text: str, metastore: Metastore) -> list[DataSource]:
    """Sources whose names stand in the text as words, in any case."""
    words = {word.upper() for word in re.findall(r"\w+", text)}
    return [source for name, source in metastore.sources.items() if name.upper() in words]


def quoted_name(name: str) -> str:
    return name if re.fullmatch(r"\w+", name) else f"`{name}`"


# ------------------------------------------------------------------------------------------ topics as frames


def frame_of(spark: SparkSession, settings: EngineSettings, source: DataSource) -> DataFrame:
    """The rows of a source's topic. Records that cannot be read are left out, as in persistent queries."""
    from pyspark.sql import functions as F

    client = settings.client
    options = {
        "kafka.bootstrap.servers": client.bootstrap_servers,
        "kafka.isolation.level": "read_committed",
        "subscribe": source.topic,
        **{f"kafka.{name}": value for name, value in client.security},
    }
    records = spark.read.format("barnabas").options(**options).load()
    columns = ("key", "value", F.expr("unix_millis(timestamp) as time"))
    if source.is_table:
        newest = F.max_by(F.struct("value", "timestamp"), F.col("offset")).alias("newest")
        records = records.where("key is not null").groupBy("key").agg(newest)
        records = records.select("key", "newest.value", "newest.timestamp").where("value is not null")
    else:
        records = records.where("value is not null")
    return records.select(*columns).mapInArrow(reader_of(settings, source), ddl_of(source))


def columns_of(source: DataSource) -> list[Column]:
    """Columns of key and value, ROWTIME, and the bounds of windowed keys. Headers are left out."""
    bounds = [Column(WINDOWSTART, BIGINT), Column(WINDOWEND, BIGINT)] if source.window else []
    return [*source.schema.key, *source.schema.value, *bounds, Column(ROWTIME, BIGINT)]


def ddl_of(source: DataSource) -> str:
    return ", ".join(f"`{each.name}` {spark_type(each.kind)}" for each in columns_of(source))


def spark_type(kind: SqlType) -> str:
    if isinstance(kind, Decimal):
        return f"decimal({min(kind.precision, PRECISION_MAX)},{min(kind.scale, PRECISION_MAX)})"
    if isinstance(kind, Array):
        return f"array<{spark_type(kind.item)}>"
    if isinstance(kind, Map):
        return f"map<{spark_type(kind.key)},{spark_type(kind.value)}>"
    if isinstance(kind, Struct):
        inner = ",".join(f"`{name}`:{spark_type(each)}" for name, each in kind.fields)
        return f"struct<{inner}>"
    return TO_SPARK[kind]


def reader_of(
    settings: EngineSettings, source: DataSource
) -> Callable[[Iterator[pa.RecordBatch]], Iterator[pa.RecordBatch]]:
    """Reads records on executors: batches of keys, values and times become batches of columns."""
    registry, columns = settings.registry, columns_of(source)

    def read(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        import pyarrow as pa

        keys = ColumnsSerde(source.key_format, source.schema.key, True, registry)
        key_serde: Any = keys if source.window is None else windowed(keys, source.window)
        read_key = key_serde.deserializer(source.topic, True)
        values = ColumnsSerde(source.value_format, source.schema.value, False, registry)
        read_value = values.deserializer(source.topic, False)
        names = [each.name for each in source.schema.key]
        schema = pa.schema([(each.name, arrow_type(each.kind)) for each in columns])
        for batch in batches:
            found = []
            for key, value, time in zip(
                *(batch.column(index).to_pylist() for index in range(3)), strict=True
            ):
                row = row_of(names, read_key, read_value, key, value)
                if row is not None:
                    found.append([plain_time(row.get(each.name, time)) for each in columns])
            arrays = [
                pa.array([row[index] for row in found], schema.field(index).type)
                for index in range(len(columns))
            ]
            yield pa.RecordBatch.from_arrays(arrays, schema=schema)

    return read


def row_of(
    names: Sequence[str], read_key: Any, read_value: Any, key: bytes | None, value: bytes
) -> dict[str, Any] | None:
    from barnabas.plans.windows import Windowed

    try:
        found = dict(read_value(value) or {})
        parts = None if key is None else read_key(key)
    except (BadBytes, ValueError, ArithmeticError, LookupError, struct.error):
        return None
    if isinstance(parts, Windowed):
        found |= {WINDOWSTART: parts.start, WINDOWEND: parts.end}
        parts = parts.key
    return found | dict(zip(names, parts or [None] * len(names), strict=True))


def plain_time(value: Any) -> Any:
    import datetime as dt

    return value.isoformat() if isinstance(value, dt.time) else value


def arrow_type(kind: SqlType) -> pa.DataType:
    import pyarrow as pa

    known = {
        BOOLEAN: pa.bool_(), INTEGER: pa.int32(), BIGINT: pa.int64(), DOUBLE: pa.float64(),
        STRING: pa.string(), BYTES: pa.binary(), DATE: pa.date32(), TIME: pa.string(),
        TIMESTAMP: pa.timestamp("us"),
    }  # fmt: skip
    if isinstance(kind, Decimal):
        return pa.decimal128(min(kind.precision, PRECISION_MAX), min(kind.scale, PRECISION_MAX))
    if isinstance(kind, Array):
        return pa.list_(arrow_type(kind.item))
    if isinstance(kind, Map):
        return pa.map_(arrow_type(kind.key), arrow_type(kind.value))
    if isinstance(kind, Struct):
        return pa.struct([(name, arrow_type(each)) for name, each in kind.fields])
    return known[kind]


# ------------------------------------------------------------------------------------------ Spark's rows


def plain_types(frame: DataFrame) -> DataFrame:
    """Columns of types that SQL has: moments are UTC, what has no type is text."""
    from pyspark.sql import functions as F
    from pyspark.sql.types import TimestampType

    chosen = []
    for field in frame.schema.fields:
        column = F.col(quoted_column(field.name))
        if isinstance(field.dataType, TimestampType):
            column = F.expr(
                f"to_timestamp_ntz(to_utc_timestamp({quoted_column(field.name)}, current_timezone()))"
            )
        elif not has_type(field.dataType):
            column = column.cast("string")
        chosen.append(column.alias(field.name))
    return frame.select(*chosen)


def quoted_column(name: str) -> str:
    return "`" + name.replace("`", "``") + "`"


def has_type(spark_kind: Any) -> bool:
    try:
        type_of(spark_kind)
    except KeyError:
        return False
    return True


def type_of(spark_kind: Any) -> SqlType:
    from pyspark.sql.types import ArrayType, DecimalType, MapType, StructType

    if isinstance(spark_kind, DecimalType):
        return Decimal(spark_kind.precision, spark_kind.scale)
    if isinstance(spark_kind, ArrayType):
        return Array(type_of(spark_kind.elementType))
    if isinstance(spark_kind, MapType):
        return Map(type_of(spark_kind.keyType), type_of(spark_kind.valueType))
    if isinstance(spark_kind, StructType):
        return Struct(tuple((each.name, type_of(each.dataType)) for each in spark_kind.fields))
    return OF_SPARK[spark_kind.simpleString()]


def plain(value: Any) -> Any:
    """Rows of Spark as lists, structs in them as dicts."""
    from pyspark.sql import Row

    if isinstance(value, Row):
        return [inner(each) for each in value]
    return inner(value)


def inner(value: Any) -> Any:
    from pyspark.sql import Row

    if isinstance(value, Row):
        return {name: inner(each) for name, each in value.asDict().items()}
    if isinstance(value, list):
        return [inner(each) for each in value]
    if isinstance(value, dict):
        return {inner(key): inner(each) for key, each in value.items()}
    return bytes(value) if isinstance(value, bytearray) else value
