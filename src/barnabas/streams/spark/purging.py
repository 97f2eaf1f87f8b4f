"""Deletes records of repartition topics that were committed: nobody reads them again.

In: the committed position of each partition. Out: requests to the brokers, at most every
`repartition.purge.interval.ms`. A request that fails is made again at the next time. Does not know: queries.
"""

from __future__ import annotations

import logging
import time
from collections.abc import Mapping

from barnabas.client.admin.records import RecordAdmin
from barnabas.client.blocking import run
from barnabas.client.core.errors import ClientError
from barnabas.client.core.topology import TopicPartition
from barnabas.protocol import KafkaError
from barnabas.spark.basics.cluster import WorkerCluster

PURGE_S = 30.0
log = logging.getLogger("barnabas.streams")


class Purge:
    def __init__(self, cluster: WorkerCluster, every_s: float) -> None:
        self._admin, self._every_s = RecordAdmin(cluster), every_s
        self._purged: dict[TopicPartition, int] = {}
        self._next = time.monotonic() + every_s

    def run_if_due(self, positions: Mapping[TopicPartition, int]) -> None:
        if time.monotonic() < self._next:
            return
        self._next = time.monotonic() + self._every_s
        wanted = {place: at for place, at in positions.items() if at > self._purged.get(place, 0)}
        if not wanted:
            return
        try:
            found = run(self._admin.delete_records(wanted))
        except (KafkaError, ClientError) as error:
            log.warning("records of repartition topics could not be deleted: %s", error)
            return
        for place, result in found.items():
            if isinstance(result, KafkaError):
                log.warning("records of %s could not be deleted: %s", place, result.message)
            else:
                self._purged[place] = wanted[place]
