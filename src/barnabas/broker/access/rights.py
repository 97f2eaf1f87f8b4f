"""The rights of one principal at one address: what connections of the same caller share.

In: the authorizer's decisions. Out: yes or no, quickly. Topics that may be written or read are kept in sets,
which the produce and fetch paths look at for every request; they are emptied when a rule changes.
Does not know: requests, rules.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING

from barnabas.protocol import ErrorCode, KafkaError
from barnabas.security.acls.authorizer import NOT_LOADED, Decision
from barnabas.security.acls.vocabulary import CLUSTER_NAME, OPERATIONS, Operation, ResourceType

if TYPE_CHECKING:
    from barnabas.broker.access.access import Access
    from barnabas.security.principal import Principal

TOPICS_REMEMBERED_MAX = 10_000  # in each set; it is emptied beyond
NAME_REMEMBERED_MAX = 300  # characters; valid names of topics are shorter


class Rights:
    __slots__ = ("__weakref__", "_access", "_decide", "_text", "host", "principal", "readable", "writable")

    def __init__(self, access: Access, principal: Principal, host: str) -> None:
        self._access = access
        self._decide = access.authorizer.decide
        self._text = f"{principal.type}:{principal.name}"
        self.principal = principal
        self.host = host
        self.writable: set[object] = set()  # names and ids of topics, and (transactional id,)
        self.readable: set[object] = set()

    def allow(self, operation: Operation, resource: ResourceType, name: str, api: int = -1) -> bool:
        """Whether the caller may do it. The decision is logged. Raises KafkaError while ACLs are loading."""
        decision = self._decide(self._text, self.host, operation, resource, name)
        self._log(decision, operation, resource, name, api)
        return decision.is_allowed

    def allow_quietly(self, operation: Operation, resource: ResourceType, name: str) -> bool:
        """The same for lists that are filtered, and for bits of allowed operations: not logged."""
        decision = self._decide(self._text, self.host, operation, resource, name)
        return decision.is_allowed

    def allow_first(self, operation: Operation, resource: ResourceType, name: str, api: int = -1) -> bool:
        """The same where another right suffices as well: a denial is not logged, the other one decides."""
        decision = self._decide(self._text, self.host, operation, resource, name)
        if decision.is_allowed or decision is NOT_LOADED:
            self._log(decision, operation, resource, name, api)
        return decision.is_allowed

    def may_describe_topic(self, name: str) -> bool:
        return self.allow_quietly(Operation.DESCRIBE, ResourceType.TOPIC, name)

    def allow_any(self, operation: Operation, resource: ResourceType, api: int = -1) -> bool:
        """Whether the caller may do it on at least one resource of the type."""
        decision = self._access.authorizer.decide_any(self._text, self.host, operation, resource)
        self._log(decision, operation, resource, "*", api)
        return decision.is_allowed

    def allow_write(self, topic: str, api: int, topic_id: bytes | None = None) -> bool:
        if topic in self.writable and (topic_id is None or topic_id in self.writable):
            return True
        if not self.allow(Operation.WRITE, ResourceType.TOPIC, topic, api):
            return False
        if len(topic) <= NAME_REMEMBERED_MAX:
            remember(self.writable, topic)
        if topic_id is not None:
            remember(self.writable, topic_id)
        return True

    def allow_write_as(self, transactional_id: str, api: int) -> bool:
        key = (transactional_id,)  # a tuple, so that it is never taken for a topic
        if key in self.writable:
            return True
        if not self.allow(Operation.WRITE, ResourceType.TRANSACTIONAL_ID, transactional_id, api):
            return False
        if len(transactional_id) <= NAME_REMEMBERED_MAX:
            remember(self.writable, key)
        return True

    def allow_read(self, topic: str, api: int) -> bool:
        if topic in self.readable:
            return True
        if not self.allow(Operation.READ, ResourceType.TOPIC, topic, api):
            return False
        if len(topic) <= NAME_REMEMBERED_MAX:
            remember(self.readable, topic)
        return True

    def bits(self, resource: ResourceType, name: str = CLUSTER_NAME) -> int:
        """The operations that the caller may do, as a bit field."""
        return bits(each for each in OPERATIONS[resource] if self.allow_quietly(each, resource, name))

    def forget(self) -> None:
        self.writable.clear()
        self.readable.clear()

    def _log(
        self, decision: Decision, operation: Operation, resource: ResourceType, name: str, api: int
    ) -> None:
        if decision is NOT_LOADED:
            raise KafkaError(ErrorCode.UNKNOWN_SERVER_ERROR, "the ACLs of this node are not loaded yet")
        self._access.log.note(decision, self._text, self.host, operation, resource, name, api)


def remember(names: set[object], name: object) -> None:
    if len(names) >= TOPICS_REMEMBERED_MAX:
        names.clear()
    names.add(name)


def bits(operations: Iterable[Operation]) -> int:
    return sum(1 << operation for operation in operations)
