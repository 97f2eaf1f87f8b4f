"""How far groups are behind, as resources of v3: for each partition, and summed up.

Partitions count that have a committed offset. A group without members has no lags, as at Confluent's.
"""

from __future__ import annotations

from dataclasses import dataclass

from starlette.responses import Response

from barnabas.client.admin.groups import GroupMember
from barnabas.client.admin.offsets import FoundOffset, OffsetSpec
from barnabas.client.core.topology import TopicPartition
from barnabas.rest.kafka_errors import NOT_FOUND, refusal
from barnabas.rest.v3 import lists
from barnabas.rest.v3.call import Call
from barnabas.rest.v3.groups import ONE, READS, group_of
from barnabas.rest.v3.resources import Links, Resource
from barnabas.rest.v3.schemas import NO_TOPIC, PATH_TYPES
from barnabas.services.openapi import Operations

LAGS = Operations("v3: consumer groups", PATH_TYPES)
NO_MEMBER = GroupMember("", None, "", "", ())


@dataclass(frozen=True, slots=True)
class Lag:
    where: TopicPartition
    current: int
    end: int
    member: GroupMember

    @property
    def lag(self) -> int:
        return max(0, self.end - self.current)


@LAGS.declare(
    "GET",
    f"{ONE}/lags",
    "List how far a group is behind",
    responses={200: "ConsumerLagDataList"},
    errors=READS,
)
async def list_lags(call: Call) -> Response:
    group_id, lags = await lags_of(call)
    found = (lag_resource(call.links, group_id, each) for each in lags)
    url = call.links.url("consumer-groups", group_id, "lags")
    return await lists.listed("KafkaConsumerLagList", url, lists.page_of(found))


@LAGS.declare(
    "GET",
    f"{ONE}/lags/{{topic_name}}/partitions/{{partition_id}}",
    "How far a group is behind in one partition",
    responses={200: "ConsumerLagData"},
    errors=(*READS, NO_TOPIC),
)
async def get_lag(call: Call) -> Response:
    where = TopicPartition(call.path("topic_name"), call.number("partition_id"))
    group_id, lags = await lags_of(call)
    for each in lags:
        if each.where == where:
            return lists.one(lag_resource(call.links, group_id, each))
    raise refusal(404, NOT_FOUND, f"Consumer group {group_id} committed no offset of partition {where}.")


@LAGS.declare(
    "GET",
    f"{ONE}/lag-summary",
    "How far a group is behind, in sum and at most",
    responses={200: "ConsumerGroupLagSummaryData"},
    errors=READS,
)
async def get_lag_summary(call: Call) -> Response:
    group_id, lags = await lags_of(call)
    if not lags:
        raise refusal(404, 404, f"Consumer group {group_id} committed no offsets.")
    worst = max(lags, key=lambda each: each.lag)
    links = call.links
    member = worst.member
    fields = {
        "consumer_group_id": group_id,
        "max_lag_consumer_id": member.member_id,
        "max_lag_instance_id": member.instance_id,
        "max_lag_client_id": member.client_id,
        "max_lag_topic_name": worst.where.topic,
        "max_lag_partition_id": worst.where.partition,
        "max_lag": worst.lag,
        "total_lag": sum(each.lag for each in lags),
        "max_lag_consumer": links.related("consumer-groups", group_id, "consumers", member.member_id),
        "max_lag_partition": links.related("topics", worst.where.topic, "partitions", worst.where.partition),
    }
    url = links.url("consumer-groups", group_id, "lag-summary")
    name = links.name(("consumer-group", group_id), "lag-summary")
    return lists.one(links.resource("KafkaConsumerGroupLagSummary", url, name, fields))


async def lags_of(call: Call) -> tuple[str, list[Lag]]:
    """The lags of the group that the path names, in the order of partitions."""
    group = await group_of(call)
    if not group.members:
        raise refusal(404, 404, f"Consumer group {group.group_id} has no members now.")
    committed = await call.kafka.admin.committed_offsets(group.group_id)
    ends = await call.kafka.admin.list_offsets(dict.fromkeys(sorted(committed), OffsetSpec.LATEST))
    owners = {where: member for member in group.members for where in member.assignment}
    found = []
    for where, end in ends.items():
        if isinstance(end, FoundOffset):  # else the topic is gone, or has no leader now
            found.append(Lag(where, committed[where].offset, end.offset, owners.get(where, NO_MEMBER)))
    return group.group_id, found


def lag_resource(links: Links, group: str, lag: Lag) -> Resource:
    where = lag.where
    fields = {
        "consumer_group_id": group,
        "topic_name": where.topic,
        "partition_id": where.partition,
        "current_offset": lag.current,
        "log_end_offset": lag.end,
        "lag": lag.lag,
        "consumer_id": lag.member.member_id,
        "instance_id": lag.member.instance_id,
        "client_id": lag.member.client_id,
    }
    url = links.url("consumer-groups", group, "lags", where.topic, "partitions", where.partition)
    name = links.name(("consumer-group", group), ("lag", where.topic), ("partition", where.partition))
    return links.resource("KafkaConsumerLag", url, name, fields)
