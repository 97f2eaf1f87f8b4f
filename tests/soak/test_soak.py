"""Connections come and go by the thousand beside producers, groups and transactions: no request fails, memory
and descriptors of the nodes stay flat. Seconds in `make test`, half an hour in `make soak SECONDS=1800`; the
samples are written to `build/soak.txt`.
"""

from __future__ import annotations

import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

import psutil
import pytest
from confluent_kafka.admin import AdminClient, NewTopic

from barnabas.testing import Broker
from barnabas.testing.cluster import Cluster
from barnabas.testing.waiting import wait_until

from .churn import Churn
from .samples import Watch, complaints, table
from .workers import CommittedReader, Member, Transactor, Worker, Writer

ROOT = Path(__file__).parents[2]
REPORT = ROOT / "build"
SECONDS_LONG = 300.0  # from here on flat memory is asked for: before that a node is still warming up
CONNECTIONS_PER_SECOND = 150
CONNECTIONS_SHARE_MIN = 0.2  # of these, on a machine that is busy
# Old records go while the soak runs: files, and what a node keeps for each of them, come to a level.
SETTINGS = {
    "log.retention.check.interval.ms": "1000",
    "log.initial.task.delay.ms": "1000",
    "log.segment.delete.delay.ms": "1000",
    "log.cleaner.backoff.ms": "1000",
    "offsets.topic.num.partitions": "3",
    "transaction.state.log.num.partitions": "3",
    "offsets.topic.segment.bytes": "1048576",
    "transaction.state.log.segment.bytes": "1048576",
}
TOPIC_CONFIGS = {"segment.bytes": "4194304", "retention.bytes": "16777216"}
KEPT_CONFIGS = {"segment.bytes": "16777216"}  # read from its beginning at the end

pytestmark = [
    pytest.mark.skipif(not Path("/proc/self/smaps_rollup").exists(), reason="reads Linux's /proc"),
    pytest.mark.timeout(7200),
]


@contextmanager
def nodes(count: int) -> Iterator[tuple[str, list[int]]]:
    """Addresses for clients, and the processes."""
    if count == 1:
        with Broker(overrides=SETTINGS, in_process=False) as broker:
            yield broker.bootstrap, [broker.pid]
        return
    with Cluster(combined=count, overrides={**SETTINGS, "min.insync.replicas": "2"}) as cluster:
        yield cluster.bootstrap, [node.pid for node in cluster.brokers]


def create_topics(bootstrap: str, replicas: int) -> None:
    admin = AdminClient({"bootstrap.servers": bootstrap})
    topics = [
        NewTopic("events", num_partitions=4, replication_factor=replicas, config=TOPIC_CONFIGS),
        NewTopic("moved", num_partitions=1, replication_factor=replicas, config=KEPT_CONFIGS),
        NewTopic("noted", num_partitions=2, replication_factor=replicas, config=TOPIC_CONFIGS),
    ]
    for future in admin.create_topics(topics).values():
        future.result(60)


@pytest.mark.parametrize(
    "count", [1, pytest.param(3, marks=pytest.mark.long)], ids=["one node", "three nodes"]
)
def test_no_request_fails_and_nothing_grows(count: int, request: pytest.FixtureRequest) -> None:
    seconds = float(request.config.getoption("--soak-seconds"))
    with nodes(count) as (bootstrap, pids):
        create_topics(bootstrap, count)
        addresses = [
            (host, int(port)) for host, _, port in (each.rpartition(":") for each in bootstrap.split(","))
        ]
        reader = CommittedReader("reader", bootstrap, "moved")
        transactors = [Transactor(f"mover-{n}", bootstrap, ("moved", "noted")) for n in range(2)]
        members = [Member(f"member-{n}", bootstrap, "events", "readers") for n in range(3)]
        writers = [Writer(f"writer-{n}", bootstrap, "events") for n in range(2)]
        workers: list[Worker] = [*writers, *members, *transactors, reader]
        for worker in workers:
            worker.start()
        wait_until(lambda: has_begun(workers), 120, lambda: f"all have begun: {shown(workers)}")
        churn, watch = Churn(addresses, CONNECTIONS_PER_SECOND), Watch(pids, seconds)
        churn.start()
        watch.start()
        started = time.monotonic()
        wait_until(lambda: time.monotonic() - started >= seconds or problems(workers, churn), seconds + 60)
        watch.finish()
        churn.finish()
        for worker in [*writers, *members, *transactors]:
            worker.finish()
        reader.expected = sum(transactor.count for transactor in transactors)
        reader.finish()
        report(count, seconds, watch, workers, churn)

        assert problems(workers, churn) == []
        assert reader.count == reader.expected
        opened = sum(churn.opened.values())
        assert opened >= CONNECTIONS_SHARE_MIN * CONNECTIONS_PER_SECOND * seconds, churn.opened
        assert sum(member.count for member in members) > 0
        if seconds >= SECONDS_LONG:
            assert [each for pid in pids for each in complaints(watch.samples[pid])] == []
        wait_until(
            lambda: not strangers(pids), 60, lambda: f"connections are gone: {strangers(pids)} are there"
        )


def has_begun(workers: Sequence[Worker]) -> bool:
    return all(worker.count or worker.problems for worker in workers if not isinstance(worker, Member))


def problems(workers: Sequence[Worker], churn: Churn) -> list[str]:
    return [*churn.problems, *(problem for worker in workers for problem in worker.problems)]


def strangers(pids: Sequence[int]) -> int:
    """Connections of the nodes that do not come from, or go to, one of them."""
    found = [each for pid in pids for each in psutil.Process(pid).net_connections(kind="tcp")]
    own = {each.laddr for each in found}
    return sum(bool(each.raddr) and each.raddr not in own for each in found)


def shown(workers: Sequence[Worker]) -> str:
    return ", ".join(f"{worker.name} {worker.count}" for worker in workers)


def report(count: int, seconds: float, watch: Watch, workers: Sequence[Worker], churn: Churn) -> None:
    REPORT.mkdir(exist_ok=True)
    lines = [
        f"{count} node(s), {seconds:.0f} s, {sum(churn.opened.values())} connections opened",
        ", ".join(f"{kind} {opened}" for kind, opened in churn.opened.items()),
        shown(workers),
        f"problems: {problems(workers, churn) or 'none'}",
    ]
    for number, samples in enumerate(watch.samples.values(), 1):
        lines += ["", f"node {number}: {'; '.join(complaints(samples)) or 'flat'}", table(samples)]
    (REPORT / ("soak.txt" if count == 1 else f"soak-{count}.txt")).write_text("\n".join(lines) + "\n")
