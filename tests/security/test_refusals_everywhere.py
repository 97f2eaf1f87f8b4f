"""Every API on both kinds of listeners refuses a caller without rights, with the declared code."""

from __future__ import annotations

import socket
import struct
from collections.abc import Iterator
from typing import Any

import pytest

from barnabas.broker.api import routes
from barnabas.broker.api.needs import Need, Where
from barnabas.broker.handlers.loading import load_handlers
from barnabas.protocol import ApiKey, ErrorCode, Message, apis
from barnabas.protocol.headers import RequestHeader
from barnabas.protocol.messages.envelope import EnvelopeRequest
from barnabas.security.acls.vocabulary import ResourceType
from barnabas.testing.broker import Broker

from .sasl_broker import SASL_SETTINGS, USERS

# Voters and brokers that do not exist, and a filter whose fields are all 0.
NOT_ASKED = (
    ApiKey.ADD_RAFT_VOTER,
    ApiKey.REMOVE_RAFT_VOTER,
    ApiKey.UNREGISTER_BROKER,
    ApiKey.DESCRIBE_ACLS,
)
SETTINGS = SASL_SETTINGS | {
    "authorizer.class.name": "org.apache.kafka.metadata.authorizer.StandardAuthorizer",
    "super.users": "User:admin",
    "sasl.enabled.mechanisms": "PLAIN",
}


@pytest.fixture(scope="module")
def broker() -> Iterator[Broker]:
    with Broker(overrides=SETTINGS) as started:
        yield started


class Caller:
    """One connection that sends requests and decodes the responses."""

    def __init__(self, port: int, user: str | None = None) -> None:
        self._socket = socket.create_connection(("127.0.0.1", port), 20)
        if user is not None:
            from barnabas.protocol.messages.sasl_authenticate import SaslAuthenticateRequest
            from barnabas.protocol.messages.sasl_handshake import SaslHandshakeRequest

            self.ask(SaslHandshakeRequest(mechanism="PLAIN"), 1)
            login = f"\0{user}\0{USERS[user]}".encode()
            assert not self.ask(SaslAuthenticateRequest(auth_bytes=login), 2).error_code

    def __enter__(self) -> Caller:
        return self

    def __exit__(self, *_: object) -> None:
        self._socket.close()

    def ask(self, request: Message, version: int) -> Any:
        key = request.schema.key
        assert key is not None
        header = RequestHeader(
            request_api_key=key, request_api_version=version, correlation_id=7, client_id="c"
        )
        frame = header.encode(apis.request_header_version(key, version)) + request.encode(version)
        self._socket.sendall(struct.pack(">i", len(frame)) + frame)
        size = struct.unpack(">i", self._exactly(4))[0]
        data = self._exactly(size)[4 + (apis.response_header_version(key, version) >= 1) :]
        return apis.response_class(key).decode(data, version)

    def _exactly(self, size: int) -> bytes:
        data = b""
        while len(data) < size:
            more = self._socket.recv(size - len(data))
            assert more, "the broker closed the connection"
            data += more
        return data


def controller_port(broker: Broker) -> int:
    return int(broker.properties["controller.quorum.voters"].rpartition(":")[2])


def refusing(kind: str) -> list[tuple[ApiKey, int, Need]]:
    """The APIs that need a right on the cluster for every request, whatever is in it, in each version."""
    load_handlers()
    found = []
    for endpoint in routes.endpoints(kind):
        for version in range(endpoint.version_min, endpoint.version_max + 1):
            for need in endpoint.needs:
                if (
                    need.where is Where.REQUEST
                    and need.resource is ResourceType.CLUSTER
                    and need.when is None
                    and kind in need.listeners
                    and not need.is_asked_by_handler
                    and need.version_min <= version <= need.version_max
                    and has_whole_error(endpoint.key, version)
                ):
                    found.append((endpoint.key, version, need))
    return found


def has_whole_error(key: ApiKey, version: int) -> bool:
    fields = {field.name: field for field in apis.response_class(key).schema.fields}
    return "error_code" in fields and version in fields["error_code"].versions


@pytest.mark.parametrize("kind", ["broker", "controller"])
def test_a_caller_without_rights_is_refused_with_the_declared_code(broker: Broker, kind: str) -> None:
    asked = refusing(kind)
    assert len({key for key, _, _ in asked}) > 10
    wrong = {}
    with Caller(broker.port, "bob") if kind == "broker" else Caller(controller_port(broker)) as caller:
        for key, version, need in asked:
            response = caller.ask(apis.request_class(key)(), version)
            if response.error_code != need.code:
                wrong[key.name, version] = ErrorCode(response.error_code).name
    assert not wrong


def test_every_controller_api_asks_for_a_right() -> None:
    load_handlers()
    free = {ApiKey.API_VERSIONS, ApiKey.SASL_HANDSHAKE, ApiKey.SASL_AUTHENTICATE}
    free |= {ApiKey.RENEW_DELEGATION_TOKEN, ApiKey.EXPIRE_DELEGATION_TOKEN}  # owners and renewers may
    assert {endpoint.key for endpoint in routes.endpoints("controller") if not endpoint.needs} == free


def test_an_envelope_of_somebody_without_rights_is_not_opened(broker: Broker) -> None:
    with Caller(controller_port(broker)) as caller:
        response = caller.ask(EnvelopeRequest(request_data=b"", client_host_address=b"\x7f\0\0\1"), 0)
    assert response.error_code == ErrorCode.CLUSTER_AUTHORIZATION_FAILED


def test_a_super_user_is_refused_nothing(broker: Broker) -> None:
    with Caller(broker.port, "admin") as caller:
        codes = {
            key.name: caller.ask(apis.request_class(key)(), version).error_code
            for key, version, _ in refusing("broker")
            if key not in NOT_ASKED
        }
    assert ErrorCode.CLUSTER_AUTHORIZATION_FAILED not in codes.values(), codes
