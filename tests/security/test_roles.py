"""Roles as rules: what each allows, what none allows, and records that are none of ours."""

from __future__ import annotations

import json

import pytest

from barnabas.security.acls.authorizer import StandardAuthorizer
from barnabas.security.acls.role_records import BINDINGS_MAX, PRESENT, Bindings, binding_of, key_of
from barnabas.security.acls.roles import (
    RESOURCES,
    ROLES,
    Binding,
    RoleProblem,
    Scope,
    check_binding,
    rules_of,
)
from barnabas.security.acls.vocabulary import CLUSTER_NAME, OPERATIONS, ROLES_TOPIC, Operation, ResourceType

ANN = "User:ann"
SEEN = "DESCRIBE DESCRIBE_CONFIGS"


def decisions(*bindings: Binding, principal: str = ANN) -> StandardAuthorizer:
    authorizer = StandardAuthorizer()
    authorizer.replace_source("roles", rules_of(bindings))
    return authorizer


def allowed(authorizer: StandardAuthorizer, kind: ResourceType, name: str, principal: str = ANN) -> set[str]:
    return {
        operation.name
        for operation in OPERATIONS[kind]
        if authorizer.decide(principal, "10.0.0.1", operation, kind, name).is_allowed
    }


@pytest.mark.parametrize(
    ("role", "topic", "group", "cluster", "transaction"),
    [
        ("SystemAdmin", "all", "all", "all", "all"),
        ("ClusterAdmin", "-READ -WRITE", "-READ", "-IDEMPOTENT_WRITE", "DESCRIBE"),
        ("UserAdmin", "", "", "DESCRIBE", ""),
        ("SecurityAdmin", "", "", "DESCRIBE", ""),
        ("Operator", SEEN, SEEN, SEEN, "DESCRIBE"),
    ],
)
def test_roles_on_the_cluster(role: str, topic: str, group: str, cluster: str, transaction: str) -> None:
    authorizer = decisions(Binding(ANN, role))
    kinds = (ResourceType.TOPIC, ResourceType.GROUP, ResourceType.CLUSTER, ResourceType.TRANSACTIONAL_ID)
    for kind, text in zip(kinds, (topic, group, cluster, transaction), strict=True):
        name = CLUSTER_NAME if kind == ResourceType.CLUSTER else "any"
        every = {operation.name for operation in OPERATIONS[kind]}
        without = {each[1:] for each in text.split() if each.startswith("-")}
        wanted = every if text == "all" else every - without if without else set(text.split())
        assert allowed(authorizer, kind, name) == wanted, kind
        assert allowed(authorizer, kind, name, "User:bob") == set()


@pytest.mark.parametrize(
    ("role", "rights"),
    [
        ("DeveloperRead", "READ DESCRIBE"),
        ("DeveloperWrite", "WRITE DESCRIBE"),
        ("DeveloperManage", "CREATE DELETE DESCRIBE DESCRIBE_CONFIGS"),
        ("ResourceOwner", " ".join(each.name for each in OPERATIONS[ResourceType.TOPIC])),
    ],
)
def test_roles_on_topics(role: str, rights: str) -> None:
    authorizer = decisions(Binding(ANN, role, "Topic", "orders-", True), Binding(ANN, role, "Topic", "bills"))
    for name in ("orders-", "orders-today", "bills"):
        assert allowed(authorizer, ResourceType.TOPIC, name) == set(rights.split())
    for name in ("order", "bills-2", "other"):
        assert allowed(authorizer, ResourceType.TOPIC, name) == set()


def test_a_decision_names_the_role() -> None:
    authorizer = decisions(Binding(ANN, "DeveloperRead", "Topic", "orders-", True))
    found = authorizer.decide(ANN, "*", Operation.READ, ResourceType.TOPIC, "orders-x")
    assert found.reason == "role DeveloperRead on topics orders-*"


def test_the_topic_of_bindings_is_closed_to_rights_on_many_topics() -> None:
    broad = decisions(
        Binding(ANN, "ResourceOwner", "Topic", "_", True),
        Binding(ANN, "DeveloperWrite", "Topic", "*"),
        Binding(ANN, "Operator"),
    )
    assert allowed(broad, ResourceType.TOPIC, ROLES_TOPIC) == set()
    assert allowed(broad, ResourceType.TOPIC, "_other") != set()
    by_alter = decisions(Binding(ANN, "ClusterAdmin"))  # who may change ACLs may bind roles
    found = by_alter.decide(ANN, "*", Operation.WRITE, ResourceType.TOPIC, ROLES_TOPIC)
    assert found.reason == "Alter on the cluster: role ClusterAdmin on the cluster"
    user_admin = allowed(decisions(Binding(ANN, "UserAdmin")), ResourceType.TOPIC, ROLES_TOPIC)
    assert {"READ", "WRITE"} <= user_admin and "DELETE" not in user_admin
    assert "WRITE" not in allowed(decisions(Binding(ANN, "SecurityAdmin")), ResourceType.TOPIC, ROLES_TOPIC)
    assert "DELETE" in allowed(decisions(Binding(ANN, "SystemAdmin")), ResourceType.TOPIC, ROLES_TOPIC)


def test_the_topic_of_bindings_is_closed_where_everything_else_is_open() -> None:
    authorizer = StandardAuthorizer(allows_everyone=True)
    assert allowed(authorizer, ResourceType.TOPIC, ROLES_TOPIC) == set()
    assert "WRITE" in allowed(authorizer, ResourceType.TOPIC, "other")


def test_nothing_is_open_before_the_bindings_are_read() -> None:
    authorizer = StandardAuthorizer(["User:root"], allows_everyone=True)
    authorizer.awaits_roles = True
    assert allowed(authorizer, ResourceType.TOPIC, "t") == set()
    assert allowed(authorizer, ResourceType.TOPIC, "t", "User:root") != set()
    authorizer.awaits_roles = False
    authorizer.forget()
    assert allowed(authorizer, ResourceType.TOPIC, "t") != set()


def test_every_role_gives_rights_where_it_may_be_bound() -> None:
    for role in ROLES.values():
        for resource, kind in RESOURCES.items():
            name = CLUSTER_NAME if resource == "Cluster" else "x"
            binding = Binding(ANN, role.name, resource, name)
            try:
                check_binding(binding)
            except RoleProblem:
                assert list(rules_of([binding])) == []
                assert role.scope is Scope.CLUSTER or kind not in role.rights
            else:
                assert bool(list(rules_of([binding]))) is (kind is not None)


def test_bindings_are_records() -> None:
    first, second = Binding(ANN, "Operator"), Binding("User:ü", "DeveloperRead", "Subject", "s-", True)
    assert binding_of(key_of(first)) == first and binding_of(key_of(second)) == second
    found = Bindings()
    assert found.apply([(key_of(first), PRESENT), (key_of(second), PRESENT)]) == [
        (first, True),
        (second, True),
    ]
    assert found.apply([(key_of(first), PRESENT), (key_of(first), None)]) == [(first, False)]
    assert list(found) == [second] and len(found) == 1


@pytest.mark.parametrize(
    "key",
    [
        None,
        b"",
        b"\xff",
        b"{}",
        b"[1,2,3,4,5]",
        b'["a","b","c","d"]',
        b'["a","b","c","d","e"]',
        b"[" * 2000,
        json.dumps(["User:" + "x" * 5000, "Operator", "Cluster", CLUSTER_NAME, False]).encode(),
    ],
)
def test_records_that_are_no_bindings_are_left_out(key: bytes | None) -> None:
    found = Bindings()
    assert found.apply([(key, PRESENT)]) == [] and len(found) == 0


def test_bindings_are_bounded() -> None:
    found = Bindings()
    found.apply(
        (key_of(Binding(f"User:{number}", "Operator")), PRESENT) for number in range(BINDINGS_MAX + 5)
    )
    assert len(found) == BINDINGS_MAX
