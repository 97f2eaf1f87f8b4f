"""Members of share groups: joining, epochs, sessions, sizes, settings, what a new coordinator knows."""

from __future__ import annotations

from dataclasses import replace

import pytest

from barnabas.groups.basics.settings import GroupSettings
from barnabas.metadata.configs import ConfigResource, ConfigsImage, ResourceType
from barnabas.protocol import ErrorCode

from .share_host import AT_ONCE, ShareClient, StateHost, settle


def a_group(partitions: int = 3, settings: GroupSettings = AT_ONCE) -> tuple[StateHost, ShareClient]:
    """A group of one that reads all partitions."""
    host = StateHost({"t": partitions, "u": 1}, settings)
    client = ShareClient(host, "g", "a", ["t"])
    settle(host, client)
    return host, client


def test_a_member_gets_partitions_when_share_coordinators_have_their_state() -> None:
    host = StateHost({"t": 2})
    client = ShareClient(host, "g", "a", ["t"])

    client.beat()
    first = client.epoch, client.held
    client.beat()
    waiting = client.epoch, client.held
    asked = host.respond()
    client.beat()

    assert (first, waiting, asked) == ((2, {}), (2, {}), 1)
    assert (client.epoch, client.held) == (3, {"t": [0, 1]})
    assert host.states == {("g", "t", 0): -1, ("g", "t", 1): -1}


def test_heartbeats_that_change_nothing_write_nothing() -> None:
    host, client = a_group()
    written = len(host.log)

    for _ in range(3):
        host.advance(5000)
        client.beat()

    assert len(host.log) == written
    assert host.describe("g").group_state == "Stable"


@pytest.mark.parametrize(
    ("epoch", "code"),
    [
        (3, ErrorCode.NONE),
        (2, ErrorCode.NONE),  # the previous one: a response was lost
        (1, ErrorCode.FENCED_MEMBER_EPOCH),
        (4, ErrorCode.FENCED_MEMBER_EPOCH),
    ],
)
def test_a_member_sends_its_epoch_or_the_previous_one(epoch: int, code: ErrorCode) -> None:
    host, client = a_group()
    assert client.epoch == 3

    assert host.beat("g", "a", epoch).error_code == code


def test_a_silent_member_is_removed_and_the_others_get_its_partitions() -> None:
    host, client = a_group(4)
    other = ShareClient(host, "g", "b", ["t"])
    settle(host, client, other)
    shared = client.held, other.held

    for _ in range(10):
        host.advance(5000)
        other.beat()

    assert [len(each["t"]) for each in shared] == [2, 2]
    assert other.held == {"t": [0, 1, 2, 3]}
    assert client.beat() == ErrorCode.UNKNOWN_MEMBER_ID


def test_a_group_that_is_full_refuses_strangers() -> None:
    host, client = a_group(settings=replace(AT_ONCE, share_group_size_max=1))

    refused = host.beat("g", "b", 0, ["t"])

    assert refused.error_code == ErrorCode.GROUP_MAX_SIZE_REACHED
    assert refused.error_message == "The share group has reached its maximum capacity of 1 members."
    assert client.beat() == ErrorCode.NONE


def test_a_group_may_have_its_own_times_within_the_bounds() -> None:
    host = StateHost({"t": 1})
    own = {"share.session.timeout.ms": "50000", "share.heartbeat.interval.ms": "1"}
    group = ConfigResource(ResourceType.GROUP, "g")
    host.image = replace(host.image, configs=ConfigsImage({group: own}))

    reply = host.beat("g", "a", 0, ["t"])
    host.advance(49_999)
    in_time = host.beat("g", "a", 2)
    host.advance(50_000)
    too_late = host.beat("g", "a", 2)

    assert reply.heartbeat_interval_ms == 5000
    assert in_time.error_code == ErrorCode.NONE
    assert too_late.error_code == ErrorCode.UNKNOWN_MEMBER_ID


def test_assignments_wait_for_the_interval() -> None:
    host = StateHost({"t": 1}, GroupSettings())  # 1,000 ms
    client = ShareClient(host, "g", "a", ["t"])
    client.beat()
    host.respond()

    host.advance(999)
    client.beat()
    early = client.epoch, host.describe("g").group_epoch
    host.advance(1)
    client.beat()

    assert early == (2, 3)
    assert (client.epoch, client.held) == (3, {"t": [0]})


def test_more_members_than_partitions_share_them() -> None:
    host = StateHost({"t": 2})
    clients = [ShareClient(host, "g", f"m{number}", ["t"]) for number in range(7)]

    settle(host, *clients)

    readers = [sum(index in client.held["t"] for client in clients) for index in (0, 1)]
    assert all(client.held for client in clients)
    assert readers == [4, 4]


def test_a_new_subscription_takes_effect_at_once() -> None:
    host, client = a_group()

    dropped = host.beat("g", "a", client.epoch, ["u"])
    host.respond()
    taken = host.beat("g", "a", dropped.member_epoch)

    assert host.held(dropped) == {}
    assert host.held(taken) == {"u": [0]}


def test_a_new_coordinator_goes_on_where_the_last_one_stopped() -> None:
    host, client = a_group()
    before = host.describe("g")

    host.restart()

    assert host.describe("g") == before
    assert client.beat() == ErrorCode.NONE
    assert host.respond() == 0
    host.advance(45_000)
    assert host.describe("g").group_state == "Empty"


def test_groups_are_kept_without_members_and_offsets() -> None:
    host, client = a_group()
    client.leave()

    host.advance(10_080 * 60_000 + 1_200_000)

    assert host.describe("g").group_state == "Empty"
    assert host.states
