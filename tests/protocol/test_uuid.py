"""Ids as text, the way Kafka's tools show them."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from barnabas.protocol import NULL_UUID
from barnabas.protocol.uuid import from_text, to_text


@settings(deadline=None, database=None)
@given(st.binary(min_size=16, max_size=16))
def test_the_text_of_an_id_leads_back_to_it(uuid: bytes) -> None:
    assert from_text(to_text(uuid)) == uuid


def test_an_id_has_22_characters_of_url_safe_base64() -> None:
    assert to_text(NULL_UUID) == "AAAAAAAAAAAAAAAAAAAAAA"
    assert to_text(b"\xfb\xff" * 8) == "-__7__v_-__7__v_-__7_w"


@pytest.mark.parametrize(
    "text", ["", "AAAA", "A" * 21, "A" * 23, "+" * 22, "/" * 22, "ü" * 22, "A" * 20 + "=="]
)
def test_other_text_is_refused(text: str) -> None:
    with pytest.raises(ValueError, match="is not an id"):
        from_text(text)


def test_an_id_of_another_size_has_no_text() -> None:
    with pytest.raises(ValueError, match="16 bytes"):
        to_text(b"short")
