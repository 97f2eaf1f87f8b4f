"""A broker for tests: `with Broker() as broker:`. It starts in well under a second and removes all its files.

In: settings to override. Out: an address for any Kafka client, and methods to create topics. It runs in a
thread of the test process with its own loop, or as a child process, which can be killed.
"""

from __future__ import annotations

import asyncio
import os
import shutil
import signal
import subprocess
import sys
import tempfile
import threading
from collections import deque
from collections.abc import Mapping
from pathlib import Path
from types import TracebackType
from typing import TYPE_CHECKING, Any, Self, TypeVar

from barnabas.broker.handlers.loading import load_handlers
from barnabas.settings.one_machine import one_node_properties
from barnabas.testing.ports import free_ports

if TYPE_CHECKING:
    from barnabas.broker.node import Node

T = TypeVar("T")
OpenFiles = int | tuple[int, int]
START_SECONDS_MAX = 120
STOP_SECONDS_MAX = 90
LOG_LINES_MAX = 10_000
READY = b"ready"


class Broker:
    """One node, broker and controller. It can be stopped and restarted with the same folder and port."""

    def __init__(
        self,
        data: str | os.PathLike[str] | None = None,
        *,
        overrides: Mapping[str, object] | None = None,
        in_process: bool = True,
        port: int = 0,
        open_files: OpenFiles | None = None,
    ) -> None:
        """`open_files` limits the open files of a child process (RLIMIT_NOFILE): one number, or soft and
        hard limit."""
        self._temporary = tempfile.mkdtemp(prefix="barnabas-") if data is None else None
        self.data = Path(data if data is not None else f"{self._temporary}/data")
        free_port, self._controller_port = free_ports(2)
        self.port = port or free_port
        self._overrides = {name: str(value) for name, value in (overrides or {}).items()}
        self._runner: InProcess | ChildProcess = InProcess() if in_process else ChildProcess(open_files)

    @property
    def bootstrap(self) -> str:
        return f"127.0.0.1:{self.port}"

    @property
    def pid(self) -> int:
        return self._runner.pid

    @property
    def log_text(self) -> str:
        """The last lines of a child process's output."""
        assert isinstance(self._runner, ChildProcess), "only a broker of its own process has a log"
        return "".join(list(self._runner.log))

    @property
    def properties(self) -> dict[str, str]:
        """The `server.properties` of this broker."""
        return {
            **one_node_properties(self.port, self._controller_port),
            "log.dirs": str(self.data),
            "group.initial.rebalance.delay.ms": "0",
            **self._overrides,
        }

    # -- life --------------------------------------------------------------------------------------

    def start(self) -> Self:
        self._runner.start(self.properties)
        return self

    def stop(self) -> None:
        """Graceful, as on SIGTERM."""
        self._runner.stop()

    def kill(self) -> None:
        """As `kill -9`; only for a broker that is a child process."""
        self._runner.kill()

    def __enter__(self) -> Self:
        return self.start()

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        try:
            self.stop()
        finally:
            if self._temporary is not None:
                shutil.rmtree(self._temporary, ignore_errors=True)

    # -- topics ------------------------------------------------------------------------------------

    def create_topic(
        self, name: str, partitions: int = 1, configs: Mapping[str, object] | None = None
    ) -> None:
        """Create a topic and wait until it can be used."""
        from barnabas.client.admin.topics import NewTopic

        self._ask(lambda admin: admin.create_topic(NewTopic(name, partitions, configs=_texts(configs))))

    def delete_topic(self, name: str) -> None:
        self._ask(lambda admin: admin.delete_topics([name]))

    def _ask(self, question: Any) -> None:
        from barnabas.client.admin.admin import Admin
        from barnabas.client.blocking import BlockingCluster, run
        from barnabas.client.core.address import Address

        with BlockingCluster([Address("127.0.0.1", self.port)]) as cluster:
            run(question(Admin(cluster)))


class InProcess:
    """A node in a thread of this process, with its own loop."""

    pid = os.getpid()

    def __init__(self) -> None:
        self._thread: threading.Thread | None = None
        self._loop: asyncio.AbstractEventLoop | None = None
        self._stopping: asyncio.Event | None = None
        self._error: BaseException | None = None

    def start(self, properties: Mapping[str, str]) -> None:
        # Import before the thread starts: pytest rewrites imported modules, and CPython 3.11 may crash if two
        # threads parse at once (gh-106905).
        from barnabas.broker import node
        from barnabas.broker.coordinators.group_coordinator import GroupCoordinator
        from barnabas.broker.coordinators.share_coordinator import ShareCoordinator
        from barnabas.broker.coordinators.transaction_coordinator import TransactionCoordinator
        from barnabas.broker.upkeep import log_cleaner

        assert node and log_cleaner
        GroupCoordinator.import_modules()
        TransactionCoordinator.import_modules()
        ShareCoordinator.import_modules()
        load_handlers()
        ready = threading.Event()
        self._error = None
        self._thread = threading.Thread(
            target=self._run, args=(properties, ready), name="barnabas-node", daemon=True
        )
        self._thread.start()
        if not ready.wait(START_SECONDS_MAX):
            raise TimeoutError(f"the broker is not ready after {START_SECONDS_MAX} s")
        if self._error is not None:
            self._thread.join()
            raise self._error

    def _run(self, properties: Mapping[str, str], ready: threading.Event) -> None:
        from barnabas.broker.metrics.watching import Watching
        from barnabas.broker.node import Node
        from barnabas.broker.process import run
        from barnabas.runtime import descriptors
        from barnabas.settings import BrokerSettings

        descriptors.raise_limit()

        async def serve() -> None:
            node: Node = Node(BrokerSettings.load(properties), format_empty=True)
            self._loop, self._stopping = asyncio.get_running_loop(), asyncio.Event()
            watching = Watching(node)
            watching.start()
            try:
                await node.start()
                watching.register_metrics()
                ready.set()
                await self._stopping.wait()
            finally:
                watching.stop()
            await node.stop()

        try:
            run(serve())
        except BaseException as error:
            self._error = error
        finally:
            ready.set()

    def stop(self) -> None:
        if self._thread is None or not self._thread.is_alive():
            return
        assert self._loop is not None and self._stopping is not None
        self._loop.call_soon_threadsafe(self._stopping.set)
        self._thread.join(STOP_SECONDS_MAX)
        if self._error is not None:
            raise self._error

    def kill(self) -> None:
        raise RuntimeError("a broker in this process cannot be killed: use Broker(in_process=False)")


class ChildProcess:
    """A node as a child process, for kill -9 and for measurements."""

    def __init__(self, open_files: OpenFiles | None = None) -> None:
        self._open_files = open_files
        self._child: subprocess.Popen[bytes] | None = None
        self.log: deque[str] = deque(maxlen=LOG_LINES_MAX)

    @property
    def pid(self) -> int:
        assert self._child is not None, "the broker was not started"
        return self._child.pid

    def start(self, properties: Mapping[str, str]) -> None:
        overrides = [
            argument for name, value in properties.items() for argument in ("--override", f"{name}={value}")
        ]
        self._child = subprocess.Popen(
            [*limited(self._open_files), sys.executable, "-m", "barnabas", "start", *overrides],
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
        )
        assert self._child.stdout is not None and self._child.stderr is not None
        for line in self._child.stdout:
            if READY in line:
                break
        else:
            raise RuntimeError(f"the broker did not start: {self._child.stderr.read().decode().strip()}")
        for stream in (self._child.stdout, self._child.stderr):
            threading.Thread(target=drain, args=(stream, self.log), daemon=True).start()

    def stop(self) -> None:
        self._end(signal.SIGTERM)

    def kill(self) -> None:
        self._end(signal.SIGKILL)

    def _end(self, number: int) -> None:
        if self._child is None or self._child.poll() is not None:
            return
        self._child.send_signal(number)
        self._child.wait(STOP_SECONDS_MAX)


def limited(open_files: OpenFiles | None) -> list[str]:
    """The words before a command that limit its open files."""
    if open_files is None:
        return []
    soft, hard = (open_files, open_files) if isinstance(open_files, int) else open_files
    return ["prlimit", f"--nofile={soft}:{hard}"]


def drain(stream: Any, log: deque[str]) -> None:
    """Read a child's output, so that its pipe does not fill up."""
    with stream:
        for line in stream:
            log.append(line.decode(errors="replace"))


def _texts(configs: Mapping[str, object] | None) -> dict[str, str]:
    return {name: str(value) for name, value in (configs or {}).items()}
