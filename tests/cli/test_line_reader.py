"""The line reader turns lines into records."""

import pytest

from barnabas.cli.frame.parsing import ToolError
from barnabas.cli.records.line_reader import Line, LineReader


def read(line: bytes, **properties: str) -> Line:
    return LineReader({name.replace("_", "."): value for name, value in properties.items()}).read(line)


def test_a_line_is_a_value() -> None:
    assert read(b"a\tb:c") == Line(None, b"a\tb:c", ())


def test_bytes_that_are_not_utf8_stay_unchanged() -> None:
    assert read(b"\xff\x00").value == b"\xff\x00"


def test_a_key_ends_at_the_first_separator() -> None:
    assert read(b"a::b::c", parse_key="true", key_separator="::") == Line(b"a", b"b::c", ())


def test_headers_come_first() -> None:
    line = read(b"h1:v1,h2:v:2\tkey\tvalue", parse_key="true", parse_headers="TRUE ")
    assert line == Line(b"key", b"value", (("h1", b"v1"), ("h2", b"v:2")))


def test_the_null_marker_stands_for_null_everywhere() -> None:
    everywhere = {"parse.key": "true", "parse.headers": "true", "null.marker": "NULL"}
    reader = LineReader(everywhere)
    assert reader.read(b"NULL\tNULL\tNULL") == Line(None, None, ())
    assert reader.read(b"h:NULL\tk\tNULL") == Line(b"k", None, (("h", None),))


def test_a_malformed_line_is_a_value_if_errors_are_ignored() -> None:
    assert read(b"no key", parse_key="true", ignore_error="true") == Line(None, b"no key", ())
    assert read(b"bad\tv", parse_headers="true", ignore_error="true").headers == (("bad", None),)


@pytest.mark.parametrize(
    ("properties", "line", "problem"),
    [
        ({"parse.key": "true"}, b"x", "No key separator found on line number 1: 'x'"),
        ({"parse.headers": "true"}, b"x", "No headers delimiter found on line number 1: 'x'"),
        ({"parse.headers": "true"}, b"x\tv", "No header key separator found in pair 'x' on line number 1"),
        (
            {"parse.headers": "true", "null.marker": "N"},
            b"N:1\tv",
            "Header keys should not be equal to the null marker",
        ),
    ],
)
def test_an_error_names_a_malformed_line(properties: dict[str, str], line: bytes, problem: str) -> None:
    with pytest.raises(ToolError, match=problem):
        LineReader(properties).read(line)


@pytest.mark.parametrize(
    ("properties", "problem"),
    [
        ({"headers.separator": ":"}, "headers.separator and headers.key.separator may not be equal"),
        ({"headers.delimiter": ","}, "headers.delimiter and headers.separator may not be equal"),
        ({"null.marker": "\t"}, "null.marker and key.separator may not be equal"),
        ({"parse.keys": "true"}, "the line reader has no property parse.keys"),
    ],
)
def test_equal_separators_are_refused(properties: dict[str, str], problem: str) -> None:
    with pytest.raises(ToolError, match=problem):
        LineReader(properties)
