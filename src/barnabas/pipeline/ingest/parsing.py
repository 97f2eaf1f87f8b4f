"""Parses bytes into typed columns, in Spark, by the format and schema of the source.

In: rows of the raw zone, a source, its columns. Out: the rows with their columns, `_malformed`, `_rescued`
(fields that the schema does not name) and `_op` (of change events). The JVM parses JSON and CSV; our codecs
parse Avro and Protobuf in Python workers. Does not know: keys, rules, where rows go.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING, Any

from pyspark.sql import functions as F
from pyspark.sql.types import LongType, StringType, StructField, StructType, VariantType

from barnabas.pipeline.ingest import change_types
from barnabas.pipeline.lake.columns import DELETE, IGNORE, MALFORMED, OP, RAW_PREFIX, RESCUED, UPSERT
from barnabas.pipeline.spec.model import FileKind, FilesSource, Format, Source

if TYPE_CHECKING:
    import pyarrow as pa
    from pyspark.sql import Column, DataFrame

CORRUPT = "_corrupt"
PARSED = "_parsed"
TIMESTAMP_FORMAT = "yyyy-MM-dd'T'HH:mm:ss[.SSSSSS][.SSS][XXX]"


def raw(name: str) -> Column:
    return F.col(RAW_PREFIX + name)


def prefixed(rows: DataFrame) -> DataFrame:
    return rows.select([F.col(f"`{name}`").alias(RAW_PREFIX + name) for name in rows.columns])


def parsed(rows: DataFrame, source: Source, schema: StructType, *, sees_drift: bool = True) -> DataFrame:
    """`rows` have prefixed raw columns; `schema` has the columns of the table, without the platform's."""
    if source.changes:
        return parsed_changes(rows, schema, source.change_types)
    kind = Format.BINARY if is_binary(source) else effective_format(source)
    if kind in (Format.AVRO, Format.PROTOBUF) or source.schema.registry:
        return parsed_by_codec(rows, source, schema)
    if kind is Format.STRING:
        text = raw("value").cast("string").alias(schema.fields[0].name)
        return with_verdict(rows.select("*", text), raw("value").isNull())
    if kind is Format.BINARY:
        return parsed_binaries(rows, schema)
    text = raw("value").cast("string")
    wide = StructType([*schema.fields, StructField(CORRUPT, StringType())])
    if kind is Format.CSV:
        options = {"columnNameOfCorruptRecord": CORRUPT, **csv_options(source)}
        columns = ", ".join(f"`{each.name}` {each.dataType.simpleString()}" for each in wide.fields)
        found = rows.select("*", F.from_csv(text, columns, options).alias(PARSED))
        broken = F.col(f"{PARSED}.{CORRUPT}").isNotNull() | F.col(PARSED).isNull()
        return flattened(found, schema, broken, F.lit(None).cast("string"))
    options = {"columnNameOfCorruptRecord": CORRUPT}
    found = rows.select("*", F.from_json(text, wide, options).alias(PARSED))
    # Spark parses an array of objects as its first object.
    broken = F.col(PARSED).isNull() | F.col(f"{PARSED}.{CORRUPT}").isNotNull() | F.ltrim(text).startswith("[")
    rescued = rescue(text, schema.names) if sees_drift else F.lit(None).cast("string")
    return flattened(found, schema, broken, rescued)


def effective_format(source: Source) -> Format:
    """The format of raw's values. Readers of tables, Parquet and Avro files give JSON."""
    if isinstance(source, FilesSource):
        kinds = {FileKind.CSV: Format.CSV, FileKind.TEXT: Format.STRING, FileKind.BINARY: Format.BINARY}
        if source.kind is FileKind.CSV and source.settings.get("multiLine", "").lower() == "true":
            return Format.JSON
        return kinds.get(source.kind, Format.JSON)
    return source.format


def is_binary(source: Source) -> bool:
    return isinstance(source, FilesSource) and source.kind is FileKind.BINARY


def csv_options(source: Source) -> dict[str, str]:
    settings = source.settings if isinstance(source, FilesSource) else {}
    return {name: value for name, value in settings.items() if name not in ("header", "multiLine")}


def rescue(text: Column, names: list[str]) -> Column:
    """Fields that the schema does not name, as a JSON object; null where there are none."""
    unknown = F.array_except(F.json_object_keys(text), F.array(*[F.lit(name) for name in names]))
    fields = F.from_json(text, "map<string,string>")
    keep = F.to_json(F.map_filter(fields, lambda key, _: ~key.isin(*names)))
    return F.when(F.size(unknown) > 0, keep)


def flattened(rows: DataFrame, schema: StructType, broken: Column, rescued: Column) -> DataFrame:
    others = [F.col(f"`{name}`") for name in rows.columns if name != PARSED]
    columns = [F.col(f"{PARSED}.`{name}`").alias(name) for name in schema.names]
    return rows.select(
        *others,
        *columns,
        F.coalesce(broken, F.lit(True)).alias(MALFORMED),
        rescued.alias(RESCUED),
        F.lit(UPSERT).alias(OP),
    )


def with_verdict(rows: DataFrame, broken: Column) -> DataFrame:
    return rows.select(
        "*",
        broken.alias(MALFORMED),
        F.lit(None).cast("string").alias(RESCUED),
        F.lit(UPSERT).alias(OP),
    )


def parsed_changes(rows: DataFrame, schema: StructType, types: Mapping[str, str]) -> DataFrame:
    """Parse Debezium's envelope, with or without its schema. A delete gives the row before it. `types` names
    Debezium's types of columns, for events without a schema."""
    converts = change_types.needs_conversion(schema)
    image = change_types.read_schema(schema) if converts else schema
    envelope = StructType(
        [
            StructField("before", image),
            StructField("after", image),
            StructField("op", StringType()),
            StructField("ts_ms", LongType()),
            *([StructField("source", VariantType())] if converts else ()),
        ]
    )
    whole = StructType(
        [
            *envelope.fields,
            StructField("payload", envelope),
            *([StructField("schema", VariantType())] if converts else ()),
            StructField(CORRUPT, StringType()),
        ]
    )
    text = raw("value").cast("string")
    options = {"columnNameOfCorruptRecord": CORRUPT}
    found = rows.select("*", F.from_json(text, whole, options).alias(PARSED))

    def part(name: str) -> Column:
        return F.coalesce(F.col(f"{PARSED}.payload.{name}"), F.col(f"{PARSED}.{name}"))

    op = part("op")
    row = F.when(op == "d", part("before")).otherwise(part("after"))
    columns = [F.col(f"_image.`{name}`").alias(name) for name in schema.names]
    facts = [row.alias("_image"), op.alias("_code")]
    misfits = F.lit(False)
    if converts:
        connector = F.try_variant_get(part("source"), "$.connector", "string")
        facts += [connector.alias("_connector")]
        facts += [change_types.column_facts(F.col(f"{PARSED}.schema")).alias("_types")]
        columns = [change_column(each, types) for each in schema.fields]
        for each in schema.fields:
            if isinstance(each.dataType, change_types.CONVERTED):
                token = F.col(f"_image.`{each.name}`")
                misfits = misfits | (change_types.is_given(token) & F.col(f"`{each.name}`").isNull())
    kind = (
        F.when(raw("value").isNull() | (F.col("_code") == "m"), IGNORE)
        .when(F.col("_code") == "d", DELETE)
        .otherwise(UPSERT)
    )
    broken = F.when(kind == IGNORE, F.lit(False)).otherwise(
        F.col(PARSED).isNull()
        | F.col(f"{PARSED}.{CORRUPT}").isNotNull()
        | F.col("_code").isNull()
        | ~F.col("_code").isin("c", "r", "u", "d")
        | F.col("_image").isNull()
        | F.coalesce(misfits, F.lit(False))
    )
    others = [F.col(f"`{name}`") for name in rows.columns]
    return (
        found.select("*", *facts)
        .select("*", *columns)
        .select(
            *others,
            *(F.col(f"`{name}`") for name in schema.names),
            F.coalesce(broken, F.lit(True)).alias(MALFORMED),
            F.lit(None).cast("string").alias(RESCUED),
            kind.alias(OP),
        )
    )


def change_column(field: StructField, types: Mapping[str, str]) -> Column:
    token = F.col(f"_image.`{field.name}`")
    if not isinstance(field.dataType, change_types.CONVERTED):
        return token.alias(field.name)
    fact, declared = change_types.fact(F.col("_types"), field.name), types.get(field.name, "")
    value = change_types.converted(token, fact, declared, F.col("_connector"), field.dataType)
    return value.alias(field.name)


def parsed_binaries(rows: DataFrame, schema: StructType) -> DataFrame:
    """Columns from the metadata of a binary file; its bytes stay in the raw zone."""
    if (RAW_PREFIX + "metadata") not in rows.columns:
        return with_verdict(
            rows.select("*", raw("value").alias(schema.fields[0].name)), raw("value").isNull()
        )
    found = rows.select("*", F.from_json(raw("metadata"), schema).alias(PARSED))
    return flattened(found, schema, F.col(PARSED).isNull(), F.lit(None).cast("string"))


def parsed_by_codec(rows: DataFrame, source: Source, schema: StructType) -> DataFrame:
    """Parse by the codecs of the data source `barnabas`, in Python workers: Avro, Protobuf, registries."""
    from barnabas.pipeline.ingest.registry_versions import registry_format
    from barnabas.spark.formats.formats import Format as SparkFormat

    declared = source.schema.avro or source.schema.protobuf
    codec = SparkFormat("value", str(source.format), declared, source.schema.message)
    if source.schema.registry:
        codec = registry_format(source)
    result = StructType(
        [*rows.schema.fields, StructField(PARSED, schema), StructField("_error", StringType())]
    )
    found = rows.mapInArrow(decoding(codec, schema), result)
    others = [f"`{name}`" for name in rows.columns]
    broken = F.col(PARSED).isNull() | F.col("_error").isNotNull()
    return flattened(
        found.select(*others, PARSED, "_error"), schema, broken, F.lit(None).cast("string")
    ).drop("_error")


def decoding(declared: Any, schema: StructType) -> Any:
    def decode(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        import pyarrow as pa
        from pyspark.sql.pandas.types import to_arrow_type

        from barnabas.spark.formats.formats import decode_column

        arrow_type = to_arrow_type(schema, timezone="UTC")
        codec = declared.codec()
        for batch in batches:
            at = batch.schema.get_field_index(RAW_PREFIX + "value")
            column, errors = decode_column(codec, batch.column(at), arrow_type)
            arrays = [*batch.columns, column, pa.array(errors or [None] * len(batch), pa.string())]
            yield pa.RecordBatch.from_arrays(arrays, names=[*batch.schema.names, PARSED, "_error"])

    return decode
