"""TxnOffsetCommit: commits the offsets of a group in a producer's transaction.

The partition that stores the group's offsets is first verified as part of the transaction, or added to it
(version 5 and later). The offsets are pending until the transaction ends.
"""

from __future__ import annotations

from collections.abc import Awaitable
from functools import partial
from typing import TYPE_CHECKING

from barnabas.broker.api.context import RequestContext
from barnabas.broker.api.deferred import Deferred, Response
from barnabas.broker.api.needs import TOPIC, each, read_group, write_transactional_id
from barnabas.broker.api.routes import handles
from barnabas.broker.coordinators.journal import as_coordinator_error
from barnabas.broker.coordinators.transaction_coordinator import resolved
from barnabas.broker.produce.verifying import Level, NotVerified, Producer, Verified, verify
from barnabas.metadata.steps import Steps, at_once
from barnabas.protocol import ErrorCode, KafkaError, Message
from barnabas.protocol.messages.txn_offset_commit import TxnOffsetCommitRequest
from barnabas.records.batch import NO_SEQUENCE
from barnabas.security.acls.vocabulary import Operation

if TYPE_CHECKING:
    from barnabas.broker.coordinators.group_host import GroupHost

TV1_SINCE = 4
TV2_SINCE = 5
UNKNOWN = KafkaError(ErrorCode.UNKNOWN_TOPIC_OR_PARTITION)
LOADING_SINCE = 2  # clients before that do not know COORDINATOR_LOAD_IN_PROGRESS


NEEDS = (
    write_transactional_id,
    read_group,
    each(TOPIC, Operation.READ, "topics.name", "topics"),
)


@handles(TxnOffsetCommitRequest, "0-5", needs=NEEDS)
def txn_offset_commit(
    request: TxnOffsetCommitRequest, context: RequestContext
) -> Message | Deferred | Awaitable[Response | None] | None:
    if context.owns_frame:
        return look_up_in_pieces(request, context)
    is_known = at_once(names_a_partition(request, context))
    return verify_and_commit(request, context) if is_known else refused(request, context, UNKNOWN.copy())


async def look_up_in_pieces(request: TxnOffsetCommitRequest, context: RequestContext) -> Response | None:
    """Commit the offsets of a large request."""
    pieces = context.broker.pieces
    if not await pieces.run(names_a_partition(request, context)):
        return await pieces.run(refuse(request, context, UNKNOWN.copy()))
    found = verify_and_commit(request, context)
    if found is None or isinstance(found, Message):
        return found
    return await (resolved(found) if isinstance(found, Deferred) else found)


def names_a_partition(request: TxnOffsetCommitRequest, context: RequestContext) -> Steps[bool]:
    """Whether any partition of the request exists."""
    topics = context.broker.image.topics
    for topic in request.topics:
        for partition in topic.partitions:
            if topics.partition(topic.name, partition.partition_index) is not None:
                return True
            yield
    return False


def verify_and_commit(
    request: TxnOffsetCommitRequest, context: RequestContext
) -> Message | Deferred | Awaitable[Message | None] | None:
    broker = context.broker
    groups = broker.groups
    if not request.group_id:
        return refused(request, context, KafkaError(ErrorCode.INVALID_GROUP_ID))
    host = groups.host_of(request.group_id)
    if host is None:
        return refused(request, context, groups.error_without_host(request.group_id))
    producer = Producer(request.transactional_id, request.producer_id, request.producer_epoch)
    level = level_of(context.version)
    verified = verify(broker, producer, {host.partition: NO_SEQUENCE}, level, retries=False)
    if isinstance(verified, dict):
        return commit(request, context, host, verified)
    return commit_later(request, context, host, verified)


def level_of(version: int) -> Level:
    if version >= TV2_SINCE:
        return Level.TV2
    return Level.TV1 if version >= TV1_SINCE else Level.TV0


async def commit_later(
    request: TxnOffsetCommitRequest, context: RequestContext, host: GroupHost, verified: Awaitable[Verified]
) -> Message | None:
    response = commit(request, context, host, await verified)
    return await resolved(response) if isinstance(response, Deferred) else response


def commit(
    request: TxnOffsetCommitRequest, context: RequestContext, host: GroupHost, verified: Verified
) -> Message | Deferred | None:
    """Commit after verification; the host may have lost its group while it waited."""
    verification = verified[host.partition]
    try:
        if isinstance(verification, NotVerified):
            raise verification
        refusal = partial(refused, request, context)
        response = host.commit_in_transaction(request, context, verification, refusal)
    except KafkaError as error:
        return refused(request, context, error)
    return host.respond(response, context)


def refused(request: TxnOffsetCommitRequest, context: RequestContext, error: KafkaError) -> Message:
    """The response with the error for every partition that exists."""
    return at_once(refuse(request, context, error))


def refuse(request: TxnOffsetCommitRequest, context: RequestContext, error: KafkaError) -> Steps[Message]:
    from barnabas.groups.offsets.transactional_commit import TransactionalCommit

    code = as_coordinator_error(error).code
    if code == ErrorCode.NETWORK_EXCEPTION:
        code = ErrorCode.COORDINATOR_LOAD_IN_PROGRESS
    if code == ErrorCode.COORDINATOR_LOAD_IN_PROGRESS and context.version < LOADING_SINCE:
        code = ErrorCode.COORDINATOR_NOT_AVAILABLE
    commit = TransactionalCommit(request)
    yield from commit.look_up(context.broker.image.topics)
    return commit.refuse(code)
