"""`python -m bench.lag`: what watching 10,000 groups costs, while each commits every 5 seconds.

In: a broker of ours, a process that commits for all groups, and a lag service. Out: processor time and memory
of the service, how long a scrape takes, how many bytes it has, and how long small requests wait meanwhile:
the longest wait bounds how long the loop was busy with something else. Does not know: floors.
"""

from __future__ import annotations

import argparse
import asyncio
import http.client
import json
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager

from barnabas.client.admin.admin import Admin
from barnabas.client.admin.topics import NewTopic
from barnabas.client.cluster import Cluster
from barnabas.client.core.address import parse_bootstrap
from barnabas.client.core.errors import check
from barnabas.client.core.topology import TopicPartition
from barnabas.client.producer import NewRecord, Producer
from barnabas.protocol.messages.offset_commit import OffsetCommitRequest, OffsetCommitResponse
from barnabas.testing import Broker
from barnabas.testing.ports import free_ports
from bench.brokers import cpu_seconds, memory_bytes

TOPIC = "orders"
VERSION = 9  # of OffsetCommit: topics by name
IN_FLIGHT = 32
START_S_MAX = 300.0
DIALECTS = ("burrow", "kafka_exporter", "kminion", "lag_exporter", "own")


def main(arguments: list[str]) -> int:
    parser = argparse.ArgumentParser(prog="bench.lag")
    parser.add_argument("--groups", type=int, default=10_000)
    parser.add_argument("--partitions", type=int, default=4, help="of the topic that all groups consume")
    parser.add_argument("--interval", type=float, default=5.0, help="seconds between two commits of a group")
    parser.add_argument("--seconds", type=float, default=60.0, help="how long to measure")
    parser.add_argument("--load", metavar="BOOTSTRAP", help=argparse.SUPPRESS)
    options = parser.parse_args(arguments)
    if options.load:
        asyncio.run(load(options))
        return 0
    with Broker(in_process=False, overrides={"log.retention.check.interval.ms": 86_400_000}) as broker:
        asyncio.run(prepare(broker.bootstrap, options.partitions))
        with loading(broker.bootstrap, options), serving(broker.bootstrap) as (process, port):
            measure(process, port, options)
    return 0


async def prepare(bootstrap: str, partitions: int) -> None:
    async with Cluster(parse_bootstrap(bootstrap)) as cluster:
        await Admin(cluster).create_topic(NewTopic(TOPIC, partitions))
        await cluster.partitions_of(TOPIC, auto_create=True)
        await Admin(cluster).alter_offsets("first", {TopicPartition(TOPIC, 0): 0})  # makes the offsets topic
        async with Producer(cluster) as producer:
            for partition in range(partitions):
                await producer.send_all(TOPIC, [NewRecord(partition, None, b"x")] * 1_000)


async def load(options: argparse.Namespace) -> None:
    """Commit for all groups once in each interval, until the process is ended."""
    topic = OffsetCommitRequest.OffsetCommitRequestTopic
    async with Cluster(parse_bootstrap(options.load)) as cluster:
        address = next(iter((await cluster.refresh()).nodes.values())).address
        connections = [await cluster.connection_to(address, str(index)) for index in range(2)]
        room = asyncio.Semaphore(IN_FLIGHT)

        async def commit(number: int, offset: int) -> None:
            try:
                places = [
                    topic.OffsetCommitRequestPartition(partition_index=index, committed_offset=offset)
                    for index in range(options.partitions)
                ]
                request = OffsetCommitRequest(
                    group_id=f"group-{number}", topics=[topic(name=TOPIC, partitions=places)]
                )
                connection = connections[number % len(connections)]
                answer = await connection.send(request, OffsetCommitResponse, version=VERSION)
                check(answer.topics[0].partitions[0].error_code)
            finally:
                room.release()

        loop = asyncio.get_running_loop()
        begun, sent, offset = loop.time(), 0, 0
        tasks: set[asyncio.Task[None]] = set()
        pace = options.groups / options.interval
        while True:
            for number in range(options.groups):
                await room.acquire()
                task = asyncio.create_task(commit(number, offset % 1_000))
                tasks.add(task)
                task.add_done_callback(tasks.discard)
                sent += 1
                ahead_s = sent / pace - (loop.time() - begun)
                if ahead_s > 0.01:
                    await asyncio.sleep(ahead_s)
            offset += 7
            print(f"{sent / (loop.time() - begun):.0f}", flush=True)


@contextmanager
def loading(bootstrap: str, options: argparse.Namespace) -> Iterator[None]:
    command = [sys.executable, "-m", "bench.lag", "--load", bootstrap, "--groups", str(options.groups)]
    command += ["--partitions", str(options.partitions), "--interval", str(options.interval)]
    process = subprocess.Popen(command, stdout=subprocess.PIPE, text=True)
    try:
        assert process.stdout is not None
        process.stdout.readline()  # every group has committed
        reader = threading.Thread(target=process.stdout.read, daemon=True)
        reader.start()
        yield
    finally:
        process.terminate()
        process.wait()


@contextmanager
def serving(bootstrap: str) -> Iterator[tuple[subprocess.Popen[str], int]]:
    [port] = free_ports(1)
    command = [sys.executable, "-m", "barnabas", "lag", "serve", "--bootstrap-server", bootstrap]
    command += ["--port", str(port), "--override", "barnabas.http.access.log=false", "--log-level", "WARNING"]
    process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True)
    begun = time.monotonic()
    try:
        assert process.stdout is not None
        process.stdout.readline()
        while get(port, "/burrow/admin/ready")[0] != 200:
            if time.monotonic() - begun > START_S_MAX:
                raise TimeoutError("the service is not ready")
            time.sleep(0.1)
        print(f"ready after {time.monotonic() - begun:.1f} s")
        yield process, port
    finally:
        process.terminate()
        process.wait()


def get(port: int, path: str) -> tuple[int, bytes]:
    connection = http.client.HTTPConnection("127.0.0.1", port, timeout=120)
    try:
        connection.request("GET", path)
        response = connection.getresponse()
        return response.status, response.read()
    finally:
        connection.close()


def measure(process: subprocess.Popen[str], port: int, options: argparse.Namespace) -> None:
    waits: list[float] = []
    is_over = threading.Event()

    def wait_for_small_requests() -> None:
        while not is_over.wait(0.02):
            begun = time.perf_counter()
            get(port, "/burrow/admin")
            waits.append(time.perf_counter() - begun)

    watcher = threading.Thread(target=wait_for_small_requests)
    time.sleep(10)  # the first description of all groups is over
    read = records_read(port)
    cpu, begun = cpu_seconds(process.pid), time.monotonic()
    time.sleep(options.seconds)
    seconds = time.monotonic() - begun
    share = (cpu_seconds(process.pid) - cpu) / seconds
    rate = (records_read(port) - read) / seconds
    places = options.groups * options.partitions
    print(f"{options.groups} groups, {places} partitions of groups, {rate:.0f} commits read a second")
    print(f"processor: {share:.1%} of a core, {share / max(rate, 1) * 1e6:.1f} us a commit")
    print(f"memory: {memory_bytes(process.pid) / 2**20:.0f} MiB")
    watcher.start()
    for dialect in DIALECTS:
        cpu, begun = cpu_seconds(process.pid), time.perf_counter()
        _, body = get(port, f"/metrics?dialect={dialect}")
        took = time.perf_counter() - begun
        print(
            f"scrape {dialect}: {took:.2f} s, {cpu_seconds(process.pid) - cpu:.2f} s of processor, "
            f"{body.count(b'{')} samples, {len(body) / 2**20:.1f} MiB"
        )
    begun = time.perf_counter()
    get(port, "/v3/kafka/local/consumer/group-1/lag")
    print(f"status of a group: {(time.perf_counter() - begun) * 1000:.1f} ms")
    is_over.set()
    watcher.join()
    waits.sort()
    print(
        f"small requests beside the scrapes: {waits[len(waits) // 2] * 1000:.1f} ms in the middle, "
        f"{waits[-1] * 1000:.0f} ms at most, of {len(waits)}"
    )


def records_read(port: int) -> int:
    found: int = json.loads(get(port, "/v1/clusters")[1])["clusters"][0]["records_read"]
    return found


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
