"""`start --brokers N`: several nodes on this host, in the foreground, each a process of its own.

In: the options of `start`. Out: the exit status: 0 when they were told to stop (SIGTERM, SIGINT) and did, 1
when one of them could not start or ended by itself; the others are stopped then. A second start on the same
folder has the same nodes.
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

DEFAULT_DATA = "data"
DEFAULT_PORT = 9092
READY = b"Barnabas is ready"
STOP_S = 40.0
POLL_S = 0.2


def run(options: argparse.Namespace, out: Output) -> int:
    if options.properties is not None:
        raise ToolError(
            "--brokers goes without a properties file: nodes need ports and folders of their own; what they "
            "share can be set with --override"
        )
    cluster = LocalCluster(Path(options.data or DEFAULT_DATA))
    if not cluster.exists:
        if cluster.folder.exists() and any(cluster.folder.iterdir()):
            raise ToolError(
                f"{cluster.folder} holds something else than several brokers: choose another --data"
            )
        port = DEFAULT_PORT if options.port is None else options.port
        cluster.make(options.brokers, port, key_values(options.override))
    elif len(cluster.nodes) != options.brokers:
        raise ToolError(f"{cluster.folder} has {len(cluster.nodes)} brokers, not {options.brokers}")
    return Several(cluster, out, options.log_level).run()


class Several:
    def __init__(self, cluster: LocalCluster, out: Output, log_level: str) -> None:
        self._cluster = cluster
        self._out = out
        self._log_level = log_level
        self._events: Queue[str] = Queue()  # what happened: the number of a node that is ready, or "stop"
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
                            f"node {node_id} has ended with {child.returncode}: the others stop too"
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
                waiting.add("told")

    def _stop(self) -> None:
        """A terminal's Ctrl-C reaches the nodes as well; who has ended already is not told again."""
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
