"""Random histories of share groups: members join, leave, die and lose responses; topics grow and go; share
coordinators fail, respond late or never; coordinators move; administrators alter and delete.

After every step members read only partitions that have state, epochs have only grown, and a replay of the log
gives the same state. When everything works again, every partition is read, and state exists for all of them.
"""

from __future__ import annotations

import random
from typing import Any

import pytest

from barnabas.groups.share.group import ShareGroup
from barnabas.protocol import ErrorCode
from barnabas.protocol.messages.delete_groups import DeleteGroupsRequest

from .share_host import ShareClient, StateHost, settle
from .test_state import alter_request, deletion

GROUP = "g"
STEPS = 200
REPLAYED_EVERY = 20


def state_of(group: ShareGroup | None) -> dict[str, Any]:
    """Everything that the log must hold, without soft state."""
    if group is None:
        return {}
    soft = ("metadata_is_fresh", "is_settled", "_subscribers")
    return {name: getattr(group, name) for name in ShareGroup.__slots__ if name not in soft}


class History:
    def __init__(self, seed: int) -> None:
        self.rng = random.Random(seed)
        self.topics = {"t": 3, "u": 2}
        self.host = StateHost(self.topics)
        self.clients: list[ShareClient] = []
        self.names = 0
        self.epoch = 0

    def step(self) -> None:
        choice, rng = self.rng.random(), self.rng
        client = rng.choice(self.clients) if self.clients else None
        if client is None or (choice < 0.08 and len(self.clients) < 7):
            self.names += 1
            topics = rng.choice([["t"], ["u"], ["t", "u"]])
            self.clients.append(ShareClient(self.host, GROUP, f"m{self.names}", topics))
        elif choice < 0.12:
            client.leave()
            self.clients.remove(client)
        elif choice < 0.15:
            self.clients.remove(client)  # its session ends
        elif choice < 0.18:
            self.topics["t"] = min(self.topics["t"] + 1, 10)
            self.host.change_topics(self.topics)
        elif choice < 0.24:
            self.host.advance(rng.choice([1000, 5000, 31_000]))
        elif choice < 0.36:
            failures = [ErrorCode.COORDINATOR_NOT_AVAILABLE, ErrorCode.FENCED_STATE_EPOCH]
            self.host.respond(rng.choice([ErrorCode.NONE, ErrorCode.NONE, *failures]))
        elif choice < 0.38:
            self.host.state_calls.clear()
        elif choice < 0.41:
            self.host.restart()
            self.host.state_calls.clear()
        elif choice < 0.45:
            self.administer()
        else:
            client.beat()

    def administer(self) -> None:
        request = self.rng.choice(
            [alter_request({0: 7, 1: 8}), deletion("t", "u"), DeleteGroupsRequest(groups_names=[GROUP])]
        )
        version = 2 if isinstance(request, DeleteGroupsRequest) else 0
        self.host.ask(f"admin-{self.rng.random()}", request, version)

    def check(self, *, is_replayed: bool) -> None:
        group = self.host.shard.share.state.groups.get(GROUP)
        if is_replayed:
            replayed = self.host.replayed().share.state.groups.get(GROUP)
            assert state_of(replayed) == state_of(group)
        if group is None:
            self.epoch = 0
            return
        assert group.epoch >= self.epoch
        self.epoch = group.epoch
        counted = [name for member in group.members.values() for name in member.topics]
        assert group.topic_counts == {name: counted.count(name) for name in counted}
        for member in group.members.values():
            assert set(map(self.host.name_of, member.assigned)) <= member.topics


@pytest.mark.parametrize("seed", range(30))
def test_partitions_are_read_in_the_end_whatever_happened(seed: int) -> None:
    history = History(seed)
    for step in range(STEPS):
        history.step()
        history.check(is_replayed=step % REPLAYED_EVERY == 0)

    host = history.host
    host.restart()
    host.state_calls.clear()
    last = ShareClient(host, GROUP, "last", ["t", "u"])
    clients = [*history.clients, last]
    for _ in range(10):  # sessions of members that died end, and share coordinators are asked again
        host.advance(5000)
        settle(host, *clients)

    read = {(topic, index) for client in clients for topic, held in client.held.items() for index in held}
    everything = {(topic, index) for topic, count in history.topics.items() for index in range(count)}
    assert read == everything
    assert {(topic, index) for _, topic, index in host.states} == everything
