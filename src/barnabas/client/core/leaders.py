"""Questions for the leaders of partitions: each leader is asked once about those that it leads.

In: a Cluster, a value for each partition, and a question for one broker. Out: an answer or an error for each
partition; leaders that moved or cannot be reached are found and asked again while there is time.
Does not know: what is asked.
"""

from collections.abc import Awaitable, Callable, Mapping
from typing import TypeVar

from barnabas.client.core.cluster import ClusterCore
from barnabas.client.core.errors import Unreachable, error_of
from barnabas.client.core.patience import Patience
from barnabas.client.core.topology import Node, TopicPartition
from barnabas.protocol import ErrorCode, KafkaError

V = TypeVar("V")
T = TypeVar("T")

Answers = Mapping[TopicPartition, T | KafkaError]
Question = Callable[[Node, Mapping[TopicPartition, V]], Awaitable[Answers[T]]]


async def ask_leaders(
    cluster: ClusterCore,
    wanted: Mapping[TopicPartition, V],
    question: Question[V, T],
    *,
    timeout_ms: float | None = None,
) -> dict[TopicPartition, T | KafkaError]:
    """What the leader of each partition answers."""
    found: dict[TopicPartition, T | KafkaError] = {}
    patience = cluster.patience(timeout_ms)
    left = dict(wanted)
    while left:
        problem: KafkaError | Unreachable | None = None
        for leader, partitions in (await by_leader(cluster, left, found, patience)).items():
            try:
                answers = await question(leader, partitions)
            except Unreachable as error:
                problem = error
                continue
            for where, answer in answers.items():
                if isinstance(answer, KafkaError) and answer.code.retriable:
                    problem = answer
                else:
                    found[where] = answer
        left = {where: value for where, value in left.items() if where not in found}
        if not left:
            break
        cluster.forget_leaders({where.topic for where in left})
        try:
            await patience.pause(problem or KafkaError(ErrorCode.LEADER_NOT_AVAILABLE))
        except KafkaError as error:
            found.update(dict.fromkeys(left, error))
            break
    return found


async def by_leader(
    cluster: ClusterCore,
    wanted: Mapping[TopicPartition, V],
    found: dict[TopicPartition, T | KafkaError],
    patience: Patience,
) -> dict[Node, dict[TopicPartition, V]]:
    """The partitions of each leader; those that do not exist are `found` to be unknown."""
    unknown = {where.topic for where in wanted if cluster.topology.leader(where) is None}
    if unknown:
        await cluster.retrying(lambda: cluster.refresh(unknown), patience=patience)
    grouped: dict[Node, dict[TopicPartition, V]] = {}
    for where, value in wanted.items():
        leader = cluster.topology.leader(where)
        topic = cluster.topology.topics.get(where.topic)
        if leader is not None:
            grouped.setdefault(leader, {})[where] = value
        elif topic is None or topic.error_code or where.partition not in topic.partitions:
            found[where] = error_of(ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, f"partition {where} does not exist")
    return grouped
