"""Classic groups of one member: every version of their requests, and every way to be wrong in them."""

from __future__ import annotations

from barnabas.protocol import ApiKey

from ..members import Member, describe, group, join_body, protocols
from ..requests import versions
from ..talk import Talk, scenario

JOIN, SYNC, BEAT, LEAVE = ApiKey.JOIN_GROUP, ApiKey.SYNC_GROUP, ApiKey.HEARTBEAT, ApiKey.LEAVE_GROUP


@scenario
def a_life_in_every_version(talk: Talk) -> None:
    for version in versions(JOIN):
        one = Member(talk, group(talk, f"v{version}"), "one")
        one.join(version=version)
        describe(talk, "after joining", one.name)
        one.sync(version=min(version, 5), assignments={one.id: b"everything there is"})
        describe(talk, "after syncing", one.name)
        one.beat(version=min(version, 4))
        one.join("joins again, changed", version, protocols=protocols("range", "sticky"))
        one.sync(version=min(version, 5), assignments={one.id: b"other things"})
        one.join("joins again, the same", version, protocols=protocols("range", "sticky"))
        one.sync(version=min(version, 5), assignments={one.id: b"again other things"})
        one.leave(version=min(version, 5))
        describe(talk, "after leaving", one.name)
        one.close()


@scenario
def joins_that_are_wrong(talk: Talk) -> None:
    name = group(talk)
    for version in versions(JOIN):
        for label, body in {
            "no group": join_body(""),
            "a member that nobody knows": join_body(name, "nobody"),
            "a session too short": join_body(name, session_timeout_ms=5_999),
            "a session too long": join_body(name, session_timeout_ms=1_800_001),
            "a session of no time": join_body(name, session_timeout_ms=0),
            "a session of negative time": join_body(name, session_timeout_ms=-1),
            "no protocols": join_body(name, protocols=[]),
            "no protocol type": join_body(name, protocol_type=""),
            "neither": join_body(name, protocol_type="", protocols=[]),
        }.items():
            talk.ask(label, JOIN, version, **body)
        describe(talk, f"the group nobody could join in v{version}", name)


@scenario
def joins_that_do_not_fit_the_group(talk: Talk) -> None:
    name = group(talk)
    one = Member(talk, name, "one", protocols=protocols("range", "roundrobin"))
    one.join()
    one.sync(assignments={one.id: b"all"})
    for version in versions(JOIN):
        for label, fields in {
            "another protocol type": {"protocol_type": "connect"},
            "no protocol in common": {"protocols": protocols("sticky", "cooperative-sticky")},
            "no protocols": {"protocols": []},
            "a member that nobody knows": {"member_id": "nobody"},
        }.items():
            talk.ask(label, JOIN, version, **join_body(name, **fields))
        for label, fields in {
            "another protocol type": {"protocol_type": "connect"},
            "no protocols": {"protocols": []},
        }.items():
            talk.ask(f"the member itself: {label}", JOIN, version, **join_body(name, one.id, **fields))
    one.beat("is still there")
    describe(talk, "and alone", name)
    one.close()


@scenario
def names_of_members_that_are_promised(talk: Talk) -> None:
    """From version 4 on a member is told its id and joins with it; the promise holds for that group only."""
    for version in (4, 5, 9):
        name, other = group(talk, f"v{version}"), talk.name(f"other {version}")
        promised = talk.ask("asks", JOIN, version, **join_body(name))["member_id"]
        describe(talk, "a promise is no member", name)
        talk.ask("at another group", JOIN, version, **join_body(other, promised))
        body = {"group_id": name, "generation_id": 0, "member_id": promised}
        talk.ask("beats before it joins", BEAT, 4, **body)
        talk.ask("syncs before it joins", SYNC, 5, **body)
        talk.ask("leaves before it joins", LEAVE, 5, group_id=name, members=[{"member_id": promised}])
        talk.ask("joins after it left", JOIN, version, **join_body(name, promised))


@scenario
def members_without_instance_beside_static_ones(talk: Talk) -> None:
    for version in (5, 7, 9):
        name = group(talk, f"v{version}")
        fields = {"group_instance_id": "first"}
        talk.ask("static, an id that nobody knows", JOIN, version, **join_body(name, "nobody", **fields))
        one = Member(talk, name, "one", **fields)
        one.join(version=version)
        one.sync(assignments={one.id: b"all of it"})
        talk.ask("its instance, another id", JOIN, version, **join_body(name, "nobody", **fields))
        talk.ask("its id, another instance", JOIN, version, **join_body(name, one.id, group_instance_id="x"))
        beat = {"group_id": name, "generation_id": one.generation}
        for label, member, instance in (
            ("its instance, another id", "nobody", "first"),
            ("its id, another instance", one.id, "second"),
            ("its id, no instance", one.id, None),
            ("no id, its instance", "", "first"),
        ):
            who = {"member_id": member, "group_instance_id": instance}
            talk.ask(label, BEAT, 4, **beat, **who)
            talk.ask(label, SYNC, 5, **beat, **who)
        one.close()


@scenario
def syncs_that_are_wrong(talk: Talk) -> None:
    name = group(talk)
    one = Member(talk, name, "one")
    one.join()
    for version in versions(SYNC):
        one.sync("generation too high", version, generation_id=one.generation + 1)
        one.sync("generation too low", version, generation_id=one.generation - 1)
        one.sync("negative generation", version, generation_id=-1)
        one.sync("a member that nobody knows", version, member_id="nobody")
        one.sync("no member", version, member_id="")
        one.sync("no group", version, group_id="")
        one.sync("a group that is not there", version, group_id=talk.name("missing"))
        one.sync("another protocol type", version, protocol_type="connect")
        one.sync("another protocol", version, protocol_name="sticky")
        one.sync("a protocol type only", version, protocol_name=None)
        one.sync("a protocol only", version, protocol_type=None)
        describe(talk, "still in want of its assignment", name) if version == 5 else None
        one.sync("rightly", version, assignments={one.id: b"mine", "nobody": b"somebody else's"})
        one.sync("again, without the assignment", version)
        one.sync("again, with another one", version, assignments={one.id: b"changed"})
        one.join("joins again, changed", protocols=protocols("range", metadata=b"%d" % version))
    one.close()


@scenario
def heartbeats_that_are_wrong(talk: Talk) -> None:
    name = group(talk)
    one = Member(talk, name, "one")
    one.join()
    for version in versions(BEAT):
        one.beat("before it has an assignment", version)
        one.beat("before, a wrong generation", version, generation_id=7)
    one.sync(assignments={one.id: b"mine"})
    for version in versions(BEAT):
        one.beat("rightly", version)
        one.beat("generation too high", version, generation_id=one.generation + 1)
        one.beat("generation too low", version, generation_id=one.generation - 1)
        one.beat("negative generation", version, generation_id=-1)
        one.beat("a member that nobody knows", version, member_id="nobody")
        one.beat("no member", version, member_id="")
        one.beat("no group", version, group_id="")
        one.beat("a group that is not there", version, group_id=talk.name("missing"))
    one.leave()
    one.beat("after it left")
    one.close()


@scenario
def leaving_wrongly(talk: Talk) -> None:
    name = group(talk)
    one = Member(talk, name, "one")
    for version in versions(LEAVE):
        one.id = ""
        one.join()
        one.sync(assignments={one.id: b"mine"})
        for label, group_id, member in (
            ("a group that is not there", talk.name("missing"), one.id),
            ("no group", "", one.id),
            ("a member that nobody knows", name, "nobody"),
            ("no member", name, ""),
        ):
            members = [{"member_id": member}]
            talk.ask(label, LEAVE, version, group_id=group_id, member_id=member, members=members)
        if version >= 3:
            strangers = [
                {"member_id": "", "group_instance_id": "nobody"},
                {"member_id": one.id, "group_instance_id": "nobody"},
                {"member_id": "nobody", "group_instance_id": "nobody"},
                {"member_id": "nobody", "group_instance_id": None},
            ]
            talk.ask("four strangers", LEAVE, version, group_id=name, members=strangers)
            talk.ask("nobody at all", LEAVE, version, group_id=name, members=[])
            talk.ask("the same twice", LEAVE, version, group_id=name, members=[{"member_id": one.id}] * 2)
        else:
            one.leave(version=version)
        one.leave("leaves once more", version)
        describe(talk, "empty", name)
    one.close()


@scenario
def static_members_leave_by_their_instance(talk: Talk) -> None:
    for version in (3, 4, 5):
        name = group(talk, f"v{version}")
        one = Member(talk, name, "one", group_instance_id="first")
        one.join()
        one.sync(assignments={one.id: b"mine"})
        wrong = {"member_id": "nobody", "group_instance_id": "first"}
        talk.ask("another id", LEAVE, version, group_id=name, members=[wrong])
        right = {"member_id": "", "group_instance_id": "first"}
        talk.ask("by instance", LEAVE, version, group_id=name, members=[right, wrong])
        one.beat("after it was removed")
        describe(talk, "empty", name)
        one.close()
