"""What a handler knows about a request besides its body: one context for each connection."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, cast

from barnabas.security.principal import ANONYMOUS

if TYPE_CHECKING:
    from barnabas.broker.broker import Broker
    from barnabas.broker.wire.channel import Channel
    from barnabas.protocol.produce_layout import Placed


class RequestContext:
    __slots__ = (
        "appended",
        "broker",
        "channel",
        "client_id",
        "correlation_id",
        "host",
        "listener",
        "principal",
        "software_name",
        "software_version",
        "version",
    )

    def __init__(self, broker: Broker, channel: Channel, listener: str) -> None:
        self.broker = broker
        self.channel = channel
        self.listener = listener
        self.host = ""
        self.principal = ANONYMOUS
        self.software_name = ""  # from the ApiVersions request
        self.software_version = ""
        self.client_id: str | None = None
        self.correlation_id = 0
        self.version = 0
        # Offsets of batches of this produce request that are appended already (see `direct_produce`).
        self.appended: Sequence[Placed] = ()

    @property
    def user(self) -> str:
        """The name of the principal: quotas are by user."""
        return self.principal.name


NO_CONTEXT = RequestContext(cast(Any, None), cast(Any, None), "")
"""The context of a closed connection. Requests that are still being handled keep their own."""
