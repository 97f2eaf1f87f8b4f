"""A codec: how data of one format, or of one schema, become bytes and come back."""

from __future__ import annotations

from typing import Any, Protocol


class Codec(Protocol):
    """Compiled once, used for many records. Both directions raise DataMismatch, and nothing else."""

    def encode(self, data: Any) -> bytes: ...

    def decode(self, payload: bytes) -> Any:
        """A value that JSON can hold."""
