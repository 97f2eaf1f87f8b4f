"""JSON bodies of strangers: bounded, unique names, honest numbers."""

from __future__ import annotations

import asyncio
import json
import time
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from starlette.requests import Request
from starlette.responses import JSONResponse, Response

from barnabas.services.errors import ApiError
from barnabas.services.json_bodies import parse_json, read_json, read_object
from services.asgi import app_of, client_of, route

VALUES = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | st.text(),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(), inner, max_size=4),
    max_leaves=20,
)


def refusal(data: bytes) -> ApiError:
    with pytest.raises(ApiError) as caught:
        parse_json(data)
    return caught.value


@given(VALUES)
def test_what_json_can_say_is_read(value: Any) -> None:
    assert parse_json(json.dumps(value, ensure_ascii=False).encode("utf-8", "replace")) is not ...
    assert parse_json(json.dumps(value).encode()) == value


@pytest.mark.parametrize(
    ("data", "words"),
    [
        (b'{"a": 1, "a": 2}', "'a' is twice"),
        (b'{"a": NaN}', "NaN is no JSON"),
        (b"[-Infinity]", "-Infinity is no JSON"),
        (b"1e999", "1e999 is too large"),
        (b"9" * 5000, "too many digits"),
        (b'"\xff"', "byte 1 is not UTF-8"),
        (b'"\\ud800"', "half of a surrogate pair"),
        (b"[1,", "line 1"),
        (b"[1] 2", "Extra data"),
        (b"[" * 100_000, "levels deep"),
        (b'{"a":' * 100_000, "levels deep"),
        (b'"' + b'\\"' * 100_000, "Unterminated"),
        (b"\x00", "Expecting value"),
    ],
)
def test_bad_json_is_refused_with_the_reason(data: bytes, words: str) -> None:
    error = refusal(data)
    assert (error.status, error.code) == (400, 400)
    assert words in error.message


def test_no_body_is_422() -> None:
    assert (refusal(b"").status, refusal(b" \n").code) == (422, 422)


def test_whole_numbers_keep_their_digits_and_pairs_are_one_character() -> None:
    assert parse_json(b"123456789012345678901234567890") == 123456789012345678901234567890
    assert parse_json(b'"\\ud83d\\ude00"') == "😀"
    assert parse_json(b'\xef\xbb\xbf{"a": 1}') == {"a": 1}


def test_brackets_inside_of_texts_do_not_count_as_depth() -> None:
    text = "[" * 5000 + '"\\'
    assert parse_json(json.dumps({"schema": text}).encode()) == {"schema": text}


def test_a_long_broken_text_costs_linear_time() -> None:
    def cpu_s(size: int) -> float:
        begun = time.process_time()
        refusal(b"[" * 300 + b'"' + b'\\"' * size)
        refusal(b"[" * 100 + b']"' + b'\\"[' * size)
        return time.process_time() - begun

    cpu_s(1000)
    assert cpu_s(400_000) < 100 * max(cpu_s(20_000), 0.002)  # quadratic time would be 400 times as much


def test_bodies_are_read_from_requests() -> None:
    async def endpoint(request: Request) -> Response:
        return JSONResponse({"names": sorted(await read_object(request))})

    async def anything(request: Request) -> Response:
        return JSONResponse(len(await read_json(request)))

    async def run() -> None:
        app = app_of(
            [route("/object", endpoint, methods=["POST"]), route("/any", anything, methods=["POST"])]
        )
        async with client_of(app) as client:
            assert (await client.post("/object", json={"b": 1, "a": 2})).json() == {"names": ["a", "b"]}
            refused = await client.post("/object", json=[1])
            assert refused.json() == {
                "error_code": 400,
                "message": "the body is no valid JSON: expected a JSON object, not an array",
            }
            assert (await client.post("/any", json=["x" * 100] * 5000)).json() == 5000  # in a thread

    asyncio.run(run())
