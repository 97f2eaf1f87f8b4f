"""Random histories of groups with classic and consumer members, which change back and forth between the
kinds.

A partition always has at most one reader, whatever the kind of the group. Once members only send heartbeats,
all partitions are read.
"""

from __future__ import annotations

import random

import pytest

from ..host import Host
from .classic_client import ClassicClient
from .group_client import GroupClient

GROUP = "g"
STEPS = 150

Client = ClassicClient | GroupClient


class MixedHistory:
    def __init__(self, seed: int) -> None:
        self.rng = random.Random(seed)
        self.host = Host(topics={"t1": 5, "t2": 3}, seed=seed)
        self.clients: list[Client] = []
        self.names = 0
        self.kinds: set[str] = set()

    def step(self) -> None:
        choice = self.rng.random()
        client = self.rng.choice(self.clients) if self.clients else None
        if client is None or (choice < 0.12 and len(self.clients) < 5):
            self.add()
        elif choice < 0.20:
            client.leave()
            self.clients.remove(client)
        elif choice < 0.35:
            self.host.advance(self.rng.choice([100, 1000, 3000]))
        elif choice < 0.45:
            client.revoke()
        elif choice < 0.47:
            self.host.restart()
        else:
            client.beat()

    def add(self) -> None:
        self.names += 1
        kind = self.rng.choice([ClassicClient, GroupClient])
        client = kind(self.host, GROUP, f"m{self.names}", ["t1", "t2"])
        self.clients.append(client)
        client.beat()

    def members(self) -> set[str]:
        found: set[str] = set()
        for groups in (self.host.shard.classic, self.host.shard.consumer):
            group = groups.get(GROUP)
            if group is not None:
                found |= group.members.keys()
        return found

    def check(self) -> None:
        shard = self.host.shard
        assert not (shard.classic.owns(GROUP) and shard.consumer.owns(GROUP))
        self.kinds |= {"classic"} if shard.classic.owns(GROUP) else set()
        self.kinds |= {"consumer"} if shard.consumer.owns(GROUP) else set()
        members = self.members()
        owners: dict[tuple[str, int], str] = {}
        for client in self.clients:
            if client.member_id not in members:
                continue
            for name, numbers in client.held().items():
                for number in numbers:
                    assert (name, number) not in owners
                    owners[name, number] = client.member_id

    def settle(self) -> None:
        if not self.clients:
            self.add()
        for _ in range(120):
            for client in self.clients:
                client.revoke()
                client.beat()
            self.host.advance(1500)
        read = sorted(
            (name, number)
            for client in self.clients
            for name, numbers in client.owned.items()
            for number in numbers
        )
        assert read == [("t1", number) for number in range(5)] + [("t2", number) for number in range(3)]


@pytest.mark.parametrize("seed", range(24))
def test_both_protocols_share_a_group(seed: int) -> None:
    history = MixedHistory(seed)
    for _ in range(STEPS):
        history.step()
        history.check()
    history.settle()
    history.check()


def test_histories_go_through_both_kinds_of_groups() -> None:
    history = MixedHistory(3)
    for _ in range(STEPS):
        history.step()
        history.check()
    assert history.kinds == {"classic", "consumer"}
