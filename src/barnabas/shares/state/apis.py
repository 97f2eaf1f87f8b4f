"""The five APIs of share state, which have one shape: a group, and under each topic some partitions.

In: requests. Out: their items, one for each share partition; requests and responses made of items. A
coordinator splits a request by shard with this, and the persister by coordinator.
Does not know: state, errors' causes.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, NamedTuple

from barnabas.protocol import KafkaError, Message
from barnabas.protocol.messages.delete_share_group_state import (
    DeleteShareGroupStateRequest,
    DeleteShareGroupStateResponse,
)
from barnabas.protocol.messages.initialize_share_group_state import (
    InitializeShareGroupStateRequest,
    InitializeShareGroupStateResponse,
)
from barnabas.protocol.messages.read_share_group_state import (
    ReadShareGroupStateRequest,
    ReadShareGroupStateResponse,
)
from barnabas.protocol.messages.read_share_group_state_summary import (
    ReadShareGroupStateSummaryRequest,
    ReadShareGroupStateSummaryResponse,
)
from barnabas.protocol.messages.write_share_group_state import (
    WriteShareGroupStateRequest,
    WriteShareGroupStateResponse,
)
from barnabas.shares.state.keys import ShareKey


class StateApi(NamedTuple):
    request: type[Message]
    topic: Any  # type of a topic in the request
    response: Any
    result: Any  # type of a topic in the response
    verb: str


APIS: dict[type[Message], StateApi] = {
    api.request: api
    for api in (
        StateApi(
            InitializeShareGroupStateRequest,
            InitializeShareGroupStateRequest.InitializeStateData,
            InitializeShareGroupStateResponse,
            InitializeShareGroupStateResponse.InitializeStateResult,
            "initialize share group state",
        ),
        StateApi(
            ReadShareGroupStateRequest,
            ReadShareGroupStateRequest.ReadStateData,
            ReadShareGroupStateResponse,
            ReadShareGroupStateResponse.ReadStateResult,
            "read share group state",
        ),
        StateApi(
            WriteShareGroupStateRequest,
            WriteShareGroupStateRequest.WriteStateData,
            WriteShareGroupStateResponse,
            WriteShareGroupStateResponse.WriteStateResult,
            "write share group state",
        ),
        StateApi(
            DeleteShareGroupStateRequest,
            DeleteShareGroupStateRequest.DeleteStateData,
            DeleteShareGroupStateResponse,
            DeleteShareGroupStateResponse.DeleteStateResult,
            "delete share group state",
        ),
        StateApi(
            ReadShareGroupStateSummaryRequest,
            ReadShareGroupStateSummaryRequest.ReadStateSummaryData,
            ReadShareGroupStateSummaryResponse,
            ReadShareGroupStateSummaryResponse.ReadStateSummaryResult,
            "read share group state summary",
        ),
    )
}


class Item(NamedTuple):
    """The question of a request about one share partition; `data` is its part of the request."""

    key: ShareKey
    data: Any


class Result(NamedTuple):
    """The answer of a response about one share partition; `data` is its part of the response."""

    topic_id: bytes
    data: Any


def items_of(request: Any) -> list[Item]:
    group_id: str = request.group_id
    return [
        Item(ShareKey(group_id, topic.topic_id, data.partition), data)
        for topic in request.topics
        for data in topic.partitions
    ]


def is_empty(request: Any) -> bool:
    """Whether the response has no results: the group or the topics are missing, or the partitions of any
    topic. Apache Kafka initializes the other topics nevertheless."""
    if not request.group_id or not request.topics:
        return True
    if isinstance(request, InitializeShareGroupStateRequest):
        return False
    return not all(topic.partitions for topic in request.topics)


def request_of(kind: type[Message], items: Iterable[Item]) -> Any:
    """A request of a kind for these items, which are of one group."""
    topics: dict[bytes, list[Any]] = {}
    group_id = ""
    for key, data in items:
        group_id = key.group_id
        topics.setdefault(key.topic_id, []).append(data)
    api: Any = APIS[kind]
    return api.request(
        group_id=group_id,
        topics=[api.topic(topic_id=topic_id, partitions=found) for topic_id, found in topics.items()],
    )


def results_of(response: Any) -> list[Result]:
    return [Result(topic.topic_id, data) for topic in response.results for data in topic.partitions]


def response_of(kind: type[Message], results: Iterable[Result]) -> Any:
    """A response to a request of a kind. A partition that was named twice has the later result."""
    topics: dict[bytes, dict[int, Any]] = {}
    for topic_id, data in results:
        topics.setdefault(topic_id, {})[data.partition] = data
    api = APIS[kind]
    return api.response(
        results=[
            api.result(topic_id=topic_id, partitions=list(found.values()))
            for topic_id, found in topics.items()
        ]
    )


def refused(kind: type[Message], item: Item, error: KafkaError) -> Result:
    """The result of an item that has an error."""
    return Result(
        item.key.topic_id,
        APIS[kind].result.PartitionResult(
            partition=item.key.partition, error_code=error.code, error_message=error.message
        ),
    )


def refusal(request: Message, error: KafkaError) -> Any:
    """The response to a request whose coordinator cannot serve it."""
    kind = type(request)
    if is_empty(request):
        return response_of(kind, ())
    told = KafkaError(error.code, f"Unable to {APIS[kind].verb}: {error.message}")
    return response_of(kind, [refused(kind, item, told) for item in items_of(request)])


def turn_into_error(response: Any, error: KafkaError) -> None:
    """Give each partition of a response that was ready this error, since its records were lost."""
    for topic in response.results:
        for data in topic.partitions:
            fresh = type(data)(partition=data.partition, error_code=error.code, error_message=error.message)
            topic.partitions[topic.partitions.index(data)] = fresh
