"""Java's properties format, compared with what java.util.Properties made of the same texts."""

import json
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from barnabas.settings import SettingsError
from barnabas.settings.properties import parse, parse_bytes

# Texts and what java.util.Properties.load reads from them; null where it refuses the text.
JAVA = json.loads((Path(__file__).parent / "data/java_properties.json").read_text())


def test_texts_are_parsed_as_in_java() -> None:
    wrong = {}
    for text, expected in JAVA:
        try:
            found = parse(text)
        except SettingsError:
            found = None
        if found != expected:
            wrong[text] = (expected, found)
    assert wrong == {}


def test_a_server_properties_file_reads_as_people_expect() -> None:
    text = """
# The basics
process.roles = broker,controller
node.id=1
listeners=PLAINTEXT://:9092,\\
          CONTROLLER://:9093
! old style comment
log.dirs: /var/lib/kafka
"""
    assert parse(text) == {
        "process.roles": "broker,controller",
        "node.id": "1",
        "listeners": "PLAINTEXT://:9092,CONTROLLER://:9093",
        "log.dirs": "/var/lib/kafka",
    }


def test_bytes_are_read_as_latin_1_as_java_does() -> None:
    assert parse_bytes(b"broker.rack=caf\xe9") == {"broker.rack": "café"}


def test_a_broken_escape_is_named() -> None:
    with pytest.raises(SettingsError, match=r"Malformed .*\\u12G4"):
        parse("a=\\u12G4")


def escaped(text: str) -> str:
    """A text as Java's store() writes it."""
    units = text.encode("utf-16-be")
    found = []
    for position in range(0, len(units), 2):
        unit = int.from_bytes(units[position : position + 2], "big")
        found.append(chr(unit) if chr(unit).isascii() and chr(unit).isalnum() else f"\\u{unit:04x}")
    return "".join(found)


@given(st.dictionaries(st.text(max_size=10), st.text(max_size=20), max_size=5))
def test_escaped_properties_are_parsed_back(entries: dict[str, str]) -> None:
    text = "".join(f"{escaped(name)}={escaped(value)}\n" for name, value in entries.items())
    assert parse(text) == entries


@given(st.text(alphabet="ab=: \t\f\\\n\r#!u0", max_size=40))
def test_no_text_crashes_the_reader(text: str) -> None:
    try:
        found = parse(text)
    except SettingsError:
        return
    assert all(isinstance(value, str) for value in found.values())
