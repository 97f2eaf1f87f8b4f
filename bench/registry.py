"""`python -m bench.registry`: registrations and lookups a second of the Schema Registry, beside Karapace.

In: a broker of ours that both keep their topics on; Karapace's interpreter, if there is one. Out: a table.
`--log` measures how long a node takes to apply a log of 100,000 versions, and what they cost in memory.
Requests are written to sockets as they are and responses are counted by their bytes, so that the load costs
little beside the server. Rounds alternate between the servers. CPU time is that of the server's process.
Does not know: floors.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import os
import signal
import statistics
import subprocess
import sys
import time
import urllib.request
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass

from barnabas.registry.state.model import Content
from barnabas.registry.state.records import schema_record
from barnabas.registry.state.state import State
from barnabas.testing.ports import free_ports
from bench.brokers import Barnabas, cpu_seconds, memory_bytes

CONNECTIONS = 16
START_S_MAX = 60.0
MEDIA_TYPE = "application/vnd.schemaregistry.v1+json"


@dataclass(slots=True)
class Server:
    name: str
    port: int
    process: subprocess.Popen[bytes]


@dataclass(frozen=True, slots=True)
class Measured:
    requests: int
    seconds: float
    cpu_s: float

    @property
    def rate(self) -> float:
        return self.requests / self.seconds

    @property
    def rate_by_cpu(self) -> float:
        return self.requests / max(self.cpu_s, 0.01)


class Connection(asyncio.Protocol):
    """Sends one request after the other, until the deadline. Bodies have a length; chunks are not read."""

    def __init__(self, requests: Iterator[bytes], deadline: float) -> None:
        self._requests = requests
        self._deadline = deadline
        self._data = b""
        self.count = 0
        self.failures = 0
        self.done = asyncio.get_running_loop().create_future()

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        assert isinstance(transport, asyncio.Transport)
        self._transport = transport
        self._send()

    def data_received(self, data: bytes) -> None:
        self._data += data
        head = self._data.find(b"\r\n\r\n")
        if head < 0:
            return
        start = self._data[:head].lower()
        at = start.find(b"content-length:")
        length = int(start[at + 15 :].split(b"\r\n", 1)[0])
        if len(self._data) < head + 4 + length:
            return
        self.failures += not start.startswith(b"http/1.1 200")
        self._data = b""
        self.count += 1
        self._send()

    def _send(self) -> None:
        request = next(self._requests, None)
        if request is None or time.monotonic() > self._deadline:
            self._transport.close()
        else:
            self._transport.write(request)

    def connection_lost(self, error: Exception | None) -> None:
        if not self.done.done():
            self.done.set_result(None)


async def load(server: Server, requests: Iterator[bytes], seconds: float) -> Measured:
    loop = asyncio.get_running_loop()
    before, begun = cpu_seconds(server.process.pid), time.monotonic()
    connections = [
        (
            await loop.create_connection(
                lambda: Connection(requests, begun + seconds), "127.0.0.1", server.port
            )
        )[1]
        for _ in range(CONNECTIONS)
    ]
    await asyncio.gather(*(each.done for each in connections))
    failures = sum(each.failures for each in connections)
    assert not failures, f"{server.name}: {failures} requests were refused"
    spent = cpu_seconds(server.process.pid) - before
    return Measured(sum(each.count for each in connections), time.monotonic() - begun, spent)


def get(path: str) -> bytes:
    return f"GET {path} HTTP/1.1\r\nHost: bench\r\nAccept: {MEDIA_TYPE}\r\n\r\n".encode()


def post(path: str, body: object) -> bytes:
    text = json.dumps(body)
    head = f"POST {path} HTTP/1.1\r\nHost: bench\r\nAccept: {MEDIA_TYPE}\r\nContent-Type: {MEDIA_TYPE}\r\n"
    return f"{head}Content-Length: {len(text)}\r\n\r\n{text}".encode()


def record(number: int) -> dict[str, str]:
    fields = [{"name": f"field_{index}", "type": ["null", "string"], "default": None} for index in range(8)]
    name = f"Order{number}"
    return {
        "schema": json.dumps({"type": "record", "namespace": "org.example", "name": name, "fields": fields})
    }


def lookups(count: int) -> Iterator[bytes]:
    known = [get(f"/schemas/ids/{number + 2}") for number in range(count)]  # 1 is the probe's
    while True:
        yield from known


def registrations(begin: int) -> Iterator[bytes]:
    number = begin
    while True:
        yield post(f"/subjects/topic-{number}-value/versions", record(number))
        number += 1


def finds(count: int) -> Iterator[bytes]:
    known = [post(f"/subjects/topic-{number}-value", record(number)) for number in range(count)]
    while True:
        yield from known


def wait_until_ready(url: str) -> None:
    """Wait until a schema can be registered: that takes a primary."""
    body = json.dumps({"schema": '"string"'}).encode()
    request = urllib.request.Request(f"{url}/subjects/probe/versions", body, {"Content-Type": MEDIA_TYPE})
    deadline = time.monotonic() + START_S_MAX
    while True:
        with suppress(OSError), urllib.request.urlopen(request, timeout=10) as response:
            if response.status == 200:
                return
        if time.monotonic() > deadline:
            raise TimeoutError(f"{url} is not ready")
        time.sleep(0.5)


@contextmanager
def started(name: str, port: int, command: list[str], environment: dict[str, str]) -> Iterator[Server]:
    process = subprocess.Popen(
        command, env={**os.environ, **environment}, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL
    )
    try:
        wait_until_ready(f"http://127.0.0.1:{port}")
        yield Server(name, port, process)
    finally:
        process.send_signal(signal.SIGTERM)
        try:
            process.wait(20)
        except subprocess.TimeoutExpired:
            process.kill()


def ours(bootstrap: str, port: int) -> tuple[list[str], dict[str, str]]:
    settings = {"listeners": f"http://127.0.0.1:{port}", "barnabas.http.access.log": "false"}
    overrides = [word for name, text in settings.items() for word in ("--override", f"{name}={text}")]
    command = [sys.executable, "-m", "barnabas", "registry", "start", "--bootstrap-server", bootstrap]
    return [*command, "--log-level", "ERROR", *overrides], {}


def karapaces(python: str, bootstrap: str, port: int) -> tuple[list[str], dict[str, str]]:
    return [python, "-m", "karapace"], {
        "KARAPACE_BOOTSTRAP_URI": bootstrap,
        "KARAPACE_PORT": str(port),
        "KARAPACE_HOST": "127.0.0.1",
        "KARAPACE_ADVERTISED_HOSTNAME": "127.0.0.1",
        "KARAPACE_ADVERTISED_PORT": str(port),
        "KARAPACE_TOPIC_NAME": "_schemas_karapace",
        "KARAPACE_GROUP_ID": "karapace",
        "KARAPACE_CLIENT_ID": "karapace",
        "KARAPACE_REPLICATION_FACTOR": "1",
        "KARAPACE_LOG_LEVEL": "ERROR",
        "KARAPACE_ACCESS_LOGS_DEBUG": "false",
        "KARAPACE_KARAPACE_REGISTRY": "true",
    }


ROWS: dict[str, Callable[[int, int], Iterator[bytes]]] = {
    "register": lambda known, offset: registrations(offset),
    "by id": lambda known, offset: lookups(known),
    "find": lambda known, offset: finds(known),
}


def measure(
    servers: list[Server], known: int, seconds: float, rounds: int
) -> dict[tuple[str, str], list[Measured]]:
    found: dict[tuple[str, str], list[Measured]] = {}
    offsets = dict.fromkeys((each.name for each in servers), known)
    for server in servers:
        asyncio.run(load(server, iter([*take(registrations(0), known)]), 600))
    for row, requests in ROWS.items():
        for turn in range(rounds):
            for server in servers if turn % 2 else reversed(servers):
                measured = asyncio.run(load(server, requests(known, offsets[server.name]), seconds))
                if row == "register":
                    offsets[server.name] += measured.requests + CONNECTIONS
                found.setdefault((row, server.name), []).append(measured)
    return found


def take(requests: Iterator[bytes], count: int) -> Iterator[bytes]:
    return (next(requests) for _ in range(count))


def apply_log(subjects: int, versions: int) -> None:
    """Apply a log that is made up, as a node does at its start; print CPU time and memory."""
    log = [
        schema_record(
            f"topic-{subject}-value", number + 1, subject * versions + number + 1, content(subject, number)
        )
        for subject in range(subjects)
        for number in range(versions)
    ]
    bytes_before, begun = memory_bytes(os.getpid()), time.process_time()
    state = State()
    for key, value in log:
        state.apply(key, value)
    seconds, grown = time.process_time() - begun, memory_bytes(os.getpid()) - bytes_before
    texts = sum(len(version.content.text) for subject in state.subjects() for version in subject.sorted())
    print(f"{len(log):,} versions of {subjects:,} subjects: {seconds:.1f} s of CPU, {grown / 1e6:.0f} MB,")
    print(
        f"of which {texts / 1e6:.0f} MB are texts: {(grown - texts) / len(log):.0f} bytes a version besides"
    )


def content(subject: int, number: int) -> Content:
    fields = [
        {"name": f"f{index}", "type": ["null", "string"], "default": None} for index in range(number + 3)
    ]
    record = {"type": "record", "name": f"R{subject}", "namespace": "org.example.things", "fields": fields}
    return Content("AVRO", json.dumps(record, separators=(",", ":")))


def main(arguments: list[str]) -> int:
    parser = argparse.ArgumentParser(prog="python -m bench.registry", description=__doc__)
    parser.add_argument("--karapace", metavar="PYTHON", help="an interpreter that has Karapace installed")
    parser.add_argument("--seconds", type=float, default=4.0, help="of a round (default 4)")
    parser.add_argument("--rounds", type=int, default=3, help="of a row and server (default 3)")
    parser.add_argument("--known", type=int, default=200, help="schemas that are there (default 200)")
    parser.add_argument("--log", action="store_true", help="apply a log of 100,000 versions instead")
    options = parser.parse_args(arguments)
    if options.log:
        apply_log(10_000, 10)
        return 0
    broker = Barnabas()
    broker.start()
    try:
        bootstrap = f"127.0.0.1:{broker.port}"
        first, second = free_ports(2)
        with started("barnabas", first, *ours(bootstrap, first)) as mine:
            servers = [mine]
            if options.karapace:
                with started("karapace", second, *karapaces(options.karapace, bootstrap, second)) as other:
                    show(
                        measure([*servers, other], options.known, options.seconds, options.rounds),
                        [mine, other],
                    )
            else:
                show(measure(servers, options.known, options.seconds, options.rounds), servers)
    finally:
        broker.stop()
        broker.close()
    return 0


def show(found: dict[tuple[str, str], list[Measured]], servers: list[Server]) -> None:
    print(f"{'':10} {'server':10} {'requests/s':>12} {'per CPU second':>15}")
    for (row, name), rounds in found.items():
        rate = statistics.median(each.rate for each in rounds)
        by_cpu = statistics.median(each.rate_by_cpu for each in rounds)
        print(f"{row:10} {name:10} {rate:12,.0f} {by_cpu:15,.0f}")
    for server in servers:
        print(f"memory     {server.name:10} {memory_bytes(server.process.pid) / 1e6:9,.0f} MB")


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
