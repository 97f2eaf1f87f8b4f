"""Produce: appends batches to the logs of partitions that this broker leads.

Batches are checked, get their offsets in place and are staged; the tick writes them and sends the responses.
With acks=0 there is no response: an error closes the connection. Batches of transactions are verified first.
Large batches whose records must be read are validated in a thread (`preparing`). A batch that names unknown
schemas waits until a registry was asked. Versions 13 and later name topics by id.
"""

from __future__ import annotations

from collections.abc import Awaitable, Sequence
from typing import TYPE_CHECKING

from barnabas.broker.api.context import RequestContext
from barnabas.broker.api.deferred import Response
from barnabas.broker.api.large_requests import encode_in_steps
from barnabas.broker.api.needs import TOPIC, Need, Where, transactional_id
from barnabas.broker.api.routes import handles
from barnabas.broker.produce import preparing, producing
from barnabas.broker.produce.pending_responses import not_written
from barnabas.broker.produce.preparing import PreparedBatches
from barnabas.broker.produce.produce_parts import append_in_parts, is_long
from barnabas.broker.produce.purgatory import Wait
from barnabas.broker.produce.verifying import NotVerified, Verified
from barnabas.metadata.steps import Steps, at_once
from barnabas.protocol import ApiKey, ErrorCode, KafkaError, Message
from barnabas.protocol.messages.produce import ProduceRequest, ProduceResponse
from barnabas.records.validation import NeedsSchemas, NeedsThread, RecordsRejected
from barnabas.replication.verification import ONGOING
from barnabas.security.acls.vocabulary import Operation

if TYPE_CHECKING:
    from barnabas.broker.access.rights import Rights
    from barnabas.broker.broker import Broker
    from barnabas.broker.metrics.counters import TopicMetrics
    from barnabas.protocol.produce_layout import Placed

Topic = ProduceResponse.TopicProduceResponse
PartitionResponse = Topic.PartitionProduceResponse
ACKS = (-1, 0, 1)
ALL = -1
TOPIC_IDS_SINCE = 13
LEADERS_SINCE = 10
REGISTRY_TURNS_MAX = 16
REFUSED_BY_THE_LOG = (
    ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER,
    ErrorCode.INVALID_PRODUCER_EPOCH,
    ErrorCode.INVALID_TXN_STATE,
)
ADMIN_CLIENT = "__admin_client"


NEEDS = (
    transactional_id(Operation.WRITE).asked_by_handler(),  # where a batch is transactional
    Need(Operation.WRITE, TOPIC, "topic_data.name", Where.ITEM, "responses").asked_by_handler(),
)


@handles(ProduceRequest, "3-13", announced_from=0, needs=NEEDS)
def produce(request: ProduceRequest, context: RequestContext) -> Message | Awaitable[Response | None] | None:
    appended, context.appended = context.appended, ()
    if is_long(request):
        if not context.owns_frame:
            producing.copy_out_of_arena(request)
        return produce_long(request, context)
    if request.transactional_id is None:
        if len(request.topic_data) != 1 or len(request.topic_data[0].partition_data) != 1:
            refusal = producing.missing_transactional_id(request)
            if refusal is not None:
                return refuse_all(request, context, refusal)
        return append(request, context, None, appended)
    if context.rights is not None and not may_write_as(request.transactional_id, request, context.rights):
        return refuse_all(request, context, KafkaError(ErrorCode.TRANSACTIONAL_ID_AUTHORIZATION_FAILED))
    try:
        verified = producing.verify_request(request, request.transactional_id, context)
    except KafkaError as error:
        return refuse_all(request, context, error)
    if isinstance(verified, dict):
        return append(request, context, verified, appended)
    return when_verified(request, context, verified, appended)


async def produce_long(request: ProduceRequest, context: RequestContext) -> Response | None:
    """Append many batches in parts, and encode the response in pieces."""
    pieces, rights = context.broker.pieces, context.rights
    transactional_id = request.transactional_id
    verified: Verified | None = None
    refusal: KafkaError | None = None
    response: Message | None
    is_transactional = await pieces.run(producing.find_transactions(request))
    if transactional_id is None:
        refusal = producing.MISSING_TRANSACTIONAL_ID if is_transactional else None
    elif (
        is_transactional
        and rights is not None
        and not rights.allow_write_as(transactional_id, ApiKey.PRODUCE)
    ):
        refusal = KafkaError(ErrorCode.TRANSACTIONAL_ID_AUTHORIZATION_FAILED)
    else:
        try:
            found = producing.verify_request(request, transactional_id, context)
            verified = found if isinstance(found, dict) else await found
        except KafkaError as error:
            refusal = error
    if refusal is not None:
        response = await pieces.run(refuse_each(request, context, refusal))
    else:
        response = await append_in_parts(
            request, context, lambda part, for_part: append(part, for_part, verified, ()), not_written
        )
    if response is None:
        return None
    return await pieces.run(encode_in_steps(response, context.version))


async def when_verified(
    request: ProduceRequest,
    context: RequestContext,
    verified: Awaitable[Verified],
    appended: Sequence[Placed],
) -> Message | None:
    """Append after the transaction coordinator has verified the partitions."""
    result = append(request, context, await verified, appended)
    return result if result is None or isinstance(result, Message) else await result


async def when_prepared(
    request: ProduceRequest,
    context: RequestContext,
    verified: Verified | None,
    prepared: Awaitable[PreparedBatches],
    turns: int,
) -> Message | None:
    """Append after a thread has validated the batches."""
    found = await prepared
    try:
        preparing.check_schemas_known(found)
    except NeedsSchemas as needed:
        return await when_known(request, context, verified, needed, turns)
    return append_validated(request, context, verified, found)


async def when_known(
    request: ProduceRequest,
    context: RequestContext,
    verified: Verified | None,
    needed: NeedsSchemas,
    turns: int,
) -> Message | None:
    """Append after a schema registry has been asked. Of many unknown ids it is asked about some at a time."""
    broker = context.broker
    try:
        if turns >= REGISTRY_TURNS_MAX:
            raise KafkaError(ErrorCode.REQUEST_TIMED_OUT, "too many schemas are unknown: try again")
        await broker.schema_lookups.learn(needed.unknown)
    except KafkaError as error:
        now_ms = broker.clock.now_ms()
        prepared = await broker.preparing.prepare(request, context.version, broker.partitions, now_ms)
        for key, found in prepared.items():
            if isinstance(found, NeedsSchemas):
                prepared[key] = error
        return append_validated(request, context, verified, prepared)
    result = append(request, context, verified, (), turns + 1)
    return result if result is None or isinstance(result, Message) else await result


def append(
    request: ProduceRequest,
    context: RequestContext,
    verified: Verified | None,
    appended: Sequence[Placed],
    turns: int = 0,
) -> Message | Awaitable[Message | None] | None:
    """Append the batches that are not `appended` yet, and respond. A registry was asked `turns` times."""
    try:
        prepared = None
        if len(request.topic_data) != 1 or len(request.topic_data[0].partition_data) != 1:
            prepared = preparing.validate_at_once(request, context)
        return append_validated(request, context, verified, prepared, appended)
    except NeedsSchemas as needed:  # nothing is appended yet
        producing.copy_out_of_arena(request)
        return when_known(request, context, verified, needed, turns)
    except NeedsThread:  # nothing is appended yet
        producing.copy_out_of_arena(request)
        broker = context.broker
        found = broker.preparing.prepare(request, context.version, broker.partitions, broker.clock.now_ms())
        return when_prepared(request, context, verified, found, turns)


def append_validated(
    request: ProduceRequest,
    context: RequestContext,
    verified: Verified | None,
    prepared: PreparedBatches | None,
    appended: Sequence[Placed] = (),
) -> Message | None:
    """Append batches that were validated, or a single one that was not; that one may raise `NeedsThread`."""
    broker = context.broker
    partitions = broker.partitions
    version = context.version
    acks = request.acks
    rights = context.rights
    now_ms = broker.clock.now_ms()
    topics: list[Topic] = []
    waits: list[Wait] = []
    failed = False
    done = 0
    for data in request.topic_data:
        results = []
        for given in data.partition_data:
            try:
                if acks not in ACKS:
                    raise KafkaError(ErrorCode.INVALID_REQUIRED_ACKS)
                if rights is not None:
                    check_topic(data.name, data.topic_id, context, rights)
                if version < TOPIC_IDS_SINCE:
                    partition = partitions.leader(data.name, given.index)
                else:
                    partition = partitions.leader_by_id(data.topic_id, given.index)
                if partition.is_internal and context.client_id != ADMIN_CLIENT:
                    raise KafkaError(
                        ErrorCode.INVALID_TOPIC_EXCEPTION, f"{partition.topic} is written by brokers only"
                    )
                verification = None
                if verified is not None:
                    found = verified.get(partition, ONGOING)
                    if isinstance(found, NotVerified):
                        raise found
                    verification = found
                if done < len(appended):
                    base_offset, append_time_ms, log_start = appended[done]
                    done += 1
                else:
                    validated = None if prepared is None else prepared.get(id(given))
                    if isinstance(validated, KafkaError):
                        raise validated
                    base_offset, append_time_ms = partition.append(
                        given.records, acks, version, now_ms, verification, validated
                    )
                    log_start = partition.log.log_start_offset
                if acks == ALL and not partition.state.has_no_followers:
                    waits.append((partition, base_offset))
                results.append(
                    PartitionResponse(
                        index=given.index,
                        base_offset=base_offset,
                        log_append_time_ms=append_time_ms,
                        log_start_offset=log_start,
                    )
                )
            except (NeedsThread, NeedsSchemas):
                raise
            except KafkaError as error:
                if verified is None and not failed and not topics and not results:
                    # Nothing is appended yet: a transactional batch may lack its transactional id.
                    refusal = producing.missing_transactional_id(request)
                    if refusal is not None:
                        return refuse_all(request, context, refusal)
                failed = True
                result = refused(given.index, error, context, data.name, data.topic_id)
                if error.code == ErrorCode.MESSAGE_TOO_LARGE:
                    partition.metrics.bytes_rejected += len(given.records or b"")
                results.append(result)
        if results:
            topics.append(Topic(name=data.name, topic_id=data.topic_id, partition_responses=results))
    if acks == 0:
        if failed:
            context.channel.refuse("a batch sent with acks=0 was refused")
        return None
    response = ProduceResponse(responses=topics)
    if failed and version >= LEADERS_SINCE:
        add_current_leaders(response, context)
    if waits:
        context.channel.respond_after_commit(response, waits, request.timeout_ms)
        return None
    return context.channel.respond_after_tick(response, not_written)


def may_write_as(transactional_id: str, request: ProduceRequest, rights: Rights) -> bool:
    """Whether the caller may write with the transactional id, if it does."""
    return not producing.has_transactions(request) or rights.allow_write_as(transactional_id, ApiKey.PRODUCE)


def check_topic(name: str, topic_id: bytes, context: RequestContext, rights: Rights) -> None:
    """Raise KafkaError if the caller may not write to the topic. It need not exist, unless an id names it."""
    if context.version >= TOPIC_IDS_SINCE:
        found = context.broker.image.topics.by_id.get(topic_id)
        if found is None:
            return  # the id is unknown: the partition is not found either
        if not rights.allow_write(found.name, ApiKey.PRODUCE, topic_id):
            raise KafkaError(ErrorCode.TOPIC_AUTHORIZATION_FAILED)
    elif not rights.allow_write(name, ApiKey.PRODUCE):
        raise KafkaError(ErrorCode.TOPIC_AUTHORIZATION_FAILED)


def add_current_leaders(response: ProduceResponse, context: RequestContext) -> None:
    """Add the current leaders, so that the client need not ask for metadata (KIP-951)."""
    topics = context.broker.image.topics
    leaders: dict[int, None] = {}
    for topic in response.responses:
        known = topics.by_name.get(topic.name) if topic.name else topics.by_id.get(topic.topic_id)
        for result in topic.partition_responses:
            if result.error_code == ErrorCode.NOT_LEADER_OR_FOLLOWER and known is not None:
                found = known.partitions.get(result.index)
                if found is not None:
                    result.current_leader = PartitionResponse.LeaderIdAndEpoch(
                        leader_id=found.leader, leader_epoch=found.leader_epoch
                    )
                    leaders[found.leader] = None
    if leaders:
        response.node_endpoints = [
            ProduceResponse.NodeEndpoint(node_id=node.id, host=node.host, port=node.port, rack=node.rack)
            for node in context.broker.nodes(context.listener)
            if node.id in leaders
        ]


def refuse_all(request: ProduceRequest, context: RequestContext, error: KafkaError) -> Message | None:
    """Refuse all partitions of a request with one error."""
    return at_once(refuse_each(request, context, error))


def refuse_each(
    request: ProduceRequest, context: RequestContext, error: KafkaError
) -> Steps[ProduceResponse | None]:
    if request.acks == 0:
        context.channel.refuse(f"a request sent with acks=0 was refused: {error.message}")
        return None
    topics: list[Topic] = []
    for data in request.topic_data:
        results = []
        for given in data.partition_data:
            result = PartitionResponse(index=given.index, error_code=error.code, base_offset=-1)
            result.error_message = error.message
            results.append(result)
            yield
        topics.append(Topic(name=data.name, topic_id=data.topic_id, partition_responses=results))
        yield
    return ProduceResponse(responses=topics)


USUAL_ERRORS = frozenset(
    {
        ErrorCode.CORRUPT_MESSAGE,
        ErrorCode.INVALID_TOPIC_EXCEPTION,
        ErrorCode.KAFKA_STORAGE_ERROR,
        ErrorCode.MESSAGE_TOO_LARGE,
        ErrorCode.NOT_LEADER_OR_FOLLOWER,
        ErrorCode.RECORD_LIST_TOO_LARGE,
        ErrorCode.UNKNOWN_TOPIC_ID,
        ErrorCode.UNKNOWN_TOPIC_OR_PARTITION,
    }
)
"""Apache Kafka counts a write that ends with one of them, but not as failed."""
BEFORE_THE_LOG = frozenset({ErrorCode.INVALID_REQUIRED_ACKS, ErrorCode.TOPIC_AUTHORIZATION_FAILED})
"""Errors of writes that are not counted."""
REFUSALS = {
    ErrorCode.CORRUPT_MESSAGE: "invalid_crc_records",
    ErrorCode.UNSUPPORTED_FOR_MESSAGE_FORMAT: "invalid_magic_records",
}
"""Counters of `TopicMetrics`, by the error of a batch that they count."""


def counters_of(index: int, error: KafkaError, broker: Broker, topic: str, topic_id: bytes) -> TopicMetrics:
    """Count a refused write to a partition. Returns the counters of its topic."""
    topics = broker.image.topics
    known = topics.by_name.get(topic) if topic else topics.by_id.get(topic_id)
    metrics = broker.metrics.named_topic(known.name if known is not None else topic, topics.by_name)
    is_counted = error.code not in BEFORE_THE_LOG and not isinstance(error, NotVerified)
    if known is not None and index in known.partitions and is_counted:
        metrics.produce_requests += 1
        metrics.refused_produce_requests += 1
        metrics.failed_produce_requests += error.code not in USUAL_ERRORS
    return metrics


def refused(
    index: int, error: KafkaError, context: RequestContext, topic: str, topic_id: bytes
) -> PartitionResponse:
    result = PartitionResponse(
        index=index, error_code=error.code, base_offset=-1, error_message=error.message or None
    )
    metrics = counters_of(index, error, context.broker, topic, topic_id)
    counter = REFUSALS.get(error.code)
    if counter is not None:
        setattr(metrics, counter, getattr(metrics, counter) + 1)
    by_the_log = error.code in REFUSED_BY_THE_LOG and not isinstance(error, NotVerified)
    if by_the_log or isinstance(error, RecordsRejected):
        partitions = context.broker.partitions
        found = partitions.get(topic, index) or partitions.get_by_id(topic_id, index)
        result.log_start_offset = found.log.log_start_offset if found is not None else -1
    if isinstance(error, RecordsRejected):
        metrics.no_key_records += error.without_key
        metrics.invalid_sequence_records += error.is_misnumbered
        result.record_errors = [
            PartitionResponse.BatchIndexAndErrorMessage(
                batch_index=batch_index, batch_index_error_message=message
            )
            for batch_index, message in error.record_errors
        ]
    return result
