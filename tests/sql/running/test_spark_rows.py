"""Records of topics as rows for Spark SQL."""

from __future__ import annotations

import pytest

from barnabas.sql.formats.registries import RegistryPlace
from barnabas.sql.formats.serdes import ColumnsSerde
from barnabas.sql.metastore.schemas import Column, Format, WindowedKeys
from barnabas.sql.running.pulls import windowed
from barnabas.sql.running.spark_queries import row_of
from barnabas.sql.syntax.statements import Role
from barnabas.sql.types.sql_types import INTEGER, STRING

START = (60_000).to_bytes(8, "big")


@pytest.mark.parametrize(
    ("key", "value", "row"),
    [
        (b"a" + START, b'{"N":1}', {"ID": "a", "N": 1, "WINDOWSTART": 60_000, "WINDOWEND": 61_000}),
        (b"short", b'{"N":1}', None),
        (b"a" + START, b"broken", None),
        (b"\xff" + START, b'{"N":1}', None),
    ],
)
def test_records_that_cannot_be_read_are_left_out(key: bytes, value: bytes, row: object) -> None:
    keys = ColumnsSerde(Format("KAFKA"), (Column("ID", STRING, Role.KEY),), True, RegistryPlace())
    values = ColumnsSerde(Format("JSON"), (Column("N", INTEGER),), False, RegistryPlace())
    read_key = windowed(keys, WindowedKeys("TUMBLING", 1000)).deserializer("t", True)
    assert row_of(["ID"], read_key, values.deserializer("t", False), key, value) == row
