"""All endpoints of API v3: routes for the frame, and parts of the description."""

from __future__ import annotations

from barnabas.rest.proxy import Proxy
from barnabas.rest.v3.acls import ACLS
from barnabas.rest.v3.call import serving
from barnabas.rest.v3.clusters import CLUSTERS
from barnabas.rest.v3.configs import BROKER_CONFIGS, TOPIC_CONFIGS
from barnabas.rest.v3.groups import GROUPS
from barnabas.rest.v3.lags import LAGS
from barnabas.rest.v3.partitions import PARTITIONS
from barnabas.rest.v3.produce import PRODUCE
from barnabas.rest.v3.topics import TOPICS
from barnabas.services.routes import ServiceRoute

RESOURCES = (CLUSTERS, BROKER_CONFIGS, TOPICS, TOPIC_CONFIGS, PARTITIONS, ACLS, GROUPS, LAGS)
PARTS = (*RESOURCES, PRODUCE)


def routes(proxy: Proxy) -> list[ServiceRoute]:
    bind = serving(proxy)
    found = [route for part in RESOURCES for route in part.routes(bind)]
    return found + PRODUCE.routes(serving(proxy, any_cluster=True))
