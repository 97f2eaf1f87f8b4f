"""Share coordinators of both products in one cluster: each reads what the other wrote, and takes over."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from typing import Any

import pytest

from barnabas.protocol import ApiKey, uuid
from barnabas.testing.cluster import APACHE, BARNABAS, Cluster
from barnabas.testing.waiting import wait_until
from cluster.replicated import wait_for_isr

from .frames import Closed
from .share_writing import FIELDS, NOT_READY, SHARE
from .talk import Talk

pytestmark = [pytest.mark.java, pytest.mark.long, pytest.mark.usefixtures("java"), pytest.mark.timeout(600)]

PARTITIONS = 6
SOON = {
    "broker.session.timeout.ms": 4000,
    "broker.heartbeat.interval.ms": 500,
    "replica.lag.time.max.ms": 6000,
    "offsets.topic.num.partitions": 3,
    "share.coordinator.state.topic.num.partitions": 3,
    "share.coordinator.snapshot.update.records.per.snapshot": 3,
    "share.coordinator.state.topic.prune.interval.ms": 2000,
    "share.coordinator.cold.partition.snapshot.interval.ms": 3000,
}
WAIT_S = 90.0
GROUP_KEY = 0


class Asker:
    """Asks the coordinator of each key, wherever that is now."""

    def __init__(self, cluster: Cluster) -> None:
        self.cluster = cluster

    def talk(self, node_id: int) -> Talk:
        return Talk(int(self.cluster[node_id].address.rpartition(":")[2]), "mixed")

    def anybody(self) -> Talk:
        return self.talk(next(node.id for node in self.cluster.brokers if node.is_running))

    def coordinator(self, kind: int, key: str) -> int | None:
        with contextlib.closing(self.anybody()) as talk:
            [found] = talk.silently(ApiKey.FIND_COORDINATOR, 6, key_type=kind, coordinator_keys=[key])[
                "coordinators"
            ]
            node: int = found["node_id"]
            return node if found["error_code"] == "NONE" and self.cluster[node].is_running else None

    def ask(
        self, kind: int, key: str, api: ApiKey, version: int, is_final: Any, **body: Any
    ) -> dict[str, Any]:
        """The response of the coordinator that `is_final` accepts; others are asked for again."""
        found: list[dict[str, Any]] = []

        def asked() -> bool:
            with contextlib.suppress(Closed, OSError, TimeoutError):
                node_id = self.coordinator(kind, key)
                if node_id is not None:
                    with contextlib.closing(self.talk(node_id)) as talk:
                        answer = talk.silently(api, version, **body)
                    if "connection" not in answer and is_final(answer):
                        found.append(answer)
            return bool(found)

        wait_until(asked, WAIT_S, what=f"the coordinator of {key} serves {api.name}")
        return found[0]


class ShareState:
    def __init__(self, asker: Asker, group: str, topic_id: bytes, partition: int) -> None:
        self.asker, self.group, self.topic_id, self.partition = asker, group, topic_id, partition
        self.key = f"{group}:{uuid.to_text(topic_id)}:{partition}"

    def ask(self, api: ApiKey, version: int, **data: Any) -> dict[str, Any]:
        def is_final(answer: Any) -> bool:
            return answer["results"][0]["partitions"][0]["error_code"] not in NOT_READY

        topics = [{"topic_id": self.topic_id, "partitions": [{"partition": self.partition} | data]}]
        answer = self.asker.ask(SHARE, self.key, api, version, is_final, group_id=self.group, topics=topics)
        [result] = answer["results"][0]["partitions"]
        assert result["error_code"] == "NONE", result
        found: dict[str, Any] = result
        return found

    def initialize(self) -> None:
        self.ask(ApiKey.INITIALIZE_SHARE_GROUP_STATE, 0, state_epoch=1, start_offset=0)

    def write(self, offset: int) -> None:
        batch = dict(zip(FIELDS, (offset, offset, 2, 1), strict=True))
        epochs = {"state_epoch": 1, "leader_epoch": 0, "start_offset": 0}
        self.ask(ApiKey.WRITE_SHARE_GROUP_STATE, 1, **epochs, state_batches=[batch])

    def read(self) -> list[int]:
        answer = self.ask(ApiKey.READ_SHARE_GROUP_STATE, 0, leader_epoch=0)
        return [each["first_offset"] for each in answer["state_batches"]]


@pytest.fixture(
    params=[(BARNABAS, BARNABAS, BARNABAS), (BARNABAS, APACHE, BARNABAS), (APACHE, BARNABAS, APACHE)],
    ids=["ours", "one of Apache Kafka", "two of Apache Kafka"],
)
def cluster(request: pytest.FixtureRequest) -> Iterator[Cluster]:
    made = Cluster(brokers=3, controllers=1, overrides=SOON)
    for node_id, product in enumerate(request.param, start=1):
        made[node_id].product = product
    with made:
        yield made


def wait_until_in_sync(cluster: Cluster) -> None:
    for topic, partitions in (("__share_group_state", 3), ("shared", PARTITIONS)):
        for partition in range(partitions):
            wait_for_isr(cluster, topic, {1, 2, 3}, partition)


def topic_of(cluster: Cluster, asker: Asker) -> bytes:
    cluster.create_topic("shared", PARTITIONS, replication_factor=3)
    found: list[bytes] = []

    def is_known() -> bool:
        with contextlib.closing(asker.anybody()) as talk:
            [topic] = talk.silently(ApiKey.METADATA, 12, topics=[{"name": "shared"}])["topics"]
        found.append(topic["topic_id"])
        return bool(topic["error_code"] == "NONE")

    wait_until(is_known, what="the broker that is asked knows the topic")
    return found[-1]


def test_nothing_written_is_lost_while_each_coordinator_is_killed(cluster: Cluster) -> None:
    asker = Asker(cluster)
    topic_id = topic_of(cluster, asker)
    states = [ShareState(asker, "group", topic_id, number) for number in range(PARTITIONS)]
    for state in states:
        state.initialize()
    written: list[int] = []

    def write(count: int) -> None:
        for _ in range(count):
            offset = 2 * len(written)
            for state in states:
                state.write(offset)
            written.append(offset)

    write(3)
    for node in cluster.brokers:
        node.kill()
        write(3)
        assert [state.read() for state in states] == [written] * PARTITIONS
        node.start()
        wait_until_in_sync(cluster)
    assert [state.read() for state in states] == [written] * PARTITIONS


def test_group_coordinators_keep_state_at_share_coordinators_of_the_other_product(cluster: Cluster) -> None:
    """AlterShareGroupOffsets goes from a group coordinator to three share coordinators."""
    asker = Asker(cluster)
    topic_of(cluster, asker)
    groups = [f"group-{number}" for number in range(6)]
    for number, group in enumerate(groups):
        altered(asker, group, 10 * number)
    assert len({asker.coordinator(GROUP_KEY, group) for group in groups}) > 1
    for node in cluster.brokers:
        node.kill()
        for number, group in enumerate(groups):
            assert described(asker, group) == dict.fromkeys(range(PARTITIONS), 10 * number)
        node.start()
        wait_until_in_sync(cluster)


def altered(asker: Asker, group: str, offset: int) -> None:
    parts = [{"partition_index": number, "start_offset": offset} for number in range(PARTITIONS)]

    def is_final(answer: Any) -> bool:
        codes = {each["error_code"] for topic in answer["responses"] for each in topic["partitions"]}
        return answer["error_code"] == "NONE" and codes == {"NONE"}

    topics = [{"topic_name": "shared", "partitions": parts}]
    asker.ask(GROUP_KEY, group, ApiKey.ALTER_SHARE_GROUP_OFFSETS, 0, is_final, group_id=group, topics=topics)


def described(asker: Asker, group: str) -> dict[int, int]:
    def partitions(answer: Any) -> list[Any]:
        return [each for topic in answer["groups"][0]["topics"] for each in topic["partitions"]]

    def is_final(answer: Any) -> bool:
        found = partitions(answer)
        return bool(found) and all(each["error_code"] == "NONE" for each in found)

    body = {"groups": [{"group_id": group, "topics": None}]}
    answer = asker.ask(GROUP_KEY, group, ApiKey.DESCRIBE_SHARE_GROUP_OFFSETS, 1, is_final, **body)
    return {each["partition_index"]: each["start_offset"] for each in partitions(answer)}
