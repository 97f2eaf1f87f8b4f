"""Topics that come up and partitions that are added while an application runs.

In: a plan, how its queries are made, a conductor. Out: every `metadata.max.age.ms` the source topics are
looked at; queries whose topics have changed are made anew. A plan that does not fit the topics any more,
since a changelog has fewer partitions, is an error of those queries. Does not know: Spark.
"""

from __future__ import annotations

import logging
import time
from collections.abc import Callable

from barnabas.client.core.errors import ClientError
from barnabas.plans.plan import Plan, PlanError
from barnabas.protocol import KafkaError
from barnabas.spark.basics.cluster import WorkerCluster
from barnabas.streams.spark.conductor import Conductor, Query
from barnabas.streams.spark.queries_of_plan import partitions_of_sources

METADATA_AGE_S = 300.0
log = logging.getLogger("barnabas.streams")


class PlanQueries:
    def __init__(
        self,
        plan: Plan,
        make: Callable[[], list[Query]],
        cluster: WorkerCluster,
        conductor: Conductor,
        *,
        every_s: float = METADATA_AGE_S,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._plan, self._make, self._cluster, self._conductor = plan, make, cluster, conductor
        self._every_s, self._clock = every_s, clock
        self._sources: dict[str, int] = {}
        self._next = 0.0

    def start(self) -> list[Query]:
        """Add the queries of the plan to the conductor."""
        self._sources = partitions_of_sources(self._plan, self._cluster)
        self._next = self._clock() + self._every_s
        queries = self._make()
        for query in queries:
            self._conductor.add(query)
        return queries

    def look_if_due(self) -> None:
        now = self._clock()
        if now < self._next:
            return
        self._next = now + self._every_s
        try:
            sources = partitions_of_sources(self._plan, self._cluster)
            if sources != self._sources:
                self._renew(sources)
        except (KafkaError, ClientError, OSError) as error:
            log.warning("source topics could not be looked at: %s", error)
        except PlanError as error:  # a topic was deleted: its query finds out by itself
            log.warning("%s", error)

    def _renew(self, sources: dict[str, int]) -> None:
        changed = {topic for topic, count in sources.items() if self._sources.get(topic) != count}
        log.warning("source topics have new partitions: %s", ", ".join(sorted(changed)))
        try:
            made = self._make()
        except PlanError as error:
            for query in self._conductor.queries:
                if changed & query.topics.keys():
                    query.error = query.mismatch = str(error)
            return
        olds = {query.name: query for query in self._conductor.queries}
        for query in made:
            old = olds.get(query.name)
            if old is not None and old.topics == query.topics:
                old.mismatch = None
                continue
            if old is not None:
                query.succeed(old)
                self._conductor.remove(old.name)
            self._conductor.add(query)
        self._sources = sources
