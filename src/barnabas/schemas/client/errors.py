"""Errors of a registry, as one exception with the API's code.

In: a response's status and body. Out: RegistryError. Does not know: requests, retries.
"""

from __future__ import annotations

SUBJECT_NOT_FOUND = 40401
VERSION_NOT_FOUND = 40402
SCHEMA_NOT_FOUND = 40403
AWAY = frozenset((0, 408, 429, 500, 502, 503, 504))


class RegistryError(Exception):
    """The registry refused a request, or could not be reached (status 0).

    `code` is the API's `error_code`: 40403 for an unknown schema, 409 or 40901 for an incompatible one.
    """

    def __init__(self, status: int, code: int, message: str) -> None:
        super().__init__(f"{message} (HTTP {status}, error_code {code})" if status else message)
        self.status = status
        self.code = code
        self.message = message

    @property
    def is_away(self) -> bool:
        """Whether the same request may succeed later: no response, or one that says so."""
        return self.status in AWAY

    @property
    def is_not_found(self) -> bool:
        return self.status == 404

    @property
    def is_incompatible(self) -> bool:
        return self.status == 409
