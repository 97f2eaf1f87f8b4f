"""The REST proxy beside Karapace's: records produced and consumed a second, over the same broker.

`python -m bench.rest [--seconds 5] [--rounds 1] [--karapace PYTHON]`. PYTHON is an interpreter that has
Karapace installed; without it only our proxy is measured. Proxies run one after another, each alone with the
broker; the load is one process with a few connections. Rows tell records a second, and records for each
second of CPU time that the proxy itself used, which other work on the machine does not change.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import os
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

from barnabas.testing.ports import free_ports
from bench.brokers import Barnabas, cpu_seconds, create_topics
from bench.rest_load import connect, drain, repeat, request

START_S_MAX = 60.0
CONNECTIONS = 8
WARM_UP_S = 0.5
VALUE = "x" * 100
BATCHES = (1, 100, 1_000)
READ_RECORDS = 50_000
READ_S_MAX = 10.0
JSON = "application/vnd.kafka.json.v2+json"
BINARY = "application/vnd.kafka.binary.v2+json"
V2 = "application/vnd.kafka.v2+json"
STREAM_RECORDS = 1_000

Rows = dict[str, float]


class Proxy:
    """A proxy as a child process."""

    def __init__(self, name: str, command: list[str], port: int, environment: dict[str, str]) -> None:
        self.name = name
        self.port = port
        self._output = Path(tempfile.mkdtemp(prefix="bench-rest-")) / "output.txt"
        with self._output.open("wb") as output:
            self._process = subprocess.Popen(
                command, env={**os.environ, **environment}, stdout=output, stderr=subprocess.STDOUT
            )

    def wait(self) -> None:
        deadline = time.perf_counter() + START_S_MAX
        while True:
            try:
                if asyncio.run(status_of(self.port)) == 200:
                    return
            except OSError:
                pass
            if self._process.poll() is not None or time.perf_counter() > deadline:
                raise RuntimeError(f"{self.name} did not start: {self._output.read_text()[-3000:]}")
            time.sleep(0.1)

    @property
    def cpu_s(self) -> float:
        return cpu_seconds(self._process.pid)

    def stop(self) -> None:
        self._process.terminate()
        try:
            self._process.wait(20)
        except subprocess.TimeoutExpired:
            self._process.kill()
            self._process.wait()


async def status_of(port: int) -> int:
    connection = await connect(port)
    try:
        return (await connection.ask(request("GET", "/topics", accept=V2)))[0]
    finally:
        connection.close()


def ours(broker: int) -> Proxy:
    (port,) = free_ports(1)
    command = [sys.executable, "-m", "barnabas", "rest", "start", "--bootstrap-server", f"127.0.0.1:{broker}"]
    command += ["--port", str(port), "--override", "barnabas.http.access.log=false"]
    return Proxy("Barnabas", command, port, {})


def karapace(broker: int, python: str) -> Proxy:
    (port,) = free_ports(1)
    environment = {
        "PYTHONPATH": "",
        "KARAPACE_BOOTSTRAP_URI": f"127.0.0.1:{broker}",
        "KARAPACE_HOST": "127.0.0.1",
        "KARAPACE_PORT": str(port),
        "KARAPACE_REGISTRY_HOST": "127.0.0.1",
        "KARAPACE_LOG_LEVEL": "WARNING",
        "KARAPACE_ACCESS_LOGS_DEBUG": "false",
        "KARAPACE_CONSUMER_REQUEST_TIMEOUT_MS": "1000",
    }
    return Proxy("Karapace", [python, "-m", "karapace.kafka_rest_apis"], port, environment)


def timed(proxy: Proxy, name: str, run: Callable[[], float]) -> Rows:
    """The rate that `run` returns, also for each second of the proxy's CPU time."""
    before, began = proxy.cpu_s, time.perf_counter()
    rate = run()
    share = (proxy.cpu_s - before) / (time.perf_counter() - began)
    return {name: rate, f"{name}, a CPU second": rate / max(share, 0.01)}


def produced(proxy: Proxy, topic: str, seconds: float) -> Rows:
    rows: Rows = {}
    for size in BATCHES:
        body = json.dumps({"records": [{"value": {"text": VALUE, "number": 1}}] * size}).encode()
        data = request("POST", f"/topics/{topic}", body, JSON, V2)
        asyncio.run(repeat(proxy.port, data, CONNECTIONS, WARM_UP_S))
        rows |= timed(
            proxy,
            f"v2 produce, {size} records a request",
            lambda size=size, data=data: size * asyncio.run(repeat(proxy.port, data, CONNECTIONS, seconds)),  # type: ignore[misc]
        )
    return rows


def consumed(proxy: Proxy, topic: str) -> Rows:
    rows: Rows = {}
    for size in (10_000, 1_000_000):
        group = f"bench-{proxy.name}-{size}"
        rows |= timed(
            proxy,
            f"v2 consume, reads of {size // 1000} kB",
            lambda size=size, group=group: asyncio.run(read_all(proxy, topic, size, group)),  # type: ignore[misc]
        )
    return rows


async def read_all(proxy: Proxy, topic: str, max_bytes: int, group: str) -> float:
    connection = await connect(proxy.port)
    settings = {"name": "bench", "format": "json", "auto.offset.reset": "earliest", "fetch.min.bytes": 1}
    path = f"/consumers/{group}/instances/bench"
    place = {"partitions": [{"topic": topic, "partition": 0}]}
    for where, body in ((f"/consumers/{group}", settings), (f"{path}/assignments", place)):
        status, answer = await connection.ask(request("POST", where, json.dumps(body).encode(), V2, V2))
        if status not in (200, 204):
            raise RuntimeError(f"{where}: HTTP {status}: {answer[:300]!r}")
    read = request("GET", f"{path}/records?max_bytes={max_bytes}&timeout=1000", accept=JSON)
    try:
        return await drain(proxy.port, read, READ_RECORDS, records_in, READ_S_MAX)
    finally:
        await connection.ask(request("DELETE", path, accept=V2))
        connection.close()


def records_in(body: bytes) -> int:
    return body.count(b'"offset":')


def streamed(proxy: Proxy, topic: str, seconds: float) -> Rows:
    record = json.dumps({"value": {"type": "JSON", "data": {"text": VALUE, "number": 1}}})
    body = (record * STREAM_RECORDS).encode()
    path = f"/v3/clusters/any/topics/{topic}/records"
    data = request("POST", path, body, "application/json", "application/json")
    asyncio.run(repeat(proxy.port, data, CONNECTIONS, WARM_UP_S))
    return timed(
        proxy,
        f"v3 streaming produce, {STREAM_RECORDS} records a request",
        lambda: STREAM_RECORDS * asyncio.run(repeat(proxy.port, data, CONNECTIONS, seconds)),
    )


def fill(port: int, topic: str) -> None:
    """Records to consume, the same for all proxies."""
    from confluent_kafka import Producer

    producer = Producer({"bootstrap.servers": f"127.0.0.1:{port}", "linger.ms": 50})
    value = json.dumps({"text": VALUE, "number": 1}, separators=(",", ":")).encode()
    for index in range(READ_RECORDS):
        producer.produce(topic, value, partition=0)
        if index % 1_000 == 0:
            producer.poll(0)
    producer.flush()


def measure(
    start: Callable[[], Proxy], topics: tuple[str, str], seconds: float, rounds: int, has_v3: bool
) -> Rows:
    found: dict[str, list[float]] = {}
    for _ in range(rounds):
        proxy = start()
        try:
            proxy.wait()
            rows = produced(proxy, topics[0], seconds) | consumed(proxy, topics[1])
            if has_v3:
                rows |= streamed(proxy, topics[0], seconds)
        finally:
            proxy.stop()
        for name, value in rows.items():
            found.setdefault(name, []).append(value)
    return {name: statistics.median(values) for name, values in found.items()}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--seconds", type=float, default=5.0)
    parser.add_argument("--rounds", type=int, default=1)
    parser.add_argument("--karapace", help="an interpreter that has Karapace")
    options = parser.parse_args()
    broker = Barnabas()
    broker.start()
    try:
        create_topics(broker, {"produced": 3, "consumed": 1})
        fill(broker.port, "consumed")
        topics = ("produced", "consumed")
        arguments = (topics, options.seconds, options.rounds)
        mine = measure(lambda: ours(broker.port), *arguments, True)
        theirs: Rows = {}
        if options.karapace:
            theirs = measure(lambda: karapace(broker.port, options.karapace), *arguments, False)
    finally:
        broker.close()
    print("records a second | Barnabas | Karapace | ratio")
    for name, value in mine.items():
        other = theirs.get(name)
        beside = f"{other:,.0f} | {value / other:.1f}" if other else "- | -"
        print(f"{name} | {value:,.0f} | {beside}")


if __name__ == "__main__":
    main()
