"""Floods and large groups: every request gets a response, memory and turns stay bounded."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from barnabas.groups.basics import deadlines
from barnabas.groups.basics.settings import GroupSettings
from barnabas.groups.classic import coordinator, joining
from barnabas.groups.offsets import expiry, topic_removal
from barnabas.metadata.topics import TopicImage, TopicsImage
from barnabas.protocol import ErrorCode
from barnabas.protocol.messages.consumer_protocol_subscription import ConsumerProtocolSubscription
from barnabas.protocol.messages.join_group import JoinGroupRequest
from barnabas.protocol.messages.offset_commit import OffsetCommitRequest
from barnabas.protocol.messages.offset_delete import OffsetDeleteRequest
from barnabas.protocol.messages.offset_fetch import OffsetFetchRequest
from barnabas.protocol.messages.sync_group import SyncGroupRequest

from .host import Host, image_of, partition

Topic = OffsetCommitRequest.OffsetCommitRequestTopic


def join_request(group: str, member_id: str = "", metadata: bytes = b"", **changes: Any) -> JoinGroupRequest:
    protocol = JoinGroupRequest.JoinGroupRequestProtocol(name="range", metadata=metadata)
    request = JoinGroupRequest(
        group_id=group,
        member_id=member_id,
        session_timeout_ms=10_000,
        rebalance_timeout_ms=5_000,
        protocol_type="consumer",
        protocols=[protocol],
    )
    for name, value in changes.items():
        setattr(request, name, value)
    return request


def commit_request(group: str, partitions: int) -> OffsetCommitRequest:
    offsets = [
        Topic.OffsetCommitRequestPartition(partition_index=index, committed_offset=1)
        for index in range(partitions)
    ]
    return OffsetCommitRequest(group_id=group, topics=[Topic(name="t", partitions=offsets)])


def join_alone(host: Host, group: str, metadata: bytes = b"") -> str:
    host.ask("c", join_request(group, metadata=metadata), 3)
    host.advance(0)
    answer: Any = host.answers.pop("c")
    return str(answer.member_id)


def test_pending_ids_are_bounded_and_the_newest_are_valid() -> None:
    host = Host()
    for _ in range(joining.PENDING_MEMBERS_MAX + 500):
        answer: Any = host.ask("flood", join_request("g"), 9)
        assert answer.error_code == ErrorCode.MEMBER_ID_REQUIRED
    group = host.shard.classic.get("g")
    assert group is not None and len(group.pending) == joining.PENDING_MEMBERS_MAX
    assert host.ask("flood", join_request("g", answer.member_id), 9) is None
    host.advance(10_000)
    assert not group.pending
    assert host.shard.next_deadline_ms() is not None


def test_a_subscription_of_a_hundred_thousand_topics_is_decoded_only_when_it_is_needed() -> None:
    topics = [f"topic-{number}" for number in range(100_000)]
    host = Host(topics={"t": 1})
    member_id = join_alone(host, "g", b"\0\0" + ConsumerProtocolSubscription(topics=[*topics, "t"]).encode(0))
    group = host.shard.classic.get("g")
    assert group is not None and isinstance(group._subscribed, bytes)  # not decoded yet
    answer: Any = host.ask("c", SyncGroupRequest(group_id="g", member_id=member_id, generation_id=1), 4)
    assert answer.error_code == ErrorCode.UNKNOWN_SERVER_ERROR  # the log accepts no record of that size
    topic = OffsetDeleteRequest.OffsetDeleteRequestTopic(name="t")
    topic.partitions.append(topic.OffsetDeleteRequestPartition(partition_index=0))
    deleted: Any = host.ask("admin", OffsetDeleteRequest(group_id="g", topics=[topic]), 0)
    assert deleted.topics[0].partitions[0].error_code == ErrorCode.GROUP_SUBSCRIBED_TO_TOPIC
    assert len(group.subscribed or ()) == 100_001


def test_metadata_that_is_no_subscription_keeps_the_offsets_of_all_topics() -> None:
    host = Host(topics={"t": 1})
    for number, metadata in enumerate([b"", b"x", b"\0\0\x7f\xff\xff\xff", b"\xff\xff\0\0\0\0"]):
        group_id = f"g{number}"
        join_alone(host, group_id, metadata)
        assert host.shard.classic.is_subscribed(group_id, "anything")


def turns(host: Host) -> list[int]:
    """The number of records of each turn, until nothing is due any more."""
    found = []
    while (due_ms := host.shard.next_deadline_ms()) is not None and due_ms <= host.now_ms:
        outcomes = host.shard.on_timer(host.now_ms, host.image)
        found.append(sum(len(outcome.records) for outcome in outcomes))
        for outcome in outcomes:
            host.take(outcome)
    return found


def test_many_sessions_that_expire_together_are_handled_in_turns() -> None:
    host = Host()
    for number in range(coordinator.TIMERS_PER_TURN + 10):
        join_alone(host, f"g{number}")
    host.now_ms += 10_000
    assert len(host.shard.on_timer(host.now_ms, host.image)) == coordinator.TIMERS_PER_TURN
    due_ms = host.shard.next_deadline_ms()
    assert due_ms is not None and due_ms <= host.now_ms
    assert len(host.shard.on_timer(host.now_ms, host.image)) == 10


def test_sessions_that_share_a_second_are_sorted_in_turns() -> None:
    host = Host()
    count = 3 * deadlines.OPENED_AT_ONCE
    for number in range(count):
        join_alone(host, f"g{number}")
    timers = host.shard.classic.state.deadlines
    host.now_ms += 10_000 >> 10 << 10
    while (due_ms := host.shard.next_deadline_ms()) is not None and due_ms <= host.now_ms:
        before = len(timers._heap)
        for outcome in host.shard.on_timer(host.now_ms, host.image):
            host.take(outcome)
        assert len(timers._heap) - before <= deadlines.OPENED_AT_ONCE
    host.advance(11_000)
    assert {group.state.value for group in host.shard.classic.state.groups.values()} == {"Empty"}


def test_expiry_checks_many_groups_in_turns_and_misses_none() -> None:
    settings = GroupSettings(offsets_retention_ms=1000, offsets_retention_check_interval_ms=2000)
    host = Host(settings, {"t": 1})
    for number in range(3 * expiry.RECORDS_PER_TURN):
        host.ask("c", commit_request(f"g{number}", 1), 9)
    host.now_ms += 2000
    found = turns(host)
    assert sum(found) == 2 * 3 * expiry.RECORDS_PER_TURN  # an offset and a group each
    assert max(found) <= expiry.RECORDS_PER_TURN + 1
    assert host.shard.offsets.count == 0
    assert not host.shard.classic.state.groups


def test_a_group_of_many_offsets_expires_in_turns_and_what_it_commits_meanwhile_stays() -> None:
    settings = GroupSettings(offsets_retention_ms=1000, offsets_retention_check_interval_ms=2000)
    width = 3 * expiry.RECORDS_PER_TURN
    for commits_meanwhile in (False, True):
        host = Host(settings, {"t": width})
        host.ask("c", commit_request("g", width), 9)
        host.now_ms += 2000
        [first] = host.shard.on_timer(host.now_ms, host.image)
        assert len(first.records) == expiry.RECORDS_PER_TURN
        host.take(first)
        if commits_meanwhile:
            host.ask("c", commit_request("g", 1), 9)
        assert max(turns(host)) <= expiry.RECORDS_PER_TURN + 1
        assert host.shard.offsets.count == int(commits_meanwhile)
        assert ("g" in host.shard.classic.state.groups) is commits_meanwhile


def test_offsets_of_a_deleted_topic_are_removed_in_turns() -> None:
    width = 2 * topic_removal.RECORDS_PER_TURN
    host = Host(topics={"t": width, "kept": 1})
    host.ask("c", commit_request("wide", width), 9)
    for number in range(width):
        host.ask("c", commit_request(f"g{number}", 1), 9)
    host.change_image(image_of({"kept": 1}))
    assert host.shard.offsets.count == 2 * width  # nothing yet: other work runs first
    found = turns(host)
    assert sum(found) == 2 * width
    assert max(found) <= 2 * topic_removal.RECORDS_PER_TURN
    assert host.shard.offsets.count == 0
    assert host.shard.next_deadline_ms() != host.now_ms


def test_offsets_of_a_new_topic_with_the_name_of_a_deleted_one_stay() -> None:
    host = Host(topics={"t": 1})
    host.ask("c", commit_request("before", 1), 9)
    host.change_image(image_of({}))
    again = TopicImage("t", b"another id......", {0: partition()})
    host.change_image(replace(host.image, topics=TopicsImage({again.id: again}, {"t": again})))
    host.ask("c", commit_request("after", 1), 9)
    turns(host)
    assert host.shard.offsets.count_of("before") == 0
    assert host.shard.offsets.count_of("after") == 1


def test_a_commit_too_large_for_the_log_is_refused_and_others_go_on() -> None:
    host = Host(topics={"t": 40_000})
    answer: Any = host.ask("c", commit_request("g", 40_000), 9)
    codes = {partition.error_code for topic in answer.topics for partition in topic.partitions}
    assert codes == {ErrorCode.UNKNOWN_SERVER_ERROR}
    accepted: Any = host.ask("c", commit_request("g", 5), 9)
    assert {partition.error_code for partition in accepted.topics[0].partitions} == {0}


def test_heartbeats_and_commits_do_not_fill_the_heap() -> None:
    host = Host(topics={"t": 1})
    member_id = join_alone(host, "g")
    host.ask("c", SyncGroupRequest(group_id="g", member_id=member_id, generation_id=1), 4)
    size = len(host.shard.classic.state.deadlines)
    for _ in range(1000):
        host.now_ms += 1000
        request = commit_request("g", 1)
        request.member_id, request.generation_id_or_member_epoch = member_id, 1
        answer: Any = host.ask("c", request, 9)
        assert answer.topics[0].partitions[0].error_code == 0
        host.advance(0)
    assert len(host.shard.classic.state.deadlines) <= size


def test_repeated_joins_all_get_a_response() -> None:
    host = Host()
    join_alone(host, "g")
    given: Any = host.ask("b", join_request("g"), 9)
    for number in range(200):
        assert host.ask(f"b{number}", join_request("g", given.member_id), 9) is None
    assert len(host.waiting) == 1
    assert len(host.answers) == 199
    host.advance(5_000)
    assert not host.waiting


def test_fetching_all_offsets_of_a_group_that_is_not_there_is_cheap_and_empty() -> None:
    host = Host()
    groups = [OffsetFetchRequest.OffsetFetchRequestGroup(group_id=f"g{n}", topics=None) for n in range(1000)]
    answer: Any = host.ask("c", OffsetFetchRequest(groups=groups), 9)
    assert len(answer.groups) == 1000
    assert not host.shard.classic.state.groups


def test_times_beyond_all_bounds_are_cut() -> None:
    host = Host(topics={"t": 1})
    for keep_ms in (2**63 - 1, -(2**63), -2):
        request = commit_request("g", 1)
        request.retention_time_ms = keep_ms
        answer: Any = host.ask("c", request, 4)
        assert answer.topics[0].partitions[0].error_code == 0
    assert host.ask("c", join_request("h", rebalance_timeout_ms=-5), 3) is None
    host.advance(0)
    joined: Any = host.answers.pop("c")
    assert joined.error_code == 0


def test_the_longest_client_id_makes_a_member_id_that_can_be_written() -> None:
    host = Host()
    for client in ("c" * 32_767, "ß" * 16_383):
        given: Any = host.ask(client, join_request(client[:5]), 9)
        assert len(given.member_id.encode()) <= 32_767
        assert host.ask(client, join_request(client[:5], given.member_id), 9) is None
        host.advance(0)
        request = SyncGroupRequest(group_id=client[:5], member_id=given.member_id, generation_id=1)
        answer: Any = host.ask(client, request, 4)
        assert answer.error_code == 0
