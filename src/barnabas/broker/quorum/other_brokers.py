"""Requests to other brokers of the cluster: markers of transactions, and verifications.

In: a broker id, a request. Out: the response; KafkaError NETWORK_EXCEPTION if there is none. Connections go
to the inter-broker listener and are opened when needed.
Does not know: what the requests mean.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from barnabas.broker.quorum.peers import Connections
from barnabas.protocol import ErrorCode, KafkaError, Message
from barnabas.quorum.peers import PeerUnreachable
from barnabas.settings.quorum import Address

if TYPE_CHECKING:
    from barnabas.broker.broker import Broker
    from barnabas.broker.quorum.channel_traffic import ChannelTraffic


class OtherBrokers:
    __slots__ = ("_broker", "_connections", "_timeout_ms")

    def __init__(self, broker: Broker) -> None:
        self._broker = broker
        self._timeout_ms: int = broker.settings["request.timeout.ms"]
        client_id = f"broker-{broker.node_id}"
        self._connections = Connections(client_id, self._timeout_ms, broker.security.to_brokers)

    async def send_request(self, broker_id: int, request: Message, lane: str) -> Any:
        """Send a request and return the response. Requests of different lanes do not wait for each other."""
        registered = self._broker.image.cluster.brokers.get(broker_id)
        listener = self._broker.settings.inter_broker_listener_name
        endpoint = registered.listeners.get(listener) if registered is not None else None
        if endpoint is None:
            raise KafkaError(ErrorCode.NETWORK_EXCEPTION, f"broker {broker_id} has no listener {listener}")
        try:
            address = Address(endpoint.host, endpoint.port)
            return await self._connections.send_request(address, request, self._timeout_ms, lane)
        except PeerUnreachable as error:
            raise KafkaError(ErrorCode.NETWORK_EXCEPTION, str(error)) from None

    def traffic(self, lane: str) -> ChannelTraffic:
        """The traffic of all connections of a lane."""
        return self._connections.traffic(lane)

    async def close(self) -> None:
        await self._connections.close()
