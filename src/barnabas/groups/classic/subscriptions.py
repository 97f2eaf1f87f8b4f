"""The topics that a group's members subscribed to, from the metadata they joined with.

In: the bytes of ConsumerProtocolSubscription, as each member sent them. Out: names, or None if any cannot be
decoded: clients may send arbitrary bytes there. Only version 0 is decoded, which all versions contain.
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
