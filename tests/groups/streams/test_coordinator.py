"""Streams groups: who runs which task when, what is recorded, and what members are told."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from barnabas.groups.basics.outcome import Caller
from barnabas.groups.basics.settings import GroupSettings
from barnabas.groups.streams.group import StreamsGroup, StreamsGroupState
from barnabas.groups.streams.partition_counts import Status
from barnabas.metadata.configs import ConfigResource, ConfigsImage, ResourceType
from barnabas.metadata.steps import at_once
from barnabas.protocol import ErrorCode
from barnabas.protocol.log_records.consumer_offsets import (
    StreamsGroupMetadataKey,
    StreamsGroupTargetAssignmentMetadataKey,
)

from ..host import Host
from .streams_client import COUNTS, SOURCE, WORDS, Request, Response, StreamsClient, beat

AT_ONCE = GroupSettings(streams_initial_rebalance_delay_ms=0, streams_assignment_interval_ms=0)
TOPICS = {SOURCE: 4, WORDS: 4, COUNTS: 4}
SOFT = ("_subscribers", "configured", "metadata_is_fresh", "endpoint_epoch", "shutdown_member_id")


def host_of(topics: Mapping[str, int] = TOPICS, settings: GroupSettings = AT_ONCE) -> Host:
    return Host(settings, topics)


def statuses(reply: Response) -> list[int]:
    return [status.status_code for status in reply.status or ()]


def group_of(host: Host) -> StreamsGroup:
    return host.shard.streams.state.groups["g"]


def state_of(group: StreamsGroup) -> dict[str, Any]:
    """Everything that the log must hold, without soft state and empty indexes."""
    found: dict[str, Any] = {
        name: getattr(group, name) for name in StreamsGroup.__slots__ if name not in SOFT
    }
    found["_active"] = {name: tasks for name, tasks in found["_active"].items() if tasks}
    found["_copies"] = [
        {
            (name, number): processes
            for name, tasks in copies.items()
            for number, processes in tasks.items()
            if processes
        }
        for copies in found["_copies"]
    ]
    return found


def settle(*clients: StreamsClient) -> None:
    for _ in range(20):
        for client in clients:
            client.beat()
    assert group_of(clients[0].host).state is StreamsGroupState.STABLE


def test_two_members_share_the_tasks_of_a_topology() -> None:
    host = host_of()
    one, two = StreamsClient(host, "one"), StreamsClient(host, "two")
    one.join()
    two.join()
    settle(one, two)
    assert not one.running() & two.running()
    assert one.running() | two.running() == {(name, n) for name in "01" for n in range(4)}
    assert len(one.running()) == len(two.running()) == 4


def test_a_task_is_assigned_after_its_former_member_has_reported_without_it() -> None:
    host = host_of()
    one, two = StreamsClient(host, "one"), StreamsClient(host, "two")
    one.join()
    two.join()
    before = one.running()
    two.beat()
    assert not two.running(), "one has not heard of the change"
    kept = one.send_beat().active_tasks or []
    revoked = before - {(each.subtopology_id, number) for each in kept for number in each.partitions}
    two.beat()
    assert not two.running(), "one has not confirmed"
    one.beat(active_tasks=[], standby_tasks=[])
    two.beat()
    assert two.running() and two.running() <= revoked


def test_a_member_that_does_not_revoke_in_time_is_fenced() -> None:
    host = host_of()
    one, two = StreamsClient(host, "one"), StreamsClient(host, "two")
    one.join()
    two.join()
    one.send_beat()
    host.advance(9_999)
    assert "one" in group_of(host).members
    host.advance(1)
    assert "one" not in group_of(host).members
    assert one.send_beat().error_code == ErrorCode.UNKNOWN_MEMBER_ID


def test_a_silent_member_is_removed_when_its_session_ends() -> None:
    host = host_of()
    one, two = StreamsClient(host, "one"), StreamsClient(host, "two")
    one.join()
    two.join()
    settle(one, two)
    host.advance(44_000)
    two.beat()
    host.advance(1_000)
    settle(two)
    assert list(group_of(host).members) == ["two"]
    assert len(two.running()) == 8


def test_the_first_assignment_waits_for_more_members() -> None:
    host = host_of(settings=GroupSettings())
    one, two = StreamsClient(host, "one"), StreamsClient(host, "two")
    assert statuses(one.join()) == [Status.ASSIGNMENT_DELAYED]
    host.advance(1_000)
    assert statuses(two.join()) == [Status.ASSIGNMENT_DELAYED]
    host.new_records.clear()
    host.advance(2_000)
    computed = [entry.key for entry in host.new_records]
    assert isinstance(computed[-1], StreamsGroupTargetAssignmentMetadataKey)
    one.beat()
    two.beat()
    assert len(one.running()) == len(two.running()) == 4


def test_a_second_assignment_waits_for_the_interval() -> None:
    host = host_of(settings=replace(AT_ONCE, streams_assignment_interval_ms=1000))
    one, two = StreamsClient(host, "one"), StreamsClient(host, "two")
    one.join()
    assert statuses(two.join()) == [Status.ASSIGNMENT_DELAYED]
    host.advance(1_000)
    assert statuses(two.beat()) == []
    assert group_of(host).assignment_epoch == group_of(host).epoch


def test_missing_internal_topics_are_named_with_their_sizes_and_no_task_runs_before() -> None:
    host = host_of({SOURCE: 3})
    one = StreamsClient(host, "one")
    assert statuses(one.join()) == [Status.MISSING_INTERNAL_TOPICS]
    missing = host.shard.streams.missing_topics("g")
    assert {name: each.partition_count for name, each in missing.items()} == {WORDS: 3, COUNTS: 3}
    assert not one.running()
    host.change_topics({SOURCE: 3, WORDS: 3, COUNTS: 3})
    assert statuses(one.beat()) == []
    assert len(one.running()) == 6
    assert not host.shard.streams.missing_topics("g")


def test_a_topic_that_grows_gives_new_tasks() -> None:
    host = host_of()
    one = StreamsClient(host, "one")
    one.join()
    settle(one)
    host.change_topics(dict.fromkeys(TOPICS, 5))
    settle(one)
    assert len(one.running()) == 10


def test_a_replayed_log_gives_the_same_group() -> None:
    host = host_of(settings=replace(AT_ONCE, streams_standby_count=1))
    clients = [StreamsClient(host, name) for name in ("one", "two", "three")]
    for client in clients:
        client.join()
    settle(*clients)
    clients[0].leave()
    clients[1].beat()
    shard = host.replayed()
    assert state_of(shard.streams.state.groups["g"]) == state_of(group_of(host))


def test_members_continue_with_another_coordinator() -> None:
    host = host_of()
    one, two = StreamsClient(host, "one"), StreamsClient(host, "two")
    one.join()
    two.join()
    settle(one, two)
    before = one.running(), two.running()
    shard = host.replayed()
    at_once(shard.replayed(host.now_ms))
    shard.loaded(host.now_ms)
    host.shard = shard
    written = len(host.log)
    settle(one, two)
    assert (one.running(), two.running()) == before
    assert len(host.log) == written, "nothing changed, so nothing is recorded"


def test_a_deleted_group_leaves_nothing_after_compaction() -> None:
    host = host_of()
    one = StreamsClient(host, "one")
    one.join()
    settle(one)
    one.leave()
    for entry in host.shard.streams.tombstones("g"):
        host.shard.apply(entry)
    assert not host.shard.streams.owns("g")
    assert len(host.shard.streams.state.subscribers) == 0
    assert len(host.shard.streams.state.timers) == 0


def test_a_changed_number_of_standbys_gives_a_new_assignment() -> None:
    host = host_of()
    one, two = StreamsClient(host, "one"), StreamsClient(host, "two")
    one.join()
    two.join()
    settle(one, two)
    resource = ConfigResource(ResourceType.GROUP, "g")
    own = {"streams.num.standby.replicas": "1"}
    host.image = replace(host.image, configs=ConfigsImage({resource: own}))
    settle(one, two)
    assert one.copies() == {task for task in two.running() if task[0] == "1"}
    assert two.copies() == {task for task in one.running() if task[0] == "1"}


def test_an_epoch_is_recorded_once_for_each_change() -> None:
    host = host_of()
    one = StreamsClient(host, "one")
    one.join()
    settle(one)
    epochs = [entry for entry in host.new_records if isinstance(entry.key, StreamsGroupMetadataKey)]
    assert len(epochs) == 1


def test_a_large_group_is_decided_in_steps() -> None:
    host = host_of(dict.fromkeys(TOPICS, 600))
    StreamsClient(host, "one").join()
    two = StreamsClient(host, "two")
    request = Request(
        group_id="g",
        member_id="two",
        rebalance_timeout_ms=1000,
        topology=two.topology,
        process_id="two",
        active_tasks=[],
        standby_tasks=[],
        warmup_tasks=[],
    )
    streams = host.shard.streams
    assert streams.is_long(request, host.image)
    steps = streams.heartbeat(request, Caller("client", "/127.0.0.1", 0), host.image, host.now_ms)
    assert sum(1 for _ in steps) > 10


def test_a_shutdown_reaches_every_member_until_the_group_is_empty() -> None:
    host = host_of()
    one, two = StreamsClient(host, "one"), StreamsClient(host, "two")
    one.join()
    two.join()
    settle(one, two)
    one.beat(shutdown_application=True)
    assert Status.SHUTDOWN_APPLICATION in statuses(two.beat())
    one.leave()
    assert Status.SHUTDOWN_APPLICATION in statuses(two.beat())
    two.leave()
    assert Status.SHUTDOWN_APPLICATION not in statuses(one.join())


def test_a_member_with_the_previous_epoch_is_served_if_it_runs_no_more_than_assigned() -> None:
    host = host_of()
    one, two = StreamsClient(host, "one"), StreamsClient(host, "two")
    one.join()
    two.join()
    one.send_beat()  # the response is lost
    one.beat()
    member = group_of(host).members["one"]
    reply = beat(host, "g", "one", member.previous_epoch, active_tasks=[], standby_tasks=[], warmup_tasks=[])
    assert reply.error_code == ErrorCode.NONE


def test_a_member_that_missed_a_response_is_told_its_tasks_again() -> None:
    host = host_of()
    one = StreamsClient(host, "one")
    one.send_join()  # the response is lost
    one.epoch = group_of(host).members["one"].epoch
    assert len(one.beat().active_tasks or ()) == 2
    assert len(one.running()) == 8
    assert one.beat().active_tasks is None, "the member knows them now"


def test_a_group_that_is_full_refuses_another_member() -> None:
    host = host_of(settings=replace(AT_ONCE, streams_group_size_max=1))
    StreamsClient(host, "one").join()
    assert StreamsClient(host, "two").join().error_code == ErrorCode.GROUP_MAX_SIZE_REACHED
