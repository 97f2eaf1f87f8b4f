"""Options of a tail are read from texts of strangers."""

from __future__ import annotations

import pytest

from barnabas.rest.formats.names import DataFormat
from barnabas.rest.tail.options import Start, TailOptions, options_of, position_text
from barnabas.services.errors import ApiError


def test_without_options_a_tail_begins_at_the_end_of_all_partitions() -> None:
    assert options_of({}, None) == TailOptions()


@pytest.mark.parametrize(
    ("text", "start", "number"),
    [
        ("end", Start.END, 0),
        ("beginning", Start.BEGINNING, 0),
        ("17", Start.OFFSET, 17),
        ("-5", Start.BEFORE_END, 5),
        ("2026-01-02T03:04:05Z", Start.TIME, 1767323045000),
        ("2026-01-02T04:04:05.5+01:00", Start.TIME, 1767323045500),
    ],
)
def test_where_a_tail_begins(text: str, start: Start, number: int) -> None:
    found = options_of({"from": text}, None)
    assert (found.start, found.number) == (start, number)


def test_all_options_together() -> None:
    found = options_of(
        {
            "partition": "3,1",
            "format": "json",
            "key_format": "binary",
            "key": "k",
            "contains": "é",
            "limit": "5",
            "read_committed": "true",
        },
        "1:5,3:7",
    )
    assert found.partitions == (1, 3)
    assert (found.value_format, found.key_format) == (DataFormat.JSON, DataFormat.BINARY)
    assert (found.key, found.contains, found.limit) == (b"k", "é".encode(), 5)
    assert found.read_committed
    assert found.resume == ((1, 5), (3, 7))
    assert position_text(dict(found.resume)) == "1:5,3:7"


@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("from", "soon"),
        ("from", "--1"),
        ("from", "9" * 30),
        ("from", "٣"),
        ("from", "2026-01-02T03:04:05"),
        ("partition", ""),
        ("partition", "1,,2"),
        ("partition", "-1"),
        ("format", "xml"),
        ("limit", "many"),
        ("read_committed", "1"),
        ("contains", "x" * 1001),
        ("last_event_id", "5"),
        ("last_event_id", "a:b"),
        ("last_event_id", "1:2,"),
        ("last_event_id", ",".join(["1:1"] * 10_001)),
        ("colour", "red"),
    ],
)
def test_options_that_are_refused(name: str, text: str) -> None:
    with pytest.raises(ApiError, match=name) as refused:
        options_of({name: text}, None)
    assert (refused.value.status, refused.value.code) == (400, 400)
