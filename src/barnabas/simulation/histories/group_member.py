"""Common parts of group members: finding the coordinator, committing and fetching offsets.

In: a client, a group with its checks. Out: commits of growing offsets; every request and response is reported
to the checks.
Does not know: how a member gets its partitions.
"""

from __future__ import annotations

from collections.abc import Callable, Collection
from dataclasses import dataclass, field

from barnabas.client.core.coordinators import GROUP
from barnabas.protocol import ErrorCode
from barnabas.protocol.messages.find_coordinator import FindCoordinatorRequest, FindCoordinatorResponse
from barnabas.protocol.messages.offset_commit import OffsetCommitRequest, OffsetCommitResponse
from barnabas.protocol.messages.offset_fetch import OffsetFetchRequest, OffsetFetchResponse
from barnabas.simulation.models.group_checks import Generations, Offsets, Ownership
from barnabas.simulation.world.client import SimulatedClient

BY_NAME_MAX = 9  # the last version of OffsetCommit and OffsetFetch that names topics
SESSION_MS = 6_000
REBALANCE_MS = 8_000
BEAT_S = 0.5
RETRY_S = 0.2
LEAVE_CHANCE = 0.02
MIXED = "mixed"  # members of both protocols: the group migrates between them (KIP-848)

COORDINATOR_ERRORS = (
    ErrorCode.COORDINATOR_NOT_AVAILABLE,
    ErrorCode.COORDINATOR_LOAD_IN_PROGRESS,
    ErrorCode.NOT_COORDINATOR,
)


@dataclass(slots=True, eq=False)
class Group:
    """A group of a history, with its checks and the state that clients know."""

    name: str
    topic: str
    kind: str
    partitions: Callable[[], int]  # how many partitions the topic has, as far as clients know
    offsets: Offsets
    ownership: Ownership
    generations: Generations
    is_calm: bool = False  # no member leaves any more
    is_trusted: bool = True  # no power loss removed acknowledged records, so all invariants must hold
    owned: dict[str, frozenset[int]] = field(default_factory=dict)  # by host, as its current member sees it
    committed_s: dict[int, float] = field(default_factory=dict)  # when a commit was acknowledged last

    @property
    def has_leaders(self) -> bool:
        """Whether to check classic generations: members assign partitions, and all invariants must hold."""
        return self.is_trusted and self.kind != MIXED


async def find_coordinator(client: SimulatedClient, group: str) -> None:
    await client.ask_until_answered(
        FindCoordinatorRequest(coordinator_keys=[group], key_type=GROUP),
        FindCoordinatorResponse,
        lambda response: response.coordinators[0].error_code == ErrorCode.NONE,
    )


class Positions:
    """The positions of one member in its partitions."""

    def __init__(self, client: SimulatedClient, group: Group) -> None:
        self._client = client
        self._group = group
        self.offsets: dict[int, int] = {}

    def keep(self, partitions: Collection[int]) -> None:
        self.offsets = {p: offset for p, offset in self.offsets.items() if p in partitions}

    async def fetch(self, partitions: Collection[int], member_id: str | None, epoch: int) -> ErrorCode | None:
        """Fetch committed offsets as start positions. None: no response."""
        group = self._group
        topic = OffsetFetchRequest.OffsetFetchRequestGroup.OffsetFetchRequestTopics(
            name=group.topic, partition_indexes=sorted(partitions)
        )
        asked = OffsetFetchRequest.OffsetFetchRequestGroup(
            group_id=group.name, member_id=member_id, member_epoch=epoch, topics=[topic]
        )
        expected = group.offsets.expected()
        response = await self._client.ask(
            OffsetFetchRequest(groups=[asked], require_stable=True),
            OffsetFetchResponse,
            version_max=BY_NAME_MAX,
        )
        if response is None:
            return None
        found = response.groups[0]
        if found.error_code:
            return ErrorCode(found.error_code)
        for each in found.topics[0].partitions:
            if each.error_code:
                return ErrorCode(each.error_code)
        for each in found.topics[0].partitions:
            if group.is_trusted:
                group.offsets.fetched(expected, each.partition_index, each.committed_offset)
            self.offsets[each.partition_index] = max(each.committed_offset, 0)
        return ErrorCode.NONE

    async def commit(
        self, member_id: str, generation: int, instance_id: str | None = None
    ) -> ErrorCode | None:
        """Advance in every partition, and commit. None: no response."""
        if not self.offsets:
            return ErrorCode.NONE
        group, rng = self._group, self._client.rng
        offsets = {p: offset + rng.randrange(1, 9) for p, offset in sorted(self.offsets.items())}
        part = OffsetCommitRequest.OffsetCommitRequestTopic
        request = OffsetCommitRequest(
            group_id=group.name,
            generation_id_or_member_epoch=generation,
            member_id=member_id,
            group_instance_id=instance_id,
            topics=[
                part(
                    name=group.topic,
                    partitions=[
                        part.OffsetCommitRequestPartition(partition_index=p, committed_offset=offset)
                        for p, offset in offsets.items()
                    ],
                )
            ],
        )
        for partition, offset in offsets.items():
            group.offsets.sending(partition, offset)
        response = await self._client.ask(request, OffsetCommitResponse, version_max=BY_NAME_MAX)
        if response is None:
            return None
        codes = {each.partition_index: ErrorCode(each.error_code) for each in response.topics[0].partitions}
        for partition, offset in offsets.items():
            is_committed = codes[partition] is ErrorCode.NONE
            group.offsets.answered(partition, offset, is_committed=is_committed)
            if is_committed:
                group.committed_s[partition] = self._client.world.loop.time()
                if partition in self.offsets:
                    self.offsets[partition] = offset
        return next((code for code in codes.values() if code), ErrorCode.NONE)
