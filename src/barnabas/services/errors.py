"""Errors of an API over HTTP: a status, a code of the API, and a text that helps."""

from __future__ import annotations

from collections.abc import Mapping

NO_HEADERS: Mapping[str, str] = {}


class ApiError(Exception):
    """A request that is refused. Every endpoint raises it; the frame makes the response of it."""

    def __init__(self, status: int, code: int, message: str, headers: Mapping[str, str] = NO_HEADERS) -> None:
        super().__init__(message)
        self.status = status
        self.code = code
        self.message = message
        self.headers = headers

    def __repr__(self) -> str:
        return f"ApiError({self.status}, {self.code}, {self.message!r})"


def error_body(error: ApiError) -> object:
    """The JSON of an error in the form of Confluent's APIs."""
    return {"error_code": error.code, "message": error.message}
