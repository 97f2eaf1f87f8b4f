"""Share groups on a node with short locks and few sessions."""

from __future__ import annotations

from ..share_partitions import ACCEPT, RENEW, Member, add, configure, fetched, share, start_member
from ..talk import Talk, scenario


@scenario
def locks_run_out(talk: Talk) -> None:
    topic, group = share(talk)
    configure(talk, group, record_lock_duration_ms=1000)
    add(talk, topic, 3)
    ann, ben = start_member(talk, group, topic), start_member(talk, group, topic, "ben")
    fetched(ann, "with a lock of a second")
    fetched(ben, "after the lock of ann")
    ann.acknowledge("a renewal too late", [(0, 2, [RENEW])], is_renew_ack=True)
    ann.acknowledge("too late", [(0, 2, [ACCEPT])])
    ben.acknowledge("in time", [(0, 2, [ACCEPT])])
    for member in (ann, ben):  # with its connection, Apache Kafka ends one session only
        member.fetch("the end", silent=True, epoch=-1)


@scenario
def there_are_only_so_many_sessions(talk: Talk) -> None:
    topic, group = share(talk)
    add(talk, topic, 1)
    ann, ben = start_member(talk, group, topic), start_member(talk, group, topic, "ben")
    eve = Member(talk, group, topic, "eve")
    eve.fetch("no session is left", max_wait_ms=100)
    eve.acknowledge("without a session", [(0, 0, [ACCEPT])], epoch=1)
    again = Member(talk, group, topic)
    again.fetch("a session of its own is replaced", max_records=0)
    ben.fetch("the end of another", epoch=-1)
    eve.fetch("a session", max_records=0)
    fetched(eve, "records")
    assert ann.epoch
