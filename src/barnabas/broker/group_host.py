"""The host of one shard of groups: one partition of `__consumer_offsets`.

In: requests for its groups. Out: outcomes of the shard, records as bytes, refusals in the shape of each API.
Does not know: appending, waiting, loading (see `coordinator_host`), the state of groups.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING, Any

from barnabas.broker.coordinator_host import CoordinatorHost
from barnabas.broker.group_loading import GroupLoading
from barnabas.broker.group_refusals import refusal, spoil
from barnabas.groups.outcome import Caller, Outcome
from barnabas.groups.records import encode
from barnabas.protocol import ErrorCode, KafkaError, Message
from barnabas.protocol.messages.offset_commit import OffsetCommitRequest

if TYPE_CHECKING:
    from barnabas.broker.context import RequestContext
    from barnabas.broker.group_coordinator import GroupCoordinator
    from barnabas.broker.partition import Partition
    from barnabas.groups.shard import GroupShard


class GroupHost(CoordinatorHost["GroupShard"]):
    __slots__ = ("_coordinator",)

    encode = staticmethod(encode)
    refusal = staticmethod(refusal)
    spoil = staticmethod(spoil)

    def __init__(self, coordinator: GroupCoordinator, partition: Partition) -> None:
        self._coordinator = coordinator
        super().__init__(coordinator, partition)

    def compression(self) -> int:
        codec: int = self._broker.settings["offsets.topic.compression.codec"]
        return codec

    def load_bytes_max(self) -> int:
        size: int = self._broker.settings["offsets.load.buffer.size"]
        return size

    def new_shard(self) -> GroupShard:
        return self._coordinator.new_shard(self.partition)

    def new_loading(self) -> GroupLoading:
        return GroupLoading(self.partition.log, self.shard)

    def decide(self, request: Any, context: RequestContext, now_ms: int) -> Outcome:
        caller = Caller(context.client_id or "", "/" + context.host, context.version)
        return self.shard.handle(request, caller, self._broker.image, now_ms)

    def loaded(self, now_ms: int) -> Iterable[Outcome]:
        self.shard.loaded(now_ms)
        return ()

    def survives(self, error: KafkaError, request: Message | None) -> bool:
        """A commit leaves nothing behind in the shard but its records."""
        return error.code == ErrorCode.MESSAGE_TOO_LARGE and type(request) is OffsetCommitRequest
