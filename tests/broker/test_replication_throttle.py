"""Throttled replicas wait when their rate is used up; replicas in sync, and others, never do."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any, cast

import pytest

from barnabas.broker.quotas.replication_throttle import UNLIMITED, ReplicationThrottle, named_partitions


class Configs:
    def __init__(self, throttled: str) -> None:
        self._throttled = throttled

    def topic(self, name: str) -> dict[str, str]:
        return {"leader.replication.throttled.replicas": self._throttled} if name == "moving" else {}


def throttle(rate: int, throttled: str = "*") -> ReplicationThrottle:
    broker = SimpleNamespace(
        node_id=1,
        settings={
            "leader.replication.throttled.rate": rate,
            "replication.quota.window.num": 11,
            "replication.quota.window.size.seconds": 1,
        },
        loop=SimpleNamespace(time=lambda: 100.0),
        image=SimpleNamespace(configs=Configs(throttled)),
    )
    return ReplicationThrottle(cast(Any, broker), "leader")


def partition(topic: str = "moving", index: int = 0, isr: tuple[int, ...] = (1,)) -> Any:
    return SimpleNamespace(topic=topic, index=index, state=SimpleNamespace(isr=isr))


def test_a_throttled_follower_waits_when_the_rate_is_used_up() -> None:
    limited = throttle(1_000)
    assert not limited.must_wait(partition(), 2)
    limited.count(partition(), 50_000)
    assert limited.must_wait(partition(), 2)


def test_in_sync_followers_and_other_topics_are_not_throttled() -> None:
    limited = throttle(1_000)
    limited.count(partition(), 50_000)
    assert not limited.must_wait(partition(isr=(1, 2)), 2)
    assert not limited.must_wait(partition("other"), 2)


def test_without_a_rate_nothing_is_counted() -> None:
    unlimited = throttle(UNLIMITED)
    unlimited.count(partition(), 1 << 40)
    assert unlimited.bytes_per_second == 0
    assert not unlimited.must_wait(partition(), 2)


@pytest.mark.parametrize(
    ("text", "named"),
    [("*", None), ("0:1,2:1,3:2", {0, 2}), (" 5:1 , 6:1", {5, 6}), ("", set()), ("x:1,7", set())],
)
def test_replicas_are_named_by_partition_and_broker(text: str, named: set[int] | None) -> None:
    assert named_partitions(text, 1) == named
