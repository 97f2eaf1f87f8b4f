"""Roles: named sets of rights, bound to principals on a cluster, a resource, or resources with a prefix.

In: bindings. Out: rules for the same decision that ACLs go into, each with a text that names the role. Roles
only allow; a Deny of an ACL wins over them. The names and their rights are those that users of Confluent
Platform know. Bindings of resources that a broker does not have (subjects, connectors) are kept and give no
rule. Does not know: where bindings are kept.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from enum import StrEnum

from barnabas.security.acls.rules import Rule
from barnabas.security.acls.vocabulary import (
    CLUSTER_NAME,
    ROLES_TOPIC,
    WILDCARD,
    Operation,
    PatternType,
    Permission,
    ResourceType,
)

NAME_LENGTH_MAX = 249

Rights = Mapping[ResourceType, tuple[Operation, ...]]
ALL = (Operation.ALL,)
SEEN = (Operation.DESCRIBE, Operation.DESCRIBE_CONFIGS)


class Scope(StrEnum):
    CLUSTER = "cluster"  # everything in the cluster
    RESOURCE = "resource"  # what the binding names


@dataclass(frozen=True, slots=True)
class Role:
    name: str
    scope: Scope
    summary: str
    rights: Rights
    bindings: tuple[Operation, ...] = ()  # on the topic that holds the bindings


EVERYTHING: Rights = {kind: ALL for kind in ResourceType if kind != ResourceType.ANY}

ROLES: Mapping[str, Role] = {
    role.name: role
    for role in (
        Role(
            "SystemAdmin",
            Scope.CLUSTER,
            "everything, the bindings of roles included",
            EVERYTHING,
            ALL,
        ),
        Role(
            "ClusterAdmin",
            Scope.CLUSTER,
            "sets up the cluster, its topics and groups; reads and writes no records",
            {
                ResourceType.CLUSTER: (
                    Operation.CREATE,
                    Operation.ALTER,
                    Operation.CLUSTER_ACTION,
                    Operation.ALTER_CONFIGS,
                    *SEEN,
                ),
                ResourceType.TOPIC: (
                    Operation.CREATE,
                    Operation.DELETE,
                    Operation.ALTER,
                    Operation.ALTER_CONFIGS,
                    *SEEN,
                ),
                ResourceType.GROUP: (Operation.DELETE, Operation.ALTER_CONFIGS, *SEEN),
                ResourceType.TRANSACTIONAL_ID: (Operation.DESCRIBE,),
            },
        ),
        Role(
            "UserAdmin",
            Scope.CLUSTER,
            "binds roles to principals",
            {ResourceType.CLUSTER: (Operation.DESCRIBE,)},
            (Operation.READ, Operation.WRITE, Operation.CREATE, *SEEN),
        ),
        Role(
            "SecurityAdmin",
            Scope.CLUSTER,
            "sees all ACLs and bindings",
            {ResourceType.CLUSTER: (Operation.DESCRIBE,)},
            (Operation.READ, *SEEN),
        ),
        Role(
            "Operator",
            Scope.CLUSTER,
            "watches the cluster: sees everything but records",
            {
                ResourceType.CLUSTER: SEEN,
                ResourceType.TOPIC: SEEN,
                ResourceType.GROUP: SEEN,
                ResourceType.TRANSACTIONAL_ID: (Operation.DESCRIBE,),
            },
        ),
        Role(
            "ResourceOwner",
            Scope.RESOURCE,
            "everything with the resource",
            {
                ResourceType.CLUSTER: (Operation.CREATE, Operation.IDEMPOTENT_WRITE, Operation.DESCRIBE),
                ResourceType.TOPIC: ALL,
                ResourceType.GROUP: ALL,
                ResourceType.TRANSACTIONAL_ID: ALL,
            },
        ),
        Role(
            "DeveloperRead",
            Scope.RESOURCE,
            "reads records and commits offsets",
            {
                ResourceType.TOPIC: (Operation.READ, Operation.DESCRIBE),
                ResourceType.GROUP: (Operation.READ, Operation.DESCRIBE),
                ResourceType.TRANSACTIONAL_ID: (Operation.DESCRIBE,),
            },
        ),
        Role(
            "DeveloperWrite",
            Scope.RESOURCE,
            "writes records, also in transactions",
            {
                ResourceType.CLUSTER: (Operation.IDEMPOTENT_WRITE,),
                ResourceType.TOPIC: (Operation.WRITE, Operation.DESCRIBE),
                ResourceType.TRANSACTIONAL_ID: (Operation.WRITE, Operation.DESCRIBE),
            },
        ),
        Role(
            "DeveloperManage",
            Scope.RESOURCE,
            "creates and deletes; changes no settings, reads and writes no records",
            {
                ResourceType.CLUSTER: (Operation.CREATE,),
                ResourceType.TOPIC: (Operation.CREATE, Operation.DELETE, *SEEN),
                ResourceType.GROUP: (Operation.DELETE, Operation.DESCRIBE),
                ResourceType.TRANSACTIONAL_ID: (Operation.DESCRIBE,),
            },
        ),
    )
}

RESOURCES: Mapping[str, ResourceType | None] = {
    "Cluster": ResourceType.CLUSTER,
    "Topic": ResourceType.TOPIC,
    "Group": ResourceType.GROUP,
    "TransactionalId": ResourceType.TRANSACTIONAL_ID,
    "Subject": None,  # of a schema registry: kept for it
    "Connector": None,
}


class RoleProblem(ValueError):
    """A binding that cannot be; the message says why."""


@dataclass(frozen=True, slots=True, order=True)
class Binding:
    """A principal has a role: on the cluster, or on a resource."""

    principal: str
    role: str
    resource: str = "Cluster"  # one of RESOURCES
    name: str = CLUSTER_NAME
    is_prefix: bool = False

    @property
    def where(self) -> str:
        if self.resource == "Cluster":
            return "the cluster"
        kind = {"TransactionalId": "transactional id"}.get(self.resource, self.resource.lower())
        return f"{kind}s {self.name}*" if self.is_prefix else f"{kind} {self.name}"

    def __str__(self) -> str:
        return f"role {self.role} on {self.where}"


def check_binding(binding: Binding) -> None:
    """Raise RoleProblem for a binding that gives no rights, or that nobody can mean."""
    kind, colon, name = binding.principal.partition(":")
    if not colon or not kind or not name:
        raise RoleProblem(f"expected a principal of the form User:name, not {binding.principal!r}")
    role = ROLES.get(binding.role)
    if role is None:
        raise RoleProblem(f"there is no role {binding.role}: roles are {', '.join(ROLES)}")
    if binding.resource not in RESOURCES:
        raise RoleProblem(f"there are no resources of type {binding.resource}: {', '.join(RESOURCES)}")
    if not binding.name or len(binding.name) > NAME_LENGTH_MAX:
        raise RoleProblem(f"the name of a resource has 1 to {NAME_LENGTH_MAX} characters")
    if binding.resource == "Cluster":
        if binding.name != CLUSTER_NAME or binding.is_prefix:
            raise RoleProblem(f"the cluster is called {CLUSTER_NAME}")
    elif role.scope is Scope.CLUSTER:
        raise RoleProblem(f"{role.name} is a role on the cluster, not on {binding.where}")
    kind_of_resource = RESOURCES[binding.resource]
    if kind_of_resource is not None and kind_of_resource not in role.rights:
        raise RoleProblem(f"{role.name} has no rights on {binding.where}")


def rules_of(bindings: Iterable[Binding]) -> Iterator[Rule]:
    """The rules that bindings stand for. Bindings that cannot be are left out."""
    for binding in bindings:
        try:
            check_binding(binding)
        except RoleProblem:
            continue
        role, source = ROLES[binding.role], str(binding)
        for operation in role.bindings:
            yield allow(ResourceType.TOPIC, ROLES_TOPIC, PatternType.LITERAL, binding, operation, source)
        if role.scope is Scope.CLUSTER:
            for kind, operations in role.rights.items():
                name = CLUSTER_NAME if kind == ResourceType.CLUSTER else WILDCARD
                for operation in operations:
                    yield allow(kind, name, PatternType.LITERAL, binding, operation, source)
            continue
        own = RESOURCES[binding.resource]
        if own is not None:
            pattern = PatternType.PREFIXED if binding.is_prefix else PatternType.LITERAL
            for operation in role.rights[own]:
                yield allow(own, binding.name, pattern, binding, operation, source)


def allow(
    kind: ResourceType, name: str, pattern: PatternType, binding: Binding, operation: Operation, source: str
) -> Rule:
    return Rule(kind, name, pattern, binding.principal, WILDCARD, operation, Permission.ALLOW, source)
