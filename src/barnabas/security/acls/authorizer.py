"""Decisions: may a principal at an address do an operation on a resource, and which rule says so.

In: super users, rules, the default for resources that no rule covers. Out: `Decision` values. The rules are
those of Kafka's StandardAuthorizer: super users are always allowed; a matching Deny wins over every Allow; a
resource that some rule covers is closed to all others. Decisions are remembered until the rules change.
Does not know: requests, the metadata log, who asks.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import NamedTuple

from barnabas.security.acls.any_topic import allows_any
from barnabas.security.acls.index import RuleIndex
from barnabas.security.acls.rules import Rule, host_matches, host_of
from barnabas.security.acls.vocabulary import (
    ANY_USER,
    CLUSTER_NAME,
    ROLES_TOPIC,
    Operation,
    Permission,
    ResourceType,
    allowing,
    denying,
)

REMEMBERED_MAX = 50_000  # decisions; the memory is emptied beyond, so that it stays bounded
NAME_REMEMBERED_MAX = 300  # characters: requests may name anything, and valid names are shorter
ANY_TOPIC_NAME = "hardcode"  # Kafka asks for a topic of this name where it asks for any topic


class Decision(NamedTuple):
    is_allowed: bool
    reason: str
    rule: Rule | None = None


SUPER_USER = Decision(True, "the principal is a super user (super.users)")
NO_RULES_ALLOWED = Decision(True, "no rule covers the resource, and allow.everyone.if.no.acl.found is true")
NO_RULES_DENIED = Decision(False, "no rule covers the resource")
NO_MATCH = Decision(False, "rules cover the resource, and none of them matches")
NO_ANY = Decision(False, "no rule allows the operation on any resource of this type")
NOT_LOADED = Decision(False, "the ACLs are not loaded yet, and the principal is no super user")

NO_ROLES_YET = Decision(False, "no ACL covers the resource, and the bindings of roles are not read yet")


class StandardAuthorizer:
    def __init__(self, super_users: Iterable[str] = (), *, allows_everyone: bool = False) -> None:
        self.super_users = frozenset(super_users)
        self.index = RuleIndex()
        self.is_loaded = True  # False until the ACLs of a starting node are complete
        self.awaits_roles = False  # True until the bindings of roles of a starting node are read
        self.on_change: list[Callable[[], None]] = []
        self._without_rules = NO_RULES_ALLOWED if allows_everyone else NO_RULES_DENIED
        self._known: dict[tuple[str, str, int, int, str], Decision] = {}

    # -- rules -------------------------------------------------------------------------------------

    def change(self, added: Iterable[Rule] = (), removed: Iterable[Rule] = ()) -> None:
        """Add and remove rules; every decision is made anew afterwards."""
        for rule in removed:
            self.index.remove(rule)
        for rule in added:
            self.index.add(rule)
        self.forget()

    def replace_source(self, source: str, rules: Iterable[Rule]) -> None:
        """Replace the rules of a source other than ACLs, such as roles."""
        self.index.replace_source(source, rules)
        self.forget()

    def forget(self) -> None:
        self._known.clear()
        for tell in self.on_change:
            tell()

    # -- decisions ---------------------------------------------------------------------------------

    def decide(
        self, principal: str, host: str, operation: Operation, resource_type: ResourceType, name: str
    ) -> Decision:
        key = (principal, host, operation, resource_type, name)
        found = self._known.get(key)
        if found is None:
            found = self._decide(principal, host, operation, resource_type, name)
            self._remember(key, found)
        return found

    def _decide(
        self, principal: str, host: str, operation: Operation, resource_type: ResourceType, name: str
    ) -> Decision:
        if principal in self.super_users:
            return SUPER_USER
        if not self.is_loaded:
            return NOT_LOADED
        found = self._by_rules(principal, host, operation, resource_type, name)
        if name == ROLES_TOPIC and not found.is_allowed and found.rule is None:
            return self._by_altering(principal, host) or found
        return found

    def _by_altering(self, principal: str, host: str) -> Decision | None:
        """Allow changes of role bindings to everybody who may change ACLs (Alter on the cluster)."""
        found = self._by_rules(principal, host, Operation.ALTER, ResourceType.CLUSTER, CLUSTER_NAME)
        if not found.is_allowed or found.rule is None:
            return None
        return Decision(True, f"Alter on the cluster: {found.reason}", found.rule)

    def _by_rules(
        self, principal: str, host: str, operation: Operation, resource_type: ResourceType, name: str
    ) -> Decision:
        rules, is_covered = self.index.covering(resource_type, name, principal)
        if not is_covered:
            return self._uncovered(name)
        caller = host_of(host)
        allow, deny = allowing(operation), denying(operation)
        allowed_by: Rule | None = None
        for rule in rules:
            if rule.permission == Permission.DENY:
                if rule.operation in deny and host_matches(rule.host, caller):
                    return Decision(False, str(rule), rule)
            elif allowed_by is not None or (name == ROLES_TOPIC and rule.name != name):
                continue  # writing to the topic of roles gives every right: only rules that name it reach it
            elif rule.operation in allow and host_matches(rule.host, caller):
                allowed_by = rule
        return NO_MATCH if allowed_by is None else Decision(True, str(allowed_by), allowed_by)

    def _uncovered(self, name: str) -> Decision:
        if self.awaits_roles:
            return NO_ROLES_YET
        return NO_RULES_DENIED if name == ROLES_TOPIC else self._without_rules

    def decide_any(
        self, principal: str, host: str, operation: Operation, resource_type: ResourceType
    ) -> Decision:
        """Whether the principal may do the operation on at least one resource of the type."""
        key = (principal, host, -operation, resource_type, "")
        found = self._known.get(key)
        if found is None:
            found = self._decide_any(principal, host, operation, resource_type)
            self._remember(key, found)
        return found

    def _decide_any(
        self, principal: str, host: str, operation: Operation, resource_type: ResourceType
    ) -> Decision:
        named = self._decide(principal, host, operation, resource_type, ANY_TOPIC_NAME)
        if named.is_allowed or not self.is_loaded:
            return named
        caller, wanted = host_of(host), denying(operation)
        rules = [
            rule
            for rule in self.index.of_principal(resource_type, principal)
            if rule.operation in wanted and host_matches(rule.host, caller)
        ]
        rule = allows_any(rules)
        if rule is None:
            return NO_ANY
        return Decision(rule.permission == Permission.ALLOW, str(rule), rule)

    def _remember(self, key: tuple[str, str, int, int, str], decision: Decision) -> None:
        if not self.is_loaded or len(key[-1]) > NAME_REMEMBERED_MAX:
            return
        if len(self._known) >= REMEMBERED_MAX:
            self._known.clear()
        self._known[key] = decision


def parse_super_users(text: str) -> tuple[str, ...]:
    """The principals of `super.users`: separated by semicolons, since distinguished names have commas."""
    found = tuple(part.strip() for part in text.split(";") if part.strip())
    for each in found:
        if ":" not in each:
            raise ValueError(f"super.users: expected principals of the form Type:name, not {each!r}")
    return found


__all__ = ["ANY_USER", "Decision", "StandardAuthorizer", "parse_super_users"]
