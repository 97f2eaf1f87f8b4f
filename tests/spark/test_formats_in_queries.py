"""Formats in queries: typed columns out of a topic, and back into one."""

from __future__ import annotations

from typing import Any

import pytest

from barnabas.testing.broker import Broker

from .topics import new_topic, reading, texts, values


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
