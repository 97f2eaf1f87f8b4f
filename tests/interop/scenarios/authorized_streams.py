"""Streams groups by right: who may join, which topics may be seen, and who creates internal topics."""

from __future__ import annotations

from barnabas.protocol import ApiKey
from barnabas.security.acls.vocabulary import Operation

from ..rights import CLUSTER, GROUP, TOPIC, acl, grant
from ..streams_members import DESCRIBE, StreamsMember, settle, streams_group, word_count
from ..talk import Talk, scenario


def described(talk: Talk, user: str, *names: str) -> None:
    talk.become(user)
    ids = {"group_ids": list(names), "include_authorized_operations": True}
    talk.ask(f"{user} describes", DESCRIBE, 0, **ids)


@scenario
def a_topology_by_right(talk: Talk) -> None:
    talk.become("admin")
    source = talk.topic(partitions=2)
    name = streams_group(talk)
    one = StreamsMember(talk, name, "one", word_count(talk, source))
    talk.become("bob")
    one.joins("joins without any right")
    grant(talk, acl("alice", Operation.READ, GROUP, name), acl("alice", Operation.DESCRIBE, TOPIC, source))
    talk.become("alice")
    one.joins("joins without sight of internal topics")
    grant(talk, acl("alice", Operation.DESCRIBE, TOPIC, talk.prefix, prefixed=True))
    talk.become("alice")
    one.joins("joins and may not create")
    grant(talk, acl("alice", Operation.CREATE, TOPIC, talk.name("words")))
    talk.become("alice")
    one.beats("may create one of two")
    grant(talk, acl("alice", Operation.CREATE, CLUSTER))
    talk.become("alice")
    one.waits_for_topics()
    settle(one)
    grant(
        talk,
        acl("carol", Operation.DESCRIBE, GROUP, name),
        acl("carol", Operation.DESCRIBE, TOPIC, source),
    )
    for user in ("alice", "carol", "bob"):
        described(talk, user, name, talk.name("other"))
    talk.become("bob")
    one.beats("beats without any right")
    one.leaves("leaves without any right")
    talk.become("alice")
    one.leaves()
    talk.ask("deletes without right", ApiKey.DELETE_GROUPS, 2, groups_names=[name])
