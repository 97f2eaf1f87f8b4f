"""Every message in every version survives encoding and decoding."""

from __future__ import annotations

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from barnabas.protocol import Message
from barnabas.protocol.reading import Reader

from .declarations import MESSAGES, values

QUICK = settings(
    max_examples=10, deadline=None, database=None, suppress_health_check=list(HealthCheck), derandomize=True
)


@pytest.mark.parametrize("cls", MESSAGES, ids=lambda cls: cls.__name__)
def test_a_message_of_defaults_comes_back_from_every_version(cls: type[Message]) -> None:
    for version in cls.schema.versions:
        encoded = cls().encode(version)
        assert cls.decode(encoded, version) == cls()


@pytest.mark.parametrize("cls", MESSAGES, ids=lambda cls: cls.__name__)
def test_any_message_comes_back_from_every_version(cls: type[Message]) -> None:
    @QUICK
    @given(st.data())
    def comes_back(data: st.DataObject) -> None:
        for version in cls.schema.versions:
            message = data.draw(values(cls, version))
            encoded = message.encode(version)
            for buffer in (encoded, memoryview(bytearray(encoded))):
                decoded = cls.decode(buffer, version)
                assert decoded == message
                assert decoded.encode(version) == encoded
            assert Reader(cls, version, encoded, 0).message(cls) == message

    comes_back()
