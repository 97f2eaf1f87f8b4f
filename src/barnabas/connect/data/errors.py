"""The error of values and schemas that do not fit each other."""

from __future__ import annotations


class DataError(ValueError):
    """A value does not fit its schema, or a schema cannot be what is asked of it."""
