"""Formats in queries: typed columns out of a topic, and back into one."""

from __future__ import annotations

from typing import Any

import pytest

from barnabas.testing.broker import Broker
from registry_stub import registry

from .topics import consumed, fill, new_topic, reading, texts, values


def test_values_become_columns_and_broken_ones_are_kept_with_their_error(spark: Any, broker: Broker) -> None:
    topic = new_topic(broker)
    values(broker, topic, ['{"id": 1, "name": "a"}', "broken", '{"id": 3}'])
    frame = reading(
        spark.read, broker, topic, value__format="json", value__schema="id INT, name STRING", columns="value"
    )
    rows = frame.select("value.*", "value_error").collect()
    assert [(row.id, row.name) for row in rows] == [(1, "a"), (None, None), (3, None)]
    assert rows[0].value_error is None and "JSONDecodeError" in rows[1].value_error


def test_broken_values_are_dropped_or_end_the_query(spark: Any, broker: Broker) -> None:
    topic = new_topic(broker)
    values(broker, topic, ['{"id": 1}', "broken"])
    options = {"value__format": "json", "value__schema": "id INT"}
    frame = reading(spark.read, broker, topic, mode="drop", **options)
    assert [row.id for row in frame.select("value.id").collect()] == [1]
    with pytest.raises(Exception, match=f"the value of {topic}-0 at offset 1 is broken"):
        reading(spark.read, broker, topic, mode="fail", columns="value", **options).collect()


def test_columns_are_written_in_a_format(spark: Any, broker: Broker) -> None:
    topic = new_topic(broker)
    frame = spark.range(2).selectExpr("struct(id, concat('n', id) name) value")
    writer = frame.coalesce(1).write.format("barnabas").option("kafka.bootstrap.servers", broker.bootstrap)
    writer = writer.option("topic", topic).option("value.format", "json")
    writer.option("value.schema", "id BIGINT, name STRING").mode("append").save()
    assert texts(reading(spark.read, broker, topic)) == ['{"id": 0, "name": "n0"}', '{"id": 1, "name": "n1"}']


def test_a_registry_decodes_records_of_several_versions_and_writes_with_the_latest(
    spark: Any, broker: Broker
) -> None:
    old = {"type": "record", "name": "O", "fields": [{"name": "id", "type": "long"}]}
    field = {"name": "note", "type": ["null", "string"], "default": None}
    new = {**old, "fields": [*old["fields"], field]}
    topic = new_topic(broker)
    with registry() as there:
        one, two = there.add(f"{topic}-value", old), there.add(f"{topic}-value", new)
        written = [b"\0\0\0\0%c\x02" % one, b"\0\0\0\0%c\x04\x02\x02x" % two, b"\0\0\0\0\x63\x02", b"\0"]
        fill(broker, topic, ({"value": each, "partition": 0} for each in written))
        options = {"value__format": "avro", "schema__registry__url": there.url}
        frame = reading(spark.read, broker, topic, columns="value,offset", **options)
        rows = frame.select("value.*", "value_error").orderBy("offset").collect()
        assert [(row.id, row.note) for row in rows] == [(1, None), (2, "x"), (None, None), (None, None)]
        assert "no schema with id 99" in rows[2].value_error
        with pytest.raises(Exception, match=f"the value of {topic}-0 at offset 2 is broken: .*id 99"):
            reading(spark.read, broker, topic, mode="fail", columns="value", **options).collect()
        out = new_topic(broker)
        writer = spark.sql("select struct(3L id, 'y' note) value").write.format("barnabas")
        writer = writer.option("kafka.bootstrap.servers", broker.bootstrap).option("topic", out)
        writer = writer.option("value.format", "registry").option("value.subject", f"{topic}-value")
        writer.option("schema.registry.url", there.url).mode("append").save()
        assert [message.value() for message in consumed(broker, out)] == [b"\0\0\0\0%c\x06\x02\x02y" % two]


@pytest.mark.long
def test_headers_may_name_the_schemas_of_records(spark: Any, broker: Broker) -> None:
    topic = new_topic(broker)
    with registry() as there:
        schema = {"type": "record", "name": "O", "fields": [{"name": "id", "type": "long"}]}
        prefix = b"\0\0\0\0%c" % there.add(f"{topic}-value", schema)
        headers = [("__value_schema_id", prefix)]
        fill(broker, topic, [{"value": b"\x02", "headers": headers}, {"value": prefix + b"\x04"}])
        options = {"value__format": "avro", "value__schema__id__location": "header"}
        frame = reading(spark.read, broker, topic, schema__registry__url=there.url, **options)
        assert sorted(row.id for row in frame.select("value.id").collect()) == [1, 2]
