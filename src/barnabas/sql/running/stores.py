"""The stores of persistent queries, as /clusterStatus shows them: their topics, and how far changelogs go.

In: works of queries, brokers. Out: `QueryStores`. A store is where its changelog ends: the node that runs a
query writes both with a batch, and restores a store before its first batch. Does not know: which node runs a
query.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from barnabas.client.admin.offsets import FoundOffset, OffsetAdmin, OffsetSpec
from barnabas.client.core.cluster import ClusterCore
from barnabas.client.core.topology import TopicPartition
from barnabas.sql.analysis.work import QueryWork
from barnabas.sql.execution.port import QueryStores

LOOK_MS = 5_000.0

Ends = Mapping[TopicPartition, int]


async def stores_of(cluster: ClusterCore, works: Iterable[QueryWork]) -> list[QueryStores]:
    """Of the queries that have stores. Topics that are not there yet are left out."""
    kept = [each for each in works if each.query_id is not None and each.plan is not None]
    kept = [each for each in kept if each.plan is not None and each.plan.stores]
    wanted = {topic for work in kept for topic in (*sources_of(work), *changelogs_of(work).values())}
    counts = await partitions_of(cluster, wanted)
    places = {
        TopicPartition(topic, number)
        for work in kept
        for topic in changelogs_of(work).values()
        for number in range(counts.get(topic, 0))
    }
    admin = OffsetAdmin(cluster)
    asked = await admin.list_offsets(dict.fromkeys(places, OffsetSpec.LATEST), timeout_ms=LOOK_MS)
    ends = {place: found.offset for place, found in asked.items() if isinstance(found, FoundOffset)}
    return [described(work, counts, ends) for work in kept]


async def partitions_of(cluster: ClusterCore, topics: set[str]) -> dict[str, int]:
    if not topics:
        return {}
    known = (await cluster.refresh(topics)).topics
    return {name: len(known[name].partitions) for name in topics if name in known}


def sources_of(work: QueryWork) -> list[str]:
    """The topics of the parts that keep state."""
    assert work.plan is not None
    return [topic for part in work.plan.subtopologies if part.stores for topic in part.source_topics]


def changelogs_of(work: QueryWork) -> dict[str, str]:
    """The changelog of each store."""
    assert work.plan is not None
    given = {name: spec.changelog_topic(work.application_id) for name, spec in work.plan.stores.items()}
    return {name: topic for name, topic in given.items() if topic is not None}


def described(work: QueryWork, counts: Mapping[str, int], ends: Ends) -> QueryStores:
    changelogs = changelogs_of(work)
    found = {
        store: {
            number: ends[place]
            for number in range(counts.get(topic, 0))
            if (place := TopicPartition(topic, number)) in ends
        }
        for store, topic in changelogs.items()
    }
    places = [(topic, number) for topic in sources_of(work) for number in range(counts.get(topic, 0))]
    return QueryStores(work.query_id or "", work.application_id, found, tuple(places))
