"""Context of a request for its handler: one context for each connection."""

from __future__ import annotations

from collections.abc import Sequence, Set
from typing import TYPE_CHECKING, Any, cast

from barnabas.security.principal import ANONYMOUS

if TYPE_CHECKING:
    from barnabas.broker.access.rights import Rights
    from barnabas.broker.broker import Broker
    from barnabas.broker.wire.channel import Channel
    from barnabas.protocol.produce_layout import Placed
    from barnabas.security.acls.vocabulary import Operation, ResourceType


class RequestContext:
    __slots__ = (
        "_rights",
        "api",
        "appended",
        "broker",
        "channel",
        "client_id",
        "correlation_id",
        "host",
        "listener",
        "owns_frame",
        "principal",
        "software_name",
        "software_version",
        "version",
        "writable",
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
        self.owns_frame = False  # the request's bytes stay as they are until it is over
        # Offsets of batches of this produce request that are appended already (see `direct_produce`).
        self.appended: Sequence[Placed] = ()
        self.api = -1  # the key of the request, set where requests are checked
        self._rights: Rights | None = None
        # Names and ids of topics, and (transactional id,), that the caller may write; None: it may all.
        self.writable: Set[object] | None = None
        if broker is not None and broker.access is not None:
            self.writable = frozenset()  # until the first request that is checked

    @property
    def rights(self) -> Rights | None:
        """The rights of the caller; None without an authorizer: everything is allowed."""
        access = self.broker.access
        if access is None:
            return None
        found = self._rights
        if found is None or found.principal is not self.principal:
            found = self._rights = access.rights(self.principal, self.host)
            self.writable = found.writable
        return found

    def may(self, operation: Operation, resource: ResourceType, name: str) -> bool:
        """Whether the caller may do this; the decision is logged."""
        rights = self.rights
        return rights is None or rights.allow(operation, resource, name, self.api)

    def for_request(self, version: int) -> RequestContext:
        """The context of a request that the node sends in the name of this caller."""
        found = RequestContext(self.broker, self.channel, self.listener)
        found.host, found.principal, found.client_id = self.host, self.principal, self.client_id
        found.version = version
        return found

    @property
    def user(self) -> str:
        """The name of the principal: quotas are by user."""
        return self.principal.name


NO_CONTEXT = RequestContext(cast(Any, None), cast(Any, None), "")
"""The context of a closed connection. Requests that are still being handled keep their own."""
