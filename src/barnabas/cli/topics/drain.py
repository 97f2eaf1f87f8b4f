"""drain: move every replica, and so every leadership, away from a broker before it leaves the cluster.

First the tool cordons the log dirs of the broker (if the cluster supports that), so that it gets no new
replicas. Then partitions move, a few at a time, each to the broker with the fewest replicas, preferably in a
rack that has no replica of the partition. If no other broker can hold a replica, the tool reports the
partition and leaves it; with `--fewer-replicas` it removes that replica instead.
"""

import argparse
import asyncio
import time
from collections import Counter
from collections.abc import Collection, Mapping, Sequence

from barnabas.cli.frame.connecting import add_bootstrap, add_command_config, cluster_from
from barnabas.cli.frame.output import Output
from barnabas.cli.frame.parsing import ToolError, ToolParser
from barnabas.cli.topics.reassign_partitions import (
    FOLLOWER_RATE,
    FOLLOWER_REPLICAS,
    LEADER_RATE,
    LEADER_REPLICAS,
)
from barnabas.client.admin.admin import Admin
from barnabas.client.admin.configs import ConfigResource, ResourceType
from barnabas.client.core.topology import TopicPartition
from barnabas.protocol import KafkaError

EXAMPLES = (
    "3",
    "3 --throttle 50000000 --at-a-time 10",
    "3 --dry-run",
    "3 --undo",
)
CORDON = "cordoned.log.dirs"
LOOK_S = 0.2


def add_arguments(parser: ToolParser) -> None:
    parser.add_argument("broker", type=int, metavar="BROKER", help="the id of the broker to empty")
    add_bootstrap(parser)
    add_command_config(parser)
    parser.add_argument("--dry-run", action="store_true", help="show the moves without making them")
    parser.add_argument("--undo", action="store_true", help="let the broker get new replicas again")
    parser.add_argument(
        "--fewer-replicas", action="store_true", help="remove replicas that no other broker can hold"
    )
    parser.add_argument(
        "--throttle", type=int, metavar="BYTES/S", help="limit of the traffic (default: none)"
    )
    parser.add_argument(
        "--at-a-time", type=int, default=20, metavar="N", help="partitions that move at once (default: 20)"
    )
    parser.add_argument(
        "--timeout",
        type=float,
        default=3600.0,
        metavar="S",
        help="fail after this many seconds (default: 3600)",
    )


async def run(options: argparse.Namespace, out: Output) -> int:
    async with cluster_from(options) as cluster:
        admin = Admin(cluster)
        if options.undo:
            await admin.alter_configs(broker_resource(options.broker), {CORDON: None})
            out.line(f"Broker {options.broker} can get new replicas again.")
            return 0
        return await Drain(admin, options, out).run()


def broker_resource(broker: int) -> ConfigResource:
    return ConfigResource(ResourceType.BROKER, str(broker))


class Drain:
    def __init__(self, admin: Admin, options: argparse.Namespace, out: Output) -> None:
        self._admin = admin
        self._options = options
        self._broker: int = options.broker
        self._out = out

    async def run(self) -> int:
        racks = {node.id: node.rack for node in (await self._admin.describe_cluster()).nodes}
        if self._broker not in racks:
            known = ", ".join(map(str, sorted(racks)))
            raise ToolError(f"broker {self._broker} is not in the cluster; its brokers are {known}")
        assignment = await self._assignment()
        plan = plan_of(assignment, self._broker, racks, fewer=self._options.fewer_replicas)
        stuck = [
            topic_partition
            for topic_partition in assignment
            if self._broker in assignment[topic_partition] and topic_partition not in plan
        ]
        for topic_partition, replicas in plan.items():
            self._out.line(f"{topic_partition}: {listed(assignment[topic_partition])} -> {listed(replicas)}")
        if not self._options.dry_run:
            await self._cordon()
            await self._move(plan, assignment)
        for topic_partition in stuck:
            self._out.note(
                f"{topic_partition} stays: no other broker can hold the replica (see --fewer-replicas)"
            )
        if stuck:
            raise ToolError(f"broker {self._broker} still has {len(stuck)} replicas")
        if not self._options.dry_run:
            self._out.line(f"Broker {self._broker} has no replicas any more.")
        return 0

    async def _assignment(self) -> dict[TopicPartition, tuple[int, ...]]:
        names = [topic.name for topic in await self._admin.list_topics()]
        return {
            TopicPartition(topic.name, each.index): each.replicas
            for topic in await self._admin.describe_topics(names)
            for each in topic.partitions
        }

    async def _cordon(self) -> None:
        try:
            await self._admin.alter_configs(broker_resource(self._broker), {CORDON: "*"})
        except KafkaError as error:
            self._out.note(f"new replicas may still be placed on broker {self._broker}: {error.message}")

    async def _move(
        self, plan: Mapping[TopicPartition, Sequence[int]], before: Mapping[TopicPartition, Sequence[int]]
    ) -> None:
        deadline = time.monotonic() + self._options.timeout
        left = dict(plan)
        brokers = sorted({broker for partition in plan for broker in (*before[partition], *plan[partition])})
        topics = sorted({partition.topic for partition in plan})
        try:
            await self._throttle(brokers, topics, self._options.throttle)
            while left:
                some = dict(list(left.items())[: self._options.at_a_time])
                await self._move_some(some, deadline)
                left = {partition: replicas for partition, replicas in left.items() if partition not in some}
                self._out.note(f"{len(plan) - len(left)} of {len(plan)} partitions have moved")
        finally:
            if self._options.throttle is not None:
                await self._throttle(brokers, topics, None, ends=True)

    async def _move_some(self, some: Mapping[TopicPartition, Sequence[int]], deadline: float) -> None:
        results = await self._admin.alter_reassignments(some)
        for topic_partition, error in results.items():
            if error is not None:
                raise ToolError(f"{topic_partition} cannot move: {error.message}")
        while set(some) & set(await self._admin.reassignments()):
            if time.monotonic() > deadline:
                raise ToolError(
                    f"still moving after {self._options.timeout:g} s (see `reassign-partitions --list`)"
                )
            await asyncio.sleep(LOOK_S)

    async def _throttle(
        self, brokers: Collection[int], topics: Collection[str], rate: int | None, *, ends: bool = False
    ) -> None:
        if rate is None and not ends:
            return
        text, which = (None, None) if rate is None else (str(rate), "*")
        for broker in brokers:
            await self._admin.alter_configs(broker_resource(broker), {LEADER_RATE: text, FOLLOWER_RATE: text})
        for topic in topics:
            await self._admin.alter_configs(
                ConfigResource(ResourceType.TOPIC, topic), {LEADER_REPLICAS: which, FOLLOWER_REPLICAS: which}
            )


def plan_of(
    assignment: Mapping[TopicPartition, Sequence[int]],
    broker: int,
    racks: Mapping[int, str | None],
    *,
    fewer: bool,
) -> dict[TopicPartition, list[int]]:
    """The new replicas of each partition on the broker, without those that no other broker can hold."""
    load = Counter(each for replicas in assignment.values() for each in replicas)
    plan: dict[TopicPartition, list[int]] = {}
    for topic_partition, replicas in sorted(assignment.items()):
        if broker not in replicas:
            continue
        kept = [each for each in replicas if each != broker]
        free = [each for each in sorted(racks) if each != broker and each not in replicas]
        if not free:
            if fewer and kept:
                plan[topic_partition] = kept
            continue
        taken = {racks.get(each) for each in kept}
        taker = min(free, key=lambda each: (racks[each] in taken, load[each], each))
        load[taker] += 1
        load[broker] -= 1
        plan[topic_partition] = [taker if each == broker else each for each in replicas]
    return plan


def listed(replicas: Sequence[int]) -> str:
    return ",".join(map(str, replicas))
