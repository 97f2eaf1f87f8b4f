"""The blocking client with a query's settings: one for each process and set of settings.

In: client settings. Out: a cluster whose connections outlive micro-batches. It waits for brokers that are not
there yet, or restart. Not for several threads. Does not know: records, Spark.
"""

from __future__ import annotations

from collections.abc import Mapping

from barnabas.client.admin.offsets import OffsetAdmin
from barnabas.client.blocking import BlockingCluster, run
from barnabas.client.core.address import parse_bootstrap
from barnabas.client.core.topology import TopicPartition
from barnabas.protocol import KafkaError
from barnabas.spark.basics.settings import ClientSettings


class WorkerCluster(BlockingCluster):
    def __init__(self, client: ClientSettings) -> None:
        super().__init__(
            parse_bootstrap(client.bootstrap_servers),
            client_id=client.client_id,
            connect_timeout_ms=client.request_timeout_ms,
            request_timeout_ms=client.request_timeout_ms,
            security=client.client_security(),
            waits_for_bootstrap=True,
        )
        self.client = client

    def offsets(
        self, wanted: Mapping[TopicPartition, int], *, timeout_ms: float = 0
    ) -> dict[TopicPartition, int]:
        """Offsets by timestamp or by Kafka's special ones (-1 latest, -2 earliest); -1 where none is.

        Asked once unless there is a timeout: then leaders that are not known, or move, are asked again. The
        sources of Spark have options that say how often to ask again.
        """
        question = OffsetAdmin(self).list_offsets(
            wanted, read_committed=self.client.is_read_committed, timeout_ms=timeout_ms
        )
        found = {}
        for place, each in run(question).items():
            if isinstance(each, KafkaError):
                raise KafkaError(each.code, f"offsets of {place}: {each.message}")
            found[place] = each.offset
        return found


_clusters: dict[ClientSettings, WorkerCluster] = {}


def shared_cluster(settings: ClientSettings) -> WorkerCluster:
    """The cluster of this process for these settings."""
    cluster = _clusters.get(settings)
    if cluster is None:
        cluster = _clusters[settings] = WorkerCluster(settings)
    return cluster
