"""Names of unions and enums that Confluent's converters share with `generalized.sum.type.support`.

In: schemas of unions, whose one set field is the chosen branch. Does not know: Avro, JSON Schema, Protobuf.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace

from barnabas.connect.data import Schema
from barnabas.connect.data.schema import Field

GENERAL_UNION = "org.apache.kafka.connect.data.Union"
GENERAL_ENUM = "org.apache.kafka.connect.data.Enum"
PREFIX = "connect_union_"


def generalized(union: Schema, number: int) -> Schema:
    """A union with the shared names: its own by its number in the schema, those of its fields by place."""
    name = f"{PREFIX}{number}"
    fields = tuple(Field(f"{PREFIX}field_{n}", one.schema) for n, one in enumerate(union.fields))
    return replace(union, name=name, fields=fields, parameters={**union.parameters, GENERAL_UNION: name})


def enum_parameters(name: str, symbols: Iterable[str]) -> dict[str, str]:
    return {
        GENERAL_ENUM: name,
        **{f"{GENERAL_ENUM}.{symbol}": str(number) for number, symbol in enumerate(symbols)},
    }


def symbols_of(schema: Schema) -> list[str]:
    """The symbols of an enum with shared names, in their order."""
    start = f"{GENERAL_ENUM}."
    found = {name: int(number) for name, number in schema.parameters.items() if name.startswith(start)}
    return [name.removeprefix(start) for name in sorted(found, key=lambda name: found[name])]
