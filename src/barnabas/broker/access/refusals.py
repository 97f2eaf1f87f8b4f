"""Error responses of refused requests: one code for everything in the request, in the form of its API.

In: a request and a code. Out: the response. Most APIs mirror their request: each topic and partition of it
has a result with the code. Others have one code for the whole response.
Does not know: why a request is refused.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

from barnabas.broker.coordinators import group_refusals
from barnabas.controller import refusals as controller_refusals
from barnabas.protocol import ApiKey, ErrorCode, KafkaError, Message, apis

NO_NODE = -1
KEYS_SINCE = 4  # of FindCoordinator
BATCHED_SINCE = 4  # of AddPartitionsToTxn
WHOLE_ERROR_SINCE = 1  # of ElectLeaders


class Mirror(NamedTuple):
    """A list of results that mirrors a list of the request."""

    source: str  # the list in the request
    target: str  # the list in the response
    same: tuple[str, ...]  # fields that are copied; one name for a list of plain values
    inner: Mirror | None = None  # where the code is, if not here
    others: tuple[tuple[str, Any], ...] = ()  # further fields of the results
    code: str = "error_code"
    has_message: bool = False


TOPICS = "topics"
TOPIC_PARTITIONS = Mirror(TOPICS, TOPICS, ("name",), Mirror("partitions", "partitions", ("partition_index",)))
GROUPS = Mirror("group_ids", "groups", ("group_id",), has_message=True)
SHARE_STATE = Mirror(
    TOPICS,
    "results",
    ("topic_id",),
    Mirror("partitions", "partitions", ("partition",), has_message=True),
)

MIRRORS: dict[ApiKey, Mirror] = {
    ApiKey.LIST_OFFSETS: TOPIC_PARTITIONS,
    ApiKey.DELETE_RECORDS: Mirror(
        TOPICS,
        TOPICS,
        ("name",),
        Mirror("partitions", "partitions", ("partition_index",), others=(("low_watermark", -1),)),
    ),
    ApiKey.OFFSET_FOR_LEADER_EPOCH: Mirror(
        TOPICS, TOPICS, ("topic",), Mirror("partitions", "partitions", ("partition",))
    ),
    ApiKey.DESCRIBE_PRODUCERS: Mirror(
        TOPICS,
        TOPICS,
        ("name",),
        Mirror("partition_indexes", "partitions", ("partition_index",), has_message=True),
    ),
    ApiKey.DESCRIBE_CONFIGS: Mirror(
        "resources", "results", ("resource_type", "resource_name"), has_message=True
    ),
    ApiKey.WRITE_TXN_MARKERS: Mirror(
        "markers",
        "markers",
        ("producer_id",),
        Mirror(TOPICS, TOPICS, ("name",), Mirror("partition_indexes", "partitions", ("partition_index",))),
    ),
    ApiKey.ALTER_PARTITION_REASSIGNMENTS: Mirror(
        TOPICS,
        "responses",
        ("name",),
        Mirror("partitions", "partitions", ("partition_index",), has_message=True),
    ),
    ApiKey.ALTER_CLIENT_QUOTAS: Mirror("entries", "entries", (), has_message=True),
    ApiKey.SHARE_GROUP_DESCRIBE: GROUPS,
    ApiKey.STREAMS_GROUP_DESCRIBE: Mirror("group_ids", "groups", ("group_id",)),
    ApiKey.DESCRIBE_SHARE_GROUP_OFFSETS: Mirror("groups", "groups", ("group_id",), has_message=True),
    ApiKey.INITIALIZE_SHARE_GROUP_STATE: SHARE_STATE,
    ApiKey.READ_SHARE_GROUP_STATE: SHARE_STATE,
    ApiKey.WRITE_SHARE_GROUP_STATE: SHARE_STATE,
    ApiKey.DELETE_SHARE_GROUP_STATE: SHARE_STATE,
    ApiKey.READ_SHARE_GROUP_STATE_SUMMARY: SHARE_STATE,
}
# APIs whose error of a whole request differs from the errors of all its items.
ITEM_MIRRORS: dict[ApiKey, Mirror] = {
    ApiKey.OFFSET_DELETE: TOPIC_PARTITIONS,
    ApiKey.ALTER_SHARE_GROUP_OFFSETS: Mirror(
        TOPICS,
        "responses",
        ("topic_name",),
        Mirror("partitions", "partitions", ("partition_index",), has_message=True),
    ),
    ApiKey.DELETE_SHARE_GROUP_OFFSETS: Mirror(TOPICS, "responses", ("topic_name",), has_message=True),
}


def refuse(request: Message, code: ErrorCode, version: int, *, items: bool = False) -> Message:
    """The response to a request that is refused. `items`: it holds the refused items of a larger one."""
    key = ApiKey(request.schema.key or 0)
    mirror = ITEM_MIRRORS.get(key) if items else None
    mirror = mirror or MIRRORS.get(key)
    if mirror is not None:
        response: Any = apis.response_class(key)()
        setattr(response, mirror.target, mirrored(mirror, request, response, code))
        if hasattr(response, "error_code"):
            with_error(response, code)
        if key == ApiKey.ALTER_CLIENT_QUOTAS:
            copy_entities(request, response)
        return response  # type: ignore[no-any-return]
    build = SPECIAL.get(key)
    if build is not None:
        return build(request, code, version)
    if key in TRANSACTIONAL:
        from barnabas.transactions import responses

        return responses.refusal(request, code, version)
    if type(request) in group_refusals.REFUSALS:
        return group_refusals.refusal(request, KafkaError(code), version)
    return controller_refusals.refusal(request, KafkaError(code), version)


TRANSACTIONAL = (
    ApiKey.INIT_PRODUCER_ID,
    ApiKey.ADD_OFFSETS_TO_TXN,
    ApiKey.END_TXN,
    ApiKey.DESCRIBE_TRANSACTIONS,
)


def mirrored(mirror: Mirror, request: Any, response: Any, code: ErrorCode) -> list[Any]:
    field = next(field for field in response.schema.fields if field.name == mirror.target)
    results = []
    for asked in getattr(request, mirror.source) or ():
        result = field.struct(**dict(mirror.others))
        for name in mirror.same:
            setattr(result, name, getattr(asked, name, asked))
        if mirror.inner is not None:
            setattr(result, mirror.inner.target, mirrored(mirror.inner, asked, result, code))
        else:
            setattr(result, mirror.code, code)
            if mirror.has_message:
                result.error_message = code.message
        results.append(result)
    return results


def with_error(response: Any, code: ErrorCode) -> None:
    response.error_code = code
    if hasattr(response, "error_message"):
        response.error_message = code.message


def copy_entities(request: Any, response: Any) -> None:
    for asked, result in zip(request.entries, response.entries, strict=True):
        entity = next(field for field in result.schema.fields if field.name == "entity").struct
        result.entity = [
            entity(entity_type=part.entity_type, entity_name=part.entity_name) for part in asked.entity
        ]


def find_coordinator(request: Any, code: ErrorCode, version: int) -> Message:
    from barnabas.protocol.messages.find_coordinator import FindCoordinatorResponse

    if version < KEYS_SINCE:
        return FindCoordinatorResponse(
            error_code=code, error_message=code.message, node_id=NO_NODE, port=NO_NODE
        )
    result = FindCoordinatorResponse.Coordinator
    return FindCoordinatorResponse(
        coordinators=[
            result(key=key, node_id=NO_NODE, port=NO_NODE, error_code=code, error_message=code.message)
            for key in request.coordinator_keys
        ],
    )


def alter_replica_log_dirs(request: Any, code: ErrorCode, version: int) -> Message:
    from barnabas.protocol.messages.alter_replica_log_dirs import AlterReplicaLogDirsResponse

    topic_type = AlterReplicaLogDirsResponse.AlterReplicaLogDirTopicResult
    partition_type = topic_type.AlterReplicaLogDirPartitionResult
    topics: dict[str, dict[int, None]] = {}
    for directory in request.dirs:
        for topic in directory.topics:
            topics.setdefault(topic.name, {}).update(dict.fromkeys(topic.partitions))
    return AlterReplicaLogDirsResponse(
        results=[
            topic_type(
                topic_name=name,
                partitions=[partition_type(partition_index=index, error_code=code) for index in indexes],
            )
            for name, indexes in topics.items()
        ]
    )


def describe_user_scram_credentials(request: Any, code: ErrorCode, version: int) -> Message:
    from barnabas.protocol.messages.describe_user_scram_credentials import (
        DescribeUserScramCredentialsResponse,
    )

    result = DescribeUserScramCredentialsResponse.DescribeUserScramCredentialsResult
    return DescribeUserScramCredentialsResponse(
        error_code=code,
        error_message=code.message,
        results=[
            result(user=user.name, error_code=code, error_message=code.message)
            for user in request.users or ()
        ],
    )


def alter_user_scram_credentials(request: Any, code: ErrorCode, version: int) -> Message:
    from barnabas.protocol.messages.alter_user_scram_credentials import AlterUserScramCredentialsResponse

    result = AlterUserScramCredentialsResponse.AlterUserScramCredentialsResult
    names = {change.name for change in (*request.deletions, *request.upsertions)}
    return AlterUserScramCredentialsResponse(
        results=[result(user=name, error_code=code, error_message=code.message) for name in sorted(names)]
    )


def describe_client_quotas(request: Any, code: ErrorCode, version: int) -> Message:
    from barnabas.protocol.messages.describe_client_quotas import DescribeClientQuotasResponse

    return DescribeClientQuotasResponse(error_code=code, error_message=code.message, entries=None)


def elect_leaders(request: Any, code: ErrorCode, version: int) -> Message:
    from barnabas.controller.elections import refused_elections

    response = refused_elections(request, KafkaError(code))
    response.error_code = code if version >= WHOLE_ERROR_SINCE else ErrorCode.NONE
    return response


def add_partitions_to_txn(request: Any, code: ErrorCode, version: int) -> Message:
    from barnabas.protocol.messages.add_partitions_to_txn import AddPartitionsToTxnResponse
    from barnabas.transactions import responses

    if version >= BATCHED_SINCE:
        return AddPartitionsToTxnResponse(error_code=code)
    return responses.refusal(request, code, version)


def create_acls(request: Any, code: ErrorCode, version: int) -> Message:
    from barnabas.controller.acls import refused_acls

    return refused_acls(request, KafkaError(code))


SPECIAL: dict[ApiKey, Callable[[Any, ErrorCode, int], Message]] = {
    ApiKey.FIND_COORDINATOR: find_coordinator,
    ApiKey.ALTER_REPLICA_LOG_DIRS: alter_replica_log_dirs,
    ApiKey.DESCRIBE_USER_SCRAM_CREDENTIALS: describe_user_scram_credentials,
    ApiKey.ALTER_USER_SCRAM_CREDENTIALS: alter_user_scram_credentials,
    ApiKey.DESCRIBE_CLIENT_QUOTAS: describe_client_quotas,
    ApiKey.ELECT_LEADERS: elect_leaders,
    ApiKey.ADD_PARTITIONS_TO_TXN: add_partitions_to_txn,
    ApiKey.CREATE_ACLS: create_acls,
    ApiKey.DELETE_ACLS: create_acls,
}
