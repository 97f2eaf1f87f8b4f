"""Errors of Kafka have the status and the code of the REST APIs."""

from __future__ import annotations

import pytest

from barnabas.client.core.address import Address
from barnabas.client.core.errors import AuthenticationError, ClientError, ConnectError, UnsupportedApi
from barnabas.protocol import ErrorCode, KafkaError
from barnabas.rest.kafka_errors import api_error, converted

HERE = Address("localhost", 9092)


@pytest.mark.parametrize(
    ("error", "status", "code"),
    [
        (KafkaError(ErrorCode.SASL_AUTHENTICATION_FAILED), 401, 40101),
        (AuthenticationError(HERE, "wrong password"), 401, 40101),
        (KafkaError(ErrorCode.TOPIC_AUTHORIZATION_FAILED), 403, 40301),
        (KafkaError(ErrorCode.GROUP_AUTHORIZATION_FAILED), 403, 40301),
        (KafkaError(ErrorCode.UNKNOWN_TOPIC_OR_PARTITION), 404, 40403),
        (KafkaError(ErrorCode.UNKNOWN_TOPIC_ID), 404, 40403),
        (KafkaError(ErrorCode.TOPIC_ALREADY_EXISTS), 400, 40002),
        (KafkaError(ErrorCode.INVALID_REPLICATION_FACTOR), 400, 40002),
        (KafkaError(ErrorCode.SECURITY_DISABLED), 400, 40002),
        (KafkaError(ErrorCode.UNKNOWN_SERVER_ERROR), 400, 40002),
        (UnsupportedApi(HERE, "Fetch", "too old"), 400, 40002),
        (KafkaError(ErrorCode.MESSAGE_TOO_LARGE), 413, 413),
        (KafkaError(ErrorCode.THROTTLING_QUOTA_EXCEEDED), 429, 42901),
        (KafkaError(ErrorCode.INVALID_TIMESTAMP), 500, 50002),
        (KafkaError(ErrorCode.NOT_ENOUGH_REPLICAS), 500, 50003),
        (KafkaError(ErrorCode.BROKER_NOT_AVAILABLE), 503, 50302),
        (ConnectError(HERE, "refused"), 503, 50302),
        (ClientError("the buffer stayed full"), 500, 50003),
        (KafkaError(ErrorCode.GROUP_ID_NOT_FOUND), 404, 404),
    ],
)
def test_status_and_code(error: KafkaError | ClientError, status: int, code: int) -> None:
    found = api_error(error)
    assert (found.status, found.code) == (status, code)


def test_messages_have_a_title_and_a_detail() -> None:
    assert api_error(KafkaError(ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, "no topic t")).message == (
        "Not Found: no topic t"
    )
    assert ": " in api_error(KafkaError(ErrorCode.INVALID_CONFIG)).message


def test_other_exceptions_are_left_to_the_frame() -> None:
    assert converted(ValueError("a bug")) is None
