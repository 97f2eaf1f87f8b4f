"""Records of a topic as rows of its table, as expressions over columns.

In: a frame of the runtime, the settings of the sink. Out: a frame with the columns of the table, and for
upserts one row for each key, the last one, with what becomes of it. Does not know: tables, commits.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from barnabas.connect.config import Settings
from barnabas.connect.plugins import ConnectError

if TYPE_CHECKING:
    from pyspark.sql import DataFrame
    from pyspark.sql.types import StructType

DELETES = "_barnabas_deletes"
PLACE = "_barnabas_offset"
COORDINATES = ("topic", "partition", "offset", "timestamp")


@dataclass(frozen=True, slots=True)
class TableRows:
    """`frame` has the columns of the table; upserts also DELETES. `keys` are its key columns."""

    frame: DataFrame
    keys: tuple[str, ...]
    columns: tuple[str, ...]


def table_rows(frame: DataFrame, settings: Settings, *, has_values: bool = True) -> TableRows:
    """Rows of the table; of records without values there are only keys, to delete."""
    from pyspark.sql import functions as sql

    keys = key_columns(frame, settings)
    columns = columns_of(frame, settings, has_values=has_values)
    check_names(columns)
    chosen = [column.alias(name) for name, column in columns.items()]
    names = tuple(columns)
    if settings.text("insert.mode") != "upsert":
        return TableRows(frame.filter("value IS NOT NULL").select(*chosen), tuple(keys), names)
    deletes = settings.flag("delete.enabled")
    given = frame if deletes else frame.filter("value IS NOT NULL")
    rows = given.select(*chosen, sql.col("value").isNull().alias(DELETES), sql.col("`offset`").alias(PLACE))
    return TableRows(last_of_each(rows, tuple(keys)), tuple(keys), names)


def columns_of(frame: DataFrame, settings: Settings, *, has_values: bool) -> dict[str, Any]:
    """The columns of a table as expressions over records."""
    from pyspark.sql import functions as sql

    columns = key_columns(frame, settings)
    for name, column in value_columns(frame).items() if has_values else ():
        columns.setdefault(name, column)
    if settings.flag("lake.coordinates"):
        for name in COORDINATES:
            columns[f"kafka_{name}"] = sql.col(f"`{name}`")
    return columns


def key_columns(frame: DataFrame, settings: Settings) -> dict[str, Any]:
    from pyspark.sql import functions as sql

    mode, wanted = settings.text("pk.mode"), settings.entries("pk.fields")
    if mode == "none":
        return {}
    side = "key" if mode == "record_key" else "value"
    kind = frame.schema[side].dataType
    fields = [each.name for each in getattr(kind, "fields", ())]
    if not fields:
        if side == "value" or len(wanted) != 1:
            raise ConnectError(
                f"the record's {side} is a {kind.simpleString()}, not a struct: pk.mode={mode} needs"
                + (" pk.fields with one name for it" if side == "key" else " a value with fields")
            )
        return {wanted[0]: sql.col("key")}
    missing = [each for each in wanted if each not in fields]
    if missing:
        raise ConnectError(
            f"pk.fields names {', '.join(missing)}: the record's {side} has {', '.join(fields)}"
        )
    return {name: sql.col(f"{side}.`{name}`") for name in wanted or fields}


def value_columns(frame: DataFrame) -> dict[str, Any]:
    from pyspark.sql import functions as sql

    kind = frame.schema["value"].dataType
    fields = getattr(kind, "fields", None)
    if not fields:
        return {"value": sql.col("value")}
    return {each.name: sql.col(f"value.`{each.name}`") for each in fields}


def check_names(names: Iterable[str]) -> None:
    text = names_by_case(names)
    if text:
        raise ConnectError(text)


def names_by_case(names: Iterable[str]) -> str:
    """An error about names that differ by case only, which tables cannot tell apart; empty if none do."""
    seen: dict[str, str] = {}
    for name in names:
        other = seen.setdefault(name.lower(), name)
        if other != name:
            return (
                f"fields {other!r} and {name!r} differ by case only, which tables cannot hold: rename one"
                " with the transform ReplaceField"
            )
    return ""


def last_of_each(rows: DataFrame, keys: tuple[str, ...]) -> DataFrame:
    """The last row of each key. Records of one key are in one partition, so offsets order them."""
    from pyspark.sql import Window
    from pyspark.sql import functions as sql

    order = Window.partitionBy(*[f"`{key}`" for key in keys]).orderBy(sql.col(PLACE).desc())
    numbered = rows.withColumn("_barnabas_row", sql.row_number().over(order))
    return numbered.filter("_barnabas_row = 1").drop("_barnabas_row", PLACE)


def known_columns(rows: TableRows, there: StructType) -> TableRows:
    """Rows without the columns that a table lacks."""
    known = {each.name.lower() for each in there.fields}
    columns = tuple(each for each in rows.columns if each.lower() in known)
    gone = [each for each in rows.columns if each not in columns]
    return TableRows(rows.frame.drop(*gone), rows.keys, columns)


def nullable(schema: StructType, keys: tuple[str, ...]) -> StructType:
    """The schema of a new table: everything may be null, so that later records may lack it."""
    from pyspark.sql.types import StructField, StructType

    return StructType([StructField(each.name, each.dataType, True) for each in schema.fields])
