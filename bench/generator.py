"""The load generator: sends frames and counts responses, with as little processor time as possible.

In: an address, a file of frames, the number of connections and of requests in flight. Out: counts and times.
Compiles `load.c` if there is a C compiler; otherwise Python does the same, slower, and `name` says so.
Does not know: what the frames mean.
"""

from __future__ import annotations

import functools
import hashlib
import json
import os
import select
import shutil
import socket
import struct
import subprocess
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path

SOURCE = Path(__file__).with_name("load.c")
RECEIVE_BYTES = 1 << 20
REQUESTS_MAX = 1 << 40
STALL_S = 20.0


class LoadError(Exception):
    """The broker closed a connection, returned an error, or stopped responding."""


@dataclass(frozen=True, slots=True)
class Plan:
    """How to send: `inflight` is the maximum number of requests in flight on each connection."""

    connections: int = 1
    inflight: int = 1
    requests: int = REQUESTS_MAX
    seconds: float = 10.0
    error_at: int = -1


@dataclass(frozen=True, slots=True)
class Load:
    requests: int
    seconds: float
    bytes_out: int
    bytes_in: int
    mean_us: float
    p50_us: float
    p99_us: float

    @property
    def rate(self) -> float:
        return self.requests / self.seconds


@functools.cache
def compiled() -> Path | None:
    """The generator in C, compiled once for each version of its source; None without a compiler."""
    compiler = shutil.which("cc")
    if compiler is None:
        return None
    root = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "barnabas"
    root.mkdir(parents=True, exist_ok=True)
    program = root / f"load-{hashlib.sha256(SOURCE.read_bytes()).hexdigest()[:12]}"
    if not program.exists():
        partial = program.with_suffix(f".{os.getpid()}")
        command = [compiler, "-O2", "-o", str(partial), str(SOURCE)]
        with_tls = [*command, "-DWITH_TLS", "-lssl", "-lcrypto"]  # needs OpenSSL's headers (libssl-dev)
        if (
            subprocess.run(with_tls, check=False, capture_output=True).returncode
            and subprocess.run(command, check=False).returncode
        ):
            return None
        partial.rename(program)
    return program


def name() -> str:
    return "C (bench/load.c)" if compiled() else "Python (no C compiler found)"


def run(port: int, frames: bytes, plan: Plan, *, tls: bool = False) -> Load:
    """Send the load to 127.0.0.1:`port`; return the counts, or raise LoadError if a response has an error."""
    program = compiled()
    if program is None:
        if tls:
            raise LoadError("a load through TLS needs a C compiler and OpenSSL's headers (libssl-dev)")
        return _PythonLoad(port, frames, plan).run()
    with tempfile.NamedTemporaryFile(prefix="frames-", dir=memory_folder()) as file:
        file.write(frames)
        file.flush()
        numbers = [plan.connections, plan.inflight, plan.requests, plan.seconds, plan.error_at]
        command = [
            str(program),
            "tls-send" if tls else "send",
            "127.0.0.1",
            str(port),
            file.name,
            *map(str, numbers),
        ]
        done = subprocess.run(command, capture_output=True, text=True, check=False)
    if done.returncode:
        raise LoadError(done.stderr.strip())
    found = json.loads(done.stdout)
    errors, first = found.pop("errors"), found.pop("first_error")
    if errors:
        raise LoadError(f"{errors} of {found['requests']} responses have an error, the first one is {first}")
    return Load(**found)


def connect_again_and_again(port: int, frame: bytes, connections: int, seconds: float) -> float:
    """TLS connections a second: each shakes hands, sends the frame, gets its response, and is closed."""
    program = compiled()
    if program is None:
        raise LoadError("a load through TLS needs a C compiler and OpenSSL's headers (libssl-dev)")
    with tempfile.NamedTemporaryFile(prefix="frames-", dir=memory_folder()) as file:
        file.write(frame)
        file.flush()
        command = [str(program), "tls-connect", "127.0.0.1", str(port), file.name]
        done = subprocess.run(
            [*command, str(connections), str(seconds)], capture_output=True, text=True, check=False
        )
    if done.returncode:
        raise LoadError(done.stderr.strip())
    found = json.loads(done.stdout)
    return float(found["connections"] / found["seconds"])


def memory_folder() -> str | None:
    """A folder in memory if there is one: writing there does not wait for the journal of a disk."""
    return "/dev/shm" if Path("/dev/shm").is_dir() else None


@contextmanager
def bare_server(answer_bytes: int = 64) -> Iterator[int | None]:
    """The port of a server in C that responds to each frame with zeros; None without a compiler."""
    program = compiled()
    if program is None:
        yield None
        return
    process = subprocess.Popen(
        [str(program), "echo", "0", str(answer_bytes)], stdout=subprocess.PIPE, text=True
    )
    try:
        assert process.stdout is not None
        yield int(process.stdout.readline())
    finally:
        process.kill()
        process.communicate()


@dataclass(slots=True)
class _Link:
    sock: socket.socket
    queue: memoryview = field(default_factory=lambda: memoryview(b""))
    next_frame: int = 0
    unanswered: int = 0
    since: float = 0.0
    partial: bytes = b""
    skip: int = 0


class _PythonLoad:
    """The same generator without a compiler."""

    def __init__(self, port: int, frames: bytes, plan: Plan) -> None:
        self.plan = plan
        self.frames = memoryview(frames)
        self.starts = [0]
        while self.starts[-1] < len(frames):
            self.starts.append(self.starts[-1] + 4 + struct.unpack_from(">i", frames, self.starts[-1])[0])
        self.links = [_Link(socket.create_connection(("127.0.0.1", port))) for _ in range(plan.connections)]
        self.issued = self.answered = self.errors = self.bytes_out = self.bytes_in = 0
        self.latencies_us: list[float] = []
        self.stopping = False

    def run(self) -> Load:
        poll = select.epoll()
        by_fd = {}
        for link in self.links:
            link.sock.setblocking(False)
            link.sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            by_fd[link.sock.fileno()] = link
            poll.register(link.sock.fileno(), select.EPOLLIN | select.EPOLLOUT | select.EPOLLET)
        begin = time.perf_counter()
        end = begin + self.plan.seconds
        try:
            for link in self.links:
                self._pump(link)
            while self.answered < self.issued or not (self.stopping or self.issued >= self.plan.requests):
                events = poll.poll(STALL_S)
                if not events:
                    raise LoadError(f"no response for {STALL_S:.0f} s")
                self.stopping = time.perf_counter() > end
                for fd, _ in events:
                    self._take(by_fd[fd])
                    self._pump(by_fd[fd])
            seconds = time.perf_counter() - begin
        finally:
            poll.close()
            for link in self.links:
                link.sock.close()
        if self.errors:
            raise LoadError(f"{self.errors} of {self.answered} responses have an error")
        return self._load(seconds)

    def _load(self, seconds: float) -> Load:
        times = sorted(self.latencies_us) or [0.0]
        mean, last = sum(times) / len(times), len(times) - 1
        p50, p99 = times[last // 2], times[last * 99 // 100]
        return Load(self.answered, seconds, self.bytes_out, self.bytes_in, mean, p50, p99)

    def _pump(self, link: _Link) -> None:
        try:
            while True:
                if not link.queue:
                    room = min(self.plan.inflight - link.unanswered, self.plan.requests - self.issued)
                    room = min(room, len(self.starts) - 1 - link.next_frame)
                    if room <= 0 or self.stopping:
                        return
                    stop = link.next_frame + room
                    link.queue = self.frames[self.starts[link.next_frame] : self.starts[stop]]
                    link.next_frame = stop % (len(self.starts) - 1)
                    link.unanswered += room
                    self.issued += room
                    link.since = time.perf_counter()
                sent = link.sock.send(link.queue)
                self.bytes_out += sent
                link.queue = link.queue[sent:]
        except BlockingIOError:
            return

    def _take(self, link: _Link) -> None:
        while True:
            try:
                data = link.sock.recv(65536)
            except BlockingIOError:
                return
            if not data:
                raise LoadError("connection closed by the broker")
            self.bytes_in += len(data)
            if link.skip:
                skipped = min(link.skip, len(data))
                link.skip -= skipped
                data = data[skipped:]
            self._count(link, link.partial + data if link.partial else data)

    def _count(self, link: _Link, data: bytes) -> None:
        position, end = 0, len(data)
        while end - position >= 4:
            size = 4 + struct.unpack_from(">i", data, position)[0]
            if size > end - position and size <= RECEIVE_BYTES:
                break
            if self.plan.inflight == 1:
                self.latencies_us.append((time.perf_counter() - link.since) * 1e6)
            at = position + self.plan.error_at
            if self.plan.error_at >= 0 and data[at : at + 2] != b"\0\0":
                self.errors += 1
            link.unanswered -= 1
            self.answered += 1
            link.skip = max(0, size - (end - position))
            position = min(end, position + size)
        link.partial = data[position:]
