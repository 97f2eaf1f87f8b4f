"""The Kafka cluster behind the proxy, as one identity sees it: connections, an administrator, a producer.

In: how to reach the brokers, and how to log in. Out: a `Kafka`, which all requests of the identity share.
Does not know: HTTP, records' formats, who has which identity.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

from barnabas.client.admin.admin import Admin
from barnabas.client.cluster import Cluster
from barnabas.client.core.address import Address
from barnabas.client.core.interceptors import ProducerInterceptor
from barnabas.client.producer import Producer, ProducerSettings
from barnabas.protocol import ErrorCode, KafkaError
from barnabas.security.clients.client_security import PLAINTEXT, ClientSecurity

CLIENT_ID = "barnabas-rest"
# A topic may be created by its first record. Kafka's producer waits 60 s for one that does not exist.
TOPIC_WAIT_MS = 5_000


@dataclass(frozen=True, slots=True)
class KafkaSettings:
    bootstrap: Sequence[Address]
    security: ClientSecurity = PLAINTEXT
    producer: ProducerSettings = field(
        default_factory=lambda: ProducerSettings(
            batch_size_bytes=256 * 1024, delivery_timeout_ms=30_000, block_ms_max=TOPIC_WAIT_MS
        )
    )
    request_timeout_ms: float = 30_000
    api_timeout_ms: float = 15_000
    interceptors: Sequence[ProducerInterceptor] = ()  # of the producers


class Kafka:
    """The cluster as one identity sees it."""

    def __init__(self, settings: KafkaSettings, security: ClientSecurity | None = None) -> None:
        """`security` is the login of a caller; None: that of the proxy."""
        self._settings = settings
        self._security = security or settings.security
        self.cluster = self.new_cluster()
        self.admin = Admin(self.cluster)
        self.producer = Producer(self.cluster, settings.producer, interceptors=settings.interceptors)
        self._cluster_id: str | None = None

    def new_cluster(self) -> Cluster:
        """Connections of their own, for a caller whose requests wait long at the brokers."""
        return Cluster(
            self._settings.bootstrap,
            client_id=CLIENT_ID,
            request_timeout_ms=self._settings.request_timeout_ms,
            api_timeout_ms=self._settings.api_timeout_ms,
            security=self._security,
        )

    async def cluster_id(self) -> str:
        if self._cluster_id is None:
            found = (await self.admin.describe_cluster()).cluster_id
            if found is None:
                raise KafkaError(ErrorCode.UNSUPPORTED_VERSION, "the brokers do not tell their cluster id")
            self._cluster_id = found
        return self._cluster_id

    async def close(self) -> None:
        await self.producer.close()
        await self.cluster.close()
