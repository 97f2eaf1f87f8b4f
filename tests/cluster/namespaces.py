"""A cluster whose nodes are hosts: each in a network namespace of its own, on one bridge, links to be cut.

In: how many nodes. Out: a `Cluster` whose listeners are reachable from here; `cut(a, b)` lets nothing pass
from one node to another, one way or both. Needs root and `ip`; `missing()` says what is not there.
"""

from __future__ import annotations

import contextlib
import os
import shutil
import subprocess
from collections.abc import Iterator
from pathlib import Path

from barnabas.raft.voters import Voter, VoterEndpoint
from barnabas.testing.cluster import Cluster, ClusterNode
from barnabas.testing.ports import claim

# Workers and other runs share the machine: names and addresses are this process's own.
MARK = os.getpid() % 100_000
NETWORK = f"10.213.{next((each for each in range(1, 255) if claim(f'network-{each}')), 0)}"
BRIDGE = f"bn{MARK}-bridge"
CLIENT = f"{NETWORK}.254"
PORT, CONTROLLER_PORT = 9092, 9093


def missing() -> str | None:
    if os.geteuid() != 0:
        return "network namespaces need root"
    if shutil.which("ip") is None:
        return "ip is not installed"
    tried = subprocess.run(["ip", "netns", "add", space(0)], capture_output=True, text=True)
    if tried.returncode:
        return f"no network namespaces here: {tried.stderr.strip()}"
    run("netns", "del", space(0))
    return None


def run(*arguments: str) -> None:
    subprocess.run(["ip", *arguments], check=True, capture_output=True)


class HostNode(ClusterNode):
    """A node inside its namespace."""

    def _command(self, path: Path) -> list[str]:
        return ["ip", "netns", "exec", space(self.id), *super()._command(path)]


class Links:
    """Bridge and namespaces of a cluster."""

    def __init__(self, nodes: int) -> None:
        self._ids = range(1, nodes + 1)

    @contextlib.contextmanager
    def up(self) -> Iterator[Links]:
        self.down()
        try:
            run("link", "add", BRIDGE, "type", "bridge")
            run("addr", "add", f"{CLIENT}/24", "dev", BRIDGE)
            run("link", "set", BRIDGE, "up")
            for node_id in self._ids:
                outside = f"bn{MARK}-{node_id}"
                run("netns", "add", space(node_id))
                run("link", "add", outside, "type", "veth", "peer", "name", "eth0", "netns", space(node_id))
                run("link", "set", outside, "master", BRIDGE, "up")
                run("-n", space(node_id), "addr", "add", f"{address(node_id)}/24", "dev", "eth0")
                run("-n", space(node_id), "link", "set", "eth0", "up")
                run("-n", space(node_id), "link", "set", "lo", "up")
            yield self
        finally:
            self.down()

    def down(self) -> None:
        for node_id in self._ids:
            subprocess.run(["ip", "netns", "del", space(node_id)], capture_output=True)
        subprocess.run(["ip", "link", "del", BRIDGE], capture_output=True)

    def cut(self, source: int, target: int, *, both: bool = True) -> None:
        """Nothing goes from one node to the other any more; connections hang, as behind a broken switch."""
        run("-n", space(source), "route", "add", "blackhole", f"{address(target)}/32")
        if both:
            self.cut(target, source, both=False)

    def cut_from_clients(self, node_id: int) -> None:
        run("-n", space(node_id), "route", "add", "blackhole", f"{CLIENT}/32")

    def heal(self) -> None:
        for node_id in self._ids:
            subprocess.run(
                ["ip", "-n", space(node_id), "route", "flush", "type", "blackhole"], capture_output=True
            )


def space(node_id: int) -> str:
    return f"bn{MARK}-node{node_id}"


def address(node_id: int) -> str:
    return f"{NETWORK}.{node_id}"


class HostCluster(Cluster):
    """Nodes that are brokers and controllers, each on a host of its own."""

    def __init__(self, nodes: int, overrides: dict[str, object], *, dynamic: bool = False) -> None:
        super().__init__(combined=nodes, dynamic=dynamic, overrides=overrides)
        for node_id, node in list(self.nodes.items()):
            host = address(node_id)
            properties = {
                **node.properties,
                "listeners": f"PLAINTEXT://{host}:{PORT},CONTROLLER://{host}:{CONTROLLER_PORT}",
            }
            addresses = {each: f"{address(each)}:{CONTROLLER_PORT}" for each in self.nodes}
            voters = None
            if dynamic:
                assert node.voters is not None
                properties["controller.quorum.bootstrap.servers"] = ",".join(addresses.values())
                voters = [at_home(voter) for voter in node.voters]
            else:
                quorum = (f"{each}@{where}" for each, where in addresses.items())
                properties["controller.quorum.voters"] = ",".join(quorum)
            self.nodes[node_id] = HostNode(node_id, node.roles, properties, voters)


def at_home(voter: Voter) -> Voter:
    return Voter(
        voter.id,
        voter.directory_id,
        (VoterEndpoint("CONTROLLER", address(voter.id), CONTROLLER_PORT),),
    )
