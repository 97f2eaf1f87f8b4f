"""Values with schemas of a registry at the edges and in the stores of a topology."""

from __future__ import annotations

import datetime
import json
import pickle
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import pydantic
import pytest
from google.protobuf.wrappers_pb2 import Int64Value
from tests.schemas.served import instant_registry

from barnabas.plans.interpreter.records import TaskError
from barnabas.plans.interpreter.task import Handlers
from barnabas.plans.serdes import RegistryAway
from barnabas.schemas.client.faces import SchemaRegistryClient
from barnabas.streams import StreamsBuilder, TestDriver
from barnabas.streams.serdes.registered import avro, close_clients, json_schema, protobuf

FIELDS = '[{"name":"user","type":"string"},{"name":"amount","type":"long"}]'
ORDER = f'{{"type":"record","name":"Order","fields":{FIELDS}}}'
TOTAL = '{"type":"object","properties":{"total":{"type":"integer"}},"required":["total"]}'


@dataclass
class Order:
    user: str
    amount: int


class Total(pydantic.BaseModel):
    total: int


@pytest.fixture(scope="module")
def registry() -> Iterator[str]:
    with instant_registry() as url:
        yield url
        close_clients()


def totals(url: str, name: str) -> StreamsBuilder:
    builder = StreamsBuilder(name)
    orders = builder.stream("orders", value=avro(url, ORDER, of=Order))
    grouped = orders.group_by(lambda key, order: order.user, key=str)
    table = grouped.aggregate(
        lambda: Total(total=0),
        lambda key, order, sum_: Total(total=sum_.total + order.amount),
        value=json_schema(url, TOTAL, of=Total),
        store="totals",
    )
    table.to_stream().to("totals")
    return builder


def test_avro_in_and_json_schema_out_with_classes(registry: str) -> None:
    plan = totals(registry, "classes").build()
    with TestDriver(plan) as driver:
        given = driver.input("orders", value=avro(registry, ORDER, of=Order))
        found = driver.output("totals", value=json_schema(registry, TOTAL))
        for amount in (3, 4):
            given.pipe("k", Order("ann", amount), 1)
        assert found.pairs() == [("ann", {"total": 3}), ("ann", {"total": 7})]
        assert driver.store("totals").get("ann") == Total(total=7)
    with SchemaRegistryClient(registry) as client:
        subjects = set(client.get_subjects())
    changelog, repartition = "classes-totals-changelog-value", "classes-totals-repartition-value"
    assert {"orders-value", "totals-value", changelog, repartition} <= subjects


def test_the_latest_version_is_used_without_a_schema(registry: str) -> None:
    builder = StreamsBuilder("latest")
    builder.stream("orders", value=avro(registry)).to("copies", value=avro(registry, ORDER))
    with TestDriver(builder.build()) as driver:
        driver.input("orders", value=avro(registry, ORDER)).pipe("k", {"user": "bob", "amount": 1}, 1)
        assert driver.output("copies", value=avro(registry)).pairs() == [("k", {"user": "bob", "amount": 1})]


@dataclass(frozen=True)
class Line:
    item: str
    at: datetime.datetime


@dataclass(frozen=True)
class Basket:
    user: str
    lines: list[Line]
    note: str | None = None


def test_schemas_are_derived_from_classes_and_registered(registry: str) -> None:
    basket = Basket("ann", [Line("pear", datetime.datetime(2026, 1, 2, tzinfo=datetime.UTC))])
    builder = StreamsBuilder("derived")
    baskets = builder.stream("baskets", value=avro(registry, of=Basket))
    baskets.to("avro-copies", value=avro(registry, of=Basket))
    baskets.to("json-copies", value=json_schema(registry, of=Basket))
    with TestDriver(builder.build()) as driver:
        driver.input("baskets", value=avro(registry, of=Basket)).pipe("k", basket, 1)
        assert driver.output("avro-copies", value=avro(registry, of=Basket)).pairs() == [("k", basket)]
        found = driver.output("json-copies", value=json_schema(registry, of=Basket))
        assert found.pairs() == [("k", basket)]
    with SchemaRegistryClient(registry) as client:
        fields = json.loads(client.get_version("avro-copies-value").schema.text)["fields"]
        assert [each["name"] for each in fields] == ["user", "lines", "note"]
        assert client.get_version("json-copies-value").schema.schema_type == "JSON"


def test_a_class_is_written_with_the_latest_version_where_that_is_asked_for(registry: str) -> None:
    latest = avro(registry, of=Order, conf={"use.latest.version": True, "auto.register.schemas": False})
    builder = StreamsBuilder("latest-of")
    builder.stream("orders", value=latest).to("latest-of", value=avro(registry, ORDER, of=Order))
    with TestDriver(builder.build()) as driver:
        driver.input("orders", value=avro(registry, ORDER)).pipe("k", {"user": "bob", "amount": 1}, 1)
        driver.input("orders", value=latest).pipe("k", Order("bob", 2), 1)
        found = driver.output("latest-of", value=avro(registry, ORDER, of=Order)).pairs()
    assert found == [("k", Order("bob", 1)), ("k", Order("bob", 2))]


def test_no_handler_drops_a_record_because_the_registry_is_away(registry: str) -> None:
    dead = "http://127.0.0.1:9"
    asked: list[object] = []

    def handler(failure: object) -> str:
        asked.append(failure)
        return "continue"

    builder = StreamsBuilder("away")
    builder.stream("orders", value=avro(dead, ORDER)).to("copies", value=str)
    handlers = Handlers(deserialization=handler, production=handler)  # type: ignore[arg-type]
    with TestDriver(builder.build(), handlers=handlers) as driver:
        orders = driver.input("orders", value=bytes)
        with pytest.raises(RegistryAway, match="does not answer"):
            orders.pipe("k", b"\0\0\0\0\1\6ann\2", 1)
    assert asked == []


def test_values_that_the_schema_refuses_fail_with_their_place(registry: str) -> None:
    builder = StreamsBuilder("refused")
    builder.stream("plain").to("out", value=avro(registry, ORDER))
    with (
        TestDriver(builder.build()) as driver,
        pytest.raises(TaskError, match="production of record plain-0@0"),
    ):
        driver.input("plain").pipe("k", {"user": "bob", "amount": "many"}, 1)


def test_protobuf_messages(registry: str) -> None:
    builder = StreamsBuilder("messages")
    serde = protobuf(registry, Int64Value)
    stream = builder.stream("numbers", value=serde)
    stream.map_values(lambda number: Int64Value(value=number.value * 2), value=serde).to("doubled")
    with TestDriver(builder.build()) as driver:
        driver.input("numbers", value=serde).pipe("k", Int64Value(value=4), 1)
        [(_, message)] = driver.output("doubled", value=serde).pairs()
        assert message.value == 8


def test_a_serde_travels_to_executors_and_hides_its_password() -> None:
    serde: Any = avro({"url": "http://localhost:1", "basic.auth.user.info": "ann:secret"}, ORDER)
    assert pickle.loads(pickle.dumps(serde)) == serde
    assert "secret" not in repr(serde)
    with pytest.raises(TypeError, match="neither a dataclass nor a pydantic model"):
        avro("http://localhost:1", of=int)
