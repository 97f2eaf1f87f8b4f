"""Classic groups of several members: joining together, being paused, replaced, late, and gone."""

from __future__ import annotations

from barnabas.protocol import ApiKey

from ..members import (
    Member,
    describe,
    everyone_joins,
    everyone_syncs,
    group,
    join_body,
    protocols,
    wait_for_state,
)
from ..talk import Talk, scenario

JOIN = ApiKey.JOIN_GROUP
SHORT_MS = 6_000


@scenario
def a_second_and_a_third_member(talk: Talk) -> None:
    for version in (2, 4, 5, 7, 9):
        name = group(talk, f"v{version}")
        one, two, three = (Member(talk, name, label) for label in ("one", "two", "three"))
        one.join(version=version)
        one.sync(assignments={one.id: b"all"})
        two.send_join(version=version)
        wait_for_state(talk, name, "PreparingRebalance", 2)
        describe(talk, "two came", name)
        one.beat("beats while two waits")
        one.sync("syncs while two waits")
        one.commit("commits while two waits", talk.name("nowhere"), 5)
        one.join("joins again", version)
        two.joined()
        describe(talk, "both joined", name)
        two.send_sync()
        one.beat("beats before it assigned")
        everyone_syncs([one], one)
        two.answer()
        three.send_join(version=version)
        wait_for_state(talk, name, "PreparingRebalance", 3)
        everyone_joins([one, two], version=version)
        three.joined()
        everyone_syncs([one, two, three], one)
        describe(talk, "three", name)
        two.leave()
        one.beat("beats after two left")
        three.beat("beats after two left")
        everyone_joins([one, three], version=version)
        everyone_syncs([one, three], one)
        one.leave("the leader leaves")
        three.beat("beats after the leader left")
        three.join("leads", version)
        three.sync(assignments={three.id: b"everything"})
        describe(talk, "one is left", name)
        for member in (one, two, three):
            member.close()


@scenario
def a_protocol_that_all_speak_is_chosen(talk: Talk) -> None:
    name = group(talk)
    one = Member(talk, name, "one", protocols=protocols("a", "b", "c"))
    two = Member(talk, name, "two", protocols=protocols("c", "b"))
    three = Member(talk, name, "three", protocols=protocols("b", "c", "d"))
    one.join()
    two.send_join()
    wait_for_state(talk, name, "PreparingRebalance", 2)
    one.join()
    two.joined()
    three.send_join()
    wait_for_state(talk, name, "PreparingRebalance", 3)
    everyone_joins([one, two])
    three.joined()
    describe(talk, "the vote of three", name)
    talk.ask("speaks none of them", JOIN, 9, **join_body(name, protocols=protocols("a", "d")))
    for member in (one, two, three):
        member.close()


@scenario
def a_follower_that_joins_again_unchanged_is_answered_at_once(talk: Talk) -> None:
    name = group(talk)
    one, two = Member(talk, name, "one"), Member(talk, name, "two")
    one.join()
    two.send_join()
    wait_for_state(talk, name, "PreparingRebalance", 2)
    one.join()
    two.joined()
    two.join("joins twice while the group syncs")
    everyone_syncs([one, two], one)
    two.join("joins unchanged a stable group")
    two.send_join("joins changed", protocols=protocols("range", metadata=b"new "))
    wait_for_state(talk, name, "PreparingRebalance", 2)
    one.join()
    two.joined()
    one.close(), two.close()


@scenario
def a_member_that_does_not_come_back_in_time(talk: Talk) -> None:
    """The rebalance timeout ends the waiting; who is late is out."""
    name = group(talk)
    one = Member(talk, name, "one", rebalance_timeout_ms=SHORT_MS)
    two = Member(talk, name, "two", rebalance_timeout_ms=SHORT_MS)
    one.join()
    one.sync(assignments={one.id: b"all"})
    two.join("joins, and one never comes")
    describe(talk, "one is out", name)
    one.beat("too late")
    one.join("too late")
    one.close(), two.close()


@scenario
def a_member_that_says_nothing(talk: Talk) -> None:
    """The session timeout ends its membership."""
    name = group(talk)
    one = Member(talk, name, "one", session_timeout_ms=SHORT_MS)
    one.join()
    one.sync(assignments={one.id: b"all"})
    wait_for_state(talk, name, "Empty", 0)
    one.beat("too late")
    describe(talk, "nobody is left", name)
    one.close()


@scenario
def members_that_join_and_never_sync(talk: Talk) -> None:
    name = group(talk)
    one = Member(talk, name, "one", rebalance_timeout_ms=SHORT_MS, session_timeout_ms=SHORT_MS)
    one.join()
    describe(talk, "it joined", name)
    wait_for_state(talk, name, "Empty", 0)
    one.sync("too late", assignments={one.id: b"all"})
    one.close()


@scenario
def a_static_member_is_replaced(talk: Talk) -> None:
    """Its successor gets its part without a rebalance; the old one is fenced."""
    for version in (5, 7, 9):
        name = group(talk, f"v{version}")
        both = protocols("range", "sticky")
        one = Member(talk, name, "one", group_instance_id="i1", protocols=both)
        two = Member(talk, name, "two", group_instance_id="i2", protocols=both)
        one.join(version=version)
        one.sync(assignments={one.id: b"all"})
        two.send_join(version=version)
        wait_for_state(talk, name, "PreparingRebalance", 2)
        one.join(version=version)
        two.joined()
        everyone_syncs([one, two], one)
        again = Member(talk, name, "two, restarted", group_instance_id="i2", protocols=both)
        again.join(version=version)
        again.sync("asks for its part")
        two.beat("the old two")
        two.sync("the old two")
        two.commit("the old two", talk.name("nowhere"), 1)
        two.leave("the old two")
        two.join("the old two", version)
        one.beat("noticed nothing")
        leader = Member(talk, name, "one, restarted", group_instance_id="i1", protocols=both)
        leader.join(version=version)
        leader.sync("asks for its part")
        again.beat("noticed nothing")
        describe(talk, "the same two", name)
        changed = Member(talk, name, "two, changed", group_instance_id="i2")
        new = protocols("range", "sticky", metadata=b"new ")
        changed.join("joins with other metadata", version, protocols=new)
        changed.send_join("joins with another protocol", version, protocols=protocols("sticky"))
        wait_for_state(talk, name, "PreparingRebalance", 2)
        leader.beat("has to join again")
        leader.join(version=version)
        changed.joined()
        for member in (one, two, again, leader, changed):
            member.close()


@scenario
def a_static_member_waits_twice(talk: Talk) -> None:
    """The same instance joins from two places: the first one is fenced while it waits."""
    name = group(talk)
    one = Member(talk, name, "one", group_instance_id="i1")
    one.join()
    one.sync(assignments={one.id: b"all"})
    two = Member(talk, name, "two", group_instance_id="i2")
    two.send_join("joins")
    wait_for_state(talk, name, "PreparingRebalance", 2)
    twin = Member(talk, name, "two's twin", group_instance_id="i2")
    twin.send_join("joins")
    two.joined()
    one.join()
    twin.joined()
    everyone_syncs([one, twin], one)
    for member in (one, two, twin):
        member.close()


@scenario
def a_promised_member_is_waited_for(talk: Talk) -> None:
    """Who was told an id may come any moment: a rebalance waits, until they say that they do not come."""
    name = group(talk)
    one = Member(talk, name, "one")
    one.join()
    one.sync(assignments={one.id: b"all"})
    promised = talk.ask("asks for an id", JOIN, 9, **join_body(name))["member_id"]
    one.beat("has no reason to join again")
    one.send_join("joins changed", protocols=protocols("range", metadata=b"changed "))
    wait_for_state(talk, name, "PreparingRebalance", 1)
    talk.ask("does not come", ApiKey.LEAVE_GROUP, 5, group_id=name, members=[{"member_id": promised}])
    one.joined()
    describe(talk, "one member", name)
    one.close()
