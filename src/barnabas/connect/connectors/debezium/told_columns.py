"""Parts of schemas that tell of columns: types of the database, names that Avro can carry. Pure."""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass, replace

from barnabas.connect.config import Settings
from barnabas.connect.connectors.debezium.masks import Apply, Mask, masked, masks_of
from barnabas.connect.data import Schema

SOURCE = "__debezium.source.column."


@dataclass(frozen=True, slots=True)
class TypeOfColumn:
    """A type in capitals, with length and scale where the database has them."""

    name: str
    length: int | None = None
    scale: int | None = None

    @property
    def parameters(self) -> dict[str, str]:
        found = {SOURCE + "type": self.name}
        if self.length is not None:
            found[SOURCE + "length"] = str(self.length)
        if self.scale is not None:
            found[SOURCE + "scale"] = str(self.scale)
        return found


class Telling:
    """The settings of one connector that change schemas and values of columns."""

    def __init__(self, settings: Settings) -> None:
        self._masks: tuple[Mask, ...] = masks_of(settings.raw)
        self._columns = settings.entries("column.propagate.source.type")
        self._types = settings.entries("datatype.propagate.source.type")
        self.schema_name = NAMES[settings.text("schema.name.adjustment.mode").lower()][0]
        self.field_name = NAMES[settings.text("field.name.adjustment.mode").lower()][1]

    def value(
        self, table: str, column: str, schema: Schema, kind: TypeOfColumn
    ) -> tuple[Schema, Apply | None]:
        """The schema of a column in the row, and what is done with its values."""
        if (hidden := masked(f"{table}.{column}", schema, self._masks, kind.length or 0)) is not None:
            return hidden
        if not self._tells(table, column, kind):
            return schema, None
        parameters = {**schema.parameters, **kind.parameters, SOURCE + "name": column}
        return replace(schema, parameters=parameters), None

    def _tells(self, table: str, column: str, kind: TypeOfColumn) -> bool:
        names = ((self._columns, f"{table}.{column}"), (self._types, f"{table}.{kind.name}"))
        return any(re.fullmatch(each, name, re.IGNORECASE) for patterns, name in names for each in patterns)


def same(name: str) -> str:
    return name


def with_underscores(name: str) -> str:
    """A full name that Avro takes; a digit in front stays behind an underscore."""
    found = re.sub(r"[^A-Za-z0-9_.]", "_", name)
    return f"_{found}" if found[:1].isdigit() else found


def escaped(name: str) -> str:
    """As `with_underscores`, but other characters are told by their numbers, so that names stay apart."""
    found = re.sub(r"[^A-Za-z0-9.]", lambda match: "".join(map(escape, units(match[0]))), name)
    return escape(ord(found[0])) + found[1:] if found[:1].isdigit() else found


def escape(unit: int) -> str:
    text = f"{unit:x}"
    return f"_u{'00' if len(text) <= 2 else ''}{text}"


def units(text: str) -> list[int]:
    data = text.encode("utf-16-be", "surrogatepass")
    return [int.from_bytes(data[place : place + 2], "big") for place in range(0, len(data), 2)]


Rename = Callable[[str], str]
NAMES: dict[str, tuple[Rename, Rename]] = {  # of schemas, of fields
    "none": (same, same),
    "avro": (with_underscores, lambda name: with_underscores(name).replace(".", "_")),
    "avro_unicode": (escaped, escaped),
}
