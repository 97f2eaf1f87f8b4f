"""Invariants of a share group on one partition: a model that members update with what they send and receive.

In: deliveries of records to members, acknowledgements and what became of them, start offsets, in the order of
time. Raises `Wrong` if two members hold a record at the same time, an acknowledgement is accepted from a
member that does not hold the record, a record is delivered again after its end was confirmed, a delivery
count is too low or too high, first deliveries are out of order, or a record is passed over.
Does not know: messages, brokers. A *tenure* is one share partition in the memory of one leader: locks and
counts that were not stored end with it. A leader that is cut off does not know what its successors store: it
delivers until the metadata or the coordinator tells it, as in Apache Kafka, and no acknowledgement is
confirmed by it meanwhile.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from typing import Protocol

from barnabas.client.core.acknowledgements import AcknowledgeType
from barnabas.simulation.world.history import Wrong

LOCK_SLACK_S = 0.002  # brokers count whole milliseconds
FINAL = (AcknowledgeType.ACCEPT, AcknowledgeType.REJECT)


class Tenure(Protocol):
    leader_epoch: int


@dataclass(slots=True, eq=False)
class Delivery:
    """A record that a member has received in the response to a fetch."""

    offset: int
    member: str
    count: int
    sent_s: float  # when the fetch was sent: the record was acquired after that
    got_s: float
    locked_until_s: float  # at least, unless the member gives the record up
    tenure: Tenure | None  # None: unknown, or it has changed while the fetch was under way
    is_connected: Callable[[], bool]  # whether the broker still counts on this member
    ended_s: float | None = None  # when the member sent something that may end the lock
    sent_to: Tenure | None = None  # where it sent its last acknowledgement; None: unknown

    def is_locked_at(self, now_s: float) -> bool:
        return now_s < self.locked_until_s and (self.ended_s is None or now_s < self.ended_s)

    def __str__(self) -> str:
        return f"{self.member} (delivery {self.count}, received at {self.got_s:.3f} s)"


@dataclass(slots=True)
class Fate:
    """Knowledge about one record."""

    value: bytes
    deliveries: list[Delivery] = field(default_factory=list)
    enders: list[Delivery] = field(default_factory=list)  # deliveries that were accepted or rejected, perhaps
    ended_s: float | None = None  # when the first accept or reject was confirmed
    ended_in: Tenure | None = None  # by which tenure
    releases: list[tuple[float, Delivery]] = field(default_factory=list)  # when confirmed, of which delivery


class SharedPartition:
    def __init__(self, name: str, now: Callable[[], float], deliveries_max: int, lock_s: float) -> None:
        self.name = name
        self.deliveries = 0
        self.redeliveries = 0
        self.refusals = 0
        self.is_trusted = True
        self._now = now
        self._deliveries_max = deliveries_max
        self._lock_s = lock_s
        self._fates: dict[int, Fate] = {}
        self._unanswered = 0  # fetches whose response has not come, and perhaps never will
        self._firsts: dict[object, list[tuple[float, int]]] = {}  # by tenure: time, highest offset
        self._start_offset = 0

    # -- fetches -----------------------------------------------------------------------------------

    def fetching(self) -> None:
        self._unanswered += 1

    def answered(self) -> None:
        self._unanswered -= 1

    def delivery(
        self,
        offset: int,
        member: str,
        count: int,
        sent_s: float,
        tenure: Tenure | None,
        is_connected: Callable[[], bool],
    ) -> Delivery:
        now_s = self._now()
        return Delivery(
            offset, member, count, sent_s, now_s, sent_s + self._lock_s - LOCK_SLACK_S, tenure, is_connected
        )

    def delivered(self, delivery: Delivery, value: bytes) -> None:
        self.deliveries += 1
        fate = self._fates.setdefault(delivery.offset, Fate(value))
        if self.is_trusted:
            self._check_value(delivery, fate, value)
            self._check_end(delivery, fate)
            self._check_count(delivery, fate)
            for other in fate.deliveries:
                if other.tenure is not None and other.tenure is delivery.tenure:
                    self._check_lock(delivery, other)
            self._check_order(delivery)
        self.redeliveries += bool(fate.deliveries)
        fate.deliveries.append(delivery)

    def _check_value(self, delivery: Delivery, fate: Fate, value: bytes) -> None:
        if fate.value != value:
            raise Wrong(f"{self.name}: {delivery.offset} was {fate.value!r} and is {value!r}")

    def _check_end(self, delivery: Delivery, fate: Fate) -> None:
        if fate.ended_s is None or is_cut_off(delivery.tenure, fate.ended_in):
            return
        if fate.ended_s < delivery.sent_s:
            raise Wrong(
                f"{self.name}: {delivery.offset} is delivered to {delivery} after its end was confirmed at "
                f"{fate.ended_s:.3f} s"
            )

    def _check_count(self, delivery: Delivery, fate: Fate) -> None:
        seen = len(fate.deliveries) + 1
        if not 1 <= delivery.count <= self._deliveries_max:
            raise Wrong(f"{self.name}: delivery {delivery.count} of {delivery.offset}")
        if delivery.count > seen + self._unanswered:
            raise Wrong(
                f"{self.name}: {delivery.offset} is delivered to {delivery}, though {seen} deliveries were "
                f"seen and {self._unanswered} fetches have no response"
            )
        for confirmed_s, released in fate.releases:
            if is_cut_off(delivery.tenure, released.sent_to):
                continue
            if confirmed_s < delivery.sent_s and delivery.count <= released.count:
                raise Wrong(
                    f"{self.name}: {delivery.offset} is delivered to {delivery} after delivery "
                    f"{released.count} was released"
                )

    def _check_lock(self, one: Delivery, other: Delivery) -> None:
        """Two deliveries of one tenure: the first must have ended before the second."""
        where = f"{self.name}: {one.offset} is delivered to {other} and to {one}"
        if one.count == other.count or (other.got_s < one.sent_s and one.count < other.count):
            raise Wrong(f"{where}: counts do not grow")
        first, second = sorted((one, other), key=lambda delivery: delivery.count)
        if first.is_locked_at(second.got_s) and first.is_connected():
            raise Wrong(f"{where}: at the same time")

    def _check_order(self, delivery: Delivery) -> None:
        if delivery.count != 1 or delivery.tenure is None:
            return
        firsts = self._firsts.setdefault(delivery.tenure, [])
        highest = max((offset for got_s, offset in firsts if got_s < delivery.sent_s), default=-1)
        if delivery.offset < highest:
            raise Wrong(f"{self.name}: {delivery.offset} is delivered for the first time after {highest}")
        if firsts and firsts[-1][0] == delivery.got_s:
            firsts[-1] = delivery.got_s, max(firsts[-1][1], delivery.offset)
        else:
            firsts.append((delivery.got_s, delivery.offset))

    # -- acknowledgements --------------------------------------------------------------------------

    def acknowledging(self, delivery: Delivery, kind: int, tenure: Tenure | None) -> None:
        """The member is about to send this."""
        delivery.sent_to = tenure
        if kind != AcknowledgeType.RENEW:
            self.gave_up(delivery)
        if kind in FINAL:
            self._fates[delivery.offset].enders.append(delivery)

    def gave_up(self, delivery: Delivery) -> None:
        """From now on the broker may end the lock: the member's session is over, or about to be."""
        if delivery.ended_s is None:
            delivery.ended_s = self._now()

    def acknowledged(self, delivery: Delivery, kind: int, sent_s: float) -> None:
        """The broker has confirmed it."""
        fate = self._fates[delivery.offset]
        if self.is_trusted:
            self._check_holder(delivery, fate, kind, sent_s)
        if kind == AcknowledgeType.RENEW:
            delivery.locked_until_s = max(delivery.locked_until_s, sent_s + self._lock_s - LOCK_SLACK_S)
        elif kind == AcknowledgeType.RELEASE:
            fate.releases.append((self._now(), delivery))
        elif fate.ended_s is None:
            fate.ended_s, fate.ended_in = self._now(), delivery.sent_to

    def _check_holder(self, delivery: Delivery, fate: Fate, kind: int, sent_s: float) -> None:
        """Brokers ignore acknowledgements of records that are behind them: those of ended records prove
        nothing."""
        if any(each is not delivery for each in fate.enders) or self._may_be_archived(fate):
            return
        for other in fate.deliveries:
            if other is not delivery and delivery.got_s < other.sent_s and other.got_s < sent_s:
                raise Wrong(
                    f"{self.name}: {AcknowledgeType(kind).name} of {delivery.offset} by {delivery} is "
                    f"accepted, and {other} has it"
                )

    def _may_be_archived(self, fate: Fate) -> bool:
        """Whether it may have been delivered as often as it may be."""
        counts = [delivery.count for delivery in fate.deliveries]
        return max(counts, default=0) + self._unanswered >= self._deliveries_max

    # -- start offsets -----------------------------------------------------------------------------

    def began_at(self, start_offset: int, produced: Mapping[int, bytes]) -> None:
        """The group has passed all records below this offset. `produced` are records that producers know to
        be written and visible."""
        if not self.is_trusted:
            return
        if start_offset < self._start_offset:
            raise Wrong(f"{self.name}: the start offset went back: {self._start_offset} to {start_offset}")
        passed = range(self._start_offset, start_offset)
        self._check_passed(offset for offset in passed if offset in produced or offset in self._fates)
        self._start_offset = start_offset

    def compare(self, found: Mapping[int, bytes]) -> None:
        """All of these records are visible to the group, and it has passed them."""
        self._check_passed(found)
        for offset, fate in self._fates.items():
            if found.get(offset) != fate.value:
                raise Wrong(
                    f"{self.name}: {offset} was delivered as {fate.value!r} and is {found.get(offset)!r}"
                )

    def _check_passed(self, offsets: Iterable[int]) -> None:
        for offset in offsets:
            fate = self._fates.get(offset)
            if fate is None:
                if self._unanswered < self._deliveries_max:
                    raise Wrong(f"{self.name}: {offset} is passed and was never delivered")
            elif not fate.enders and not self._may_be_archived(fate):
                last = fate.deliveries[-1]
                raise Wrong(f"{self.name}: {offset} is passed, and was last delivered to {last}")


def is_cut_off(tenure: Tenure | None, confirming: Tenure | None) -> bool:
    """Whether the first tenure is of an older leader than the one that confirmed something."""
    return tenure is not None and confirming is not None and tenure.leader_epoch < confirming.leader_epoch
