"""Avro payloads, by fastavro.

In: an Avro schema with its references; values or payloads. Out: payloads or values. Does not know: prefixes,
subjects. fastavro is imported when a codec is made.
"""

from __future__ import annotations

import io
import json
from collections.abc import Sequence
from typing import Any

from barnabas.schemas.client.values import Schema
from barnabas.schemas.model import ResolvedReference


class AvroCodec:
    """One Avro schema, parsed for fastavro. Values of the top-level type `bytes` are written as they are."""

    def __init__(
        self,
        schema: Schema,
        references: Sequence[ResolvedReference],
        *,
        strict: bool = False,
        strict_allow_default: bool = False,
    ) -> None:
        import fastavro

        from barnabas.schemas.avro.parsing import RESOLVED, parse
        from barnabas.schemas.avro.payload_reader import payload_reader

        parsed = parse(schema.text, references)
        resolved = json.loads(parsed.formatted(RESOLVED))
        self.name = parsed.name or (resolved if isinstance(resolved, str) else None)
        self.parsed = fastavro.parse_schema(resolved)
        kind = resolved.get("type") if isinstance(resolved, dict) else resolved
        self.is_bytes = kind == "bytes"
        self._write, self.read = fastavro.schemaless_writer, payload_reader(resolved)
        self._options = {"strict": strict, "strict_allow_default": strict_allow_default}

    def encode(self, value: Any) -> bytes:
        if self.is_bytes:
            return value.encode() if isinstance(value, str) else bytes(value)
        out = io.BytesIO()
        self._write(out, self.parsed, value, **self._options)
        return out.getvalue()

    def decode(self, payload: bytes, reader: AvroCodec | None = None, with_names: bool = False) -> Any:
        """The value of a payload of this schema, as the reader's schema has it."""
        if self.is_bytes:
            return payload
        wanted = reader.parsed if reader is not None and reader is not self else None
        return self.read(io.BytesIO(payload), self.parsed, wanted, return_record_name=with_names)
