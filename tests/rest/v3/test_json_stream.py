"""Objects are cut out of a stream however its bytes arrive; other bytes are refused."""

from __future__ import annotations

import json
import time
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from barnabas.rest.v3.json_stream import BrokenStream, JsonStream, TooLarge

VALUES = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | st.text(),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(), inner, max_size=4),
    max_leaves=10,
)
OBJECTS = st.lists(st.dictionaries(st.text(max_size=5), VALUES, max_size=3), max_size=6)


def read(chunks: list[bytes], **limits: int) -> list[dict[str, Any]]:
    stream = JsonStream(**limits)
    found = [value for chunk in chunks for value in stream.feed(chunk)]
    stream.end()
    return found


def cut(data: bytes, size: int) -> list[bytes]:
    return [data[start : start + size] for start in range(0, len(data), size)]


@settings(max_examples=60, deadline=None)
@given(OBJECTS, st.sampled_from(["", " ", "\n", "\r\n\t "]), st.integers(1, 40), st.booleans())
def test_any_chunking_gives_the_same_objects(
    objects: list[dict[str, Any]], between: str, size: int, ascii_only: bool
) -> None:
    text = between.join(json.dumps(each, ensure_ascii=ascii_only) for each in objects)
    data = text.encode("utf-8", "surrogatepass")
    assert read(cut(data, size)) == objects


def test_a_stream_cut_at_every_place_gives_the_same_objects() -> None:
    data = '{"a":"}\\"{","b":[1,{"c":"\\\\"}]} {"d":"é€𝄞"}{}'.encode()
    whole = read([data])
    assert len(whole) == 3
    for place in range(len(data) + 1):
        assert read([data[:place], data[place:]]) == whole


@pytest.mark.parametrize(
    "data",
    [
        b"[1]",
        b"1",
        b'{"a":1},{"b":2}',
        b'{"a":tru}',
        b'{"a":1}}',
        b"{'a':1}",
        b'{"a":NaN}',
        b'{"a":1e999}',
        b'{"a":' + b"9" * 5000 + b"}",
        b'{"a":"\x01"}',
        b'{"a":"\xff"}',
        b'{"a" 1}',
        b"\x00",
        "\ufeff{}".encode(),
    ],
)
def test_bytes_that_are_no_stream_of_objects_are_refused(data: bytes) -> None:
    for size in (1, 7, len(data)):
        with pytest.raises(BrokenStream):
            read(cut(data, size))


@pytest.mark.parametrize("data", [b'{"a":1', b'{"a":"', b'{"a":"\\', b"{}{", b'{"a":"\xc3'])
def test_a_stream_that_ends_inside_an_object_is_broken(data: bytes) -> None:
    with pytest.raises(BrokenStream):
        read([data])


def test_objects_before_the_broken_one_are_given() -> None:
    stream = JsonStream()
    found = []
    with pytest.raises(BrokenStream, match="object 3"):
        for value in stream.feed(b'{"a":1}{"a":2}{"a":x}{"a":4}'):
            found.append(value)
    assert found == [{"a": 1}, {"a": 2}]


@pytest.mark.parametrize("size", [1, 10, 10_000])
def test_large_and_deep_objects_are_refused(size: int) -> None:
    with pytest.raises(TooLarge):
        read(cut(b'{"a":"' + b"x" * 200 + b'"}', size), object_chars_max=100)
    nested = b'{"a":' + b"[" * 50 + b"]" * 50 + b"}"
    assert len(read(cut(nested, size), depth_max=51)) == 1
    with pytest.raises(BrokenStream, match="50 levels"):
        read(cut(nested, size), depth_max=50)
    with pytest.raises(BrokenStream, match="levels"):
        read(cut(b'{"a":' + b"[" * 100_000, size or 1), depth_max=100)


def test_brackets_in_texts_are_no_depth() -> None:
    assert read([b'{"a":"' + b"[" * 500 + b'"}'], depth_max=5) == [{"a": "[" * 500}]


def test_an_object_in_tiny_chunks_costs_no_more_than_its_length() -> None:
    def cpu_s(length: int) -> float:
        data = b'{"a":"' + b"x" * length + b'"}'
        chunks = cut(data, 4)
        begun = time.process_time()
        read(chunks)
        return time.process_time() - begun

    short = min(cpu_s(20_000) for _ in range(3))
    assert cpu_s(200_000) < 40 * short  # ten times the length: a hundred times would be quadratic
