"""A cluster of several Apache Kafka nodes as a reference.

In: the number of nodes, settings to override. Out: running nodes, each broker and controller, with their
addresses. Each can be stopped, killed and restarted. Has the same requirements as `apache`.
Does not know: our nodes.
"""

from __future__ import annotations

from collections.abc import Mapping
from concurrent.futures import ThreadPoolExecutor
from types import TracebackType
from typing import Self

from barnabas.testing.apache import ApacheKafka

HEAP = "512M"


class ApacheCluster:
    """`with ApacheCluster(3) as cluster:`; nodes have the ids 1, 2, ..."""

    def __init__(
        self, nodes: int = 3, overrides: Mapping[str, str] | None = None, heap: str = HEAP, racks: int = 0
    ) -> None:
        self._nodes = {node_id: ApacheKafka(heap=heap) for node_id in range(1, nodes + 1)}
        voters = ",".join(
            f"{node_id}@127.0.0.1:{node.controller_port}" for node_id, node in self._nodes.items()
        )
        factor = str(min(3, nodes))
        for node_id, node in self._nodes.items():
            node.override(
                {
                    "node.id": str(node_id),
                    "controller.quorum.voters": voters,
                    "offsets.topic.replication.factor": factor,
                    "transaction.state.log.replication.factor": factor,
                    "transaction.state.log.min.isr": str(min(2, nodes)),
                    "default.replication.factor": factor,
                    **({"broker.rack": f"rack-{node_id % racks}"} if racks else {}),
                    **(overrides or {}),
                }
            )

    @property
    def bootstrap(self) -> str:
        return ",".join(node.bootstrap for node in self._nodes.values())

    def node(self, node_id: int) -> ApacheKafka:
        return self._nodes[node_id]

    @property
    def nodes(self) -> list[ApacheKafka]:
        return list(self._nodes.values())

    def start(self) -> None:
        """Start all nodes at once: a node is ready only when a majority runs."""
        with ThreadPoolExecutor(len(self._nodes)) as pool:
            list(pool.map(ApacheKafka.start, self._nodes.values()))

    def close(self) -> None:
        for node in self._nodes.values():
            node.close()

    def __enter__(self) -> Self:
        try:
            self.start()
        except BaseException:
            self.close()
            raise
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()
