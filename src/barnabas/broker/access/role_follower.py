"""Follows the topic that holds the bindings of roles, and turns them into rules of this node's authorizer.

In: the node's metadata, the topic's records, read as a client of the brokers. Out: rules. Runs only with
`barnabas.roles.enable`. A node that cannot read the topic keeps its rules, says so in its log, and tries
again. Until the bindings are read for the first time, a resource that no rule covers is closed: a role
may cover it. Does not know: which rights a role has.
"""

from __future__ import annotations

import asyncio
import logging
from typing import TYPE_CHECKING

from barnabas.broker.access.own_client import own_client
from barnabas.broker.access.retried_task import RetriedTask
from barnabas.client.role_topic import Changes, follow
from barnabas.security.acls.role_records import Bindings
from barnabas.security.acls.roles import Binding, rules_of
from barnabas.security.acls.rules import Rule
from barnabas.security.acls.vocabulary import ROLES_TOPIC

if TYPE_CHECKING:
    from barnabas.broker.access.access import Access
    from barnabas.broker.broker import Broker

log = logging.getLogger("barnabas.roles")
LOOK_S = 1.0  # how often to look whether the topic is there
BINDINGS_AT_ONCE = 50  # so that other work of the node goes on


class RoleFollower:
    def __init__(self, broker: Broker, access: Access) -> None:
        self._broker = broker
        self._authorizer = access.authorizer
        self._rules: dict[Binding, tuple[Rule, ...]] = {}
        self._task = RetriedTask(self._attempt, self._warn)

    def start(self) -> None:
        self._task.start()

    async def close(self) -> None:
        await self._task.close()

    async def _attempt(self) -> None:
        topic_id = self._topic_id()
        if topic_id is None:
            await self._replace(Bindings())
            self._loaded()
            await asyncio.sleep(LOOK_S)
        else:
            await self._follow(topic_id)

    def _warn(self, error: Exception, retry_s: float) -> None:
        log.warning(
            "the bindings of roles cannot be read: %s. This node's own principal needs Read on topic %s, or "
            "must be a super user. Trying again in %.0f s",
            error,
            ROLES_TOPIC,
            retry_s,
        )

    async def _follow(self, topic_id: bytes) -> None:
        """Read the topic until it is deleted, or made anew under another id."""
        bindings = Bindings()
        is_caught_up = False

        async def caught_up() -> None:
            nonlocal is_caught_up
            is_caught_up = True
            await self._replace(bindings)
            self._loaded()
            log.info("%d bindings of roles are in force", len(bindings))

        async def changed(changes: Changes) -> None:
            if is_caught_up:  # earlier records may hold bindings that were removed later
                await self._change(changes)

        async with own_client(self._broker, "roles") as cluster:
            await follow(cluster, bindings, changed, caught_up, lambda: self._topic_id() != topic_id)

    def _topic_id(self) -> bytes | None:
        topic = self._broker.image.topics.by_name.get(ROLES_TOPIC)
        return None if topic is None else topic.id

    # -- rules -------------------------------------------------------------------------------------

    async def _replace(self, bindings: Bindings) -> None:
        wanted = set(bindings)
        gone = [(binding, False) for binding in self._rules if binding not in wanted]
        await self._change(gone + [(binding, True) for binding in bindings if binding not in self._rules])

    async def _change(self, changes: Changes) -> None:
        for start in range(0, len(changes), BINDINGS_AT_ONCE):
            added: list[Rule] = []
            removed: list[Rule] = []
            for binding, is_present in changes[start : start + BINDINGS_AT_ONCE]:
                removed += self._rules.pop(binding, ())
                if is_present:
                    self._rules[binding] = tuple(rules_of([binding]))
                    added += self._rules[binding]
            self._authorizer.change(added, removed)
            await asyncio.sleep(0)

    def _loaded(self) -> None:
        if self._authorizer.awaits_roles:
            self._authorizer.awaits_roles = False
            self._authorizer.forget()
