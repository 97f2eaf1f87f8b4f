"""Errors of logins and of security settings."""

from __future__ import annotations


class AuthenticationFailed(Exception):
    """A login that is refused.

    `told` goes to the peer and tells no secret: an unknown user and a wrong password read the same.
    `reason` goes to our log.
    """

    def __init__(self, told: str, reason: str = "") -> None:
        super().__init__(reason or told)
        self.told = told
        self.reason = reason or told


class SecuritySettingsError(ValueError):
    """A setting that cannot be used: says which one, why, and how to mend it."""
