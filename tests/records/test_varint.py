import pytest
from hypothesis import given
from hypothesis import strategies as st
from kafka.record.util import encode_varint

from barnabas.records import varint


@given(st.integers(-(2**63), 2**63 - 1))
def test_a_number_comes_back_from_its_bytes(number: int) -> None:
    encoded = varint.encode(number)
    assert varint.decode(b"x" + encoded, 1, varint.INT64_BYTES_MAX) == (number, 1 + len(encoded))


@given(st.integers(-(2**31), 2**31 - 1))
def test_bytes_are_those_of_kafka_python(number: int) -> None:
    expected = bytearray()
    encode_varint(number, expected.append)
    assert varint.encode(number) == expected


def test_a_number_that_does_not_fit_is_refused() -> None:
    with pytest.raises(ValueError, match="too long"):
        varint.decode(varint.encode(2**32), 0)
    with pytest.raises(ValueError, match="too long"):
        varint.decode(b"\xff" * 11, 0, varint.INT64_BYTES_MAX)


def test_the_end_of_data_within_a_number_shows() -> None:
    with pytest.raises(IndexError):
        varint.decode(b"\x80\x80", 0)
