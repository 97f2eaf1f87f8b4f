"""Records of a tail as JSON: keys and values in v3's form, each with its type.

In: records as bytes. Out: JSON texts. Without a chosen format, data that name a known schema are decoded by
it; others are JSON, else text, else base64. Does not know: connections.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Any

from barnabas.client.core.fetching import ConsumerRecord
from barnabas.rest.formats.embedded import Formats, has_prefix, schema_id_of
from barnabas.rest.formats.errors import FormatError
from barnabas.rest.formats.names import FORMATS_OF_TYPES, DataFormat
from barnabas.rest.tail.options import TailOptions
from barnabas.rest.v3.records import time_text

Data = dict[str, Any] | None


class Rendering:
    def __init__(self, formats: Formats, options: TailOptions) -> None:
        self._formats = formats
        self._options = options

    def wants(self, record: ConsumerRecord) -> bool:
        """Whether the filters let the record through."""
        options = self._options
        if options.key is not None and record.key != options.key:
            return False
        return options.contains is None or options.contains in (record.value or b"")

    async def prepare(self, records: Sequence[ConsumerRecord]) -> dict[int, DataFormat]:
        """Fetch the schemas that these records name. Returns the formats of those that are known."""
        options = self._options
        for format, payloads in (
            (options.key_format, [record.key for record in records]),
            (options.value_format, [record.value for record in records]),
        ):
            if format is not None:
                await self._formats.prepare(format, payloads)
        if options.key_format is not None and options.value_format is not None:
            return {}
        found: dict[int, DataFormat] = {}
        for payload in (each for record in records for each in (record.key, record.value)):
            if payload is None or not has_prefix(payload) or (schema_id := schema_id_of(payload)) in found:
                continue
            try:
                known = await self._formats.by_id(schema_id)
                format = FORMATS_OF_TYPES[known.schema_type]
                if not await self._formats.prepare(format, [payload]):
                    found[schema_id] = format
            except FormatError:
                continue
        return found

    def text(self, record: ConsumerRecord, known: dict[int, DataFormat]) -> str:
        """The fields of a record, without braces around them."""
        options = self._options
        second, ms = divmod(max(record.timestamp, 0), 1000)
        fields = {
            "topic_name": record.topic,
            "partition_id": record.partition,
            "offset": record.offset,
            "timestamp": f"{time_text(second)}.{ms:03}Z",
            "headers": [
                {"name": name, "value": self._formats.decode(DataFormat.BINARY, value)}
                for name, value in record.headers
            ],
            "key": self._data(record.key, options.key_format, known),
            "value": self._data(record.value, options.value_format, known),
        }
        return json.dumps(fields, separators=(",", ":"))[1:-1]

    def _data(self, payload: bytes | None, format: DataFormat | None, known: dict[int, DataFormat]) -> Data:
        if payload is None:
            return None
        if format is not None:
            try:
                return self._decoded(payload, format)
            except FormatError as error:
                fallback = {"type": "BINARY", "data": self._formats.decode(DataFormat.BINARY, payload)}
                return {**fallback, "error": str(error)}
        if has_prefix(payload) and (format := known.get(schema_id_of(payload))) is not None:
            try:
                return self._decoded(payload, format)
            except FormatError:
                pass
        try:
            return self._decoded(payload, DataFormat.JSON)
        except FormatError:
            pass
        try:
            return {"type": "STRING", "data": payload.decode()}
        except UnicodeDecodeError:
            return {"type": "BINARY", "data": self._formats.decode(DataFormat.BINARY, payload)}

    def _decoded(self, payload: bytes, format: DataFormat) -> dict[str, Any]:
        data = self._formats.decode(format, payload)
        if format.schema_type is None:
            return {"type": format, "data": data}
        return {"type": format, "schema_id": schema_id_of(payload), "data": data}
