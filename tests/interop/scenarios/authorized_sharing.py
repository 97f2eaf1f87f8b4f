"""Share fetches and acknowledgements of callers that may not."""

from __future__ import annotations

from barnabas.security.acls.vocabulary import Operation

from ..rights import GROUP, acl, grant
from ..share_partitions import ACCEPT, Member, add, share
from ..talk import Talk, scenario


@scenario
def members_need_their_group_and_their_topics(talk: Talk) -> None:
    talk.become("admin")
    topic, group = share(talk)
    add(talk, topic, 2, 2)
    talk.become("bob")
    bob = Member(talk, group, topic, "bob")
    bob.fetch("without rights", partitions=[0])
    bob.acknowledge("without rights", [(0, 1, [ACCEPT])], epoch=1)
    grant(talk, acl("bob", Operation.READ, GROUP, group))
    talk.become("bob")
    bob = Member(talk, group, topic, "bob")
    bob.fetch("with the right to read the group", partitions=[0])
    bob.fetch("again")
    bob.acknowledge("with the right to read the group", [(0, 1, [ACCEPT])])
    bob.fetch("with acknowledgements", {0: [(0, 1, [ACCEPT])]})
