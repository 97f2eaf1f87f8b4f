"""Several workers share connectors through real topics and a real group."""

from __future__ import annotations

import asyncio
from collections.abc import Callable

import pytest

from barnabas.client.cluster import Cluster
from barnabas.client.core.address import parse_bootstrap
from barnabas.connect.herder.distributed.herder import DistributedHerder
from barnabas.connect.herder.errors import Elsewhere, Refused
from barnabas.connect.plugins import FencedError
from barnabas.connect.tasks.privileged import LeaderWriter, OwnOffsets
from barnabas.testing import Broker
from connect.fakes import QuietPlugins, Recorder
from connect.records_of import records_of

CONFIG = {"name": "a", "connector.class": "Quiet", "topic": "t", "tasks.max": "6"}


def properties(group: str) -> dict[str, str]:
    return {
        "group.id": group,
        "config.storage.topic": f"{group}-configs",
        "status.storage.topic": f"{group}-status",
        "offset.storage.topic": f"{group}-offsets",
        "config.storage.replication.factor": "1",
        "status.storage.replication.factor": "1",
        "offset.storage.replication.factor": "1",
        "offset.storage.partitions": "2",
        "scheduled.rebalance.max.delay.ms": "0",
        "heartbeat.interval.ms": "200",
        "session.timeout.ms": "6000",
        "exactly.once.source.support": "preparing",
    }


async def until(condition: Callable[[], bool]) -> None:
    async with asyncio.timeout(30):
        while not condition():
            await asyncio.sleep(0.02)


class Workers:
    """Workers in one loop; what they send to the leader goes straight to its methods."""

    def __init__(self, bootstrap: str, group: str, **more: str) -> None:
        self._more = {name.replace("_", "."): text for name, text in more.items()}
        self._bootstrap = bootstrap
        self._group = group
        self.is_leading_by_transactions = True
        self.all: dict[str, tuple[DistributedHerder, Recorder, Cluster]] = {}

    async def add(self, number: int) -> None:
        url = f"http://worker:{number}/"
        cluster = Cluster(parse_bootstrap(self._bootstrap))
        runner = Recorder()
        worker = {**properties(self._group), "bootstrap.servers": self._bootstrap, **self._more}
        writer = LeaderWriter(worker, worker["config.storage.topic"])
        leading = writer if self.is_leading_by_transactions else None
        herder = DistributedHerder(
            worker, url, QuietPlugins(), runner, cluster, self._send, OwnOffsets(worker), leading
        )
        self.all[url] = herder, runner, cluster
        await herder.start()

    async def remove(self, url: str) -> None:
        herder, _, cluster = self.all.pop(url)
        await herder.stop()
        await cluster.close()

    async def _send(self, method: str, url: str, body: bytes, headers: dict[str, str]) -> None:
        import json

        base, _, path = url.partition("/connectors/")
        name, what = path.split("/")
        leader = self.all[base + "/"][0]
        if not leader.is_leader:
            raise Refused(409, "not the leader")
        if what == "fence":
            await leader.fence(name)
        else:
            await leader.publish_tasks(name, json.loads(body))

    def tasks(self) -> list[int]:
        return sorted(len(runner.running) for _, runner, _ in self.all.values())

    def running(self) -> list[tuple[str, int]]:
        return sorted(each for _, runner, _ in self.all.values() for each in runner.running)

    def leader(self) -> DistributedHerder:
        return next(herder for herder, _, _ in self.all.values() if herder.is_leader)


def test_workers_share_tasks_and_take_over_those_of_a_worker_that_leaves() -> None:
    async def main(bootstrap: str) -> None:
        workers = Workers(bootstrap, "sharing")
        for number in (1, 2, 3):
            await workers.add(number)
        everything = [("a", number) for number in range(6)]
        try:
            await until(lambda: all(herder.leader_url for herder, _, _ in workers.all.values()))
            follower = next(herder for herder, _, _ in workers.all.values() if not herder.is_leader)
            try:
                await follower.put("a", CONFIG, is_new=True)
            except Elsewhere as elsewhere:
                assert elsewhere.url == workers.leader().url
            await workers.leader().put("a", CONFIG, is_new=True)
            await until(lambda: workers.tasks() == [2, 2, 2] and workers.running() == everything)
            await until(lambda: len(follower.status("a")["tasks"]) == 6)
            gone = workers.leader().url
            await workers.remove(gone)
            await until(lambda: workers.tasks() == [3, 3] and workers.running() == everything)
            await workers.leader().delete("a")
            await until(lambda: workers.tasks() == [0, 0])
        finally:
            for url in list(workers.all):
                await workers.remove(url)

    with Broker() as broker:
        asyncio.run(main(broker.bootstrap))


def test_producers_of_earlier_tasks_are_fenced_once_for_each_configuration() -> None:
    """A second fencing would end tasks that run already."""

    async def main(bootstrap: str) -> None:
        workers = Workers(bootstrap, "fences", exactly_once_source_support="enabled")
        for number in (1, 2, 3):
            await workers.add(number)
        everything = [("a", number) for number in range(6)]
        try:
            await until(lambda: all(herder.leader_url for herder, _, _ in workers.all.values()))
            for number in range(4):
                leader = workers.leader()
                await leader.put("a", {**CONFIG, "round": str(number)}, is_new=False)
                await until(
                    lambda number=number: (
                        workers.running() == everything
                        and {c["round"] for _, r, _ in workers.all.values() for c in r.running.values()}
                        == {str(number)}
                    )
                )
            states = {each["state"] for each in workers.leader().status("a")["tasks"]}
            assert states == {"RUNNING"}
        finally:
            for url in list(workers.all):
                await workers.remove(url)

    with Broker() as broker:
        asyncio.run(main(broker.bootstrap))
        keys = [key for key, _, _ in records_of(broker.bootstrap, "fences-configs")]
        wanted = [key for key in keys if key in (b"commit-a", b"tasks-fencing-a")]
        assert wanted == [b"commit-a", b"tasks-fencing-a"] * (len(wanted) // 2)


def test_a_configuration_that_the_topic_does_not_take_is_refused_with_the_reason() -> None:
    async def main(bootstrap: str) -> None:
        workers = Workers(bootstrap, "large", exactly_once_source_support="disabled")
        workers.is_leading_by_transactions = False
        await workers.add(1)
        try:
            await until(lambda: any(herder.is_leader for herder, _, _ in workers.all.values()))
            with pytest.raises(Refused, match=r"Error writing connector configuration to Kafka: .*LARGE"):
                await workers.leader().put("a", {**CONFIG, "big": "x" * 1_100_000}, is_new=True)
            assert not workers.leader().state.connectors
        finally:
            await workers.remove("http://worker:1/")

    with Broker() as broker:
        asyncio.run(main(broker.bootstrap))


def test_a_leader_fences_the_one_before_and_writes_all_records_or_none() -> None:
    """With exactly-once sources the config topic is written in transactions, as Apache's leaders do."""
    with Broker() as broker:
        worker = {"bootstrap.servers": broker.bootstrap, "group.id": "fencing"}
        former, present = (LeaderWriter(worker, "configs") for _ in range(2))
        try:
            former.take_over()
            former.write([(b"a", b"1"), (b"b", b"2")])
            present.take_over()
            with pytest.raises(FencedError, match="connect-cluster-fencing"):
                former.write([(b"a", b"of the former"), (b"b", b"of the former")])
            present.write([(b"a", b"3")])
            found = [(key, value) for key, _, value in records_of(broker.bootstrap, "configs")]
            assert found == [(b"a", b"1"), (b"b", b"2"), (b"a", b"3")]
        finally:
            former.close()
            present.close()


def test_offsets_in_a_topic_of_the_connectors_own_are_read_and_changed() -> None:
    with Broker() as broker:
        worker = {"bootstrap.servers": broker.bootstrap, "offset.storage.topic": "offsets"}
        config = {"offsets.storage.topic": "own-offsets"}
        own = OwnOffsets(worker)
        assert own.topic({"offsets.storage.topic": "offsets"}) == "" and own.topic(config) == "own-offsets"
        first = (b'["a",{"file":"x"}]', b'{"position":1}')
        own.write("a", config, [first, (b'["b",{"file":"y"}]', b'{"position":7}')])
        assert own.read("a", config) == [first]
        own.write("a", config, [(b'["a", {"file": "x"}]', None)])
        assert own.read("a", config) == []
