"""Records that are produced by API v2: all records of a request together, and what became of each.

In: a body of records in one of the formats. Out: partition and offset, or an error, for each record in order.
A request with a record that cannot be encoded is refused whole: nothing of it is written.
"""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from typing import Any

from starlette.requests import Request
from starlette.responses import Response

from barnabas.client.accumulator import SentRecord
from barnabas.client.core.errors import AuthenticationError, ClientError
from barnabas.client.core.topology import Topic
from barnabas.client.producer import NewRecord
from barnabas.protocol import ErrorCode, KafkaError
from barnabas.rest.formats import json_text
from barnabas.rest.formats.embedded import Encoder, Formats, SchemaChoice
from barnabas.rest.formats.errors import (
    DataMismatch,
    FormatError,
    RegistryFailure,
    SchemaMissing,
    SchemaNotFound,
    SchemaRefused,
)
from barnabas.rest.formats.names import DataFormat
from barnabas.rest.kafka import Kafka
from barnabas.rest.kafka_errors import (
    FAILED,
    FAILED_FOR_NOW,
    NOT_AUTHENTICATED,
    NOT_AUTHORIZED,
    NOT_FOUND,
    status_of,
    text_of,
)
from barnabas.rest.v2.call import BAD_REQUEST, INT_MAX, fields, parse_body, text, unprocessable, whole
from barnabas.rest.v2.media import V2, format_of_body
from barnabas.rest.v2.topics import no_partition, partition_number
from barnabas.services.errors import ApiError
from barnabas.services.negotiation import accepted

NO_KEY_SCHEMA, NO_VALUE_SCHEMA = 42201, 42202
INVALID_SCHEMA, UNKNOWN_SCHEMA = 42205, 42207
REGISTRY_FAILED = 40801
ON_LOOP_BYTES_MAX = 64 * 1024
ON_LOOP_CODED_MAX = 50  # records with schemas; more are encoded in a thread
TOPIC_FIELDS = frozenset({"key", "value", "partition"})
PARTITION_FIELDS = frozenset({"key", "value"})
BODY_FIELDS = frozenset({"records", "key_schema", "key_schema_id", "value_schema", "value_schema_id"})

# The response for a record that was written: nearly all of them are such records.
WRITTEN = '{"partition":%d,"offset":%d,"error_code":null,"error":null}'


class Produce:
    """The two produce endpoints: records of a topic, and records of one of its partitions."""

    def __init__(self, formats: Formats) -> None:
        self._formats = formats

    async def to_topic(self, request: Request, kafka: Kafka) -> Response:
        return await self._produce(request, kafka, None)

    async def to_partition(self, request: Request, kafka: Kafka) -> Response:
        return await self._produce(request, kafka, partition_number(request.path_params["partition"]))

    async def _produce(self, request: Request, kafka: Kafka, partition: int | None) -> Response:
        data = format_of_body(request.headers.get("content-type"))
        accepted(request.headers.get("accept"), (V2,))
        name: str = request.path_params["topic"]
        body = await request.body()
        is_large = len(body) > ON_LOOP_BYTES_MAX
        if not body.strip():
            raise unprocessable("The request has no body: send records.")
        parsed = await asyncio.to_thread(parse_body, body) if is_large else parse_body(body)
        given = fields(parsed, BODY_FIELDS)
        records = given.get("records")
        if not isinstance(records, list) or not records:
            raise unprocessable("records must be a list with at least one record.")
        topic = await find(kafka, name)
        if not wanted_partitions(records, partition) <= topic.partitions.keys():
            await kafka.cluster.refresh([name])  # partitions may have been added
            topic = await find(kafka, name)
        if partition is not None and partition not in topic.partitions:
            raise no_partition(topic, partition)
        key, value = await self._encoders(name, given, data, records)
        arguments = (records, topic, partition, key, value)
        is_long = is_large or (data.schema_type is not None and len(records) > ON_LOOP_CODED_MAX)
        encoded = await asyncio.to_thread(encode, *arguments) if is_long else encode(*arguments)
        sent = await kafka.producer.send_all(name, encoded)
        body = rendered(sent, schema_id(key), schema_id(value))
        return Response(body, media_type=V2)

    async def _encoders(
        self, topic: str, given: dict[str, Any], data: DataFormat, records: list[Any]
    ) -> tuple[Encoder | None, Encoder | None]:
        """Encoders of keys and of values; None for a side with neither data nor schema.

        A schema that is given is registered, or its id looked up, even if all data of its side are null.
        """
        found: list[Encoder | None] = []
        for side, is_key in (("key", True), ("value", False)):
            has_data = any(isinstance(each, dict) and each.get(side) is not None for each in records)
            if not has_data and not has_schema(given, side):
                found.append(None)
                continue
            try:
                choice = choice_of(given, side, data)
                found.append(await self._formats.encoder(topic, choice, is_key=is_key))
            except FormatError as error:
                raise refused(error, is_key=is_key) from None
        return found[0], found[1]


async def find(kafka: Kafka, name: str) -> Topic:
    """The topic, which may be created by this request if the brokers do that."""
    try:
        return await kafka.producer.find_topic(name)
    except KafkaError as error:
        if error.code in (ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, ErrorCode.INVALID_TOPIC_EXCEPTION):
            raise ApiError(404, NOT_FOUND, f"Topic {name[:249]} not found.") from None
        raise


def wanted_partitions(records: list[Any], partition: int | None) -> set[int]:
    if partition is not None:
        return {partition}
    return {found for each in records if type(each) is dict and type(found := each.get("partition")) is int}


def has_schema(given: dict[str, Any], side: str) -> bool:
    return given.get(f"{side}_schema_id") is not None or given.get(f"{side}_schema") is not None


def choice_of(given: dict[str, Any], side: str, data: DataFormat) -> SchemaChoice:
    if data.schema_type is None:
        return SchemaChoice(data)
    schema_id = given.get(f"{side}_schema_id")
    if schema_id is not None:
        return SchemaChoice(data, schema_id=whole(schema_id, f"{side}_schema_id", smallest=-INT_MAX))
    schema = given.get(f"{side}_schema")
    if schema is None:
        raise SchemaMissing(
            f"{side.capitalize()}s of format {data.lower()} need {side}_schema or {side}_schema_id."
        )
    return SchemaChoice(data, text=text(schema, f"{side}_schema"))


def refused(error: FormatError, *, is_key: bool) -> ApiError:
    """An error of embedded data with the code of v2."""
    match error:
        case SchemaMissing():
            return ApiError(422, NO_KEY_SCHEMA if is_key else NO_VALUE_SCHEMA, str(error))
        case SchemaNotFound():
            return ApiError(422, UNKNOWN_SCHEMA, str(error))
        case SchemaRefused():
            return ApiError(422, INVALID_SCHEMA, str(error))
        case RegistryFailure():
            return ApiError(408, REGISTRY_FAILED, str(error))
        case _:
            return ApiError(400, BAD_REQUEST, str(error))


def encode(
    records: list[Any], topic: Topic, partition: int | None, key: Encoder | None, value: Encoder | None
) -> list[NewRecord]:
    """The records with the bytes of their data. ApiError names the first record that is wrong."""
    known = TOPIC_FIELDS if partition is None else PARTITION_FIELDS
    encoded: list[NewRecord] = []
    side = ""
    try:
        for each in records:
            if type(each) is not dict or not each.keys() <= known:
                fields(each, known, "a record")
            where = partition
            if partition is None:
                where = each.get("partition")
                if where is not None and (type(where) is not int or where not in topic.partitions):
                    raise no_partition(topic, whole(where, "partition", smallest=-INT_MAX))
            side = "key"
            key_bytes = key.encode(each.get("key")) if key is not None else None
            side = "value"
            value_bytes = value.encode(each.get("value")) if value is not None else None
            encoded.append(NewRecord(where, key_bytes, value_bytes))
    except DataMismatch as error:
        message = f"The {side} of record {len(encoded)} does not fit: {error}"
        raise ApiError(400, BAD_REQUEST, message) from None
    return encoded


def schema_id(encoder: Encoder | None) -> int | None:
    return encoder.schema.schema_id if encoder is not None and encoder.schema is not None else None


def rendered(
    sent: Sequence[SentRecord | KafkaError], key_schema: int | None, value_schema: int | None
) -> bytes:
    """The body of the response."""
    parts = []
    for each in sent:
        try:
            if isinstance(each, KafkaError):
                raise each
            _, partition, offset, _ = each.result()
            parts.append(WRITTEN % (partition, offset))
        except (KafkaError, ClientError) as error:
            failure = {
                "partition": None,
                "offset": None,
                "error_code": record_code(error),
                "error": text_of(error),
            }
            parts.append(json_text.dumps(failure).decode())
    ids = ["null" if each is None else str(each) for each in (key_schema, value_schema)]
    offsets = ",".join(parts)
    return f'{{"offsets":[{offsets}],"key_schema_id":{ids[0]},"value_schema_id":{ids[1]}}}'.encode()


def record_code(error: KafkaError | ClientError) -> int:
    """The code of a single record that failed: 50003 if it may be sent again."""
    if isinstance(error, AuthenticationError):
        return NOT_AUTHENTICATED
    code = status_of(error)[1]
    if code in (NOT_AUTHENTICATED, NOT_AUTHORIZED):
        return code
    may_pass = error.code.retriable if isinstance(error, KafkaError) else True
    return FAILED_FOR_NOW if may_pass else FAILED
