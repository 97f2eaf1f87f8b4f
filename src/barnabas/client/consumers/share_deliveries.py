"""Records that a share consumer has returned to its caller, until they are acknowledged.

In: deliveries, and what the caller says about single records. Out: batches of acknowledgements for the leader
that each delivery came from. Whole deliveries are kept as ranges; single offsets only where the caller
acknowledges them one by one. Does not know: requests.
"""

from __future__ import annotations

from barnabas.client.consumers.share_leader import ShareLeader
from barnabas.client.core.acknowledgements import GAP, AckBatch, AcknowledgeType, accept, batches_of
from barnabas.client.core.share_fetching import Acquired
from barnabas.client.core.share_session import Place
from barnabas.client.core.topology import TopicPartition


class Delivery:
    """The acquired records of one partition of one response."""

    __slots__ = ("_is_whole", "_renewed", "_types", "_waiting", "acquired", "leader", "place")

    def __init__(self, leader: ShareLeader, place: Place, acquired: Acquired) -> None:
        self.leader = leader
        self.place = place
        self.acquired = acquired
        self._is_whole = True  # no record was acknowledged by itself
        self._waiting: set[int] = set()  # offsets of records without an acknowledgement
        self._renewed: set[int] = set()  # and of those that were renewed, and are acknowledged again later
        self._types: dict[int, int] = {}  # to be sent

    def _split(self) -> None:
        if self._is_whole:
            self._is_whole = False
            self._waiting = {record.offset for record in self.acquired.records}
            self._types |= dict.fromkeys(self.acquired.gaps, GAP)
            self._types |= dict.fromkeys(self.acquired.unreadable, int(AcknowledgeType.REJECT))

    def acknowledge(self, offset: int, kind: AcknowledgeType) -> bool:
        """False for a record that is not part of the delivery, or whose acknowledgement was sent."""
        self._split()
        if not (offset in self._waiting or offset in self._renewed or self._types.get(offset, GAP)):
            return False
        self._types[offset] = int(kind)
        self._waiting.discard(offset)
        self._renewed.discard(offset)
        return True

    @property
    def owes(self) -> bool:
        """Whether the caller has not acknowledged all records."""
        return bool(self._waiting) or (self._is_whole and bool(self.acquired.records))

    @property
    def is_over(self) -> bool:
        return not self._is_whole and not (self._waiting or self._renewed)

    def pop_acknowledgements(self, *, accepts_all: bool) -> list[AckBatch]:
        """The acknowledgements that can be sent."""
        if accepts_all and self._is_whole and not self.acquired.unreadable:
            self._is_whole = False
            return accept(self.acquired.ranges, self.acquired.gaps)
        self._split()
        if accepts_all:
            self._types |= dict.fromkeys(self._waiting, int(AcknowledgeType.ACCEPT))
            self._waiting.clear()
        taken, self._types = self._types, {}
        self._renewed |= {offset for offset, kind in taken.items() if kind == AcknowledgeType.RENEW}
        return batches_of(taken)


class Deliveries:
    def __init__(self) -> None:
        self._all: list[Delivery] = []

    def add(self, delivery: Delivery) -> None:
        self._all.append(delivery)

    @property
    def has_open(self) -> bool:
        """Whether the caller owes an acknowledgement: records that it renewed are not meant."""
        return any(delivery.owes for delivery in self._all)

    def acknowledge(self, topic_partition: TopicPartition, offset: int, kind: AcknowledgeType) -> None:
        for delivery in reversed(self._all):
            records = delivery.acquired.records
            if records and records[0][:2] == topic_partition and delivery.acknowledge(offset, kind):
                return
        raise ValueError(
            f"The record cannot be acknowledged: offset {offset} of {topic_partition} is not delivered"
        )

    def pop_acknowledgements(self, *, accepts_all: bool) -> list[tuple[Delivery, list[AckBatch]]]:
        """The acknowledgements of all deliveries. Those that are complete are forgotten."""
        found = [(delivery, delivery.pop_acknowledgements(accepts_all=accepts_all)) for delivery in self._all]
        self._all = [delivery for delivery in self._all if not delivery.is_over]
        return found
