"""Mappings, types and settings of the Cassandra sinks, without a server."""

from __future__ import annotations

import uuid
from datetime import UTC, date, datetime, time
from decimal import Decimal
from typing import Any

import pytest
from cassandra import cqltypes

from barnabas.connect.connectors.cassandra.cassandra_sink import (
    MappedCassandraSinkConnector,
    TableCassandraSinkConnector,
)
from barnabas.connect.connectors.cassandra.cql_types import Codec, converted
from barnabas.connect.connectors.cassandra.mapping import Source, parse_mapping
from barnabas.connect.connectors.cassandra.tables import rules_of, shape_of
from barnabas.connect.data import (
    DATE,
    INT32,
    INT64,
    STRING,
    DataError,
    Header,
    Record,
    array,
    decimal,
    mapping,
    struct,
)
from barnabas.connect.plugins import ConnectError, Plugins

MAPPING = "topic.orders.shop.orders.mapping"
QUERY = "topic.orders.shop.orders.query"


def test_a_mapping_names_columns_and_parts_of_records() -> None:
    found = parse_mapping(
        'Id=key, "Name"=value.name, at=now(), c = value.a.b, h=header.x, __ttl=value.t, __timestamp=header.w',
        "m",
    )
    assert found.columns == {
        "id": Source("key"),
        "Name": Source("value", ("name",)),
        "at": Source("now()"),
        "c": Source("value", ("a", "b")),
        "h": Source("header", ("x",)),
    }
    assert (found.ttl, found.timestamp) == (Source("value", ("t",)), Source("header", ("w",)))
    record = Record("t", 0, 7, {"a": {"b": 2}}, headers=(Header("x", "old"), Header("x", "new")))
    values = {name: found.columns[name].of(record) for name in found.bound}
    assert values == {"id": 7, "Name": None, "c": 2, "h": "new"}


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("", "cannot read ''"),
        ("a", "cannot read 'a'"),
        ("a=key b=value.b", "a comma is missing"),
        ("a=key, a=value.b", "the column a is there twice"),
        ("a=other.b", "is no part of a record"),
        ("a=header", "is no part of a record"),
        ("__ttl=value.t", "names no column"),
    ],
)
def test_mappings_that_cannot_be_read_are_refused(text: str, reason: str) -> None:
    with pytest.raises(ConnectError, match=reason):
        parse_mapping(text, "m")


def test_settings_of_tables_and_topics_with_dots() -> None:
    [rule] = rules_of(
        {
            "topic.a.b-c.shop.orders.mapping": "id=key, n=value.n",
            "topic.a.b-c.shop.orders.ttl": "2",
            "topic.a.b-c.shop.orders.ttlTimeUnit": "HOURS",
            "topic.a.b-c.shop.orders.consistencyLevel": "quorum",
            "topic.a.b-c.shop.orders.deletesEnabled": "false",
            "topic.a.b-c.codec.timeZone": "Europe/Berlin",
        }
    )["a.b-c"]
    assert (rule.name, rule.ttl_s, rule.consistency, rule.deletes) == (
        '"shop"."orders"', 7200, "QUORUM", False,
    )  # fmt: skip
    assert str(rule.codec.zone) == "Europe/Berlin"


@pytest.mark.parametrize(
    ("config", "name", "reason"),
    [
        ({}, "contactPoints", "is missing"),
        ({MAPPING: "id"}, MAPPING, "cannot read"),
        ({MAPPING: "id=key", "topic.orders.shop.orders.ttl": "x"}, "", "must be a whole number"),
        ({MAPPING: "id=key", "topic.orders.shop.orders.tll": "1"}, "", "no such setting"),
        ({MAPPING: "id=key", "topic.orders.shop.orders.consistencyLevel": "MOST"}, "", "must be one of"),
        (
            {MAPPING: "id=key", QUERY: "INSERT", QUERY.replace("query", "deletesEnabled"): "true"},
            QUERY,
            "deletesEnabled=false",
        ),
        ({MAPPING: "id=key", "topic.orders.codec.date": "QQ yyyy"}, "", "letters that are not known"),
        ({MAPPING: "id=key", "topic.orders.codec.time": "nnnn"}, "", "letters that are not known"),
        ({MAPPING: "id=key", "topic.orders.codec.locale": "de_DE"}, "", "en_US only"),
        ({MAPPING: "id=key", "auth.provider": "GSSAPI"}, "auth.provider", "only None and PLAIN"),
        ({MAPPING: "id=key", "auth.provider": "PLAIN"}, "auth.username", "is needed"),
    ],
)
def test_settings_are_checked(config: dict[str, str], name: str, reason: str) -> None:
    errors = MappedCassandraSinkConnector().check({"topics": "orders", **config})
    [text] = [each for some in errors.values() for each in some]
    assert reason in text
    assert name in (*errors, "") or name in text


def test_classes_of_java_mean_ours() -> None:
    plugins = Plugins()
    datastax = plugins.connector("com.datastax.oss.kafka.sink.CassandraSinkConnector")
    confluent = plugins.connector("io.confluent.connect.cassandra.CassandraSinkConnector")
    assert (datastax, confluent) == (MappedCassandraSinkConnector, TableCassandraSinkConnector)
    errors = confluent().check({"cassandra.keyspace": "k", "cassandra.security.enabled": "true"})
    assert "is needed" in errors["cassandra.password"][0]


NOON = datetime(2024, 5, 1, 12, tzinfo=UTC)


@pytest.mark.parametrize(
    ("value", "kind", "expected"),
    [
        (5, cqltypes.UTF8Type, "5"),
        ({"a": 1}, cqltypes.UTF8Type, '{"a":1}'),
        ("12", cqltypes.Int32Type, 12),
        (3.0, cqltypes.LongType, 3),
        ("1.50", cqltypes.DecimalType, Decimal("1.50")),
        ("AQI=", cqltypes.BytesType, b"\x01\x02"),
        ("6f1d3f6e-0000-4000-8000-000000000001", cqltypes.UUIDType,
         uuid.UUID("6f1d3f6e-0000-4000-8000-000000000001")),
        (1714564800000, cqltypes.DateType, NOON),
        ("2024-05-01T12:00:00Z", cqltypes.DateType, NOON),
        ("2024-05-01", cqltypes.SimpleDateType, date(2024, 5, 1)),
        (time(1, 2), cqltypes.TimeType, time(1, 2)),
        ("TRUE", cqltypes.BooleanType, True),
        ("::1", cqltypes.InetAddressType, "::1"),
        ([1, "2"], cqltypes.ListType.apply_parameters([cqltypes.Int32Type]), [1, 2]),
        (["a", "a"], cqltypes.SetType.apply_parameters([cqltypes.UTF8Type]), {"a"}),
        ({"a": "1"}, cqltypes.MapType.apply_parameters([cqltypes.UTF8Type, cqltypes.Int32Type]), {"a": 1}),
    ],
)  # fmt: skip
def test_values_fit_columns(value: Any, kind: Any, expected: Any) -> None:
    assert converted(value, kind, Codec()) == expected


@pytest.mark.parametrize(
    ("value", "kind"),
    [
        (1 << 31, cqltypes.Int32Type),
        (1.5, cqltypes.LongType),
        ("x", cqltypes.Int32Type),
        ("%", cqltypes.BytesType),
        ("tomorrow", cqltypes.DateType),
        (5, cqltypes.ListType.apply_parameters([cqltypes.Int32Type])),
        ("perhaps", cqltypes.BooleanType),
        ("ä", cqltypes.AsciiType),
        ({"a": 1}, cqltypes.UUIDType),
    ],
)
def test_values_that_do_not_fit_are_named(value: Any, kind: Any) -> None:
    with pytest.raises(DataError, match="does not fit a column of type"):
        converted(value, kind, Codec())


def test_tables_of_schemas() -> None:
    key = struct(id=INT32)
    value = struct(id=INT32, price=decimal(2), day=DATE, tags=array(array(STRING)), m=mapping(STRING, INT64))
    assert shape_of("t", key, value).create('"k"."t"', "") == (
        'CREATE TABLE IF NOT EXISTS "k"."t" ("id" int, "price" decimal, "day" date,'
        ' "tags" list<frozen<list<text>>>, "m" map<text, bigint>, PRIMARY KEY ("id"))'
    )
    with pytest.raises(DataError, match="ValueToKey"):
        shape_of("t", STRING, value)
    with pytest.raises(DataError, match=r"Flatten\$Value"):
        shape_of("t", key, struct(inner=struct(a=INT64)))


def test_texts_become_times_by_the_patterns_of_the_topic() -> None:
    [rule] = rules_of(
        {
            MAPPING: "id=key",
            "topic.orders.codec.timeZone": "Europe/Berlin",
            "topic.orders.codec.timestamp": "uuuu-MM-dd HH:mm:ss",
            "topic.orders.codec.date": "d MMM yyyy",
            "topic.orders.codec.time": "HH.mm",
        }
    )["orders"]
    moment = converted("2024-07-01 12:00:00", cqltypes.DateType, rule.codec)
    assert moment == datetime(2024, 7, 1, 10, tzinfo=UTC)
    assert converted("3 Feb 2024", cqltypes.SimpleDateType, rule.codec) == date(2024, 2, 3)
    assert converted("23.59", cqltypes.TimeType, rule.codec) == time(23, 59)
    for text in ("2024-13-01 12:00:00", "2024-07-01 12:00:00 and more", "2024-07-01T12:00:00", "", "soon"):
        with pytest.raises(DataError, match="does not fit"):
            converted(text, cqltypes.DateType, rule.codec)
    zoned = {MAPPING: "id=key", "topic.orders.codec.timestamp": "dd/MM/yyyy HH:mm XXX"}
    [rule] = rules_of(zoned)["orders"]
    assert converted("01/07/2024 12:00 +02:00", cqltypes.DateType, rule.codec) == moment
    [rule] = rules_of({MAPPING: "id=key", "topic.orders.codec.timestamp": "ISO_INSTANT"})["orders"]
    assert converted("2024-07-01T10:00:00Z", cqltypes.DateType, rule.codec) == moment
