"""Values from text and back, as the JVM reads and prints them."""

import math
import struct

import pytest
from hypothesis import given
from hypothesis import strategies as st

from barnabas.settings import SettingsError
from barnabas.settings.values import parse_list, parse_value, to_text


@pytest.mark.parametrize(
    ("kind", "text", "value"),
    [
        ("int", "+7", 7),
        ("int", "\t-7\x00", -7),
        ("int", "٣", 3),
        ("long", "9223372036854775807", 2**63 - 1),
        ("double", "0x1p-1", 0.5),
        ("double", ".5d", 0.5),
        ("double", "1.", 1.0),
        ("double", "-Infinity", -math.inf),
        ("boolean", " TRUE ", True),
        ("string", "  a b ", "a b"),
        ("list", "", ()),
        ("list", "a , b,a", ("a", "b")),
        ("list", "a,", ("a", "")),
    ],
)
def test_text_is_read_as_the_jvm_reads_it(kind: str, text: str, value: object) -> None:
    assert parse_value("x", kind, text) == value


@pytest.mark.parametrize(
    ("kind", "text"),
    [
        ("int", "1_000"),
        ("int", ""),
        ("int", "+"),
        ("int", "2147483648"),
        ("int", "1" * 100_000),
        ("short", "40000"),
        ("long", "1.0"),
        ("double", "nan"),
        ("double", "inf"),
        ("double", "1e"),
        ("double", "0x10"),
        ("boolean", "yes"),
    ],
)
def test_values_that_the_jvm_refuses_are_refused(kind: str, text: str) -> None:
    with pytest.raises(SettingsError, match="configuration x"):
        parse_value("x", kind, text)


@pytest.mark.parametrize(
    ("value", "text"),
    [
        (0.5, "0.5"),
        (1.0, "1.0"),
        (1e7, "1.0E7"),
        (9999999.0, "9999999.0"),
        (0.001, "0.001"),
        (0.0001, "1.0E-4"),
        (0.00012, "1.2E-4"),
        (1.7976931348623157e308, "1.7976931348623157E308"),
        (123456789.125, "1.23456789125E8"),
        (-1e21, "-1.0E21"),
        (0.0, "0.0"),
        (math.inf, "Infinity"),
        (True, "true"),
        (("a", "b"), "a,b"),
        (None, None),
    ],
)
def test_values_are_printed_as_java_prints_them(value: object, text: str | None) -> None:
    assert to_text(value) == text  # type: ignore[arg-type]


@given(st.floats(allow_nan=False))
def test_a_double_survives_its_text(value: float) -> None:
    found = parse_value("x", "double", to_text(value) or "")
    assert struct.pack(">d", found) == struct.pack(">d", value)


@given(st.integers(-(2**63), 2**63 - 1))
def test_a_long_survives_its_text(value: int) -> None:
    assert parse_value("x", "long", to_text(value) or "") == value


@given(st.lists(st.text(alphabet="abc.:/", min_size=1), unique=True))
def test_a_list_survives_its_text(entries: list[str]) -> None:
    assert parse_list(to_text(tuple(entries)) or "") == tuple(entries)
