"""Which header stands in front of which request and response."""

from __future__ import annotations

import pytest

from barnabas.protocol import ApiKey, ProtocolError
from barnabas.protocol.apis import (
    APIS,
    request_class,
    request_header_version,
    response_class,
    response_header_version,
)
from barnabas.protocol.headers import RequestHeader, ResponseHeader


def test_a_flexible_request_header_keeps_the_two_byte_length_of_the_client_id() -> None:
    header = RequestHeader(request_api_key=18, request_api_version=4, correlation_id=7, client_id="me")
    assert header.encode(1) == b"\0\x12\0\4\0\0\0\7\0\2me"
    assert header.encode(2) == b"\0\x12\0\4\0\0\0\7\0\2me\0"
    assert RequestHeader.decode(header.encode(2), 2) == header


def test_a_client_id_may_be_null_in_both_versions() -> None:
    header = RequestHeader(client_id=None)
    for version in (1, 2):
        assert RequestHeader.decode(header.encode(version), version).client_id is None


def test_a_response_header_is_a_correlation_id_and_later_tags() -> None:
    assert ResponseHeader(correlation_id=7).encode(0) == b"\0\0\0\7"
    assert ResponseHeader(correlation_id=7).encode(1) == b"\0\0\0\7\0"


def test_the_header_of_a_request_follows_from_its_flexible_versions() -> None:
    assert [request_header_version(ApiKey.PRODUCE, version) for version in (8, 9)] == [1, 2]
    assert [response_header_version(ApiKey.PRODUCE, version) for version in (8, 9)] == [0, 1]
    assert request_header_version(ApiKey.SASL_HANDSHAKE, 1) == 1
    assert request_header_version(ApiKey.CONSUMER_GROUP_HEARTBEAT, 0) == 2


def test_the_answer_to_api_versions_never_has_a_flexible_header() -> None:
    assert [request_header_version(ApiKey.API_VERSIONS, version) for version in range(5)] == [1, 1, 1, 2, 2]
    assert [response_header_version(ApiKey.API_VERSIONS, version) for version in range(5)] == [0] * 5


def test_every_api_has_a_request_and_a_response_with_its_key_and_versions() -> None:
    for key, api in APIS.items():
        for cls in (request_class(key), response_class(key)):
            assert cls.schema.key == key
            assert {api.versions.first, api.versions.last} <= set(cls.schema.versions)


def test_an_api_that_is_not_in_use_has_no_classes() -> None:
    with pytest.raises(KeyError):
        request_class(ApiKey.LEADER_AND_ISR)


def test_a_header_that_is_cut_off_names_its_field() -> None:
    with pytest.raises(ProtocolError) as raised:
        RequestHeader.decode(b"\0\x12\0\4\0\0\0\7\0\5me", 1)
    assert raised.value.path == "client_id"
