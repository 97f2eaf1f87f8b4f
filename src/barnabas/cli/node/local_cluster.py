"""A cluster on this machine: the nodes in its folder, and their processes.

In: a folder, the number of nodes, the first port. Out: a properties file and a formatted data folder for each
node, and processes: started, found by their process ids, stopped. All nodes are brokers. The first three are
controllers, too; if there are fewer than three nodes, only the first one is.
Does not know: what is printed.
"""

from __future__ import annotations

import os
import shutil
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import IO

from barnabas.cli.frame.parsing import ToolError
from barnabas.cli.node.certificate_files import write_properties
from barnabas.cli.node.local_security import CERTIFICATES, CLIENT_PROPERTIES, LocalSecurity
from barnabas.cli.node.stop import command_of, is_running
from barnabas.runtime.tcp_ports import free_ports
from barnabas.settings.properties import parse

CONTROLLERS_MAX = 3
NODES_MAX = 100
PROPERTIES = "server.properties"
OUTPUT = "output.log"
CLUSTER_ID = "cluster.id"
PID = "pid"
POLL_S = 0.05
NO_SECURITY = LocalSecurity(tls=False, sasl=None, acls=False, password="")
INTERNAL_TOPICS = {
    "offsets.topic.replication.factor": 3,
    "transaction.state.log.replication.factor": 3,
    "transaction.state.log.min.isr": 2,
    "share.coordinator.state.topic.replication.factor": 3,
    "share.coordinator.state.topic.min.isr": 2,
    "default.replication.factor": 3,
    "min.insync.replicas": 2,
}


@dataclass(frozen=True, slots=True)
class LocalNode:
    id: int
    folder: Path

    @property
    def properties(self) -> dict[str, str]:
        return parse((self.folder / PROPERTIES).read_text(encoding="utf-8"))

    @property
    def roles(self) -> str:
        return self.properties["process.roles"]

    @property
    def address(self) -> str:
        return self.properties["listeners"].partition(",")[0].partition("://")[2]

    @property
    def pid(self) -> int | None:
        """The id of its process, if that runs."""
        try:
            pid = int((self.folder / PID).read_text())
        except (OSError, ValueError):
            return None
        return pid if is_running(pid) and "barnabas" in command_of(pid) else None

    def spawn(self, *, detached: bool, log_level: str = "INFO") -> subprocess.Popen[bytes]:
        """Start its process. A detached process writes its output to a file and outlives this process."""
        command = [sys.executable, "-m", "barnabas", "start", str(self.folder / PROPERTIES)]
        command += ["--log-level", log_level]
        output: IO[bytes] | int = (self.folder / OUTPUT).open("ab") if detached else subprocess.PIPE
        child = subprocess.Popen(
            command,
            stdin=subprocess.DEVNULL,
            stdout=output,
            stderr=subprocess.STDOUT if detached else None,
            start_new_session=detached,
        )
        if not isinstance(output, int):
            output.close()
        (self.folder / PID).write_text(f"{child.pid}\n")
        return child

    def last_lines(self, count: int = 5) -> str:
        try:
            return "\n".join((self.folder / OUTPUT).read_text(errors="replace").splitlines()[-count:])
        except OSError:
            return ""


class LocalCluster:
    def __init__(self, folder: Path) -> None:
        self.folder = folder

    @property
    def exists(self) -> bool:
        return (self.folder / CLUSTER_ID).exists()

    @property
    def nodes(self) -> list[LocalNode]:
        found = (path for path in self.folder.glob("node-*") if (path / PROPERTIES).exists())
        return sorted((LocalNode(int(path.name[5:]), path) for path in found), key=lambda node: node.id)

    @property
    def bootstrap(self) -> str:
        return ",".join(node.address for node in self.nodes)

    @property
    def client_properties(self) -> dict[str, str]:
        """The properties of its clients; none for a cluster without security."""
        path = self.folder / CLIENT_PROPERTIES
        return parse(path.read_text(encoding="utf-8")) if path.exists() else {}

    def make(
        self, count: int, port: int, overrides: Mapping[str, str], security: LocalSecurity = NO_SECURITY
    ) -> None:
        """Write the properties and format the folders of `count` nodes; clients' ports start at `port`."""
        from barnabas.broker.setup.formatting import FormatError, FormatRequest, format_directories
        from barnabas.protocol import uuid
        from barnabas.settings import BrokerSettings
        from barnabas.storage.files.meta_properties import random_directory_id

        if not 1 <= count <= NODES_MAX:
            raise ToolError(f"a cluster has 1 to {NODES_MAX} nodes here, not {count}")
        cluster_id = uuid.to_text(random_directory_id(os.urandom(16)))
        self.folder.mkdir(parents=True, exist_ok=True)
        secured = security.node_settings(self.folder)
        for node_id, properties in layout(self.folder, count, port, security.protocol).items():
            node = LocalNode(node_id, self.folder / f"node-{node_id}")
            node.folder.mkdir(parents=True, exist_ok=True)
            write_properties(node.folder / PROPERTIES, {**properties, **secured, **overrides})
            try:
                format_directories(
                    BrokerSettings.load(node.properties),
                    cluster_id,
                    FormatRequest(add_scram=security.scram_credentials),
                    now_ms=int(time.time() * 1000),
                    random_bytes=os.urandom,
                )
            except FormatError as error:
                raise ToolError(str(error)) from None
        if secured:
            security.write_client_properties(self.folder, self.bootstrap)
        (self.folder / CLUSTER_ID).write_text(f"{cluster_id}\n")

    def stop(self, timeout_s: float) -> list[LocalNode]:
        """Stop all nodes; return those that did not end in time and were killed.

        Brokers stop first, because a broker needs a controller for its controlled shutdown. The controllers
        stop together afterwards.
        """
        killed = []
        for is_controller in (False, True):
            nodes = [node for node in self.nodes if ("controller" in node.roles) is is_controller]
            running = {node: pid for node in nodes if (pid := node.pid) is not None}
            for pid in running.values():
                os.kill(pid, signal.SIGTERM)
            deadline = time.monotonic() + timeout_s
            while any(is_running(pid) for pid in running.values()) and time.monotonic() < deadline:
                time.sleep(POLL_S)
            for node, pid in running.items():
                if is_running(pid):
                    os.kill(pid, signal.SIGKILL)
                    killed.append(node)
        return killed

    def remove(self) -> None:
        """Remove the folders of the nodes and the files that describe the cluster, nothing else."""
        for node in self.nodes:
            shutil.rmtree(node.folder)
        for name in (CLUSTER_ID, CLIENT_PROPERTIES):
            (self.folder / name).unlink(missing_ok=True)
        shutil.rmtree(self.folder / CERTIFICATES, ignore_errors=True)
        if not any(self.folder.iterdir()):
            self.folder.rmdir()


def layout(folder: Path, count: int, port: int, protocol: str = "PLAINTEXT") -> dict[int, dict[str, str]]:
    """The settings of each node. All nodes have the same rack, because they share one host."""
    voters = CONTROLLERS_MAX if count >= CONTROLLERS_MAX else 1
    ports = list(range(port, port + count)) if port else free_ports(count)
    controller_ports = free_ports(voters)
    quorum = ",".join(f"{index + 1}@127.0.0.1:{each}" for index, each in enumerate(controller_ports))
    found = {}
    for index in range(count):
        is_controller = index < voters
        listeners = f"{protocol}://127.0.0.1:{ports[index]}"
        if is_controller:
            listeners += f",CONTROLLER://127.0.0.1:{controller_ports[index]}"
        found[index + 1] = {
            "process.roles": "broker,controller" if is_controller else "broker",
            "node.id": str(index + 1),
            "listeners": listeners,
            "controller.listener.names": "CONTROLLER",
            "controller.quorum.voters": quorum,
            "log.dirs": str((folder / f"node-{index + 1}" / "data").absolute()),
            "broker.rack": socket.gethostname(),
            **{name: str(min(value, count)) for name, value in INTERNAL_TOPICS.items()},
        }
        if count < CONTROLLERS_MAX:
            found[index + 1] |= {"min.insync.replicas": "1", "transaction.state.log.min.isr": "1"}
    return found
