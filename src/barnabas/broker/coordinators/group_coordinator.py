"""The group coordinator of this broker: a shard for every partition of `__consumer_offsets` that it leads.

In: settings, assignors. Out: shards and their hosts.
Does not know: leadership, requests (see `coordinator`), the state of groups.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from barnabas.broker.coordinators import assignor_plugins
from barnabas.broker.coordinators.coordinator import Coordinator
from barnabas.broker.coordinators.offsets_topic import LAYOUT
from barnabas.protocol import KafkaError, Message

if TYPE_CHECKING:
    import random

    from barnabas.broker.api.context import RequestContext
    from barnabas.broker.broker import Broker
    from barnabas.broker.coordinators.group_host import GroupHost
    from barnabas.broker.partitions.partition import Partition
    from barnabas.groups.basics.outcome import Caller
    from barnabas.groups.basics.rebalances import Rebalances
    from barnabas.groups.basics.settings import GroupSettings
    from barnabas.groups.shard import GroupShard


class GroupCoordinator(Coordinator["GroupHost"]):
    modules = "barnabas.broker.coordinators.group_host", "barnabas.groups.shard"

    def __init__(self, broker: Broker, rng: random.Random) -> None:
        super().__init__(broker, LAYOUT)
        self._rng = rng
        self._caller_context: RequestContext | None = None  # that `_caller` was made for
        self._caller_client_id: str | None = None
        self._caller: Caller
        self._assignors = assignor_plugins.load(broker.settings[assignor_plugins.SETTING])
        self._rebalances: Rebalances | None = None  # of all shards since the start

    def new_host(self, partition: Partition) -> GroupHost:
        from barnabas.broker.coordinators.group_host import GroupHost

        return GroupHost(self, partition)

    def new_shard(self, partition: Partition) -> GroupShard:
        from barnabas.groups.basics.rebalances import Rebalances
        from barnabas.groups.shard import GroupShard

        settings = self._settings(partition)
        if self._rebalances is None:
            self._rebalances = Rebalances()
        now_ms = self.broker.clock.now_ms()
        return GroupShard(settings, self._rng, now_ms, self._assignors, self._rebalances)

    def _settings(self, partition: Partition) -> GroupSettings:
        from barnabas.groups.basics.settings import GroupSettings

        settings = GroupSettings.of(self.broker.settings)
        return replace(settings, record_bytes_max=partition.rules.batch_bytes_max)

    def caller(self, context: RequestContext) -> Caller:
        """The sender of the request. The last caller is remembered, since requests of a connection come in
        runs."""
        is_same = context is self._caller_context and context.client_id is self._caller_client_id
        if is_same and context.version == self._caller.version:
            return self._caller
        from barnabas.groups.basics.outcome import Caller

        self._caller_context, self._caller_client_id = context, context.client_id
        rights = context.rights
        self._caller = Caller(
            context.client_id or "",
            "/" + context.host,
            context.version,
            rights.may_describe_topic if rights is not None else None,
        )
        return self._caller

    def share_rebalance_count(self) -> int:
        """How often share groups began a new epoch, except for members that left."""
        return self._rebalances.share if self._rebalances is not None else 0

    def streams_rebalance_count(self) -> int:
        """How often streams groups began a new epoch, except for members that left."""
        return self._rebalances.streams if self._rebalances is not None else 0

    def configure(self, host: GroupHost) -> None:
        host.shard.configure(self._settings(host.partition))

    def refusal(self, request: Message, error: KafkaError, version: int) -> Message:
        from barnabas.broker.coordinators.group_refusals import refusal

        return refusal(request, error, version)
