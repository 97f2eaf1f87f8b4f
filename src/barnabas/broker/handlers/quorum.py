"""Fetch and FetchSnapshot of the metadata log, from voters, observers and brokers; on controllers' listeners.

Fetch 4-18, FetchSnapshot 0-1. Version 17 of Fetch names the replica's directory (KIP-853), version 18 how far
it knows the log to be committed (KIP-1166).
"""

from __future__ import annotations

from collections.abc import Awaitable

from barnabas.broker.context import RequestContext
from barnabas.broker.needs import cluster_action
from barnabas.broker.routes import handles
from barnabas.protocol import Message
from barnabas.protocol.messages.fetch import FetchRequest
from barnabas.protocol.messages.fetch_snapshot import FetchSnapshotRequest


@handles(FetchRequest, "4-18", needs=cluster_action(), listeners="controller")
def fetch_metadata(request: FetchRequest, context: RequestContext) -> Awaitable[Message]:
    return context.broker.quorum.serving.fetch(request, context.version)


@handles(FetchSnapshotRequest, "0-1", needs=cluster_action(), listeners="controller")
def fetch_snapshot(request: FetchSnapshotRequest, context: RequestContext) -> Awaitable[Message]:
    return context.broker.quorum.serving.fetch_snapshot(request)
