"""Random histories of consumer groups: members join, leave, die, lag and lose responses; topics change.

After every step a partition has at most one reader, epochs have only grown, and a replay of the log gives the
same state. When members keep sending heartbeats, they reach an assignment of all partitions.
"""

from __future__ import annotations

import random
from typing import Any

import pytest

from barnabas.groups.basics.records import Entry
from barnabas.groups.consumer.coordinator import ConsumerGroups
from barnabas.groups.consumer.group import ConsumerGroup
from barnabas.groups.shard import GroupShard
from barnabas.protocol.log_records.consumer_offsets import ConsumerGroupMetadataKey

from ..host import Host
from .group_client import GroupClient

GROUP = "g"
STEPS = 200
SESSION_MS = 45_000


def consumer_groups(shard: GroupShard) -> ConsumerGroups:
    assert isinstance(shard.consumer, ConsumerGroups)
    return shard.consumer


def state_of(group: ConsumerGroup | None) -> dict[str, Any]:
    """Everything that the log must hold, without soft state."""
    if group is None:
        return {}
    soft = ("metadata_is_fresh", "_subscribers")
    return {name: getattr(group, name) for name in ConsumerGroup.__slots__ if name not in soft}


class History:
    def __init__(self, seed: int) -> None:
        self.rng = random.Random(seed)
        self.topics = {"t1": 5, "t2": 3}
        self.host = Host(topics=self.topics, seed=seed)
        self.clients: list[GroupClient] = []
        self.dead: list[GroupClient] = []
        self.names = 0
        self.epoch = 0
        self.seen = 0

    def step(self) -> None:
        choice = self.rng.random()
        client = self.rng.choice(self.clients) if self.clients else None
        if client is None or (choice < 0.06 and len(self.clients) < 7):
            self.add()
        elif choice < 0.09:
            client.leave()
            self.clients.remove(client)
        elif choice < 0.11:
            self.clients.remove(client)
            self.dead.append(client)  # keeps reading until its session ends, and sends nothing
        elif choice < 0.13:
            client.topics = self.rng.choice([["t1"], ["t2"], ["t1", "t2"]])
            client.must_report = True
        elif choice < 0.15:
            name = self.rng.choice(sorted(self.topics))
            self.topics[name] = min(self.topics[name] + 1, 12)
            self.host.change_topics(self.topics)
        elif choice < 0.25:
            self.pass_time(self.rng.choice([200, 1000, 5000]))
        elif choice < 0.45:
            client.revoke()
        elif choice < 0.48:
            self.host.restart()
        else:
            client.beat(is_lost=self.rng.random() < 0.05)

    def add(self) -> None:
        self.names += 1
        topics = self.rng.choice([["t1"], ["t1", "t2"], ["t1", "t2"]])
        client = GroupClient(self.host, GROUP, f"m{self.names}", topics)
        self.clients.append(client)
        client.join()

    def pass_time(self, ms: int) -> None:
        """Live members send heartbeats in time. A member silent for a session stops reading by itself, as
        clients do."""
        self.host.advance(ms)
        for client in self.clients:
            client.beat()
        group = consumer_groups(self.host.shard).get(GROUP)
        members = group.members if group is not None else {}
        self.dead = [client for client in self.dead if client.member_id in members]

    def check(self, *, replays: bool) -> None:
        self.check_owners()
        group = consumer_groups(self.host.shard).get(GROUP)
        for entry in self.host.new_records:
            self.check_epoch(entry)
        self.host.new_records.clear()
        if replays:
            assert state_of(consumer_groups(self.host.replayed()).get(GROUP)) == state_of(group)

    def check_owners(self) -> None:
        owners: dict[tuple[str, int], str] = {}
        group = consumer_groups(self.host.shard).get(GROUP)
        members = group.members if group is not None else {}
        for client in [*self.clients, *self.dead]:
            if client.member_id not in members:
                continue  # fenced for being slow or silent: its commits are refused
            for name, numbers in client.held().items():
                for number in numbers:
                    assert (name, number) not in owners, f"{name}-{number}: two of them read it"
                    owners[name, number] = client.member_id

    def check_epoch(self, entry: Entry) -> None:
        if isinstance(entry.key, ConsumerGroupMetadataKey) and entry.value is not None:
            epoch = entry.value.epoch  # type: ignore[attr-defined]
            assert epoch > self.epoch
            self.epoch = epoch

    def settle(self) -> None:
        """Let all members do what is requested until nothing is left to do."""
        if not self.clients:
            self.add()
        self.host.advance(SESSION_MS // 2)
        for _ in range(40):
            for client in self.clients:
                client.revoke()
                client.beat()
            self.host.advance(3000)
        group = consumer_groups(self.host.shard).get(GROUP)
        assert group is not None
        assert group.state == "Stable"
        wanted = {
            (name, number)
            for name, count in self.topics.items()
            if any(name in client.topics for client in self.clients)
            for number in range(count)
        }
        read = {
            (name, number)
            for client in self.clients
            for name, numbers in client.owned.items()
            for number in numbers
        }
        assert read == wanted


@pytest.mark.parametrize("seed", range(24))
def test_a_group_keeps_its_invariants_and_reaches_its_target(seed: int) -> None:
    history = History(seed)
    for number in range(STEPS):
        history.step()
        history.check(replays=number % 16 == 0)
    history.settle()
    history.check(replays=True)
