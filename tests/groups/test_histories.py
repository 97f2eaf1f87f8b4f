"""Random histories of classic groups: clients join, sync, commit, go silent and return; the coordinator
restarts. The invariants are checked after every step.
"""

from __future__ import annotations

import random
from typing import Any

import pytest

from barnabas.groups.basics.settings import GroupSettings
from barnabas.groups.classic.group import ClassicGroup
from barnabas.groups.classic.states import COMPLETING_REBALANCE, EMPTY, PREPARING_REBALANCE, STABLE
from barnabas.groups.shard import GroupShard
from barnabas.protocol import ErrorCode
from barnabas.protocol.log_records.consumer_offsets import GroupMetadataKey, OffsetCommitKey
from barnabas.protocol.messages.heartbeat import HeartbeatRequest
from barnabas.protocol.messages.join_group import JoinGroupRequest
from barnabas.protocol.messages.leave_group import LeaveGroupRequest
from barnabas.protocol.messages.offset_commit import OffsetCommitRequest
from barnabas.protocol.messages.sync_group import SyncGroupRequest

from .host import Host

STEPS = 1500
PARTITIONS = 6
GROUPS = ("g1", "g2")
PROTOCOLS = (["range"], ["range", "sticky"], ["sticky", "range"])
Topic = OffsetCommitRequest.OffsetCommitRequestTopic


class Client:
    """A consumer of the classic protocol: it has one request at a time and follows the responses."""

    def __init__(self, name: str, group: str, instance: str | None) -> None:
        self.name, self.group, self.instance = name, group, instance
        self.member_id = ""
        self.generation = -1
        self.waits = False
        self.has_joined = False
        self.members: list[str] = []
        self.owned: tuple[int, frozenset[str]] | None = (
            None  # generation and partitions, until a response changes them
        )

    def forget(self) -> None:
        self.member_id, self.generation, self.has_joined, self.owned = "", -1, False, None


class History:
    def __init__(self, seed: int) -> None:
        self.rng = random.Random(seed)
        settings = GroupSettings(
            initial_rebalance_delay_ms=self.rng.choice([0, 3000]),
            group_size_max=self.rng.choice([3, 100]),
            new_member_join_timeout_ms=20_000,
        )
        self.host = Host(settings, {"t": PARTITIONS}, seed)
        names = [f"c{number}" for number in range(7)]
        self.clients = {
            name: Client(name, self.rng.choice(GROUPS), f"i{name}" if self.rng.random() < 0.3 else None)
            for name in names
        }
        self.committed: dict[tuple[str, int], int] = {}
        self.generations: dict[str, int] = dict.fromkeys(GROUPS, 0)
        # (group, generation) -> partition -> member
        self.assigned: dict[tuple[str, int], dict[str, str]] = {}

    def step(self) -> None:
        client = self.rng.choice(list(self.clients.values()))
        action = self.rng.random()
        if action < 0.12:
            self.host.advance(self.rng.choice([1, 100, 1000, 4000]))
        elif action < 0.13:
            self.host.advance(30_000)
        elif action < 0.14:
            self.host.restart()
        elif not client.waits:
            self.act(client)
        self.hear()
        self.look()

    def act(self, client: Client) -> None:
        action = self.rng.random()
        if not client.has_joined or action < 0.15:
            self.join(client)
        elif client.owned is None and action < 0.9:
            self.sync(client)
        elif action < 0.6:
            self.heartbeat(client)
        elif action < 0.9:
            self.commit(client)
        elif action < 0.95:
            self.leave(client)
        else:
            client.forget()  # it restarts: only a static member is recognized again

    def ask(self, client: Client, request: Any, version: int) -> None:
        answer = self.host.ask(client.name, request, version)
        if answer is None:
            client.waits = True
        else:
            self.told(client, answer)

    def hear(self) -> None:
        self.host.advance(0)
        for name, answer in list(self.host.answers.items()):
            client = self.clients[name]
            assert client.waits, "an answer for somebody who does not wait"
            client.waits = False
            self.told(client, answer)
        self.host.answers.clear()

    def told(self, client: Client, answer: Any) -> None:
        getattr(self, "told_" + type(answer).__name__)(client, answer)

    # Joining

    def join(self, client: Client) -> None:
        client.owned = None
        protocol = JoinGroupRequest.JoinGroupRequestProtocol
        self.ask(
            client,
            JoinGroupRequest(
                group_id=client.group,
                member_id=client.member_id,
                group_instance_id=client.instance,
                session_timeout_ms=10_000,
                rebalance_timeout_ms=8_000,
                protocol_type="consumer",
                protocols=[protocol(name=name) for name in self.rng.choice(PROTOCOLS)],
            ),
            self.rng.choice([5, 9]),
        )

    def told_JoinGroupResponse(self, client: Client, answer: Any) -> None:
        code = answer.error_code
        if code == ErrorCode.MEMBER_ID_REQUIRED:
            client.member_id = answer.member_id
        elif code:
            assert code in (
                ErrorCode.UNKNOWN_MEMBER_ID,
                ErrorCode.REBALANCE_IN_PROGRESS,
                ErrorCode.FENCED_INSTANCE_ID,
                ErrorCode.GROUP_MAX_SIZE_REACHED,
                ErrorCode.INCONSISTENT_GROUP_PROTOCOL,  # only the chosen protocol survives a restart
                ErrorCode.NOT_COORDINATOR,
            )
            if code != ErrorCode.REBALANCE_IN_PROGRESS:
                client.forget()
        else:
            client.member_id, client.generation = answer.member_id, answer.generation_id
            client.has_joined = True
            client.members = [member.member_id for member in answer.members if not answer.skip_assignment]

    def sync(self, client: Client) -> None:
        part = SyncGroupRequest.SyncGroupRequestAssignment
        given: dict[str, list[str]] = {member: [] for member in client.members}
        for partition in range(PARTITIONS if given else 0):
            given[client.members[partition % len(given)]].append(str(partition))
        self.ask(
            client,
            SyncGroupRequest(
                group_id=client.group,
                member_id=client.member_id,
                generation_id=client.generation,
                group_instance_id=client.instance,
                assignments=[
                    part(member_id=member, assignment=",".join(partitions).encode())
                    for member, partitions in given.items()
                ],
            ),
            4,
        )

    def told_SyncGroupResponse(self, client: Client, answer: Any) -> None:
        if answer.error_code:
            client.has_joined = False
            if answer.error_code not in (ErrorCode.REBALANCE_IN_PROGRESS, ErrorCode.NOT_COORDINATOR):
                client.forget()
            return
        partitions = frozenset(answer.assignment.decode().split(",")) - {""}
        client.owned = (client.generation, partitions)
        owners = self.assigned.setdefault((client.group, client.generation), {})
        for partition in partitions:
            place = client.instance or client.member_id
            assert owners.setdefault(partition, place) == place, "two owners in one generation"

    # Membership

    def heartbeat(self, client: Client) -> None:
        request = HeartbeatRequest(
            group_id=client.group,
            member_id=client.member_id,
            generation_id=client.generation,
            group_instance_id=client.instance,
        )
        self.ask(client, request, 4)

    def told_HeartbeatResponse(self, client: Client, answer: Any) -> None:
        if answer.error_code == ErrorCode.REBALANCE_IN_PROGRESS:
            client.has_joined = False
        elif answer.error_code:
            client.forget()

    def commit(self, client: Client) -> None:
        partition, offset = self.rng.randrange(PARTITIONS), self.rng.randrange(10**9)
        topic = Topic(
            name="t",
            partitions=[
                Topic.OffsetCommitRequestPartition(partition_index=partition, committed_offset=offset)
            ],
        )
        request = OffsetCommitRequest(
            group_id=client.group,
            member_id=client.member_id,
            generation_id_or_member_epoch=client.generation,
            group_instance_id=client.instance,
            topics=[topic],
        )
        answer: Any = self.host.ask(client.name, request, 9)
        [answered] = answer.topics[0].partitions
        if not answered.error_code:
            self.committed[client.group, partition] = offset
        elif answered.error_code == ErrorCode.REBALANCE_IN_PROGRESS:
            client.has_joined = False
        else:
            client.forget()

    def leave(self, client: Client) -> None:
        identity = LeaveGroupRequest.MemberIdentity(
            member_id=client.member_id, group_instance_id=client.instance
        )
        self.ask(client, LeaveGroupRequest(group_id=client.group, members=[identity]), 5)
        client.forget()

    def told_LeaveGroupResponse(self, client: Client, answer: Any) -> None:
        pass

    # Invariants

    def look(self) -> None:
        shard = self.host.shard
        waiting = {name for name, _ in self.host.waiting.values()}
        assert waiting == {client.name for client in self.clients.values() if client.waits}
        for name in GROUPS:
            group = shard.classic.get(name)
            if group is not None:
                check(group)
        for (name, partition), offset in self.committed.items():
            found = shard.offsets.get(name, "t", partition)
            assert found is not None and found.offset == offset, "a commit was lost"
        for entry in self.host.new_records:
            if isinstance(entry.key, GroupMetadataKey) and entry.value is not None:
                generation = entry.value.generation  # type: ignore[attr-defined]
                assert generation >= self.generations[entry.key.group], "a generation went back"
                self.generations[entry.key.group] = generation
        self.host.new_records.clear()


def check(group: ClassicGroup) -> None:
    members = group.members.values()
    assert group.joins_waiting == sum(member.join_token is not None for member in members)
    assert (group.state is EMPTY) <= (not group.members)
    assert group.leader in group.members or (group.leader is None and not group.members)
    assert group.static_members == {m.instance_id: m.member_id for m in members if m.instance_id is not None}
    assert set(group.unsynced) <= set(group.members)
    assert not set(group.pending) & set(group.members)
    assert not any(member.sync_token for member in members) or group.state is COMPLETING_REBALANCE
    assert not group.joins_waiting or group.state is PREPARING_REBALANCE
    for name, count in group.supported.items():
        assert count == sum(name in dict(member.protocols) for member in members) > 0


def durable(shard: GroupShard) -> dict[str, Any]:
    """What a replay must restore: settled groups, and all offsets."""
    groups = {
        name: group.value({member_id: member.assignment for member_id, member in group.members.items()})
        for name in GROUPS
        if (group := shard.classic.get(name)) is not None and group.state in (STABLE, EMPTY)
    }
    for value in groups.values():
        value.current_state_timestamp = 0  # the time of writing, which is shortly before the group settled
    return {"groups": groups, "offsets": {name: shard.offsets.of_group(name) for name in GROUPS}}


@pytest.mark.parametrize("seed", range(12))
def test_invariants_hold_in_every_history(seed: int) -> None:
    history = History(seed)
    for _ in range(STEPS):
        history.step()
    assert len(history.committed) > 3
    assert max(history.generations.values()) > 5


@pytest.mark.parametrize("seed", range(100, 106))
def test_a_replay_of_the_log_restores_the_state(seed: int) -> None:
    history = History(seed)
    compared = 0
    for number in range(STEPS):
        history.step()
        if number % 20 == 0:
            live, replayed = durable(history.host.shard), durable(history.host.replayed())
            assert replayed["offsets"] == live["offsets"]
            for name, value in live["groups"].items():
                assert replayed["groups"][name] == value
                compared += 1
    assert compared > 20


@pytest.mark.parametrize("seed", range(200, 204))
def test_every_waiting_request_gets_one_response_when_the_shard_is_unloaded(seed: int) -> None:
    history = History(seed)
    for _ in range(300):
        history.step()
    waiting = dict(history.host.waiting)
    answered = [token for token, _ in history.host.shard.unload()]
    assert sorted(answered) == sorted(waiting)


def test_the_log_holds_only_records_of_groups_and_offsets() -> None:
    history = History(7)
    for _ in range(500):
        history.step()
        assert all(
            isinstance(entry.key, GroupMetadataKey | OffsetCommitKey) for entry in history.host.new_records
        )
