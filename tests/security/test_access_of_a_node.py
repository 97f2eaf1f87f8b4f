"""Access control of a node without the node: rights, settings, the log of decisions."""

from __future__ import annotations

import logging

import pytest

from barnabas.broker.access.access import Access, access_of
from barnabas.broker.access.checking import allows
from barnabas.broker.access.decision_log import CALLERS_MAX, DENIALS_EVERY_S
from barnabas.broker.api.needs import Instead, alter_cluster
from barnabas.broker.metrics.parts.access_gauges import Rate
from barnabas.security.acls.authorizer import StandardAuthorizer
from barnabas.security.acls.rules import Rule
from barnabas.security.acls.vocabulary import CLUSTER_NAME, Operation, PatternType, Permission, ResourceType
from barnabas.security.principal import Principal
from barnabas.settings import BrokerSettings, SettingsError

ALICE, HOST = Principal("alice"), "10.0.0.1"
STANDARD = "org.apache.kafka.metadata.authorizer.StandardAuthorizer"
TOPIC = ResourceType.TOPIC
LOGGER = "kafka.authorizer.logger"


def rule(
    name: str, operation: Operation = Operation.WRITE, permission: Permission = Permission.ALLOW
) -> Rule:
    return Rule(TOPIC, name, PatternType.LITERAL, "User:alice", "*", operation, permission)


@pytest.fixture
def clock() -> list[float]:
    return [0.0]


@pytest.fixture
def access(clock: list[float]) -> Access:
    made = Access(StandardAuthorizer(), lambda: clock[0])
    made.load({})
    made.authorizer.change(added=[rule("orders")])
    return made


def settings(**others: str) -> BrokerSettings:
    plain = {"process.roles": "broker", "node.id": "1", "controller.quorum.voters": "2@localhost:9093"}
    plain |= {"controller.listener.names": "CONTROLLER", "log.dirs": "/tmp/none"}
    return BrokerSettings.load(plain | {name.replace("_", "."): value for name, value in others.items()})


# -- rights ------------------------------------------------------------------------------------------


def test_topics_that_may_be_written_are_remembered_until_rules_change(access: Access) -> None:
    rights = access.rights(ALICE, HOST)
    assert rights.allow_write("orders", 0, b"id")
    assert rights.writable == {"orders", b"id"}
    assert not rights.allow_write("other", 0)
    assert "other" not in rights.writable
    access.authorizer.change(added=[rule("orders", permission=Permission.DENY)])
    assert not rights.writable
    assert not rights.allow_write("orders", 0)


def test_connections_of_one_caller_share_their_rights(access: Access) -> None:
    first = access.rights(ALICE, HOST)
    assert access.rights(Principal("alice"), HOST) is first
    assert access.rights(ALICE, "10.0.0.2") is not first


def test_bits_are_those_of_allowed_operations(access: Access) -> None:
    rights = access.rights(ALICE, HOST)
    assert rights.bits(TOPIC, "orders") == 1 << Operation.WRITE | 1 << Operation.DESCRIBE
    assert rights.bits(ResourceType.CLUSTER, CLUSTER_NAME) == 0


# -- settings ----------------------------------------------------------------------------------------


def test_without_the_setting_there_is_no_access_control() -> None:
    assert access_of(settings(), lambda: 0.0) is None


def test_settings_make_the_authorizer() -> None:
    wanted = settings(authorizer_class_name=STANDARD, super_users="User:admin;User:CN=x,O=y")
    made = access_of(wanted, lambda: 0.0)
    assert made is not None
    assert made.authorizer.super_users == {"User:admin", "User:CN=x,O=y"}
    assert not made.authorizer.is_loaded


class Lenient(StandardAuthorizer):
    """A plug-in."""


def test_an_authorizer_may_come_from_an_entry_point() -> None:
    made = access_of(settings(authorizer_class_name=f"{__name__}:Lenient"), lambda: 0.0)
    assert made is not None
    assert isinstance(made.authorizer, Lenient)


@pytest.mark.parametrize("name", ["no.such.module:Name", f"{__name__}:Missing", "collections:OrderedDict"])
def test_an_entry_point_that_is_no_authorizer_is_refused(name: str) -> None:
    with pytest.raises(SettingsError, match=r"authorizer\.class\.name"):
        access_of(settings(authorizer_class_name=name), lambda: 0.0)


# -- the log of decisions ----------------------------------------------------------------------------


def test_denials_are_logged_once_and_then_counted(
    access: Access, clock: list[float], caplog: pytest.LogCaptureFixture
) -> None:
    rights = access.rights(ALICE, HOST)
    with caplog.at_level(logging.INFO, LOGGER):
        for _ in range(5):
            assert not rights.allow(Operation.READ, TOPIC, "orders", 1)
        clock[0] += DENIALS_EVERY_S
        assert not rights.allow(Operation.READ, TOPIC, "orders", 1)
    first, summary, again = caplog.messages
    assert first == (
        "Principal = User:alice is Denied operation = READ from host = 10.0.0.1 on resource = "
        "Topic:LITERAL:orders for request = Fetch with resourceRefCount = 1 based on rule "
        "rules cover the resource, and none of them matches"
    )
    assert "4 more times" in summary
    assert again == first
    assert access.log.denied == 6


def test_a_flood_of_callers_is_counted_together(access: Access, caplog: pytest.LogCaptureFixture) -> None:
    with caplog.at_level(logging.INFO, LOGGER):
        for number in range(CALLERS_MAX + 3):
            access.rights(Principal(f"u{number}"), HOST).allow(Operation.READ, TOPIC, "orders")
        access.log.summarize()
    assert len(caplog.messages) == CALLERS_MAX + 1
    assert caplog.messages[-1].startswith("3 more requests of other callers")


def test_allowed_decisions_are_sampled_at_debug(access: Access, caplog: pytest.LogCaptureFixture) -> None:
    rights = access.rights(ALICE, HOST)
    with caplog.at_level(logging.DEBUG, LOGGER):
        for _ in range(150):
            assert rights.allow(Operation.WRITE, TOPIC, "orders", 0)
    assert len(caplog.messages) == 2
    assert "is Allowed operation = WRITE" in caplog.messages[0]
    assert "ALLOW WRITE on TOPIC LITERAL 'orders' for User:alice from *" in caplog.messages[0]


def test_names_cannot_break_or_flood_the_log(access: Access, caplog: pytest.LogCaptureFixture) -> None:
    with caplog.at_level(logging.INFO, LOGGER):
        access.rights(ALICE, HOST).allow(Operation.READ, TOPIC, "x\nPrincipal = User:admin is Allowed")
        access.rights(ALICE, HOST).allow(Operation.READ, TOPIC, "y" * 30_000)
    assert all("\n" not in message and len(message) < 1_000 for message in caplog.messages)


def test_long_names_are_not_remembered(access: Access) -> None:
    access.authorizer.change(added=[rule("*")])
    rights = access.rights(ALICE, HOST)
    before = len(access.authorizer._known)
    assert rights.allow_write("y" * 30_000, 0)
    assert len(access.authorizer._known) == before
    assert not rights.writable


def test_lists_that_are_filtered_are_not_logged(access: Access, caplog: pytest.LogCaptureFixture) -> None:
    with caplog.at_level(logging.DEBUG, LOGGER):
        assert not access.rights(ALICE, HOST).allow_quietly(Operation.READ, TOPIC, "orders")
    assert not caplog.messages
    assert access.log.denied == 0


def test_rates_are_of_the_last_minute() -> None:
    now, count = [0.0], [0]
    rate = Rate(lambda: count[0], lambda: now[0])
    now[0], count[0] = 30.0, 10
    assert rate.per_minute() == 20.0
    for now[0] in (60.0, 90.0, 120.0, 150.0):
        rate.per_minute()
    assert rate.per_minute() == 0.0


def test_a_right_that_another_one_replaces_is_not_logged_as_denied(
    access: Access, caplog: pytest.LogCaptureFixture
) -> None:
    rights = access.rights(ALICE, HOST)
    need = alter_cluster.or_(Instead.ANY_TOPIC_WRITE)
    with caplog.at_level(logging.INFO, LOGGER):
        assert allows(need, None, rights, 22)
    assert not caplog.messages
    with caplog.at_level(logging.INFO, LOGGER):
        assert not allows(alter_cluster.or_(Instead.CLUSTER_ACTION), None, rights, 27)
    [said] = caplog.messages
    assert "operation = CLUSTER_ACTION" in said
