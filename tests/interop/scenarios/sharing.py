"""Share groups at the leader of a partition: records acquired and acknowledged, rightly and wrongly."""

from __future__ import annotations

import time

from barnabas.protocol import ApiKey

from ..requests import batch, produce
from ..share_partitions import (
    ACCEPT,
    FINAL,
    GAP,
    RECORD_LIMIT,
    REJECT,
    RELEASE,
    RENEW,
    UNKNOWN,
    Member,
    add,
    configure,
    fetched,
    initialize,
    patiently,
    share,
    start_member,
)
from ..talk import Talk, scenario
from ..transacting import Transacting


@scenario
def records_are_acquired_and_accepted(talk: Talk) -> None:
    for version in (1, 2):
        topic, group = share(talk, f"v{version}")
        add(talk, topic, 3, 2)
        member = start_member(talk, group, topic)
        fetched(member, "all", version=version)
        member.fetch("nothing left", version=version)
        member.acknowledge("the first batch", [(0, 2, [ACCEPT])], version=version)
        member.fetch("the second batch, piggy-backed", {0: [(3, 4, [ACCEPT])]}, version=version)
        add(talk, topic, 1)
        fetched(member, "the next", version=version)
        member.fetch("the end", {0: [(5, 5, [ACCEPT])]}, epoch=FINAL, version=version)
        member.fetch("no session", version=version)


@scenario
def records_come_back_after_release_and_not_after_reject(talk: Talk) -> None:
    topic, group = share(talk)
    add(talk, topic, 4, 4)
    member = start_member(talk, group, topic)
    fetched(member)
    member.acknowledge("mixed", [(0, 3, [ACCEPT, RELEASE, REJECT, GAP]), (4, 7, [RELEASE])])
    fetched(member, "released ones")
    member.acknowledge("one in the middle", [(5, 5, [ACCEPT])])
    member.acknowledge("around it", [(4, 4, [RELEASE]), (6, 7, [RELEASE])])
    fetched(member, "released again")


@scenario
def wrong_acknowledgements_change_nothing(talk: Talk) -> None:
    topic, group = share(talk)
    add(talk, topic, 5, 5, 5)
    ann, ben = start_member(talk, group, topic), start_member(talk, group, topic, "ben")
    fetched(ann, max_records=5)
    fetched(ben, max_records=5)
    for label, acks in (
        ("of another member", [(5, 9, [ACCEPT])]),
        ("partly of another member", [(3, 6, [ACCEPT])]),
        ("not fetched", [(10, 14, [ACCEPT])]),
        ("partly not fetched", [(8, 12, [ACCEPT])]),
        ("far away", [(1000, 1001, [ACCEPT])]),
        ("the wrong way round", [(4, 0, [ACCEPT])]),
        ("not in order", [(3, 4, [ACCEPT]), (0, 1, [ACCEPT])]),
        ("overlapping", [(0, 2, [ACCEPT]), (1, 4, [ACCEPT])]),
        ("one offset twice", [(0, 2, [ACCEPT]), (2, 4, [ACCEPT])]),
        ("no type", [(0, 4, [])]),
        ("too few types", [(0, 4, [ACCEPT, ACCEPT])]),
        ("too many types", [(0, 1, [ACCEPT] * 5)]),
        ("unknown type", [(0, 4, [5])]),
        ("negative type", [(0, 4, [-1])]),
        ("a renewal that is none", [(0, 4, [RENEW])]),
        ("no batch", []),
        ("second one wrong", [(0, 2, [ACCEPT]), (5, 6, [ACCEPT])]),
        ("negative offsets", [(-5, -1, [ACCEPT])]),
        ("from below the start", [(-5, 4, [RELEASE])]),
    ):
        ann.acknowledge(label, acks)
    ann.acknowledge("a renewal in version 1", [(0, 4, [RENEW])], version=1)
    ann.acknowledge("unknown partition", {7: [(0, 4, [ACCEPT])]})
    ann.acknowledge("right", [(0, 4, [ACCEPT])])
    ann.acknowledge("twice", [(0, 4, [ACCEPT])])
    ben.acknowledge("right", [(5, 9, [ACCEPT])])
    ben.acknowledge("twice", [(5, 9, [ACCEPT])])
    fetched(ann, "the rest")
    ann.acknowledge("a part", [(12, 13, [ACCEPT])])
    ann.acknowledge("the part twice", [(12, 12, [ACCEPT])])
    ann.acknowledge("all with the part", [(10, 14, [ACCEPT])])
    ben.acknowledge("another's part", [(10, 10, [ACCEPT])])
    ann.acknowledge("what is left", [(10, 11, [ACCEPT]), (14, 14, [ACCEPT])])


@scenario
def limits_of_a_fetch_count_batches(talk: Talk) -> None:
    topic, group = share(talk)
    add(talk, topic, 3, 4, 5, 6, 7)
    member = start_member(talk, group, topic)
    fetched(member, "one record", max_records=1)
    fetched(member, "in the second batch of two", max_records=6)
    fetched(member, "batches of five", max_records=100, batch_size=5)
    member.fetch("nothing", max_records=10)
    member.fetch("no records wanted", max_records=0)
    member.fetch("no bytes wanted", max_bytes=0)
    member.acknowledge("all back", [(0, 24, [RELEASE])])
    fetched(member, "one record again", max_records=1)
    fetched(member, "ten again", max_records=10)
    fetched(member, "the rest again")


@scenario
def a_strict_limit_cuts_batches(talk: Talk) -> None:
    topic, group = share(talk)
    add(talk, topic, 5, 5, 5)
    ann, ben = start_member(talk, group, topic), start_member(talk, group, topic, "ben")
    fetched(ann, "two of five", max_records=2, share_acquire_mode=RECORD_LIMIT)
    fetched(ben, "the next two", max_records=2, share_acquire_mode=RECORD_LIMIT)
    fetched(ann, "across batches", max_records=4, share_acquire_mode=RECORD_LIMIT)
    fetched(ben, "without a limit")
    ann.acknowledge("back", [(0, 1, [RELEASE])])
    fetched(ben, "one", max_records=1, share_acquire_mode=RECORD_LIMIT)
    fetched(ben, "the other", max_records=5, share_acquire_mode=RECORD_LIMIT)


@scenario
def sessions_have_epochs(talk: Talk) -> None:
    topic, group = share(talk, partitions=2)
    add(talk, topic, 2)
    member = Member(talk, group, topic, partitions=2)
    member.fetch("no session", epoch=1)
    member.fetch("no session to end", epoch=FINAL)
    member.acknowledge("no session", [(0, 1, [ACCEPT])], epoch=1)
    member.acknowledge("no session to end", [(0, 1, [ACCEPT])], epoch=FINAL)
    member.acknowledge("the first epoch", [(0, 1, [ACCEPT])], epoch=0)
    member.fetch("acknowledgements in the first", {0: [(0, 1, [ACCEPT])]}, epoch=0)
    member.fetch("begin", max_records=0)
    member.fetch("too large", epoch=7)
    member.fetch("the same again", epoch=0, max_records=0, partitions=[0, 1])
    member.fetch("a gap of one", epoch=2)
    member.acknowledge("wrong epoch", [(0, 1, [ACCEPT])], epoch=9)
    fetched(member, "right")
    add(talk, topic, 1, partition=1)
    fetched(member, "the other partition")
    member.acknowledge("the end", {0: [(0, 0, [ACCEPT])], 1: [(0, 0, [ACCEPT])]}, epoch=FINAL)
    member.acknowledge("after the end", [(1, 1, [ACCEPT])])
    again = start_member(talk, group, topic, partitions=2)
    fetched(again, "what was released")


@scenario
def a_first_epoch_keeps_what_the_member_has(talk: Talk) -> None:
    topic, group = share(talk)
    add(talk, topic, 2, 2)
    member = start_member(talk, group, topic)
    fetched(member, max_records=2)
    again = start_member(talk, group, topic)
    fetched(again, "only the rest")
    again.acknowledge("both", [(0, 3, [ACCEPT])])


@scenario
def members_and_groups_must_be_named(talk: Talk) -> None:
    topic, group = share(talk)
    for label, name in (("no member", ""), ("a long member", "m" * 37), ("null", None)):
        member = Member(talk, group, topic, name or "")
        member.name = name  # type: ignore[assignment]
        member.fetch(label, partitions=[0])
        member.acknowledge(label, [(0, 0, [ACCEPT])], epoch=1)
    member = Member(talk, group, topic)
    member.group = None  # type: ignore[assignment]
    member.fetch("no group", partitions=[0])
    member.acknowledge("no group", [(0, 0, [ACCEPT])], epoch=1)
    talk.topic_ids["unknown"] = UNKNOWN
    member = Member(talk, group, "unknown")
    member.fetch("unknown topic", partitions=[0])
    member.acknowledge("unknown topic", [(0, 0, [ACCEPT])])
    member = Member(talk, group, topic)
    member.fetch("unknown partition", partitions=[5])
    member.fetch("again")


@scenario
def locks_are_renewed(talk: Talk) -> None:
    topic, group = share(talk)
    add(talk, topic, 3, 3)
    member = start_member(talk, group, topic)
    fetched(member)
    none = {"max_wait_ms": 0, "min_bytes": 0, "max_bytes": 0, "max_records": 0}
    member.acknowledge("renew", [(0, 2, [RENEW])], is_renew_ack=True)
    member.acknowledge("renew and accept", [(0, 2, [RENEW, ACCEPT, RENEW])], is_renew_ack=True)
    member.acknowledge("renew what was accepted", [(1, 1, [RENEW])], is_renew_ack=True)
    member.fetch("renew", {0: [(3, 5, [RENEW])]}, is_renew_ack=True, **none)
    member.fetch("renew with limits", {0: [(3, 5, [RENEW])]}, is_renew_ack=True)
    member.fetch("renew without saying so", {0: [(3, 5, [RENEW])]})
    member.acknowledge("accept", [(0, 0, [ACCEPT]), (2, 5, [ACCEPT])])


@scenario
def deliveries_are_counted(talk: Talk) -> None:
    topic, group = share(talk)
    add(talk, topic, 8)
    member = start_member(talk, group, topic)
    for number in range(1, 12):
        answer = fetched(member, f"delivery {number}")
        acquired = [
            (each["first_offset"], each["last_offset"], [RELEASE])
            for topic_answer in answer["responses"]
            for data in topic_answer["partitions"]
            for each in data["acquired_records"]
        ]
        if acquired:
            member.acknowledge("back", acquired)
    add(talk, topic, 2)
    fetched(member, "later records")


@scenario
def partitions_come_and_go(talk: Talk) -> None:
    topic, group = share(talk, partitions=3)
    for partition in range(3):
        add(talk, topic, 2, partition=partition)
    member = Member(talk, group, topic)
    member.fetch("begin with one", max_records=0)
    fetched(member, "one", max_records=2)
    fetched(member, "another one", partitions=[1], max_records=2)
    ids = talk.topic_ids[topic]
    fetched(
        member,
        "instead of the first",
        {0: [(0, 1, [ACCEPT])]},
        partitions=[2],
        forgotten_topics_data=[{"topic_id": ids, "partitions": [0]}],
    )
    member.fetch("nothing new", {1: [(0, 1, [ACCEPT])], 2: [(0, 1, [ACCEPT])]})
    member.fetch("nothing at all")


@scenario
def groups_begin_where_their_setting_says(talk: Talk) -> None:
    for reset in ("earliest", "latest", "by_duration:PT1H"):
        topic, group = share(talk, reset.partition(":")[0].replace("_", "-"), start=-1)
        configure(talk, group, auto_offset_reset=reset)
        now_ms = int(time.time() * 1000)
        talk.silently(ApiKey.PRODUCE, 9, **produce(talk, topic, batch(b"old", b"older")))
        talk.silently(ApiKey.PRODUCE, 9, **produce(talk, topic, batch(b"now", time_ms=now_ms)))
        member = start_member(talk, group, topic)
        member.fetch("loads", silent=True, max_wait_ms=1000, min_bytes=100_000, max_records=1, batch_size=1)
        talk.silently(ApiKey.PRODUCE, 9, **produce(talk, topic, batch(b"new", time_ms=now_ms)))
        found = fetched(member, silent=True)
        first = found["responses"][0]["partitions"][0]["acquired_records"][0]
        talk.note(reset, {"first_offset": first["first_offset"]})


@scenario
def only_so_many_records_are_locked(talk: Talk) -> None:
    topic, group = share(talk)
    configure(talk, group, partition_max_record_locks=100)
    add(talk, topic, *[30] * 6)
    ann, ben = start_member(talk, group, topic), start_member(talk, group, topic, "ben")
    fetched(ann, "as many as may be", max_records=1000)
    ben.fetch("nothing is left")
    ann.acknowledge("some in the middle", [(30, 59, [RELEASE])])
    fetched(ben, "those", max_records=10)
    ben.fetch("nothing is left")
    ann.acknowledge("the first", [(0, 29, [ACCEPT])])
    fetched(ben, "as many new ones", max_records=1000)
    ann.acknowledge("the rest of the first", [(60, 119, [ACCEPT])])
    ben.fetch("the start does not move")


@scenario
def few_deliveries_are_enough(talk: Talk) -> None:
    topic, group = share(talk)
    configure(talk, group, delivery_count_limit=2)
    add(talk, topic, 4)
    member = start_member(talk, group, topic)
    for number in (1, 2):
        fetched(member, f"delivery {number}")
        member.acknowledge("back", [(0, 3, [RELEASE])])
    add(talk, topic, 1)
    fetched(member, "the next")


@scenario
def many_deliveries_get_smaller(talk: Talk) -> None:
    topic, group = share(talk)
    configure(talk, group, delivery_count_limit=10)
    add(talk, topic, 40, 3)
    member = start_member(talk, group, topic)
    for number in range(1, 30):
        answer = fetched(member, f"delivery {number}", max_records=100)
        data = answer["responses"][0]["partitions"][0]["acquired_records"]
        back = [(each["first_offset"], each["last_offset"], [RELEASE]) for each in data]
        member.acknowledge("back", back)


@scenario
def renewals_can_be_refused(talk: Talk) -> None:
    topic, group = share(talk)
    configure(talk, group, renew_acknowledge_enable="false")
    add(talk, topic, 3)
    member = start_member(talk, group, topic)
    fetched(member)
    member.acknowledge("renew", [(0, 2, [RENEW])], is_renew_ack=True)
    member.acknowledge("renew one", [(0, 2, [ACCEPT, RENEW, ACCEPT])], is_renew_ack=True)
    member.acknowledge("accept", [(0, 2, [ACCEPT])])


@scenario
def groups_that_read_committed_records_get_no_others(talk: Talk) -> None:
    topic, group = share(talk)
    configure(talk, group, isolation_level="read_committed")
    everything_else = talk.name("uncommitted-group")
    initialize(talk, topic, everything_else)
    producer = Transacting(talk, "tx")
    producer.write(topic, b"aborted", b"aborted")
    add(talk, topic, 2)
    producer.end(commit=False, topics=(topic,))
    producer.write(topic, b"committed")
    producer.end(commit=True, topics=(topic,))
    producer.write(topic, b"open")
    add(talk, topic, 1)
    ann, ben = start_member(talk, group, topic), start_member(talk, everything_else, topic, "ben")
    fetched(ann, "committed")
    fetched(ben, "all")
    ann.fetch("nothing more")
    ann.acknowledge("of an aborted transaction", [(0, 1, [ACCEPT])])
    ann.acknowledge(
        "all that was acquired", [(2, 3, [ACCEPT]), (4, 4, [GAP]), (5, 5, [ACCEPT]), (6, 6, [GAP])]
    )
    producer.end(commit=True, topics=(topic,))
    fetched(ann, "the rest")


@scenario
def deleted_records_are_not_delivered(talk: Talk) -> None:
    topic, group = share(talk)
    add(talk, topic, 5, 5, 5)
    ann, ben = start_member(talk, group, topic), start_member(talk, group, topic, "ben")
    fetched(ann, max_records=5)
    fetched(ben, max_records=5)
    ann.acknowledge("back", [(0, 4, [RELEASE])])
    ben.acknowledge("one", [(5, 5, [ACCEPT])])
    partitions = [{"partition_index": 0, "offset": 8}]
    talk.silently(
        ApiKey.DELETE_RECORDS, 2, topics=[{"name": topic, "partitions": partitions}], timeout_ms=30_000
    )
    patiently(ann, "what is left")  # Apache Kafka's first response is empty
    ben.acknowledge("deleted ones", [(6, 7, [ACCEPT])])
    ben.acknowledge("deleted ones and others", [(6, 9, [ACCEPT])])
    ann.acknowledge("the rest", [(10, 14, [ACCEPT])])
    add(talk, topic, 1)
    fetched(ann, "the next")


@scenario
def a_lost_connection_releases_what_its_member_has(talk: Talk) -> None:
    topic, group = share(talk)
    add(talk, topic, 3)
    ann = start_member(talk, group, topic)
    fetched(ann)
    ann.acknowledge("one", [(0, 0, [ACCEPT])])
    talk.reconnect()
    ann.fetch("the session is gone", epoch=2)
    ben = start_member(talk, group, topic, "ben")
    fetched(ben, "what ann had")
