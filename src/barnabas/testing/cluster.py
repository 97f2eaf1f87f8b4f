"""A cluster for tests: `with Cluster(brokers=3) as cluster:`. Each node is a process; all files are removed.

In: the number of brokers and controllers, or of combined nodes; settings to override. Out: `bootstrap` for
any Kafka client; nodes that can be stopped, killed, paused and restarted individually; methods to create
topics.
"""

from __future__ import annotations

import os
import shutil
import signal
import ssl
import subprocess
import sys
import tempfile
import threading
import time
from collections import deque
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from types import TracebackType
from typing import Any, Self

from barnabas.raft.voters import Voter, VoterEndpoint
from barnabas.testing.broker import READY, START_SECONDS_MAX, STOP_SECONDS_MAX
from barnabas.testing.ports import free_ports

CLUSTER_ID = "QmFybmFiYXNDbHVzdGVyMQ"
FIRST_CONTROLLER_ID = 101  # brokers count from 1, combined nodes too
LINES_MAX = 2_000
BARNABAS, APACHE = "barnabas", "apache"


class ClusterNode:
    """One process. `start` restarts it with the same folder and ports. `wipe` empties its folder and formats
    it again. `voters` are the initial controllers of a dynamic quorum, for formatting."""

    def __init__(
        self, node_id: int, roles: str, properties: dict[str, str], voters: Sequence[Voter] | None = None
    ) -> None:
        self.id = node_id
        self.voters = voters
        self.roles = roles
        self.properties = properties
        self.log_level = "INFO"
        self.open_files: int | None = None  # RLIMIT_NOFILE of its next process, soft and hard
        self.python = [sys.executable]  # may include a profiler, for instance
        self.class_path = ""  # put in front of Apache Kafka's, e.g. a logger
        self.add_scram: Sequence[str] = ()  # credentials of a new cluster
        self.release_version: str | None = None  # feature levels of a new cluster; None: the newest
        self.product = BARNABAS  # or Apache Kafka, on the same folder; may change between two starts
        self.lines: deque[str] = deque(maxlen=LINES_MAX)  # the last lines of its log
        self._child: subprocess.Popen[bytes] | None = None

    @property
    def is_broker(self) -> bool:
        return "broker" in self.roles

    @property
    def is_controller(self) -> bool:
        return "controller" in self.roles

    @property
    def folder(self) -> Path:
        return Path(self.properties["log.dirs"].partition(",")[0])

    @property
    def address(self) -> str:
        """Its address for clients, or for other nodes if it is a controller."""
        return self.properties["listeners"].partition(",")[0].partition("://")[2]

    @property
    def pid(self) -> int:
        assert self._child is not None, f"node {self.id} was not started"
        return self._child.pid

    @property
    def is_running(self) -> bool:
        return self._child is not None and self._child.poll() is None

    def spawn(self) -> None:
        """Start the process without waiting until it is ready."""
        path = self.folder.parent / f"{self.id}.properties"
        path.write_text("".join(f"{name}={value}\n" for name, value in self.properties.items()))
        self._child = subprocess.Popen(
            self._command(path), stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.PIPE
        )
        self._ready = threading.Event()
        for stream in (self._child.stdout, self._child.stderr):
            threading.Thread(target=self._read, args=(stream, self._ready), daemon=True).start()

    def _command(self, path: Path) -> list[str]:
        if self.product == APACHE:
            from barnabas.testing import apache

            memory = ("-Xmx512m", "-XX:+UseSerialGC", "-XX:TieredStopAtLevel=1")
            flags = (*memory, "-Djava.awt.headless=true", "-Dlog4j2.statusLoggerLevel=OFF")
            paths = self.class_path + f"{apache.jars()}/*"
            return [*apache.jvm(*flags), "-cp", paths, "kafka.Kafka", str(path)]
        limit = [] if self.open_files is None else ["prlimit", f"--nofile={self.open_files}"]
        return [*limit, *self.python, "-m", "barnabas", "start", str(path), "--log-level", self.log_level]

    def _read(self, stream: Any, ready: threading.Event) -> None:
        with stream:
            for line in stream:
                if READY in line:
                    ready.set()
                self.lines.append(line.decode(errors="replace").rstrip())
        ready.set()  # it has ended

    def wait(self) -> None:
        """Wait until it is ready; RuntimeError with its last log lines if it does not start."""
        is_ready = self._answers() if self.product == APACHE else self._ready.wait(START_SECONDS_MAX)
        if not is_ready or not self.is_running:
            tail = "\n".join(list(self.lines)[-20:])
            raise RuntimeError(f"node {self.id} did not start:\n{tail}")

    def _answers(self) -> bool:
        from barnabas.testing.apache import answers

        host, _, port = self.address.rpartition(":")
        deadline = time.monotonic() + START_SECONDS_MAX
        tls = self._tls_context()
        while self.is_running and time.monotonic() < deadline:
            if answers(host, int(port), tls=tls):
                return True
            time.sleep(0.05)
        return False

    def _tls_context(self) -> ssl.SSLContext | None:
        """A TLS context for the node's first listener, with its own certificate."""
        from barnabas.security.tls.contexts import client_context, tls_settings

        name = self.properties["listeners"].partition("://")[0]
        protocols = self.properties.get("listener.security.protocol.map", "").split(",")
        if not any(each in (f"{name}:SSL", f"{name}:SASL_SSL") for each in protocols):
            return None
        return client_context(tls_settings(self.properties.get))

    def start(self) -> Self:
        self.spawn()
        self.wait()
        return self

    def stop(self) -> None:
        """Graceful, as on SIGTERM."""
        self._end(signal.SIGTERM)

    def kill(self) -> None:
        """As `kill -9`."""
        self._end(signal.SIGKILL)

    def pause(self) -> None:
        os.kill(self.pid, signal.SIGSTOP)

    def resume(self) -> None:
        os.kill(self.pid, signal.SIGCONT)

    def _end(self, number: int) -> None:
        if self._child is None or self._child.poll() is not None:
            return
        if number != signal.SIGKILL:
            self._child.send_signal(signal.SIGCONT)
        self._child.send_signal(number)
        try:
            self._child.wait(STOP_SECONDS_MAX)
        except subprocess.TimeoutExpired:
            self._child.kill()
            self._child.wait(STOP_SECONDS_MAX)
            raise

    def wipe(self) -> None:
        """Empty and format its folder. The process must not run. A controller of a dynamic quorum returns
        without a vote, since it has forgotten its votes."""
        for path in self.properties["log.dirs"].split(","):
            shutil.rmtree(path, ignore_errors=True)
        if self.voters is not None:
            self.voters = []
        self.format()

    def format(self, *, ignore_formatted: bool = False) -> None:
        from barnabas.broker.setup.formatting import FormatRequest, format_directories
        from barnabas.settings import BrokerSettings

        format_directories(
            BrokerSettings.load(self.properties),
            CLUSTER_ID,
            replace(
                self._request(FormatRequest), ignore_formatted=ignore_formatted, add_scram=self.add_scram
            ),
            now_ms=int(time.time() * 1000),
            random_bytes=os.urandom,
        )

    def _request(self, request: Any) -> Any:
        if self.voters is None or not self.is_controller:
            return request(release_version=self.release_version)
        if any(voter.id == self.id for voter in self.voters):
            return request(initial_controllers=self.voters, release_version=self.release_version)
        return request(no_initial_controllers=True, release_version=self.release_version)


class Cluster:
    """`brokers` and `controllers` as separate processes, or `combined` nodes that are both. The quorum is
    static, or `dynamic`: then controllers can be added."""

    def __init__(
        self,
        brokers: int = 0,
        controllers: int = 1,
        *,
        combined: int = 0,
        dynamic: bool = False,
        overrides: Mapping[str, object] | None = None,
        racks: Sequence[str] = (),
        parent: Path | None = None,
        add_scram: Sequence[str] = (),
        client: Mapping[str, str] | None = None,
    ) -> None:
        """`parent` contains the cluster's folder; by default it is the system's temporary folder. `client`
        has the properties of clients that may do everything."""
        self._client = client or {}
        self._add_scram = add_scram
        self.folder = Path(tempfile.mkdtemp(prefix="barnabas-cluster-", dir=parent))
        replicas = str(min(3, brokers or combined))
        self._overrides = {
            "offsets.topic.replication.factor": replicas,
            "transaction.state.log.replication.factor": replicas,
            "transaction.state.log.min.isr": str(min(2, brokers or combined)),
            "share.coordinator.state.topic.replication.factor": replicas,
            "share.coordinator.state.topic.min.isr": str(min(2, brokers or combined)),
            **{name: str(value) for name, value in (overrides or {}).items()},
        }
        self._racks = racks
        controllers = 0 if combined else controllers
        ports = iter(free_ports(brokers + controllers + 2 * combined))
        voters = {
            node_id: next(ports)
            for node_id in (
                range(1, combined + 1)
                if combined
                else range(FIRST_CONTROLLER_ID, FIRST_CONTROLLER_ID + controllers)
            )
        }
        self._voters = ",".join(f"{node_id}@127.0.0.1:{port}" for node_id, port in voters.items())
        self._first_voters: list[Voter] | None = None
        if dynamic:
            self._first_voters = [
                Voter(node_id, os.urandom(15) + b"\1", (VoterEndpoint("CONTROLLER", "127.0.0.1", port),))
                for node_id, port in voters.items()
            ]
        self.nodes: dict[int, ClusterNode] = {}
        for node_id, port in voters.items():
            listeners = f"CONTROLLER://127.0.0.1:{port}"
            if combined:
                self._add(node_id, "broker,controller", f"PLAINTEXT://127.0.0.1:{next(ports)},{listeners}")
            else:
                self._add(node_id, "controller", listeners)
        for node_id in range(1, brokers + 1):
            self._add(node_id, "broker", f"PLAINTEXT://127.0.0.1:{next(ports)}")

    def _add(self, node_id: int, roles: str, listeners: str) -> None:
        properties = {
            "process.roles": roles,
            "node.id": str(node_id),
            "listeners": listeners,
            "controller.listener.names": "CONTROLLER",
            **self._quorum_settings(),
            "log.dirs": str(self.folder / f"node-{node_id}"),
        }
        if "broker" in roles:
            properties["group.initial.rebalance.delay.ms"] = "0"
            if self._racks:
                properties["broker.rack"] = self._racks[(node_id - 1) % len(self._racks)]
        properties |= self._overrides
        node = self.nodes[node_id] = ClusterNode(node_id, roles, properties, self._first_voters)
        node.add_scram = self._add_scram

    def _quorum_settings(self) -> dict[str, str]:
        if self._first_voters is None:
            return {"controller.quorum.voters": self._voters}
        servers = (f"{each.endpoints[0].host}:{each.endpoints[0].port}" for each in self._first_voters)
        return {"controller.quorum.bootstrap.servers": ",".join(servers)}

    def add_broker(self, node_id: int) -> ClusterNode:
        """Add a broker. It is formatted but not started."""
        self._add(node_id, "broker", f"PLAINTEXT://127.0.0.1:{free_ports(1)[0]}")
        self.nodes[node_id].format()
        return self.nodes[node_id]

    def add_controller(self, node_id: int, **settings: object) -> ClusterNode:
        """Add a controller of a dynamic quorum. It is formatted but not started. Settings have _ for dots."""
        self._add(node_id, "controller", f"CONTROLLER://127.0.0.1:{free_ports(1)[0]}")
        node = self.nodes[node_id]
        node.properties |= {name.replace("_", "."): str(value) for name, value in settings.items()}
        node.format()
        return node

    # -- nodes -------------------------------------------------------------------------------------

    @property
    def is_dynamic(self) -> bool:
        """Whether voters can be added and removed."""
        return self._first_voters is not None

    @property
    def brokers(self) -> list[ClusterNode]:
        return [node for node in self.nodes.values() if node.is_broker]

    @property
    def controllers(self) -> list[ClusterNode]:
        return [node for node in self.nodes.values() if node.is_controller]

    @property
    def bootstrap(self) -> str:
        return ",".join(node.address for node in self.brokers)

    def __getitem__(self, node_id: int) -> ClusterNode:
        return self.nodes[node_id]

    def start(self) -> Self:
        for node in self.nodes.values():
            node.format()
        for node in [*self.controllers, *(node for node in self.brokers if not node.is_controller)]:
            node.spawn()
        for node in self.nodes.values():
            node.wait()
        return self

    def start_again(self) -> None:
        """Start all nodes that do not run."""
        for node in self.nodes.values():
            if not node.is_running:
                node.start()

    def stop(self) -> None:
        """Stop all nodes. Brokers first: their controlled shutdown needs a controller."""
        for node in sorted(self.nodes.values(), key=lambda node: node.is_controller):
            node.stop()

    def __enter__(self) -> Self:
        try:
            return self.start()
        except BaseException:
            self.__exit__(None, None, None)
            raise

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        for node in self.nodes.values():
            node.kill()
        shutil.rmtree(self.folder, ignore_errors=True)

    # -- topics ------------------------------------------------------------------------------------

    def create_topic(
        self,
        name: str,
        partitions: int = 1,
        replication_factor: int = 1,
        configs: Mapping[str, object] | None = None,
    ) -> None:
        """Create a topic and wait until it can be used."""
        from barnabas.client.admin.topics import NewTopic

        texts = {key: str(value) for key, value in (configs or {}).items()}
        topic = NewTopic(name, partitions, replication_factor, configs=texts)
        self.ask(lambda admin: admin.create_topic(topic))

    def ask(self, question: Any) -> Any:
        """Run `question(admin)`, a coroutine function, against the cluster."""
        from barnabas.client.admin.admin import Admin
        from barnabas.client.blocking import BlockingCluster, run
        from barnabas.client.core.address import parse_bootstrap
        from barnabas.security.clients.client_security import client_security

        security = client_security(self._client)
        with BlockingCluster(parse_bootstrap(self.bootstrap), security=security) as client:
            return run(question(Admin(client)))
