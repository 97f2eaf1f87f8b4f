"""Groups of all types, asked of their coordinators: who is a member, which offsets are committed.

In: an Admin. Out: `GroupInfo`s and committed offsets. Groups are asked for in portions, so that no response
takes the loop for long. Of a share group the start offsets count as committed.
Does not know: what becomes of the responses.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

from barnabas.client.admin.admin import Admin
from barnabas.client.admin.groups import CONSUMER, GroupDescription, GroupListing
from barnabas.client.admin.share_groups import ShareGroupDescription
from barnabas.client.admin.streams_groups import StreamsGroupDescription, StreamsMemberDescription
from barnabas.client.core.topology import TopicPartition
from barnabas.monitor.lag.cluster_lag import GroupInfo
from barnabas.monitor.lag.groups import Member
from barnabas.protocol import KafkaError

GROUPS_AT_ONCE = 100
SHARE, STREAMS = "Share", "Streams"
CONSUMING_TYPES = (SHARE, STREAMS)
CONSUMING_PROTOCOLS = (CONSUMER, "")  # workers of Connect and registries form groups that consume nothing
Offsets = dict[TopicPartition, int]


class GroupReader:
    def __init__(self, admin: Admin) -> None:
        self._admin = admin

    async def listings(self) -> dict[str, GroupListing]:
        """All groups of the cluster by their ids."""
        return {each.group_id: each for each in await self._admin.list_groups()}

    async def describe(self, groups: Sequence[GroupListing]) -> dict[str, GroupInfo | KafkaError]:
        found: dict[str, GroupInfo | KafkaError] = {}
        for kind, names in by_kind(groups).items():
            for part in portions(names):
                if kind == SHARE:
                    shares = await self._admin.describe_share_groups(part)
                    found |= {name: share_info(each) for name, each in shares.items()}
                elif kind == STREAMS:
                    streams = await self._admin.describe_streams_groups(part)
                    found |= {name: streams_info(each) for name, each in streams.items()}
                else:
                    others = await self._admin.describe_groups(part)
                    found |= {name: group_info(each) for name, each in others.items()}
        return found

    async def committed(self, groups: Sequence[GroupListing]) -> dict[str, Offsets | KafkaError]:
        found: dict[str, Offsets | KafkaError] = {}
        for kind, names in by_kind(groups).items():
            for part in portions(names):
                if kind == SHARE:
                    for name, shares in (await self._admin.share_group_offsets(part)).items():
                        found[name] = (
                            shares
                            if isinstance(shares, KafkaError)
                            else {at: each.start_offset for at, each in shares.items() if each is not None}
                        )
                    continue
                for name, offsets in (await self._admin.committed_offsets_of(part)).items():
                    found[name] = (
                        offsets
                        if isinstance(offsets, KafkaError)
                        else {at: each.offset for at, each in offsets.items()}
                    )
        return found


def is_consuming(group: GroupListing) -> bool:
    """Whether members of the group consume topics; one without a protocol only commits."""
    return group.type in CONSUMING_TYPES or group.protocol_type in CONSUMING_PROTOCOLS


def by_kind(groups: Iterable[GroupListing]) -> dict[str, list[str]]:
    found: dict[str, list[str]] = {}
    for each in groups:
        found.setdefault(each.type if each.type in (SHARE, STREAMS) else "", []).append(each.group_id)
    return found


def portions(names: Sequence[str], size: int = GROUPS_AT_ONCE) -> Iterable[Sequence[str]]:
    for at in range(0, len(names), size):
        yield names[at : at + size]


def counted(assignment: Iterable[tuple[str, int]]) -> dict[str, int]:
    """How many partitions of each topic there are."""
    found: dict[str, int] = {}
    for topic, _ in assignment:
        found[topic] = found.get(topic, 0) + 1
    return found


def group_info(group: GroupDescription | KafkaError) -> GroupInfo | KafkaError:
    if isinstance(group, KafkaError):
        return group
    members, owned = [], {}
    for each in group.members:
        member = Member(each.member_id, each.client_id, each.host, counted(each.assignment))
        members.append(member)
        owned.update(dict.fromkeys(((at.topic, at.partition) for at in each.assignment), member))
    return GroupInfo(
        group.group_id,
        group.type,
        group.state,
        group.protocol_type,
        group.assignor,
        group.coordinator.id,
        tuple(members),
        owned,
    )


def share_info(group: ShareGroupDescription | KafkaError) -> GroupInfo | KafkaError:
    """Members share partitions, so a partition has no owner."""
    if isinstance(group, KafkaError):
        return group
    members = tuple(
        Member(each.member_id, each.client_id, each.host, counted(each.assignment)) for each in group.members
    )
    return GroupInfo(
        group.group_id, SHARE, group.state, "share", group.assignor, group.coordinator.id, members
    )


def streams_info(group: StreamsGroupDescription | KafkaError) -> GroupInfo | KafkaError:
    if isinstance(group, KafkaError):
        return group
    sources = {each.name: (*each.source_topics, *each.repartition_sources) for each in group.subtopologies}
    members, owned = [], {}
    for each in group.members:
        assignment = list(source_partitions(each, sources))
        member = Member(each.member_id, each.client_id, each.host, counted(assignment))
        members.append(member)
        owned.update(dict.fromkeys(assignment, member))
    return GroupInfo(
        group.group_id, STREAMS, group.state, "streams", "", group.coordinator.id, tuple(members), owned
    )


def source_partitions(
    member: StreamsMemberDescription, sources: Mapping[str, Sequence[str]]
) -> Iterable[tuple[str, int]]:
    """The partitions that the active tasks of a member read."""
    for subtopology, partitions in member.assignment.active:
        for topic in sources.get(subtopology, ()):
            for partition in partitions:
                yield topic, partition
