"""The model of share groups notices what must not be."""

from __future__ import annotations

from dataclasses import dataclass

import pytest

from barnabas.client.core.acknowledgements import AcknowledgeType
from barnabas.simulation.models.share_checks import Delivery, SharedPartition
from barnabas.simulation.world.history import Wrong

LOCK_S = 2.0
ACCEPT, RELEASE, REJECT, RENEW = AcknowledgeType


@dataclass(eq=False)
class Leader:
    leader_epoch: int


class Table:
    """A share partition with two members; each step takes a tenth of a second."""

    def __init__(self, deliveries_max: int = 5) -> None:
        self.now_s = 1.0
        self.tenure = Leader(0)
        self.is_connected = True
        self.partition = SharedPartition("g t-0", lambda: self.now_s, deliveries_max, LOCK_S)

    def deliver(self, offset: int, member: str, count: int = 1) -> Delivery:
        sent_s = self.send()
        self.now_s += 0.1
        made = self.partition.delivery(offset, member, count, sent_s, self.tenure, lambda: self.is_connected)
        self.partition.answered()
        self.partition.delivered(made, b"%d" % offset)
        return made

    def send(self) -> float:
        self.now_s += 0.1
        self.partition.fetching()
        return self.now_s

    def acknowledge(self, delivery: Delivery, kind: AcknowledgeType) -> None:
        self.now_s += 0.1
        sent_s = self.now_s
        self.partition.acknowledging(delivery, kind, self.tenure)
        self.now_s += 0.1
        self.partition.acknowledged(delivery, kind, sent_s)

    def change_the_leader(self) -> None:
        self.tenure = Leader(self.tenure.leader_epoch + 1)


@pytest.fixture
def table() -> Table:
    return Table()


def test_a_record_that_is_held_may_not_be_delivered_to_another_member(table: Table) -> None:
    table.deliver(7, "one")

    with pytest.raises(Wrong, match=r"7 is delivered to one .* and to other .* at the same time"):
        table.deliver(7, "other", 2)


def test_a_lock_that_ran_out_holds_nothing(table: Table) -> None:
    table.deliver(7, "one")
    table.now_s += LOCK_S

    table.deliver(7, "other", 2)


def test_a_renewed_lock_holds_longer(table: Table) -> None:
    held = table.deliver(7, "one")
    table.now_s += LOCK_S / 2
    table.acknowledge(held, RENEW)
    table.now_s += LOCK_S / 2

    with pytest.raises(Wrong, match="at the same time"):
        table.deliver(7, "other", 2)


def test_locks_end_with_the_leader_and_with_the_connection(table: Table) -> None:
    table.deliver(7, "one")
    table.deliver(8, "one")
    table.change_the_leader()
    table.deliver(7, "other")

    table.is_connected = False
    table.deliver(7, "one", 2)


def test_a_released_record_is_free_with_a_higher_count(table: Table) -> None:
    table.acknowledge(table.deliver(7, "one"), RELEASE)
    table.deliver(7, "other", 2)
    table.change_the_leader()

    with pytest.raises(Wrong, match="after delivery 1 was released"):
        table.deliver(7, "one", 1)


def test_counts_grow_while_a_leader_stays(table: Table) -> None:
    table.deliver(7, "one")
    table.now_s += LOCK_S

    with pytest.raises(Wrong, match="counts do not grow"):
        table.deliver(7, "other", 1)


def test_counts_are_not_higher_than_the_deliveries(table: Table) -> None:
    with pytest.raises(Wrong, match="though 1 deliveries were seen and 0 fetches have no response"):
        table.deliver(7, "one", 2)

    table.send()
    table.deliver(8, "one", 2)


def test_no_count_is_above_the_limit(table: Table) -> None:
    for _ in range(5):
        table.send()

    with pytest.raises(Wrong, match="delivery 6 of 7"):
        table.deliver(7, "one", 6)


@pytest.mark.parametrize("end", [ACCEPT, REJECT])
def test_a_record_whose_end_was_confirmed_may_not_be_delivered_again(
    table: Table, end: AcknowledgeType
) -> None:
    table.acknowledge(table.deliver(7, "one"), end)
    table.change_the_leader()

    with pytest.raises(Wrong, match="after its end was confirmed"):
        table.deliver(7, "other")


def test_a_leader_that_is_cut_off_does_not_know_what_its_successor_confirmed(table: Table) -> None:
    cut_off = table.tenure
    table.deliver(7, "one")
    table.deliver(8, "one")
    table.change_the_leader()
    table.acknowledge(table.deliver(7, "other"), ACCEPT)
    table.acknowledge(table.deliver(8, "other", 2), RELEASE)
    successor, table.tenure = table.tenure, cut_off
    table.now_s += LOCK_S
    table.deliver(7, "one", 2)
    table.deliver(8, "one", 2)

    table.tenure = successor
    with pytest.raises(Wrong, match="after its end was confirmed"):
        table.deliver(7, "one", 2)
    with pytest.raises(Wrong, match="after delivery 2 was released"):
        table.deliver(8, "one", 2)


def test_only_the_member_that_holds_a_record_may_acknowledge_it(table: Table) -> None:
    late = table.deliver(7, "one")
    table.now_s += LOCK_S
    table.deliver(7, "other", 2)

    with pytest.raises(Wrong, match=r"ACCEPT of 7 by one .* is accepted, and other .* has it"):
        table.acknowledge(late, ACCEPT)


def test_an_acknowledgement_of_a_record_that_has_ended_may_be_ignored(table: Table) -> None:
    late = table.deliver(7, "one")
    table.now_s += LOCK_S
    table.acknowledge(table.deliver(7, "other", 2), ACCEPT)

    table.acknowledge(late, RELEASE)


def test_first_deliveries_are_in_order(table: Table) -> None:
    table.deliver(7, "one")

    with pytest.raises(Wrong, match="6 is delivered for the first time after 7"):
        table.deliver(6, "other")


def test_no_record_is_passed_before_its_end(table: Table) -> None:
    table.acknowledge(table.deliver(7, "one"), ACCEPT)
    table.deliver(8, "one")
    known = {offset: b"%d" % offset for offset in (7, 8, 9)}

    table.partition.began_at(8, known)
    with pytest.raises(Wrong, match="8 is passed, and was last delivered to one"):
        table.partition.began_at(9, known)
    with pytest.raises(Wrong, match="went back: 8 to 6"):
        table.partition.began_at(6, known)
    with pytest.raises(Wrong, match="9 is passed and was never delivered"):
        table.partition.compare({9: b"9"})


def test_a_record_that_was_delivered_as_often_as_it_may_is_passed() -> None:
    table = Table(deliveries_max=2)
    table.acknowledge(table.deliver(7, "one"), RELEASE)
    table.acknowledge(table.deliver(7, "other", 2), RELEASE)

    table.partition.compare({7: b"7"})


def test_a_delivered_record_is_the_one_in_the_log(table: Table) -> None:
    table.acknowledge(table.deliver(7, "one"), ACCEPT)

    with pytest.raises(Wrong, match="7 was delivered as b'7' and is b'x'"):
        table.partition.compare({7: b"x"})
