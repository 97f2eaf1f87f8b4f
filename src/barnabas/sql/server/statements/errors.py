"""Errors of requests in ksqlDB's form: a type, an error code, a message, perhaps the statement."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from barnabas.services.errors import ApiError
from barnabas.sql.errors import SqlError

BAD_REQUEST = 40000
BAD_STATEMENT = 40001
QUERY_ENDPOINT = 40002
MAX_PUSH_QUERIES = 40003
UNAUTHORIZED = 40100
FORBIDDEN = 40300
NOT_FOUND = 40400
NOT_ACCEPTABLE = 40600
ASSERT_FAILED = 41700
NO_REGISTRY = 42801
TOO_MANY = 42900
SERVER_ERROR = 50000
COMMAND_BEHIND = 50301
NOT_READY = 50302
SHUTTING_DOWN = 50303
SHUT_DOWN = 50304
BY_STATUS = {
    401: UNAUTHORIZED,
    403: FORBIDDEN,
    404: NOT_FOUND,
    429: TOO_MANY,
    500: SERVER_ERROR,
    503: NOT_READY,
}


class StatementRefused(ApiError):
    """A statement that is wrong. `entities` are those of the statements before it."""

    def __init__(
        self, message: str, statement: str = "", *, code: int = BAD_STATEMENT, status: int = 400
    ) -> None:
        super().__init__(status, code, message)
        self.statement = statement
        self.entities: Sequence[dict[str, Any]] = ()


def refused(error: SqlError, statement: str = "") -> StatementRefused:
    return StatementRefused(str(error), error.statement or statement)


def bad_request(message: str) -> ApiError:
    return ApiError(400, BAD_REQUEST, message)


def error_json(error: ApiError) -> dict[str, Any]:
    code = error.code
    if code < 1000:  # one of the frame
        code = BY_STATUS.get(error.status, BAD_REQUEST if error.status < 500 else SERVER_ERROR)
        if error.status == 406:
            code = NOT_ACCEPTABLE
    if isinstance(error, StatementRefused):
        return {
            "@type": "statement_error",
            "error_code": code,
            "message": error.message,
            "statementText": error.statement,
            "entities": list(error.entities),
        }
    return {"@type": "generic_error", "error_code": code, "message": error.message}


def converted(error: Exception) -> ApiError | None:
    return refused(error) if isinstance(error, SqlError) else None
