"""Share groups with callers that have only some rights: what is refused, where, and what is left out."""

from __future__ import annotations

from barnabas.security.acls.vocabulary import Operation

from ..members import group
from ..rights import GROUP, TOPIC, acl, grant
from ..talk import Talk, scenario
from .group_share import Sharer, alter, delete_offsets, describe, describe_offsets


def ask_everything(talk: Talk, who: str, name: str, topic: str, hidden: str) -> None:
    member = Sharer(talk, name, who, [topic])
    member.id = "bob"
    for topics in ([hidden], [topic, hidden], [topic]):
        member.beat(f"joins with {len(topics)}, {topics[0][-6:]}", 0, subscribed_topic_names=topics)
    member.beat("leaves", -1)
    describe(talk, f"{who} asks", name, talk.name("unknown"), include_authorized_operations=True)
    describe_offsets(talk, f"{who} asks for what is hidden", name, {hidden: [0, 1]})
    alter(talk, f"{who} alters what is hidden", name, {hidden: {0: 1, 1: 2}})
    delete_offsets(talk, f"{who} deletes", name, hidden)
    delete_offsets(talk, f"{who} deletes more", name, hidden, talk.name("missing"))


@scenario
def members_and_administrators_need_their_rights(talk: Talk) -> None:
    talk.become("admin")
    topic, hidden = talk.topic(partitions=1), talk.topic("hidden", partitions=2)
    name = group(talk)
    member = Sharer(talk, name, "admin", [topic])
    member.quietly(0, subscribed_topic_names=[topic])
    member.quietly(-1)
    talk.become("bob")
    ask_everything(talk, "nobody", name, topic, hidden)
    grant(talk, acl("bob", Operation.READ, GROUP, name))
    talk.become("bob")
    ask_everything(talk, "a reader of the group", name, topic, hidden)
    describe_offsets(talk, "all of them, without a right to their topics", name)
    grant(talk, acl("bob", Operation.DELETE, GROUP, name), acl("bob", Operation.READ, TOPIC, topic))
    talk.become("bob")
    ask_everything(talk, "a reader of a topic", name, topic, hidden)
