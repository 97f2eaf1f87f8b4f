"""`start --brokers N`: run several nodes on this host in the foreground, each in a process of its own.

In: the options of `start`. Out: the exit status. It is 0 if all nodes stopped on SIGTERM or SIGINT, and 1 if
a node could not start or ended by itself; then the other nodes are stopped. A second start on the same folder
runs the same nodes.
"""

from __future__ import annotations

import argparse
import os
import signal
import subprocess
import threading
from pathlib import Path
from queue import Empty, Queue
from typing import IO

from barnabas.cli.frame.output import Output
from barnabas.cli.frame.parsing import ToolError, key_values
from barnabas.cli.node.local_cluster import LocalCluster, LocalNode
from barnabas.cli.node.service_processes import ServiceProcesses, commands, parse_services, split_overrides

DEFAULT_DATA = "data"
DEFAULT_PORT = 9092
READY = b"Barnabas is ready"
STOP_S = 40.0
POLL_S = 0.2


def run(options: argparse.Namespace, out: Output) -> int:
    if options.properties is not None:
        raise ToolError(
            "--brokers cannot be used with a properties file, because each node needs its own ports and "
            "folders: give shared settings with --override"
        )
    names = parse_services(options.services) if options.services is not None else ()
    given = key_values(options.override)
    own, others = split_overrides(given) if names else (given, {})
    cluster = LocalCluster(Path(options.data or DEFAULT_DATA))
    if not cluster.exists:
        if cluster.folder.exists() and any(cluster.folder.iterdir()):
            raise ToolError(
                f"{cluster.folder} has files of another kind than `start --brokers`: choose another --data"
            )
        port = DEFAULT_PORT if options.port is None else options.port
        cluster.make(options.brokers, port, own)
    elif len(cluster.nodes) != options.brokers:
        raise ToolError(f"{cluster.folder} has {len(cluster.nodes)} brokers, not {options.brokers}")
    services = ServiceProcesses(commands(names, cluster.bootstrap, others, options.log_level))
    return BrokerProcesses(cluster, services, out, options.log_level).run()


class BrokerProcesses:
    def __init__(
        self, cluster: LocalCluster, services: ServiceProcesses, out: Output, log_level: str
    ) -> None:
        self._cluster = cluster
        self._services = services  # beside the nodes, from when they are ready
        self._out = out
        self._log_level = log_level
        self._events: Queue[str] = Queue()  # the id of a node that is ready, or "stop"
        self._children: dict[int, subprocess.Popen[bytes]] = {}

    def run(self) -> int:
        for number in (signal.SIGTERM, signal.SIGINT):
            signal.signal(number, lambda *_: self._events.put("stop"))
        for node in self._cluster.nodes:
            self._children[node.id] = self._start(node)
        try:
            return self._watch()
        finally:
            self._stop()

    def _start(self, node: LocalNode) -> subprocess.Popen[bytes]:
        child = node.spawn(detached=False, log_level=self._log_level)
        threading.Thread(target=self._listen, args=(node.id, child.stdout), daemon=True).start()
        return child

    def _listen(self, node_id: int, stream: IO[bytes]) -> None:
        with stream:
            for line in stream:
                if READY in line:
                    self._events.put(str(node_id))

    def _watch(self) -> int:
        waiting = {str(node_id) for node_id in self._children}
        while True:
            try:
                event = self._events.get(timeout=POLL_S)
            except Empty:
                for node_id, child in self._children.items():
                    if child.poll() is not None:
                        self._out.note(
                            f"node {node_id} ended with status {child.returncode}: stopping the others"
                        )
                        return 1
                continue
            if event == "stop":
                return 0
            waiting.discard(event)
            if not waiting:
                self._out.line(f"Barnabas is ready: bootstrap.servers={self._cluster.bootstrap}")
                self._out.line(
                    f"  {len(self._children)} brokers, data in {self._cluster.folder}; stop with Ctrl-C"
                )
                self._out.flush()
                self._services.start()
                waiting.add("printed")  # no event removes it, so this happens once

    def _stop(self) -> None:
        """Stop the nodes that still run: a Ctrl-C on a terminal has reached them already."""
        self._services.stop()
        nodes = sorted(self._cluster.nodes, key=lambda node: ("controller" in node.roles, node.id))
        for is_controller in (False, True):
            some = [
                self._children[node.id] for node in nodes if ("controller" in node.roles) is is_controller
            ]
            for child in some:
                if child.poll() is None:
                    os.kill(child.pid, signal.SIGTERM)
            for child in some:
                try:
                    child.wait(STOP_S)
                except subprocess.TimeoutExpired:
                    child.kill()
                    child.wait()
