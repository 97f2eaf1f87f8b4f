"""Decisions of the authorizer: rules as in StandardAuthorizer, and the index against a naive model."""

from __future__ import annotations

import random

import pytest

from barnabas.security.acls.authorizer import StandardAuthorizer, parse_super_users
from barnabas.security.acls.rules import Rule, host_of
from barnabas.security.acls.vocabulary import Operation, PatternType, Permission, ResourceType

TOPIC, GROUP = ResourceType.TOPIC, ResourceType.GROUP
READ, WRITE, DESCRIBE, ALL = Operation.READ, Operation.WRITE, Operation.DESCRIBE, Operation.ALL


def rule(
    name: str = "orders",
    operation: Operation = READ,
    *,
    deny: bool = False,
    prefixed: bool = False,
    principal: str = "User:alice",
    host: str = "*",
    resource: ResourceType = TOPIC,
    source: str = "",
) -> Rule:
    pattern = PatternType.PREFIXED if prefixed else PatternType.LITERAL
    permission = Permission.DENY if deny else Permission.ALLOW
    return Rule(resource, name, pattern, principal, host, operation, permission, source)


def authorizer(*rules: Rule, everyone: bool = False, super_users: str = "") -> StandardAuthorizer:
    found = StandardAuthorizer(parse_super_users(super_users), allows_everyone=everyone)
    found.change(added=rules)
    return found


def may(found: StandardAuthorizer, operation: Operation, name: str, host: str = "10.1.2.3") -> bool:
    return found.decide("User:alice", host, operation, TOPIC, name).is_allowed


def test_a_super_user_is_allowed_whatever_is_denied() -> None:
    found = authorizer(rule(operation=ALL, deny=True), super_users="User:bob;User:alice")
    assert may(found, READ, "orders")


def test_super_users_are_separated_by_semicolons() -> None:
    assert parse_super_users("User:CN=a,OU=b; User:c;") == ("User:CN=a,OU=b", "User:c")
    with pytest.raises(ValueError, match=r"super\.users"):
        parse_super_users("alice")


def test_a_deny_wins_over_every_allow() -> None:
    found = authorizer(rule(), rule("or", ALL, deny=True, prefixed=True))
    decision = found.decide("User:alice", "h", READ, TOPIC, "orders")
    assert not decision.is_allowed
    assert decision.reason == "DENY ALL on TOPIC PREFIXED 'or' for User:alice from *"


@pytest.mark.parametrize(
    ("given", "name", "allowed"),
    [
        (rule("orders"), "orders", True),
        (rule("orders"), "orders2", False),
        (rule("orders", prefixed=True), "orders2", True),
        (rule("orders", prefixed=True), "orders", True),
        (rule("orders", prefixed=True), "order", False),
        (rule("*"), "anything", True),
        (rule("*", prefixed=True), "anything", False),
        (rule("*", prefixed=True), "*thing", True),
        (rule(principal="User:*"), "orders", True),
        (rule(principal="Group:alice"), "orders", False),
    ],
)
def test_patterns_and_principals(given: Rule, name: str, allowed: bool) -> None:
    assert may(authorizer(given), READ, name) is allowed


@pytest.mark.parametrize("operation", [READ, WRITE, Operation.DELETE, Operation.ALTER, ALL])
def test_operations_that_imply_describe_do_so_for_allow_rules_only(operation: Operation) -> None:
    assert may(authorizer(rule(operation=operation)), DESCRIBE, "orders")
    denied = authorizer(rule(operation=operation, deny=True), rule(operation=DESCRIBE))
    assert may(denied, DESCRIBE, "orders") is (operation != ALL)


def test_altering_settings_implies_describing_them() -> None:
    found = authorizer(rule(operation=Operation.ALTER_CONFIGS))
    assert may(found, Operation.DESCRIBE_CONFIGS, "orders")
    assert not may(found, DESCRIBE, "orders")


@pytest.mark.parametrize(
    ("host", "caller", "matches"),
    [
        ("10.1.2.3", "10.1.2.3", True),
        ("10.1.2.4", "10.1.2.3", False),
        ("10.0.0.0/8", "10.1.2.3", True),
        ("10.1.2.3/8", "10.200.0.1", True),
        ("11.0.0.0/8", "10.1.2.3", False),
        ("10.0.0.0/33", "10.1.2.3", False),
        ("2001:db8::/32", "2001:db8::7", True),
        ("2001:db8::/32", "2001:db9::7", False),
        ("2001:db8::/32", "10.1.2.3", False),
        ("0:0:0:0:0:0:0:1", "::1", True),
        ("::1", "::1", True),
        ("10.1.2.3", "::ffff:10.1.2.3", True),
        ("localhost", "127.0.0.1", False),
        ("", "10.1.2.3", False),
    ],
)
def test_hosts_are_texts_or_networks(host: str, caller: str, matches: bool) -> None:
    assert may(authorizer(rule(host=host)), READ, "orders", caller) is matches


def test_a_caller_without_an_address_matches_only_the_wildcard() -> None:
    assert host_of("").address is None
    assert may(authorizer(rule()), READ, "orders", "")
    assert not may(authorizer(rule(host="0.0.0.0/0")), READ, "orders", "")


def test_resources_without_any_rule_follow_the_setting() -> None:
    other = rule("other", principal="User:bob")
    assert may(authorizer(other, everyone=True), READ, "orders")
    assert not may(authorizer(other), READ, "orders")
    covered = rule("ord", WRITE, prefixed=True, principal="User:bob", host="1.1.1.1")
    assert not may(authorizer(covered, everyone=True), READ, "orders")


def test_a_change_of_rules_changes_decisions_that_were_made_before() -> None:
    found = authorizer(rule())
    assert may(found, READ, "orders")
    found.change(removed=[rule()])
    assert not may(found, READ, "orders")
    found.replace_source("roles", [rule(source="DeveloperRead of User:alice on Topic:orders")])
    decision = found.decide("User:alice", "h", READ, TOPIC, "orders")
    assert decision.is_allowed
    assert decision.reason == "DeveloperRead of User:alice on Topic:orders"
    found.replace_source("roles", [])
    assert not may(found, READ, "orders")


def test_before_the_rules_are_loaded_only_super_users_are_allowed() -> None:
    found = authorizer(rule(), super_users="User:admin", everyone=True)
    found.is_loaded = False
    assert not found.decide("User:bob", "h", READ, TOPIC, "orders").is_allowed
    assert found.decide("User:admin", "h", READ, TOPIC, "orders").is_allowed
    found.is_loaded = True
    assert may(found, READ, "orders")


# -- any topic ---------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("rules", "allowed"),
    [
        ([], False),
        ([rule("a", WRITE)], True),
        ([rule("a", ALL)], True),
        ([rule("a", READ)], False),
        ([rule("a", WRITE), rule("a", WRITE, deny=True)], False),
        ([rule("a", WRITE), rule("*", WRITE, deny=True)], False),
        ([rule("*", WRITE), rule("a", WRITE, deny=True, prefixed=True)], True),
        ([rule("abc", WRITE), rule("ab", WRITE, deny=True, prefixed=True)], False),
        ([rule("abc", WRITE, prefixed=True), rule("ab", WRITE, deny=True, prefixed=True)], False),
        ([rule("abc", WRITE, prefixed=True), rule("abc", WRITE, deny=True)], True),
        ([rule("a", WRITE, prefixed=True), rule("ab", WRITE, deny=True, prefixed=True)], True),
        ([rule("a", WRITE, principal="User:bob")], False),
        ([rule("a", WRITE, principal="User:*")], True),
        ([rule("a", WRITE, host="9.9.9.9")], False),
        ([rule("a", WRITE, resource=GROUP)], False),
    ],
)
def test_any_topic(rules: list[Rule], allowed: bool) -> None:
    assert authorizer(*rules).decide_any("User:alice", "h", WRITE, TOPIC).is_allowed is allowed


def test_any_topic_without_rules_follows_the_setting() -> None:
    assert authorizer(everyone=True).decide_any("User:alice", "h", WRITE, TOPIC).is_allowed


# -- the index against a naive model -----------------------------------------------------------------

NAMES = ["", "*", "a", "ab", "abc", "abd", "b", "bc", "hardcode"]
PRINCIPALS = ["User:alice", "User:bob", "User:*"]
HOSTS = ["*", "1.2.3.4", "1.2.0.0/16"]
OPERATIONS = [ALL, READ, WRITE, DESCRIBE, Operation.DELETE, Operation.ALTER_CONFIGS]


def naive(
    rules: list[Rule], principal: str, host: str, operation: Operation, resource: int, name: str
) -> bool:
    """The rules read off one by one, as the documentation of Kafka states them."""
    implying = {DESCRIBE: {READ, WRITE, Operation.DELETE, Operation.ALTER}}
    implying[Operation.DESCRIBE_CONFIGS] = {Operation.ALTER_CONFIGS}
    covering = [
        each
        for each in rules
        if each.resource_type == resource
        and (
            name.startswith(each.name)
            if each.pattern_type == PatternType.PREFIXED
            else each.name in ("*", name)
        )
    ]
    if not covering:
        return False
    matching = [
        each
        for each in covering
        if each.principal in (principal, "User:*")
        and (each.host in ("*", host) or (each.host == "1.2.0.0/16" and host.startswith("1.2.")))
    ]
    denies = [each for each in matching if each.permission == Permission.DENY]
    if any(each.operation in (operation, ALL) for each in denies):
        return False
    allowing = {operation, ALL, *implying.get(operation, set())}
    return any(each.permission == Permission.ALLOW and each.operation in allowing for each in matching)


def random_rule(rng: random.Random) -> Rule:
    return Rule(
        rng.choice([TOPIC, GROUP]),
        rng.choice(NAMES[1:]),
        rng.choice([PatternType.LITERAL, PatternType.PREFIXED]),
        rng.choice(PRINCIPALS),
        rng.choice(HOSTS),
        rng.choice(OPERATIONS),
        rng.choice([Permission.ALLOW, Permission.ALLOW, Permission.DENY]),
    )


@pytest.mark.parametrize("seed", range(40))
def test_the_index_decides_as_the_naive_model_does(seed: int) -> None:
    rng = random.Random(seed)
    found = StandardAuthorizer()
    rules: list[Rule] = []
    for _ in range(12):
        added = [random_rule(rng) for _ in range(rng.randrange(4))]
        removed = [rules.pop(rng.randrange(len(rules))) for _ in range(min(len(rules), rng.randrange(3)))]
        found.change(added, removed)
        rules += added
        for name in NAMES:
            for principal in ("User:alice", "User:bob", "User:carol"):
                host = rng.choice(["1.2.3.4", "1.2.9.9", "5.6.7.8"])
                operation = rng.choice([READ, WRITE, DESCRIBE, Operation.DESCRIBE_CONFIGS])
                resource = rng.choice([TOPIC, GROUP])
                decision = found.decide(principal, host, operation, resource, name)
                expected = naive(rules, principal, host, operation, resource, name)
                assert decision.is_allowed is expected, (rules, principal, host, operation, resource, name)


def test_a_decision_looks_at_few_of_many_rules() -> None:
    found = StandardAuthorizer()
    found.change(
        added=[
            *(rule(f"topic-{n}", principal=f"User:u{n % 100}") for n in range(5_000)),
            *(rule(f"prefix-{n}-", prefixed=True, principal=f"User:u{n % 100}") for n in range(5_000)),
            *(rule("*", principal=f"User:u{n}") for n in range(1_000)),
        ]
    )
    rules, is_covered = found.index.covering(TOPIC, "prefix-17-x", "User:u17")
    assert is_covered
    assert len(rules) == 2
