"""Formatters turn records into lines."""

import struct

import pytest

from barnabas.cli.frame.parsing import ToolError
from barnabas.cli.records.formatters import formatter
from barnabas.client.core.fetching import ConsumerRecord
from barnabas.records.batch import TimestampType

RECORD = ConsumerRecord("t", 2, 7, 3, 99, TimestampType.CREATE_TIME, b"k", b"v", (("h", b"x"), ("n", None)))
EVERYTHING = ("timestamp", "partition", "offset", "epoch", "headers", "key", "value")


def written(record: ConsumerRecord, **properties: str) -> bytes:
    return formatter(None, {name.replace("_", "."): value for name, value in properties.items()})(record)


def test_the_value_alone_is_the_default() -> None:
    assert written(RECORD) == b"v\n"


def test_every_column_has_its_place() -> None:
    shown = written(RECORD, **{f"print_{name}": "true" for name in EVERYTHING})
    assert shown == b"CreateTime:99\tPartition:2\tOffset:7\tEpoch:3\th:x,n:null\tk\tv\n"


def test_nulls_and_missing_headers_are_printed_as_words() -> None:
    empty = RECORD._replace(key=None, value=None, headers=(), timestamp_type=TimestampType.LOG_APPEND_TIME)
    shown = written(empty, print_key="true", print_headers="true", print_timestamp="true", null_literal="-")
    assert shown == b"LogAppendTime:99\tNO_HEADERS\t-\t-\n"


def test_separators_can_be_chosen() -> None:
    shown = written(RECORD, print_key="true", key_separator="|", line_separator=";", print_value="true")
    assert shown == b"k|v;"


def test_numbers_are_read_by_kafkas_class_names() -> None:
    record = RECORD._replace(key=struct.pack(">q", -5), value=struct.pack(">d", 0.5))
    package = "org.apache.kafka.common.serialization."
    shown = written(
        record,
        print_key="true",
        key_deserializer=package + "LongDeserializer",
        value_deserializer="DoubleDeserializer",
    )
    assert shown == b"-5\t0.5\n"


def test_a_number_of_the_wrong_size_is_an_error() -> None:
    with pytest.raises(ToolError, match="Size of data received by LongDeserializer is not 8"):
        written(RECORD, value_deserializer="LongDeserializer")


def test_an_unknown_deserializer_names_the_known_ones() -> None:
    with pytest.raises(
        ToolError, match=r"there is no deserializer com\.example\.Mine: this tool knows StringDes"
    ):
        written(RECORD, value_deserializer="com.example.Mine")


def test_kafkas_other_formatters() -> None:
    log = formatter("org.apache.kafka.tools.consumer.LoggingMessageFormatter", {})
    assert log(RECORD) == b"CreateTime:99, key:k, value:v, size:1\n"
    assert formatter("kafka.tools.NoOpMessageFormatter", {})(RECORD) == b""
    with pytest.raises(ToolError, match="this tool knows DefaultMessageFormatter"):
        formatter("com.example.Mine", {})
