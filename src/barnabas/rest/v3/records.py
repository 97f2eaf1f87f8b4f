"""A record as v3 takes it: read from JSON, encoded by the formats, with its place in the result.

In: an object of a request. Out: `NewRecord` with bytes, or ApiError; the JSON of its result. Encoders are
found once for each way in which a stream names its data. Does not know: streams, batches, the producer.
"""

from __future__ import annotations

import binascii
import json
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any, NamedTuple

from barnabas.client.accumulator import RecordMetadata
from barnabas.records.record import Headers
from barnabas.rest.formats.codecs import PLAIN
from barnabas.rest.formats.embedded import Encoder, Formats, SchemaChoice
from barnabas.rest.formats.errors import DataMismatch, FormatError, RegistryFailure
from barnabas.rest.formats.names import DataFormat, SubjectNameStrategy
from barnabas.rest.kafka_errors import PARTITION_NOT_FOUND, refusal
from barnabas.rest.v3.fields import Fields, integer_of, wrong

PAYLOAD = 42206
SCHEMA = 42205
NO_FIT = 42207
REGISTRY = 40801
RECORD_FIELDS = frozenset(("partition_id", "headers", "key", "value", "timestamp"))
DATA_FIELDS = frozenset(
    ("type", "subject", "subject_name_strategy", "schema_id", "schema_version", "schema", "data")
)
HEADERS_MAX = 1_000
ENCODERS_MAX = 100  # of one stream
PLAIN_ENCODERS = {str(name): Encoder(name, codec) for name, codec in PLAIN.items()}


@dataclass(frozen=True, slots=True)
class NewRecord:
    key: bytes | None
    value: bytes | None
    headers: Headers
    partition: int | None
    timestamp_ms: int | None
    about: str  # the end of the result: what it says of key and value

    @property
    def size_bytes(self) -> int:
        return len(self.key or b"") + len(self.value or b"")


class VersionedEncoder(NamedTuple):
    """An encoder, and the version that its schema has in its subject."""

    encoder: Encoder
    version: int | None


class RecordReader:
    """Reads the records of one stream or batch."""

    def __init__(self, formats: Formats, topic: str) -> None:
        self._formats = formats
        self._topic = topic
        self._encoders: dict[tuple[Any, ...], VersionedEncoder] = {}

    async def read(self, value: object, *extra: str) -> NewRecord:
        """The record of a JSON object; `extra` are fields that the caller reads itself."""
        if not isinstance(value, dict):
            raise wrong("a record", "an object", value)
        if not RECORD_FIELDS.issuperset(value):
            Fields(value, RECORD_FIELDS.union(extra))
        partition = value.get("partition_id")
        if partition is not None:
            partition = integer_of(partition, "partition_id")
            if partition < 0:
                raise refusal(404, PARTITION_NOT_FOUND, f"There is no partition {partition}.")
        timestamp = value.get("timestamp")
        headers = value.get("headers")
        key, of_key = await self._data(value.get("key"), "key")
        data, of_value = await self._data(value.get("value"), "value")
        return NewRecord(
            key,
            data,
            () if headers is None else headers_of(headers),
            partition,
            None if timestamp is None else timestamp_of(timestamp),
            of_key + of_value,
        )

    async def _data(self, value: object, place: str) -> tuple[bytes | None, str]:
        """The bytes of a key or value, and the part of the result about them."""
        if value is None:
            return None, ""
        if not isinstance(value, dict):
            raise wrong(place, "an object", value)
        name = value.get("type")
        if len(value) == 2 and "data" in value and isinstance(name, str) and name in PLAIN_ENCODERS:
            return encoded(VersionedEncoder(PLAIN_ENCODERS[name], None), value["data"], place)
        if not DATA_FIELDS.issuperset(value):
            Fields(value, DATA_FIELDS, place)
        try:
            encoder = self._encoders.get(key_of(value, place)) or await self._find(value, place)
        except FormatError as error:
            status, code = (408, REGISTRY) if isinstance(error, RegistryFailure) else (422, SCHEMA)
            raise refusal(status, code, f"{place}: {error}") from None
        return encoded(encoder, value.get("data"), place)

    async def _find(self, value: dict[str, Any], place: str) -> VersionedEncoder:
        choice = choice_of(Fields(value, DATA_FIELDS, place))
        encoder = await self._formats.encoder(self._topic, choice, is_key=place == "key")
        schema = encoder.schema
        version = None if schema is None else schema.version
        if schema is not None and choice.schema_id is not None and encoder.subject is not None:
            version = await self._formats.source.version_of(encoder.subject, schema.schema_id)
        found = VersionedEncoder(encoder, version)
        is_latest = schema is not None and choice.text is None and choice.schema_id is None
        if not is_latest and len(self._encoders) < ENCODERS_MAX:
            self._encoders[key_of(value, place)] = found
        return found


def encoded(chosen: VersionedEncoder, data: Any, place: str) -> tuple[bytes | None, str]:
    """The bytes of data, and the part of the result about them."""
    encoder, version = chosen
    try:
        payload = encoder.encode(data)
    except DataMismatch as error:
        code = PAYLOAD if encoder.schema is None else NO_FIT
        raise refusal(422, code, f"{place}: {error}") from None
    return payload, about_data(place, encoder, version, payload)


def key_of(value: dict[str, Any], place: str) -> tuple[Any, ...]:
    """How data name their schema. Values of wrong types are looked up once, and refused."""
    get = value.get
    found = (
        place,
        get("type"),
        get("schema_id"),
        get("schema_version"),
        get("schema"),
        get("subject"),
        get("subject_name_strategy"),
    )
    try:
        hash(found)
    except TypeError:
        return ()
    return found


def choice_of(fields: Fields) -> SchemaChoice:
    format = DataFormat(fields.word("type", list(DataFormat))) if fields.has("type") else None
    schema_id = fields.integer_or_none("schema_id")
    version = fields.integer_or_none("schema_version")
    text = fields.text_or_none("schema")
    subject = fields.text_or_none("subject")
    named = fields.has("subject_name_strategy")
    strategy = SubjectNameStrategy.TOPIC_NAME
    if named:
        strategy = SubjectNameStrategy(fields.word("subject_name_strategy", list(SubjectNameStrategy)))
    if format is not None and (schema_id is not None or version is not None):
        raise refusal(400, 400, "type cannot be given together with schema_id or schema_version.")
    if sum(each is not None for each in (schema_id, version, text)) > 1:
        raise refusal(400, 400, "only one of schema_id, schema_version and schema can be given.")
    if subject is not None and named:
        raise refusal(400, 400, "only one of subject and subject_name_strategy can be given.")
    if text is not None and format is None:
        raise refusal(400, 400, "schema needs type: AVRO, JSONSCHEMA or PROTOBUF.")
    if format in PLAIN and (text is not None or subject is not None or named):
        raise refusal(400, 400, f"data of type {format} have no schema.")
    return SchemaChoice(format, schema_id, version, text, subject, strategy)


def headers_of(values: object) -> Headers:
    if not isinstance(values, list):
        raise wrong("headers", "an array", values)
    if len(values) > HEADERS_MAX:
        raise refusal(422, PAYLOAD, f"A record has at most {HEADERS_MAX} headers.")
    found: list[tuple[str, bytes | None]] = []
    for index, value in enumerate(values):
        place = f"headers[{index}]"
        fields = Fields(value, ("name", "value"), place)
        text = fields.text_or_none("value")
        try:
            name = fields.text("name")
            name.encode()
            found.append((name, None if text is None else binascii.a2b_base64(text, strict_mode=True)))
        except UnicodeEncodeError:
            raise refusal(422, PAYLOAD, f"{place}.name holds half of a surrogate pair.") from None
        except ValueError as error:
            raise refusal(422, PAYLOAD, f"{place}.value is not base64: {error}") from None
    return tuple(found)


def timestamp_of(value: object) -> int:
    """Milliseconds of an RFC 3339 time."""
    if not isinstance(value, str):
        raise wrong("timestamp", "a string", value)
    try:
        moment = datetime.fromisoformat(value)
        if moment.tzinfo is None:
            raise ValueError("it has no offset: write Z at its end")
        found = round(moment.timestamp() * 1000)
    except (ValueError, OverflowError) as error:
        raise refusal(400, 400, f"timestamp is no RFC 3339 time: {error}") from None
    if found < 0:
        raise refusal(400, 400, "timestamp is before 1970.")
    return found


def about_data(place: str, encoder: Encoder, version: int | None, payload: bytes | None) -> str:
    size = len(payload or b"")
    schema = encoder.schema
    if schema is None:
        return f',"{place}":{{"type":"{encoder.format}","size":{size}}}'
    fields = {
        "type": encoder.format,
        "subject": encoder.subject,
        "schema_id": schema.schema_id,
        "schema_version": version,
        "size": size,
    }
    return f',"{place}":{json.dumps(fields, separators=(",", ":"))}'


class RecordResults:
    """JSON of the results of records of one topic."""

    def __init__(self, cluster_id: str, topic: str) -> None:
        fixed = json.dumps({"cluster_id": cluster_id, "topic_name": topic}, separators=(",", ":"))
        self._fixed = fixed[1:-1]
        self._second = -1
        self._second_text = ""

    def written(self, written: RecordMetadata, record: NewRecord) -> str:
        """The fields of a record that was written, without braces."""
        return (
            f'{self._fixed},"partition_id":{written.partition},"offset":{written.offset},'
            f'"timestamp":"{self._time(written.timestamp)}"{record.about}'
        )

    def _time(self, timestamp_ms: int) -> str:
        second, ms = divmod(timestamp_ms, 1000)
        if second != self._second:
            self._second = second
            self._second_text = time_text(second)
        return f"{self._second_text}.{ms:03}Z" if ms else f"{self._second_text}Z"


def time_text(second: int) -> str:
    try:
        return datetime.fromtimestamp(second, UTC).strftime("%Y-%m-%dT%H:%M:%S")
    except (ValueError, OverflowError, OSError):
        return "9999-12-31T23:59:59"
