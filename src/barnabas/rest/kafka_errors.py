"""Errors of Kafka as errors of the REST APIs: the status and the code that both versions use.

In: an error of the client or of a broker. Out: ApiError. Does not know: which request failed.
"""

from __future__ import annotations

from http import HTTPStatus

from barnabas.client.core.errors import AuthenticationError, ClientError, Unreachable, UnsupportedApi
from barnabas.protocol import ErrorCode, KafkaError
from barnabas.services.errors import ApiError

NOT_AUTHENTICATED = 40101
NOT_AUTHORIZED = 40301
PARTITION_NOT_FOUND = 40402
NOT_FOUND = 40403
REFUSED = 40002
TOO_LARGE = 413
THROTTLED = 42901
FAILED = 50002
FAILED_FOR_NOW = 50003
NOT_AVAILABLE = 50302

StatusAndCode = tuple[int, int]  # status and code

BY_CODE: dict[ErrorCode, StatusAndCode] = {
    ErrorCode.SASL_AUTHENTICATION_FAILED: (401, NOT_AUTHENTICATED),
    ErrorCode.TOPIC_AUTHORIZATION_FAILED: (403, NOT_AUTHORIZED),
    ErrorCode.GROUP_AUTHORIZATION_FAILED: (403, NOT_AUTHORIZED),
    ErrorCode.CLUSTER_AUTHORIZATION_FAILED: (403, NOT_AUTHORIZED),
    ErrorCode.TRANSACTIONAL_ID_AUTHORIZATION_FAILED: (403, NOT_AUTHORIZED),
    ErrorCode.DELEGATION_TOKEN_AUTHORIZATION_FAILED: (403, NOT_AUTHORIZED),
    ErrorCode.UNKNOWN_TOPIC_OR_PARTITION: (404, NOT_FOUND),
    ErrorCode.UNKNOWN_TOPIC_ID: (404, NOT_FOUND),
    ErrorCode.GROUP_ID_NOT_FOUND: (404, 404),
    ErrorCode.INVALID_REPLICATION_FACTOR: (400, REFUSED),
    ErrorCode.INVALID_PARTITIONS: (400, REFUSED),
    ErrorCode.INVALID_REPLICA_ASSIGNMENT: (400, REFUSED),
    ErrorCode.INVALID_REQUEST: (400, REFUSED),
    ErrorCode.INVALID_CONFIG: (400, REFUSED),
    ErrorCode.INVALID_TOPIC_EXCEPTION: (400, REFUSED),
    ErrorCode.TOPIC_ALREADY_EXISTS: (400, REFUSED),
    ErrorCode.POLICY_VIOLATION: (400, REFUSED),
    ErrorCode.SECURITY_DISABLED: (400, REFUSED),
    ErrorCode.UNSUPPORTED_VERSION: (400, REFUSED),
    ErrorCode.UNKNOWN_SERVER_ERROR: (400, REFUSED),
    ErrorCode.TOPIC_DELETION_DISABLED: (400, REFUSED),
    ErrorCode.MESSAGE_TOO_LARGE: (413, TOO_LARGE),
    ErrorCode.RECORD_LIST_TOO_LARGE: (413, TOO_LARGE),
    ErrorCode.THROTTLING_QUOTA_EXCEEDED: (429, THROTTLED),
    ErrorCode.BROKER_NOT_AVAILABLE: (503, NOT_AVAILABLE),
}


def status_of(error: KafkaError | ClientError) -> StatusAndCode:
    """The status and the code of an error."""
    if isinstance(error, KafkaError):
        retriable = FAILED_FOR_NOW if error.code.retriable else FAILED
        return BY_CODE.get(error.code, (500, retriable))
    if isinstance(error, AuthenticationError):
        return 401, NOT_AUTHENTICATED
    if isinstance(error, UnsupportedApi):
        return 400, REFUSED
    return (503, NOT_AVAILABLE) if isinstance(error, Unreachable) else (500, FAILED_FOR_NOW)


def text_of(error: KafkaError | ClientError) -> str:
    if isinstance(error, KafkaError):
        return error.message or error.code.message
    return str(error)


def titled(status: int, detail: str) -> str:
    """The message of an error of v3: a title and a detail."""
    return f"{HTTPStatus(status).phrase}: {detail}"


def refusal(status: int, code: int, detail: str) -> ApiError:
    """An error of v3."""
    return ApiError(status, code, titled(status, detail))


def api_error(error: KafkaError | ClientError) -> ApiError:
    """An error of Kafka as an error of v3."""
    status, code = status_of(error)
    return refusal(status, code, text_of(error))


def converted(error: Exception) -> ApiError | None:
    """Convert an error of Kafka that an endpoint let through into the API's error."""
    return api_error(error) if isinstance(error, KafkaError | ClientError) else None
