"""Content-Type and Accept: weights, ranges, and errors that name the types."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from barnabas.services.errors import ApiError
from barnabas.services.negotiation import accepted, content_type

V1 = "application/vnd.schemaregistry.v1+json"
PLAIN = "application/vnd.schemaregistry+json"
JSON = "application/json"
OFFERED = (V1, PLAIN, JSON)


@pytest.mark.parametrize(
    ("accept", "chosen"),
    [
        (None, V1),
        ("", V1),
        ("*/*", V1),
        ("application/*", V1),
        (JSON, JSON),
        (f"{JSON}, {V1}", V1),
        (f"{V1};q=0.5, {JSON}", JSON),
        (f"{V1}; q=0.5, {PLAIN}; q=0.9, {JSON}; q=0.1", PLAIN),
        (f"*/*;q=0.1, {JSON};q=0.0, text/html", V1),
        (f"*/*, {V1};q=0", PLAIN),
        ("APPLICATION/JSON; charset=utf-8", JSON),
        ("text/html, image/gif, image/jpeg, *; q=.2, */*; q=.2", V1),
        (f"garbage,,;;, {JSON}", JSON),
    ],
)
def test_the_client_gets_what_it_likes_most(accept: str | None, chosen: str) -> None:
    assert accepted(accept, OFFERED) == chosen


@pytest.mark.parametrize("accept", ["text/html", "image/*", "*/*;q=0", f"{JSON};q=nonsense", "nonsense"])
def test_nothing_acceptable_is_406(accept: str) -> None:
    with pytest.raises(ApiError, match="406 Not Acceptable") as caught:
        accepted(accept, OFFERED)
    assert caught.value.status == 406


def test_a_content_type_that_is_not_taken_is_415() -> None:
    assert content_type("Application/JSON; charset=UTF-8", OFFERED) == JSON
    assert content_type(None, OFFERED, default=V1) == V1
    for header in (None, "", "text/plain", "application/jsonx"):
        with pytest.raises(ApiError, match="send application/vnd") as caught:
            content_type(header, OFFERED)
        assert caught.value.status == 415


@given(st.text(max_size=200))
def test_any_header_is_understood_or_refused(header: str) -> None:
    for read in (accepted, content_type):
        try:
            assert read(header, OFFERED) in OFFERED
        except ApiError as error:
            assert error.status in (406, 415)
