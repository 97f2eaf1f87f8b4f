"""Every message in every version survives encoding and decoding."""

from __future__ import annotations

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from barnabas.metadata.steps import at_once
from barnabas.protocol import Message, ProtocolError
from barnabas.protocol.codec import codec
from barnabas.protocol.messages.create_topics import CreateTopicsRequest
from barnabas.protocol.messages.list_groups import ListGroupsResponse
from barnabas.protocol.messages.metadata import MetadataResponse
from barnabas.protocol.messages.offset_commit import OffsetCommitRequest
from barnabas.protocol.reading import Reader

from .declarations import MESSAGES, values

QUICK = settings(
    max_examples=5, deadline=None, database=None, suppress_health_check=list(HealthCheck), derandomize=True
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


@pytest.mark.parametrize(
    "cls", [OffsetCommitRequest, ListGroupsResponse, MetadataResponse, CreateTopicsRequest]
)
def test_a_message_in_steps_has_the_same_bytes_and_values(cls: type[Message]) -> None:
    @QUICK
    @given(st.data())
    def in_steps(data: st.DataObject) -> None:
        for version in cls.schema.versions:
            message = data.draw(values(cls, version))
            parts: list[bytes] = []
            at_once(codec(cls, version).encode_in_steps(message, parts.append))
            assert b"".join(parts) == message.encode(version)
            decoded, end = at_once(codec(cls, version).decode_in_steps(b"x" + b"".join(parts), 1))
            assert (decoded, end) == (message, 1 + sum(map(len, parts)))

    in_steps()


def test_there_is_a_step_for_every_element() -> None:
    groups = [ListGroupsResponse.ListedGroup(group_id=f"g{number}") for number in range(50)]
    parts: list[bytes] = []
    found = codec(ListGroupsResponse, 5)
    assert sum(1 for _ in found.encode_in_steps(ListGroupsResponse(groups=groups), parts.append)) > 50
    assert sum(1 for _ in found.decode_in_steps(b"".join(parts), 0)) > 50
    with pytest.raises(ProtocolError, match="groups"):
        at_once(found.decode_in_steps(b"".join(parts)[:40], 0))
