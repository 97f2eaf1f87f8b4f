"""Topics that members of a group of consumers read, out of the metadata that they joined with.

In: the bytes of ConsumerProtocolSubscription, as each member sent them. Out: names, or None when any cannot
be read: clients may put there what they like. Only version 0 is read, the part that all versions share.
"""

from __future__ import annotations

from collections.abc import Iterable

from barnabas.protocol import ProtocolError
from barnabas.protocol.messages.consumer_protocol_subscription import ConsumerProtocolSubscription

VERSION_SIZE = 2


def subscribed_topics(subscriptions: Iterable[bytes]) -> frozenset[str] | None:
    topics: set[str] = set()
    try:
        for metadata in set(subscriptions):
            if len(metadata) < VERSION_SIZE or metadata[0] >= 0x80:
                return None  # no version, or a negative one
            topics.update(ConsumerProtocolSubscription.decode(metadata[VERSION_SIZE:], 0).topics)
    except ProtocolError:
        return None
    return frozenset(topics)
