"""The routes of API v2: its declared endpoints, bound to the objects that serve them.

In: the proxy, the formats, the consumer instances. Out: routes for the frame.
"""

from __future__ import annotations

from barnabas.rest.formats.embedded import Formats
from barnabas.rest.proxy import Proxy
from barnabas.rest.v2 import topics
from barnabas.rest.v2.call import V2Endpoint, serving
from barnabas.rest.v2.consumers.endpoints import ConsumerEndpoints
from barnabas.rest.v2.consumers.instances import Instances
from barnabas.rest.v2.description import PARTS
from barnabas.rest.v2.produce import Produce
from barnabas.services.routes import ServiceRoute


def v2_routes(proxy: Proxy, formats: Formats, instances: Instances) -> list[ServiceRoute]:
    produce = Produce(formats)
    consumers = ConsumerEndpoints(proxy, formats, instances)
    endpoints: dict[str, V2Endpoint] = {
        "root": topics.root,
        "list_brokers_v2": topics.list_brokers,
        "list_topics_v2": topics.list_topics,
        "get_topic_v2": topics.get_topic,
        "list_partitions_v2": topics.list_partitions,
        "get_partition_v2": topics.get_partition,
        "get_offsets_v2": topics.get_offsets,
        "produce_to_topic": produce.to_topic,
        "produce_to_partition": produce.to_partition,
        "create": consumers.create,
        "delete": consumers.delete,
        "subscribe": consumers.subscribe,
        "subscription": consumers.subscription,
        "unsubscribe": consumers.unsubscribe,
        "assign": consumers.assign,
        "assignments": consumers.assignments,
        "seek": consumers.seek,
        "seek_to_beginning": consumers.seek_to_beginning,
        "seek_to_end": consumers.seek_to_end,
        "records": consumers.records,
        "commit": consumers.commit,
        "committed": consumers.committed,
    }
    return [
        operation.route(lambda _, id=operation.id: serving(proxy, endpoints[id]))  # type: ignore[misc]
        for part in PARTS
        for operation in part.declared
    ]
