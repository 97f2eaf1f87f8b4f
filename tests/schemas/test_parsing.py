"""Schemas of all types are parsed by one function."""

import pytest

from barnabas.schemas.model import InvalidSchema
from barnabas.schemas.parsing import parse


def test_an_unknown_type_is_named_with_the_known_ones() -> None:
    with pytest.raises(InvalidSchema, match=r"THRIFT.*AVRO, JSON, PROTOBUF"):
        parse("THRIFT", "struct A {}")
