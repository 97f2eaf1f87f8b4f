"""Columns of a source: declared, given by its format, or inferred from samples.

In: a source, sample values. Out: Spark's types. Does not know: tables, drift.
"""

from __future__ import annotations

import csv
import io
import json
import re
from collections.abc import Sequence
from datetime import datetime
from typing import TYPE_CHECKING, Any

from barnabas.engine.errors import NeedsDecision
from barnabas.pipeline.ingest.parsing import csv_options, effective_format, is_binary
from barnabas.pipeline.spec.model import FileKind, FilesSource, Format, Source

if TYPE_CHECKING:
    from pyspark.sql.types import StructType

SAMPLES = 1000
BINARIES_DDL = (
    "path STRING, name STRING, extension STRING, media_type STRING, size_bytes BIGINT, modified_at TIMESTAMP,"
    " sha256 STRING, width INT, height INT"
)
TIME_LIKE = re.compile(r"\d{4}-\d\d-\d\d[T ]\d\d:\d\d")


def declared(source: Source) -> StructType | None:
    """The declared schema, or that of the format; None where it must be inferred."""
    ddl = declared_ddl(source)
    return None if ddl is None else from_ddl(ddl)


def declared_ddl(source: Source) -> str | None:
    if source.schema.ddl:
        return source.schema.ddl
    if source.schema.avro or source.schema.protobuf:
        from barnabas.spark.formats.formats import Format as SparkFormat

        text = source.schema.avro or source.schema.protobuf
        name = "avro" if source.schema.avro else "protobuf"
        ddl = SparkFormat("value", name, text, source.schema.message).codec().ddl
        return columns_ddl(ddl)
    if source.schema.registry:
        from barnabas.pipeline.ingest.registry_versions import registry_format

        return columns_ddl(registry_format(source).codec().ddl)
    if is_binary(source):
        return BINARIES_DDL
    kind = effective_format(source)
    if kind is Format.STRING:
        return "value STRING"
    return "value BINARY" if kind is Format.BINARY else None


def columns_ddl(ddl: str) -> str:
    """The columns of a type: the fields of a struct, else one column."""
    return ddl.strip()[len("struct<") : -1] if ddl.lower().startswith("struct<") else f"value {ddl}"


def from_ddl(ddl: str) -> StructType:
    from pyspark.sql.types import StructType

    found = StructType.fromDDL(ddl)
    assert isinstance(found, StructType)
    return found


def inferred_ddl(source: Source, values: Sequence[bytes | None]) -> str:
    """Columns that fit all samples. NeedsDecision if no sample is usable."""
    if effective_format(source) is Format.CSV:
        return csv_ddl(source, values)
    kinds: dict[str, Any] = {}
    for value in values:
        try:
            found = json.loads(value or b"")
        except ValueError:
            continue
        if isinstance(found, dict) and source.changes:
            found = found.get("payload") or found
            found = found.get("after") or found.get("before")
        if isinstance(found, dict):
            for name, each in found.items():
                kinds[name] = merged(kinds.get(name), kind_of(each))
    if not kinds:
        raise NeedsDecision(
            f"source {source.name}: none of the {len(values)} samples is a JSON object, so no schema"
            " can be inferred; declare it as DDL"
        )
    return ", ".join(f"`{name}` {type_text(kind)}" for name, kind in kinds.items())


def csv_ddl(source: Source, values: Sequence[bytes | None]) -> str:
    settings = source.settings if isinstance(source, FilesSource) else {}
    separator = csv_options(source).get("sep", ",")
    rows = [
        next(csv.reader(io.StringIO((value or b"").decode(errors="replace")), delimiter=separator), [])
        for value in values
    ]
    rows = [row for row in rows if row]
    if not rows:
        raise NeedsDecision(
            f"source {source.name}: there are no samples to infer a schema from; declare it as DDL"
        )
    header = settings.get("header", "")
    names = header.split(separator) if header and header.lower() not in ("true", "false") else []
    width = max(len(row) for row in rows)
    names = names or [f"c{index}" for index in range(width)]
    kinds: list[Any] = [None] * len(names)
    for row in rows:
        for index, cell in enumerate(row[: len(names)]):
            kinds[index] = merged(kinds[index], text_kind(cell))
    return ", ".join(f"`{name}` {type_text(kind)}" for name, kind in zip(names, kinds, strict=True))


def kind_of(value: Any) -> Any:
    """A type: a word, ["array", type] or {"field": type}; None for null."""
    if value is None:
        return None
    if isinstance(value, bool):
        return "BOOLEAN"
    if isinstance(value, int):
        return "BIGINT" if -(2**63) <= value < 2**63 else "DECIMAL(38,0)"
    if isinstance(value, float):
        return "DOUBLE"
    if isinstance(value, list):
        inner: Any = None
        for each in value:
            inner = merged(inner, kind_of(each))
        return ["array", inner]
    if isinstance(value, dict):
        return {name: kind_of(each) for name, each in value.items()}
    return "TIMESTAMP" if is_time(str(value)) else "STRING"


def text_kind(text: str) -> Any:
    if text == "":
        return None
    if text.lower() in ("true", "false"):
        return "BOOLEAN"
    for make, name in ((int, "BIGINT"), (float, "DOUBLE")):
        try:
            make(text)
        except ValueError:
            continue
        return name
    return "TIMESTAMP" if is_time(text) else "STRING"


def is_time(text: str) -> bool:
    if not TIME_LIKE.match(text):
        return False
    try:
        datetime.fromisoformat(text)
    except ValueError:
        return False
    return True


def merged(one: Any, other: Any) -> Any:
    """A type that holds the values of both."""
    if one is None or one == other:
        return other if one is None else one
    if other is None:
        return one
    if isinstance(one, dict) and isinstance(other, dict):
        return {name: merged(one.get(name), other.get(name)) for name in {**one, **other}}
    if isinstance(one, list) and isinstance(other, list):
        return ["array", merged(one[1], other[1])]
    if {str(one), str(other)} <= {"BIGINT", "DOUBLE", "DECIMAL(38,0)"}:
        return "DOUBLE"
    return "STRING"


def type_text(kind: Any) -> str:
    if kind is None:
        return "STRING"
    if isinstance(kind, list):
        return f"ARRAY<{type_text(kind[1])}>"
    if isinstance(kind, dict):
        return f"STRUCT<{', '.join(f'`{name}`: {type_text(each)}' for name, each in kind.items())}>"
    return str(kind)


def samples_wanted(source: Source) -> int:
    return source.schema.infer_samples or SAMPLES


def form_of(source: Source) -> str:
    """The format that a malformed value does not have, for its reason."""
    if isinstance(source, FilesSource) and source.kind in (FileKind.PARQUET, FileKind.AVRO):
        return "json"
    return str(effective_format(source))
