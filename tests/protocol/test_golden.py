"""Frames that real clients and Apache Kafka 4.3.1 exchanged, see `record_golden`."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from barnabas.protocol import ApiKey, ErrorCode, Message
from barnabas.protocol.apis import (
    APIS,
    request_class,
    request_header_version,
    response_class,
    response_header_version,
)
from barnabas.protocol.codec import codec
from barnabas.protocol.headers import RequestHeader, ResponseHeader

GOLDEN = {
    ApiKey[path.stem.upper()]: json.loads(path.read_text())
    for path in sorted((Path(__file__).parent / "golden").glob("*.json"))
}

EXCHANGES = [
    pytest.param(key, exchange, id=f"{key.name.lower()}-{exchange['version']}-{exchange['from']}")
    for key, exchanges in GOLDEN.items()
    for exchange in exchanges
]

IN_ALL_VERSIONS = [
    ApiKey.PRODUCE,
    ApiKey.FETCH,
    ApiKey.LIST_OFFSETS,
    ApiKey.METADATA,
    ApiKey.OFFSET_COMMIT,
    ApiKey.OFFSET_FETCH,
    ApiKey.FIND_COORDINATOR,
    ApiKey.JOIN_GROUP,
    ApiKey.API_VERSIONS,
    ApiKey.CREATE_TOPICS,
    ApiKey.DELETE_TOPICS,
    ApiKey.INIT_PRODUCER_ID,
    ApiKey.DESCRIBE_CONFIGS,
    ApiKey.DESCRIBE_CLUSTER,
]


@pytest.mark.parametrize(("key", "exchange"), EXCHANGES)
def test_a_recorded_request_is_decoded_and_encoded_to_the_same_bytes(
    key: ApiKey, exchange: dict[str, Any]
) -> None:
    frame, version = bytes.fromhex(exchange["request"]), exchange["version"]
    header_version = request_header_version(key, version)
    header, body = split(frame, RequestHeader, header_version, request_class(key), version)
    assert (header.request_api_key, header.request_api_version) == (key, version)
    assert header.encode(header_version) + body.encode(version) == frame


@pytest.mark.parametrize(("key", "exchange"), EXCHANGES)
def test_a_recorded_response_is_decoded_and_encoded_to_the_same_bytes(
    key: ApiKey, exchange: dict[str, Any]
) -> None:
    frame, version = bytes.fromhex(exchange["response"]), exchange["version"]
    header_version = response_header_version(key, version)
    header, body = split(frame, ResponseHeader, header_version, response_class(key), version)
    assert header.encode(header_version) + body.encode(version) == frame


def split(
    frame: bytes, header_class: type[Message], header_version: int, cls: type[Message], version: int
) -> Any:
    """Header and body of a frame that holds nothing else."""
    header, position = codec(header_class, header_version).decode(frame, 0)
    body, end = codec(cls, version).decode(frame, position)
    assert end == len(frame)
    return header, body


@pytest.mark.parametrize("key", IN_ALL_VERSIONS, ids=lambda key: key.name)
def test_every_announced_version_of_a_common_api_is_recorded(key: ApiKey) -> None:
    assert set(APIS[key].versions) <= {exchange["version"] for exchange in GOLDEN[key]}


def test_a_recorded_fetch_holds_the_batch_that_was_produced() -> None:
    [exchange] = [e for e in GOLDEN[ApiKey.FETCH] if (e["version"], e["from"]) == (18, "barnabas")]
    _, response = split(
        bytes.fromhex(exchange["response"]),
        ResponseHeader,
        1,
        response_class(ApiKey.FETCH),
        exchange["version"],
    )
    [partition] = response.responses[0].partitions
    assert partition.error_code == ErrorCode.NONE
    assert partition.high_watermark > 0
    assert b"value" in bytes(partition.records)


def test_the_recorded_api_versions_are_those_that_we_know() -> None:
    [exchange] = [e for e in GOLDEN[ApiKey.API_VERSIONS] if (e["version"], e["from"]) == (4, "barnabas")]
    _, response = split(
        bytes.fromhex(exchange["response"]), ResponseHeader, 0, response_class(ApiKey.API_VERSIONS), 4
    )
    announced = {api.api_key: (api.min_version, api.max_version) for api in response.api_keys}
    known = {key: (api.announced.first, api.announced.last) for key, api in APIS.items() if api.broker}
    del known[ApiKey.GET_TELEMETRY_SUBSCRIPTIONS], known[ApiKey.PUSH_TELEMETRY]  # only with a reporter
    assert announced == known
