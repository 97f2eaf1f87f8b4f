"""This node as a client of the brokers: at the listener between brokers, with the node's own login.

In: the node. Out: a client. Does not know: what it is used for.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from barnabas.client.cluster import Cluster
from barnabas.client.core.address import Address
from barnabas.client.core.errors import ClientError

if TYPE_CHECKING:
    from barnabas.broker.broker import Broker


def own_client(broker: Broker, purpose: str) -> Cluster:
    return Cluster(
        brokers_of(broker),
        client_id=f"{purpose}-{broker.node_id}",
        security=broker.security.to_brokers(),
    )


def brokers_of(broker: Broker) -> list[Address]:
    """The addresses of brokers that are not fenced. ClientError if there is none."""
    listener = broker.settings.inter_broker_listener_name
    found = []
    for each in broker.image.cluster.brokers.values():
        endpoint = each.listeners.get(listener)
        if endpoint is not None and not each.fenced:
            found.append(Address(endpoint.host, endpoint.port))
    if not found:
        raise ClientError(f"no broker is there with a listener {listener}")
    return found
