"""Produce endpoints of v3: a stream of records, and a batch of a few. Both take any cluster id."""

from __future__ import annotations

import json
import re

from starlette.responses import Response

from barnabas.client.accumulator import SentRecord
from barnabas.client.core.errors import ClientError
from barnabas.protocol import KafkaError
from barnabas.rest.kafka_errors import api_error, refusal
from barnabas.rest.v3.call import JSON, Call
from barnabas.rest.v3.fields import Fields
from barnabas.rest.v3.produce_stream import RecordStream
from barnabas.rest.v3.records import RECORD_FIELDS, NewRecord, RecordReader, RecordResults
from barnabas.rest.v3.schemas import NO_TOPIC, PATH_TYPES
from barnabas.rest.v3.sending import Sender
from barnabas.services.errors import ApiError
from barnabas.services.json_bodies import read_json
from barnabas.services.negotiation import content_type
from barnabas.services.openapi import Failure, Operations

PRODUCE = Operations("v3: records", PATH_TYPES)
PATH = "/v3/clusters/{cluster_id}/topics/{topic_name}/records"
ENTRY_FIELDS = RECORD_FIELDS | {"id"}
ENTRY_ID = re.compile(r"[0-9A-Za-z_-]{1,80}")
BAD_BATCH = 42208
MULTI_STATUS = 207

STREAM_ERRORS = (
    Failure(422, 42206, "the body is missing, or data do not fit their type"),
    Failure(422, 42205, "the schema cannot be found or parsed"),
    Failure(422, 42207, "data do not fit their schema"),
    Failure(400, 400, "the stream is no JSON: one error object, then it ends"),
    Failure(404, 40402, "the partition is negative"),
    NO_TOPIC,
    Failure(408, 408, "the stream is open or idle for longer than allowed"),
    Failure(413, 413, "a record is larger than allowed"),
)


@PRODUCE.declare(
    "POST",
    PATH,
    "Produce records: objects one behind the other, a result for each in the same order",
    request="ProduceRequest",
    responses={200: "ProduceResponse"},
    errors=STREAM_ERRORS,
    is_stream=True,
)
async def produce_records(call: Call) -> Response:
    content_type(call.request.headers.get("content-type"), JSON, JSON[0])
    return RecordStream(call, call.path("topic_name"))


@PRODUCE.declare(
    "POST",
    f"{PATH}:batch",
    "Produce a few records with one request",
    request="ProduceBatchRequest",
    responses={207: "ProduceBatchResponse"},
    errors=(
        Failure(422, BAD_BATCH, "no entries, too many, or their ids are not distinct strings"),
        Failure(422, 422, "the body has an unknown field"),
        Failure(400, 400, "the body is no JSON"),
    ),
)
async def produce_batch(call: Call) -> Response:
    topic = call.path("topic_name")
    entries = await entries_of(call)
    reader = RecordReader(call.proxy.formats, topic)
    sender = Sender(call.kafka, topic, call.proxy.rates)
    results = RecordResults(call.links.cluster_id, topic)
    sent = [(name, await begin(value, reader, sender)) for name, value in entries]
    successes, failures = [], []
    for name, result in sent:
        try:
            if isinstance(result, ApiError):
                raise result
            record, on_its_way = result
            successes.append(f'{{"id":"{name}",{results.written(await on_its_way, record)}}}')
        except ApiError as error:
            failures.append(failure_of(name, error))
        except (KafkaError, ClientError) as error:
            failures.append(failure_of(name, api_error(error)))
    body = f'{{"successes":[{",".join(successes)}],"failures":[{",".join(failures)}]}}'
    return Response(body, MULTI_STATUS, media_type=JSON[0])


async def begin(
    value: object, reader: RecordReader, sender: Sender
) -> tuple[NewRecord, SentRecord] | ApiError:
    try:
        record = await reader.read(value, "id")
        return record, await sender.send(record)
    except ApiError as error:
        return error
    except (KafkaError, ClientError) as error:
        return api_error(error)


async def entries_of(call: Call) -> list[tuple[str, object]]:
    content_type(call.request.headers.get("content-type"), JSON, JSON[0])
    if not (await call.request.body()).strip():
        raise refusal(422, BAD_BATCH, "Request body is empty. Data is required.")
    fields = Fields(await read_json(call.request), ("entries",))
    items = fields.items("entries", required=False)
    limit = call.proxy.settings.batch_entries_max
    if not items:
        raise refusal(422, BAD_BATCH, "The batch has no entries.")
    if len(items) > limit:
        raise refusal(422, BAD_BATCH, f"The batch has {len(items)} entries: at most {limit} are allowed.")
    found: dict[str, object] = {}
    for value, place in items:
        name = value.get("id") if isinstance(value, dict) else None
        if not isinstance(name, str) or ENTRY_ID.fullmatch(name) is None:
            raise refusal(
                422, BAD_BATCH, f"{place}.id is a text of 1 to 80 letters, digits, dashes and underscores."
            )
        if name in found:
            raise refusal(422, BAD_BATCH, f"The id {name} is not distinct.")
        found[name] = value
    return list(found.items())


def failure_of(name: str, error: ApiError) -> str:
    fields = {"id": name, "error_code": error.code, "message": error.message}
    return json.dumps(fields, separators=(",", ":"))
