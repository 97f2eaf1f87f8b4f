"""Schemas that are derived from dataclasses and pydantic models, judged by fastavro and jsonschema."""

from __future__ import annotations

import datetime
import enum
import io
import json
import sys
import types
import uuid
from dataclasses import dataclass, field
from decimal import Decimal
from typing import Annotated, Any, Literal

import fastavro
import jsonschema
import pydantic
import pytest

from barnabas.schemas.codegen.generating import generate
from barnabas.schemas.deriving import (
    UnknownType,
    avro_schema_of,
    json_schema_of,
    json_value,
    object_of,
    plain,
)


class Colour(enum.StrEnum):
    RED = "red"
    DARK_BLUE = "dark_blue"


class Size(enum.IntEnum):
    SMALL = 1


@dataclass(frozen=True, slots=True)
class Line:
    item: str
    count: int = 1


@dataclass(frozen=True)
class Order:
    user: str
    amount: float
    is_paid: bool
    picture: bytes
    at: datetime.datetime
    day: datetime.date
    time: datetime.time
    number: uuid.UUID
    price: Annotated[Decimal, pydantic.Field(max_digits=10, decimal_places=2)]
    colour: Colour
    size: Size
    kind: Literal["a", "b"]
    first: Line
    note: str | None = None
    limit: int | None = 5
    lines: list[Line] = field(default_factory=list)
    names: dict[str, int] = field(default_factory=dict)
    tags: tuple[str, ...] = ("new",)
    paint: Colour = Colour.DARK_BLUE


class Model(pydantic.BaseModel):
    user: str
    line: Line
    total: int = pydantic.Field(default=0, alias="sum")
    others: list[Model] = []


ORDER = Order(
    "ann",
    1.5,
    True,
    b"\xff\0",
    datetime.datetime(2026, 1, 2, 3, 4, 5, 678, datetime.UTC),
    datetime.date(2026, 1, 2),
    datetime.time(3, 4, 5, 678),
    uuid.UUID(int=7),
    Decimal("12.50"),
    Colour.RED,
    Size.SMALL,
    "b",
    Line("pear", 2),
    lines=[Line("apple")],
    names={"x": 1},
)
MODEL = Model.model_validate(
    {"user": "bob", "line": Line("fig"), "sum": 3, "others": [{"user": "c", "line": Line("d")}]}
)


def through_avro(kind: Any, value: Any) -> Any:
    schema = fastavro.parse_schema(json.loads(avro_schema_of(kind)))
    out = io.BytesIO()
    fastavro.schemaless_writer(out, schema, plain(value))
    return object_of(kind, fastavro.schemaless_reader(io.BytesIO(out.getvalue()), schema, None))


def test_values_of_all_types_go_through_avro_and_come_back_as_objects() -> None:
    assert through_avro(Order, ORDER) == ORDER
    assert through_avro(Model, MODEL) == MODEL


def test_values_of_all_types_go_through_json_and_come_back_as_objects() -> None:
    order = Order(**{**{name: getattr(ORDER, name) for name in ORDER.__dict__}, "picture": b"text"})
    for kind, value in ((Order, order), (Model, MODEL)):
        document = json.loads(json.dumps(json_value(kind, value)))
        schema = json.loads(json_schema_of(kind))
        jsonschema.validate(document, schema)
        assert object_of(kind, document) == value
        with pytest.raises(jsonschema.ValidationError):
            jsonschema.validate({"user": 5}, schema)


def test_the_avro_schema_has_names_types_and_defaults() -> None:
    fields = {each["name"]: each for each in json.loads(avro_schema_of(Order))["fields"]}
    assert fields["user"] == {"name": "user", "type": "string"}
    assert fields["note"] == {"name": "note", "type": ["null", "string"], "default": None}
    assert fields["limit"] == {"name": "limit", "type": ["long", "null"], "default": 5}
    assert fields["colour"]["type"] == {"type": "enum", "name": "Colour", "symbols": ["red", "dark_blue"]}
    assert fields["paint"] == {"name": "paint", "type": "Colour", "default": "dark_blue"}
    assert fields["size"]["type"] == "long"
    assert fields["lines"] == {"name": "lines", "type": {"type": "array", "items": "Line"}, "default": []}
    assert fields["tags"]["default"] == ["new"]
    assert fields["price"]["type"] == {"type": "bytes", "logicalType": "decimal", "precision": 10, "scale": 2}
    assert json.loads(avro_schema_of(Line, "shop"))["namespace"] == "shop"


def test_a_reader_with_a_new_field_reads_what_older_classes_wrote() -> None:
    @dataclass
    class Old:
        item: str

    Old.__name__ = "Line"
    out = io.BytesIO()
    written = fastavro.parse_schema(json.loads(avro_schema_of(Old)))
    fastavro.schemaless_writer(out, written, plain(Old("pear")))
    read = fastavro.parse_schema(json.loads(avro_schema_of(Line)))
    assert object_of(Line, fastavro.schemaless_reader(io.BytesIO(out.getvalue()), written, read)) == Line(
        "pear"
    )


@dataclass
class Basket:
    first: Line
    at: datetime.datetime
    note: str | None = None
    lines: list[Line] = field(default_factory=list)
    paint: Colour = Colour.RED


def test_classes_that_are_generated_from_a_derived_schema_derive_it_again(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    text = avro_schema_of(Basket)
    module = types.ModuleType("made_of_basket")
    monkeypatch.setitem(sys.modules, "made_of_basket", module)
    exec(compile(generate("AVRO", text), "made_of_basket", "exec"), module.__dict__)
    assert json.loads(avro_schema_of(module.Basket)) == json.loads(text)


@dataclass
class Unknown:
    anything: Any


@dataclass
class Cheap:
    price: Decimal


@dataclass
class Numbered:
    names: dict[int, str]


@pytest.mark.parametrize(
    ("kind", "message"),
    [
        (Unknown, r"Unknown\.anything: typing\.Any has no Avro type"),
        (Cheap, r"Cheap\.price: .*Decimal"),
        (Numbered, r"Numbered\.names: keys of an Avro map are texts"),
        (int, "neither a dataclass nor a pydantic model"),
    ],
)
def test_annotations_without_an_avro_type_are_refused_with_their_place(kind: type, message: str) -> None:
    with pytest.raises(UnknownType, match=message):
        avro_schema_of(kind)
