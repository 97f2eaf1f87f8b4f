"""Questions about many things, each with a broker of its own: partitions, groups, transactional ids.

In: the things, how to find the broker of each, and a question for one broker. Out: a result or an error for
each; brokers that moved or cannot be reached are found and asked again while there is time.
Does not know: what is asked.
"""

from collections.abc import Awaitable, Callable, Iterable, Mapping
from typing import TypeVar

from barnabas.client.core.cluster import ClusterCore
from barnabas.client.core.errors import Unreachable, error_of
from barnabas.client.core.topology import Node, TopicPartition
from barnabas.protocol import ErrorCode, KafkaError

K = TypeVar("K")
V = TypeVar("V")
T = TypeVar("T")

Found = dict[K, T | KafkaError]
Results = Mapping[TopicPartition, T | KafkaError]
Question = Callable[[Node, Mapping[TopicPartition, V]], Awaitable[Results[T]]]


async def ask_each(
    cluster: ClusterCore,
    wanted: Iterable[K],
    find: Callable[[list[K], Found[K, T]], Awaitable[Mapping[Node, list[K]]]],
    question: Callable[[Node, list[K]], Awaitable[Mapping[K, T | KafkaError]]],
    forget: Callable[[list[K]], None],
    *,
    unknown: ErrorCode,
    timeout_ms: float | None = None,
) -> Found[K, T]:
    """`find` tells the brokers of things, and puts errors that are for good into what is found; `unknown` is
    the error of a thing whose broker is not found in time."""
    found: Found[K, T] = {}
    order = list(dict.fromkeys(wanted))
    patience = cluster.patience(timeout_ms)
    left = order
    while left:
        problem: KafkaError | Unreachable = KafkaError(unknown)
        nodes: Mapping[Node, list[K]] = {}
        try:
            nodes = await find(left, found)
        except KafkaError as error:
            if not error.code.retriable:
                raise
            problem = error
        except Unreachable as error:
            if not cluster.may_retry:
                raise
            problem = error
        moved: list[K] = []
        for node, keys in nodes.items():
            try:
                results = await question(node, keys)
            except Unreachable as error:
                problem = error
                moved += keys
                continue
            for key, result in results.items():
                if isinstance(result, KafkaError) and result.code.retriable:
                    problem = result
                    moved.append(key)
                else:
                    found[key] = result
        left = [key for key in left if key not in found]
        if left:
            forget(moved)
            try:
                await patience.pause(problem)
            except KafkaError as error:
                found.update(dict.fromkeys(left, error))
                break
    return {key: found[key] for key in order}


async def ask_leaders(
    cluster: ClusterCore,
    wanted: Mapping[TopicPartition, V],
    question: Question[V, T],
    *,
    timeout_ms: float | None = None,
) -> dict[TopicPartition, T | KafkaError]:
    """The response of each partition's leader."""

    async def find(
        left: list[TopicPartition], found: Found[TopicPartition, T]
    ) -> dict[Node, list[TopicPartition]]:
        unknown = {
            topic_partition.topic
            for topic_partition in left
            if cluster.topology.leader(topic_partition) is None
        }
        if unknown:
            await cluster.refresh(unknown)
        grouped: dict[Node, list[TopicPartition]] = {}
        for topic_partition in left:
            leader = cluster.topology.leader(topic_partition)
            topic = cluster.topology.topics.get(topic_partition.topic)
            if leader is not None:
                grouped.setdefault(leader, []).append(topic_partition)
            elif topic is None or topic.error_code or topic_partition.partition not in topic.partitions:
                code = ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
                found[topic_partition] = error_of(code, f"partition {topic_partition} does not exist")
        return grouped

    return await ask_each(
        cluster,
        wanted,
        find,
        lambda leader, some: question(
            leader, {topic_partition: wanted[topic_partition] for topic_partition in some}
        ),
        lambda moved: cluster.forget_leaders({topic_partition.topic for topic_partition in moved}),
        unknown=ErrorCode.LEADER_NOT_AVAILABLE,
        timeout_ms=timeout_ms,
    )
