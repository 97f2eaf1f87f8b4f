"""Types of records and of tables: what a table lacks, and rows in the types of the table.

In: the schema of a table, that of rows. Out: names of new columns and fields, the table's next schema,
expressions that widen numbers and add null fields, and fail where a value was not checked before. Names are
compared without case, as tables do. Does not know: tables, commits.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from barnabas.connect.connectors.lake.lake_rows import TableRows

if TYPE_CHECKING:
    from pyspark.sql.types import StructType

WIDER = {
    "tinyint": ("smallint", "int", "bigint", "float", "double"),
    "smallint": ("int", "bigint", "float", "double"),
    "int": ("bigint", "double"),
    "float": ("double",),
    "date": ("timestamp",),
}
INTEGERS = {"tinyint", "smallint", "int", "bigint"}


def missing_in(there: Any, wanted: Any, path: str = "") -> list[str]:
    """Columns, and fields of structs, that a table lacks: `note`, `address.zip`."""
    kind, other = type(wanted).__name__, type(there).__name__
    if kind != other:
        return []
    if kind == "ArrayType":
        return missing_in(there.elementType, wanted.elementType, f"{path}[]")
    if kind == "MapType":
        return missing_in(there.valueType, wanted.valueType, f"{path}{{}}")
    if kind != "StructType":
        return []
    known = {each.name.lower(): each for each in there.fields}
    found: list[str] = []
    for each in wanted.fields:
        name = f"{path}.{each.name}" if path else each.name
        old = known.get(each.name.lower())
        found += [name] if old is None else missing_in(old.dataType, each.dataType, name)
    return found


def with_missing(there: Any, wanted: Any) -> Any:
    """The type of the table with all that it lacks, at the end and nullable."""
    from pyspark.sql.types import ArrayType, MapType, StructField, StructType

    if isinstance(there, ArrayType) and isinstance(wanted, ArrayType):
        return ArrayType(with_missing(there.elementType, wanted.elementType), there.containsNull)
    if isinstance(there, MapType) and isinstance(wanted, MapType):
        value = with_missing(there.valueType, wanted.valueType)
        return MapType(there.keyType, value, there.valueContainsNull)
    if not (isinstance(there, StructType) and isinstance(wanted, StructType)):
        return there
    mine = {each.name.lower(): each for each in wanted.fields}
    fields = []
    for each in there.fields:
        other = mine.pop(each.name.lower(), None)
        kind = each.dataType if other is None else with_missing(each.dataType, other.dataType)
        fields.append(StructField(each.name, kind, each.nullable, each.metadata))
    fields += [StructField(each.name, each.dataType, True) for each in mine.values()]
    return StructType(fields)


def fitted_to(rows: TableRows, there: StructType, path: str) -> TableRows:
    """Rows in the types of the table."""
    from pyspark.sql import functions as sql

    known = {each.name.lower(): each.dataType for each in there.fields}
    frame = rows.frame
    for name in rows.columns:
        old, mine = known[name.lower()], frame.schema[name].dataType
        if old != mine:
            frame = frame.withColumn(name, fitted(sql.col(f"`{name}`"), mine, old, f"{path}: {name}"))
    return TableRows(frame, rows.keys, rows.columns)


def fitted(column: Any, mine: Any, there: Any, path: str) -> Any:
    """A column in the type of the table."""
    from pyspark.sql import functions as sql
    from pyspark.sql.types import ArrayType, DecimalType, MapType, StructType

    if isinstance(there, StructType) and isinstance(mine, StructType):
        own = {each.name.lower(): each for each in mine.fields}
        parts = []
        for each in there.fields:
            found = own.get(each.name.lower())
            part = (
                sql.lit(None).cast(each.dataType)
                if found is None
                else fitted(
                    column.getField(found.name), found.dataType, each.dataType, f"{path}.{found.name}"
                )
            )
            parts.append(part.alias(each.name))
        return sql.when(column.isNotNull(), sql.struct(*parts))
    if isinstance(there, ArrayType) and isinstance(mine, ArrayType):
        return sql.transform(
            column, lambda item: fitted(item, mine.elementType, there.elementType, f"{path}[]")
        )
    if isinstance(there, MapType) and isinstance(mine, MapType) and there.keyType == mine.keyType:
        return sql.transform_values(
            column, lambda _, item: fitted(item, mine.valueType, there.valueType, f"{path}{{}}")
        )
    old, new = there.simpleString(), mine.simpleString()
    is_decimal = isinstance(there, DecimalType) and isinstance(mine, DecimalType)
    if old == new or old in WIDER.get(new, ()) or {old, new} <= INTEGERS or is_decimal:
        return column if old == new else column.cast(there)
    # Records with such values were refused before, so that only nulls are left.
    text = sql.lit(f"{path} is {old} in the table, and records bring {new}")
    return sql.when(column.isNotNull(), sql.raise_error(text).cast(there)).otherwise(
        sql.lit(None).cast(there)
    )
